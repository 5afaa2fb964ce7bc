package diff

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/isa"
)

// A HashLevel says what a hash leaves out.
type HashLevel uint8

// The levels of hash, each leaving out what the one before does and more.
const (
	HashBytes     HashLevel = iota // nothing: SHA-256 of the bytes of the code section
	HashCode                       // addresses, relocated fields, padding
	HashNoControl                  // the control codes too
	HashNoRegs                     // which registers are used, too
	numHashLevels
)

var hashNames = [numHashLevels]string{"bytes", "code", "nocontrol", "noregs"}

func (l HashLevel) String() string { return hashNames[l] }

// Version returns the version of the scheme at a level. It changes whenever the hash of
// code that stays the same would.
func (l HashLevel) Version() int {
	if l == HashNoRegs {
		return 3
	}
	return 2
}

// Scheme returns the name and the version of a level: code2.
func (l HashLevel) Scheme() string { return l.String() + strconv.Itoa(l.Version()) }

// ParseHashLevel reads the name of a level.
func ParseHashLevel(s string) (HashLevel, error) {
	if i := slices.Index(hashNames[:], s); i >= 0 {
		return HashLevel(i), nil
	}
	return 0, fmt.Errorf("level %q: want %s", s, strings.Join(hashNames[:], ", "))
}

// A Hash is the hash of a kernel or a file.
type Hash [sha256.Size]byte

// String returns the hash in hexadecimal.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// Hash returns the hash of the code and of the kernel's own constants at a level. The
// name of the kernel is no part of it.
func (c *Code) Hash(level HashLevel) Hash { return c.hash(level, level.Version()) }

// HashBy is Hash by a scheme, such as code2. An earlier version of the levels bytes, code
// and nocontrol is a scheme too: version 1 leaves out the constants. That of noregs is
// an error, as is anything else.
func (c *Code) HashBy(scheme string) (Hash, error) {
	var known []string
	for l := range numHashLevels {
		known = append(known, l.Scheme())
		number, ok := strings.CutPrefix(scheme, l.String())
		version, err := strconv.Atoi(number)
		switch {
		case !ok || err != nil || version < 1 || version > l.Version():
		case l == HashNoRegs && version < l.Version():
			return Hash{}, fmt.Errorf("hashes of scheme %s can no longer be computed; replace it by one of %s (cupatch hash --level %s)", scheme, l.Scheme(), l)
		default:
			return c.hash(l, version), nil
		}
	}
	return Hash{}, fmt.Errorf("no hash %s; there are sha256, %s", scheme, strings.Join(known, ", "))
}

func (c *Code) hash(level HashLevel, version int) Hash {
	if level == HashBytes {
		return sha256.Sum256(c.data)
	}
	var r *renamer
	if level == HashNoRegs {
		r = &renamer{}
	}
	h := sha256.New()
	fmt.Fprintf(h, "cupatch %s %d\n", level, version)
	buf := slices.Grow(c.buf[:0], 1<<12)
	for i, w := range c.norm {
		if level >= HashNoControl {
			w = w.AndNot(controlMask)
		}
		if r != nil {
			w = r.rename(c, w)
		}
		refers := c.target[i] != noTarget || c.sym[i] != 0
		if refers {
			buf = append(buf, 1)
		} else {
			buf = append(buf, 0)
		}
		buf = binary.LittleEndian.AppendUint64(buf, w.Lo)
		buf = binary.LittleEndian.AppendUint64(buf, w.Hi)
		if r != nil {
			buf = append(buf, r.more...)
		}
		if refers {
			buf = binary.LittleEndian.AppendUint32(buf, uint32(c.target[i]))
			buf = append(append(buf, c.syms[c.sym[i]]...), 0)
		}
		if len(buf) > 1<<12-256 {
			h.Write(buf)
			buf = buf[:0]
		}
	}
	h.Write(buf)
	c.buf = buf
	if rest := c.data[len(c.data)/isa.WordSize*isa.WordSize:]; len(rest) > 0 {
		h.Write(append([]byte{2}, rest...))
	}
	if version > 1 {
		for _, line := range c.ownData() {
			h.Write(append(append([]byte{3}, line...), 0))
		}
	}
	return Hash(h.Sum(nil))
}

// ownData says what the kernel has for itself beside its instructions, line by line: the
// constant banks that are not all zeros, in which addresses of instructions are replaced
// by their numbers, their relocations, and those that are of no instruction.
func (c *Code) ownData() []string {
	var out []string
	m := c.module
	m.parts.Do(m.split)
	f := &factList{m: m, code: c}
	for _, i := range m.sections[c.number] {
		s := &m.Cubin.Sections()[i]
		if !isBank(m.role[i]) {
			continue
		}
		if data := m.Cubin.SectionData(s); !allZero(data) {
			out = append(out, m.role[i]+" "+digest(c.plainBank(data)))
		}
		for _, r := range m.relocate[s.Index] {
			f.relocations(&m.Cubin.Sections()[r])
		}
	}
	for i := range f.list {
		out = append(out, f.list[i].title()+" "+f.list[i].value)
	}
	out = append(out, c.stray...)
	slices.Sort(out)
	return out
}

func allZero(b []byte) bool {
	for _, x := range b {
		if x != 0 {
			return false
		}
	}
	return true
}

// plainBank returns the words of a bank, each with a byte that says whether it is the
// address of an instruction, whose number then stands for it.
func (c *Code) plainBank(data []byte) []byte {
	out := make([]byte, 0, len(data)+len(data)/4)
	for ; len(data) >= 4; data = data[4:] {
		w := binary.LittleEndian.Uint32(data)
		if i, ok := c.indexAt(uint64(w)); ok {
			out = binary.LittleEndian.AppendUint32(append(out, 1), uint32(i))
		} else {
			out = binary.LittleEndian.AppendUint32(append(out, 0), w)
		}
	}
	return append(out, data...)
}

// A renamer numbers the registers of each file in the order in which they first occur,
// so that code that differs in the names of registers alone becomes the same.
type renamer struct {
	regs   []isa.Operand
	number [numFiles]map[int]int
	more   []byte // numbers of the registers that the last instruction uses and does not print
}

// rename returns w with its registers replaced by their numbers. A number that does not
// fit the field, which cannot be for a file of its size, leaves the register alone.
func (r *renamer) rename(c *Code, w isa.Word) isa.Word {
	r.more = r.more[:0]
	in := c.understand(w)
	if in.Status != isa.StatusKnown {
		return w
	}
	out := w
	r.regs = in.AppendRegisters(r.regs[:0])
	for _, s := range r.regs {
		for i := range s.Count {
			n := r.numberOf(s.File, s.First+i)
			if i > 0 || len(s.Field) == 0 {
				r.more = binary.LittleEndian.AppendUint16(r.more, uint16(n))
			} else if x, err := s.Field.Set(out, uint64(n)); err == nil {
				out = x
			}
		}
	}
	return out
}

// numberOf returns the number of a register.
func (r *renamer) numberOf(f isa.RegFile, n int) int {
	m := r.number[f]
	if m == nil {
		m = map[int]int{}
		r.number[f] = m
	}
	if _, ok := m[n]; !ok {
		m[n] = len(m)
	}
	return m[n]
}

// FileHash combines lines into one hash that does not depend on their order or on how
// often each is there: SHA-256 over the sorted lines. Those of [Code.HashLine] stand for
// kernels, those of [Module.ModuleLine] for what cubins hold beside, those of [EntryLine]
// for other entries.
func FileHash(level HashLevel, lines []string) Hash {
	lines = slices.Clone(lines)
	slices.Sort(lines)
	lines = slices.Compact(lines)
	return sha256.Sum256([]byte(fmt.Sprintf("cupatch file %s %d\n%s\n", level, level.Version(), strings.Join(lines, "\n"))))
}

// HashLine returns the line that a kernel with the hash h at a level has in the hash of a
// file: "ARCH NAME HASH BESIDE". What the compiler puts into a name anew in each build is
// no part of it; BESIDE stands for what the cubin says of the kernel beside its code.
func (c *Code) HashLine(level HashLevel, h Hash) string {
	l := &c.lines
	l.reset(level)
	(&factList{m: c.module, code: c, places: true, lines: l}).ofCode()
	if level <= HashCode {
		for _, r := range c.resources() {
			c.buf = strconv.AppendInt(c.buf[:0], int64(r.n), 10)
			l.add(r.name, "", c.buf)
		}
	}
	return c.Arch + " " + quoteName(c.module.kernelName(c.number)) + " " + h.String() + " " + l.hash().String()
}

// A lineList collects lines for a hash in which their order does not count.
type lineList struct {
	kinds        Kinds // of facts that count
	text, sorted []byte
	lines        [][2]int // where they start and end in text
}

// reset empties l for the facts that count at a level: at the level code all that [Files]
// counts at its level of that name, at those below data.
func (l *lineList) reset(level HashLevel) {
	l.text, l.lines, l.kinds = l.text[:0], l.lines[:0], Data
	if level <= HashCode {
		l.kinds |= Loader
	}
}

// add adds the line of what there is of group, name and value, with blanks between them.
func (l *lineList) add(group, name string, value []byte) {
	start := len(l.text)
	l.text = append(l.text, group...)
	if name != "" {
		l.text = append(append(l.text, ' '), name...)
	}
	l.text = append(append(l.text, ' '), value...)
	l.lines = append(l.lines, [2]int{start, len(l.text)})
}

// hash returns the hash of the lines, sorted, each with a zero byte after it.
func (l *lineList) hash() Hash {
	slices.SortFunc(l.lines, func(x, y [2]int) int { return bytes.Compare(l.text[x[0]:x[1]], l.text[y[0]:y[1]]) })
	l.sorted = l.sorted[:0]
	for _, at := range l.lines {
		l.sorted = append(append(l.sorted, l.text[at[0]:at[1]]...), 0)
	}
	return sha256.Sum256(l.sorted)
}

// quoteName returns a name in a form that fits between blanks on a line: as it is, or in
// the quotes of Go.
func quoteName(name string) string {
	for i := range len(name) {
		if c := name[i]; c <= ' ' || c >= 0x7f || c == '"' || c == '\\' {
			return strings.ReplaceAll(strconv.QuoteToASCII(name), " ", `\x20`)
		}
	}
	if name == "" {
		return `""`
	}
	return name
}

// ModuleLine returns the line that the cubin has in the hash of a file for what belongs to
// none of its kernels: "ARCH HASH".
func (m *Module) ModuleLine(level HashLevel) string {
	l := &lineList{}
	l.reset(level)
	(&factList{m: m, places: true, lines: l}).ofCubin()
	return m.Cubin.Arch + " " + l.hash().String()
}

// entryPool has memory for the contents of entries.
var entryPool sync.Pool

// EntryLine returns the line that an entry that is no cubin has in the hash of a file:
// "KIND TARGET … HASH".
func EntryLine(e *elfx.Entry) (string, error) {
	buf, _ := entryPool.Get().(*[]byte)
	if buf == nil {
		buf = new([]byte)
	}
	defer entryPool.Put(buf)
	data, err := contentsOf(e, *buf)
	if err != nil {
		return "", err
	}
	if !e.Shared() && cap(data) > cap(*buf) {
		*buf = data
	}
	return e.Kind.String() + " " + loaderText(e) + " " + meaningOf(e.Kind, data).String(), nil
}
