package listing

import (
	"slices"
	"strconv"
	"strings"

	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/patch/code"
	"github.com/cupatch/cupatch/patch/internal/ascii"
)

// A ControlStyle is a notation of the control code in a listing.
type ControlStyle uint8

// The notations.
const (
	ControlCuasm  ControlStyle = iota // [B01----:R2:W0:Y:S04]
	ControlNvidia                     // &req={1,0} &rd=0x2 … after the text, as nvdisasm 12.8 has it
	ControlNone
)

// A Style says how instructions are written. The zero value writes
// `/*0070*/ [B------:R-:W2:-:S04] @P0 TEXT ;`.
type Style struct {
	Control ControlStyle
	Hex     bool // both halves of the word after the text
	Labels  bool // label lines, and comments with labels and symbols
	Stable  bool // no addresses, labels instead; padding left out
}

// AppendLine appends the line of one instruction, with its newline. It allocates
// nothing but room in dst.
func (s Style) AppendLine(dst []byte, t *isa.Table, w isa.Word, pc uint64) []byte {
	return s.appendRest(appendAddress(dst, pc), t, t.Decode(w), pc)
}

// appendRest appends what comes after the address.
func (s Style) appendRest(dst []byte, t *isa.Table, in isa.Inst, pc uint64) []byte {
	w := in.Word
	if s.Control == ControlCuasm {
		dst = isa.ControlOf(w).Append(dst)
		dst = append(dst, ' ')
	}
	dst = t.AppendText(dst, in, pc)
	if s.Control == ControlNvidia {
		dst = append(in.AppendNvidia(dst), ';')
	} else {
		dst = append(dst, " ;"...)
	}
	if s.Hex {
		dst = s.appendHex(dst, w)
	}
	if in.BadSched && in.Status == isa.StatusKnown {
		dst = append(dst, " // illegal schedule"...)
	}
	return append(dst, '\n')
}

func (s Style) appendHex(dst []byte, w isa.Word) []byte {
	dst = append(dst, " /* 0x"...)
	dst = appendHex(dst, w.Lo, 16)
	dst = append(dst, " 0x"...)
	dst = appendHex(dst, w.Hi, 16)
	return append(dst, " */"...)
}

// hexPairs has the bytes 00 to ff in hexadecimal.
var hexPairs = func() (t [256][2]byte) {
	for i := range t {
		copy(t[i][:], appendHex(nil, uint64(i), 2))
	}
	return t
}()

// appendAddress appends `/*0070*/ `.
func appendAddress(dst []byte, pc uint64) []byte {
	if pc < 1<<16 {
		hi, lo := &hexPairs[pc>>8], &hexPairs[pc&255]
		return append(dst, '/', '*', hi[0], hi[1], lo[0], lo[1], '*', '/', ' ')
	}
	n := 4
	for pc>>(4*n) != 0 {
		n++
	}
	return append(appendHex(append(dst, "/*"...), pc, n), "*/ "...)
}

// appendHex appends the lowest n hexadecimal digits of v.
func appendHex(dst []byte, v uint64, n int) []byte {
	const digits = "0123456789abcdef"
	for n--; n >= 0; n-- {
		dst = append(dst, digits[v>>(4*n)&15])
	}
	return dst
}

// AppendKernel appends the lines of all instructions of a kernel.
func (s Style) AppendKernel(dst []byte, t *isa.Table, c *code.Kernel) []byte {
	if s.Stable {
		return s.appendStable(dst, t, c)
	}
	return s.AppendNoted(dst, t, c, Notes{}, nil)
}

// Targets returns the addresses in a kernel that relative branches mean, ascending.
func Targets(t *isa.Table, data []byte) []uint64 {
	var out []uint64
	for off := 0; off+isa.WordSize <= len(data); off += isa.WordSize {
		if to, ok := t.Decode(isa.LoadWord(data[off:])).Target(uint64(off)); ok && to < uint64(len(data)) {
			out = append(out, to)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// labels are the label lines and comments of a kernel: everything else stays, so that the
// listing can be applied.
type labels struct {
	kernel  *code.Kernel
	table   *isa.Table
	targets []uint64
	relocs  map[uint64]string
}

func newLabels(t *isa.Table, c *code.Kernel) *labels {
	return &labels{kernel: c, table: t, targets: Targets(t, c.Data), relocs: c.Relocations()}
}

// appendBefore appends the label of the instruction at pc where a branch goes there.
func (l *labels) appendBefore(dst []byte, pc uint64) []byte {
	if _, ok := slices.BinarySearch(l.targets, pc); ok {
		dst = append(appendLabel(dst, pc), ":\n"...)
	}
	return dst
}

// appendAfter appends a comment to the line of w where it names a label or is relocated.
func (l *labels) appendAfter(dst []byte, w isa.Word, pc uint64) []byte {
	note := ""
	if to, ok := l.table.Decode(w).Target(pc); ok && to < uint64(len(l.kernel.Data)) {
		note = string(appendLabel(nil, to))
	}
	if sym, ok := l.relocs[pc]; ok {
		note = strings.TrimSpace(note + " relocated: " + sym)
	}
	if note != "" {
		dst = append(append(dst[:len(dst)-1], " // "...), note...)
		dst = append(dst, '\n')
	}
	return dst
}

func appendLabel(dst []byte, pc uint64) []byte {
	n := 4
	for pc>>(4*n) != 0 {
		n++
	}
	return appendHex(append(dst, ".L_"...), pc, n)
}

// appendStable writes a listing made for checking in: labels numbered in order
// instead of addresses, and no padding after the last instruction.
func (s Style) appendStable(dst []byte, t *isa.Table, c *code.Kernel) []byte {
	returns := returnAddresses(t, c.Data)
	targets := Targets(t, c.Data)
	for _, to := range returns {
		targets = append(targets, to)
	}
	slices.Sort(targets)
	targets = slices.Compact(targets)
	n := codeEnd(t, c.Data)
	var text []byte
	for off := 0; off < n; off += isa.WordSize {
		pc := uint64(off)
		if i, ok := slices.BinarySearch(targets, pc); ok {
			dst = append(strconv.AppendInt(append(dst, ".L"...), int64(i), 10), ":\n"...)
		}
		w := isa.LoadWord(c.Data[off:])
		if s.Control == ControlCuasm {
			dst = append(isa.ControlOf(w).Append(dst), ' ')
		}
		in := t.Decode(w)
		text = t.AppendText(text[:0], in, pc)
		to, ok := in.Target(pc)
		if !ok {
			to, ok = returns[pc]
		}
		if ok {
			text = stableTarget(text, to, targets)
		}
		dst = append(append(dst, text...), " ;\n"...)
	}
	return dst
}

// returnReach is how many instructions a return address may stand before its call.
const returnReach = 64

// returnAddresses returns, by the address of the MOV, the return addresses that MOVs put
// into a register for a following CALL: immediates that are the address after it.
func returnAddresses(t *isa.Table, data []byte) map[uint64]uint64 {
	out := map[uint64]uint64{}
	for pc := uint64(0); pc+isa.WordSize <= uint64(len(data)); pc += isa.WordSize {
		in := t.Decode(isa.LoadWord(data[pc:]))
		f, ok := in.Constant()
		to := f.Get(in.Word)
		if !ok || to%isa.WordSize != 0 || to < pc+2*isa.WordSize || to > pc+(returnReach+1)*isa.WordSize || to > uint64(len(data)) {
			continue
		}
		if t.Decode(isa.LoadWord(data[to-isa.WordSize:])).Flow().Kind == isa.FlowCall {
			out[pc] = to
		}
	}
	return out
}

// stableTarget replaces the address that text names by its label, or, where it is outside
// the kernel, by a word without an address.
func stableTarget(text []byte, to uint64, targets []uint64) []byte {
	addr := "0x" + strconv.FormatUint(to, 16)
	if int64(to) < 0 {
		addr = "-0x" + strconv.FormatUint(-to, 16)
	}
	label := "(outside)"
	if i, ok := slices.BinarySearch(targets, to); ok {
		label = ".L" + strconv.Itoa(i)
	}
	i := strings.LastIndex(string(text), addr)
	if i < 0 {
		return text
	}
	return append(text[:i], label+string(text[i+len(addr):])...)
}

// codeEnd returns the size of the code without the NOPs and the branch to itself that
// fill a kernel up.
func codeEnd(t *isa.Table, data []byte) int {
	n := len(data) / isa.WordSize * isa.WordSize
	for n > 0 && t.Decode(isa.LoadWord(data[n-isa.WordSize:])).IsPadding() {
		n -= isa.WordSize
	}
	if n > 0 {
		pc := uint64(n - isa.WordSize)
		in := t.Decode(isa.LoadWord(data[pc:]))
		if to, ok := in.Target(pc); ok && to == pc && in.Flow().Kind == isa.FlowBranch {
			n -= isa.WordSize
		}
	}
	return n
}

// Header returns the line that starts a kernel in a listing.
func Header(c *code.Kernel, arch string) string {
	s := "// kernel " + quoteName(c.Name) + " (" + arch
	if c.Regs > 0 {
		s += ", " + strconv.Itoa(c.Regs) + " registers"
	}
	return s + ", " + strconv.Itoa(len(c.Data)) + " bytes)"
}

// quoteName quotes a kernel's name unless it is made of the usual characters.
func quoteName(s string) string {
	for i := range len(s) {
		if !ascii.Name(s[i]) && s[i] != '$' && s[i] != '.' && s[i] != '@' {
			return strconv.Quote(s)
		}
	}
	if s == "" {
		return `""`
	}
	return s
}
