package diff

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/cupatch/cupatch/isa"
)

// HashVersion is the version of the hash scheme. It changes whenever the hash of code
// that stays the same would.
const HashVersion = 1

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

// HashLevels returns the names of the levels.
func HashLevels() []string { return hashNames[:] }

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

// Hash returns the hash of the code at a level. The name of the kernel is no part of
// it.
func (c *Code) Hash(level HashLevel) Hash {
	if level == HashBytes {
		return sha256.Sum256(c.data)
	}
	var r *renamer
	if level == HashNoRegs {
		r = &renamer{}
	}
	h := sha256.New()
	fmt.Fprintf(h, "cupatch %s %d\n", level, HashVersion)
	buf := make([]byte, 0, 1<<12)
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
	if rest := c.data[len(c.data)/isa.WordSize*isa.WordSize:]; len(rest) > 0 {
		h.Write(append([]byte{2}, rest...))
	}
	return Hash(h.Sum(nil))
}

// A renamer numbers the registers of each file in the order in which they first occur,
// so that code that differs in the names of registers alone becomes the same.
type renamer struct {
	slots  []regSlot
	counts []int
	number [numFiles]map[uint64]uint64
	more   []byte // numbers of the registers that the last word means without naming them
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
	r.slots = infoOf(in.Variant).registers(r.slots[:0], in.Word)
	r.counts = widthOf(c.Table, in).counts(r.counts[:0], r.slots)
	for i, s := range r.slots {
		n, special := s.number(in.Word)
		if special {
			continue
		}
		if x, err := s.slot.Field.Set(out, r.numberOf(s.file, n)); err == nil {
			out = x
		}
		for more := 1; more < r.counts[i]; more++ {
			r.more = binary.LittleEndian.AppendUint16(r.more, uint16(r.numberOf(s.file, n+uint64(more))))
		}
	}
	return out
}

// numberOf returns the number of a register.
func (r *renamer) numberOf(f regFile, n uint64) uint64 {
	m := r.number[f]
	if m == nil {
		m = map[uint64]uint64{}
		r.number[f] = m
	}
	if _, ok := m[n]; !ok {
		m[n] = uint64(len(m))
	}
	return m[n]
}

// FileHash combines the hashes of kernels into one that does not depend on their order
// or on how often each is there: SHA-256 over the sorted lines "ARCH NAME HASH".
func FileHash(level HashLevel, lines []string) Hash {
	lines = slices.Clone(lines)
	slices.Sort(lines)
	lines = slices.Compact(lines)
	return sha256.Sum256([]byte(fmt.Sprintf("cupatch file %s %d\n%s\n", level, HashVersion, strings.Join(lines, "\n"))))
}

// HashLine returns the line that a kernel has in the hash of a file. What the compiler
// puts into a name anew in each build is no part of it.
func HashLine(arch, name string, h Hash) string {
	return arch + " " + StableName(name) + " " + h.String()
}
