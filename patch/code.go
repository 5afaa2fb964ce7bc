package patch

import (
	"bytes"
	"slices"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/isa"
)

// A Code is the instructions of one kernel, and what a plan wants to know about it.
type Code struct {
	File  string // as named by the user, for conditions
	Entry string // of the container, for conditions and edits
	Name  string // of the kernel, mangled
	Data  []byte // the instructions; never changed
	// Offset is the place of Data in the cubin; FileOffset that in the file, -1 where
	// the cubin is compressed.
	Offset, FileOffset int64
	Regs               int               // registers per thread, 0 if not known
	Relocs             map[uint64]string // relocated addresses of Data → symbol
	Info               map[uint64][]string
	Demangle           func(string) string // nil: names stay as they are

	kernel *elfx.Kernel // tells relocations and attributes when they are asked for
}

// relocs returns the relocated addresses of the code and their symbols.
func (c *Code) relocs() map[uint64]string {
	if c.Relocs == nil && c.kernel != nil {
		c.Relocs = map[uint64]string{}
		for _, r := range c.kernel.Relocs() {
			c.Relocs[r.Offset&^(isa.WordSize-1)] = r.Symbol
		}
	}
	return c.Relocs
}

// info returns the addresses that attributes of the kernel list, and which ones.
func (c *Code) info() map[uint64][]string {
	if c.Info == nil && c.kernel != nil {
		c.Info = c.kernel.InfoOffsets()
	}
	return c.Info
}

// codeState is a kernel while rules pass over it: its words as planned so far.
type codeState struct {
	*Code
	table   *isa.Table
	arch    string
	buf     []byte // Data until the first change, then a copy
	n       int    // instructions
	dirty   bool   // buf is a copy
	touched map[int][]*Rule
	taken   map[int]bool // matched by a rule that said last
	edited  []int32      // the keys of touched, ascending up to sorted
	sorted  int
	journal []savedWord // changes of the window at hand

	views   []view // viewSlots of them, made when the first one is asked for
	flowed  *flowInfo
	cppName string
}

// viewSlots is the number of decoded instructions kept; a power of two.
const viewSlots = 64

func newCodeState(c *Code, t *isa.Table) *codeState {
	return &codeState{Code: c, table: t, buf: c.Data, n: len(c.Data) / isa.WordSize}
}

// word returns instruction i as planned so far.
func (c *codeState) word(i int) isa.Word { return isa.LoadWord(c.buf[i*isa.WordSize:]) }

// old returns instruction i as it was.
func (c *codeState) old(i int) isa.Word { return isa.LoadWord(c.Data[i*isa.WordSize:]) }

// set plans a change of instruction i for rule r.
func (c *codeState) set(i int, w isa.Word, r *Rule) {
	old := c.word(i)
	if old == w {
		return
	}
	if !c.dirty {
		c.buf, c.dirty = bytes.Clone(c.Data), true
		c.touched = map[int][]*Rule{}
	}
	if c.flowed != nil && !old.Xor(w).AndNot(codeMask).IsZero() && (c.inFlow(old) || c.inFlow(w)) {
		c.flowed = nil
	}
	if _, ok := c.touched[i]; !ok {
		c.edited = append(c.edited, int32(i))
	}
	c.journal = append(c.journal, savedWord{i, old, slices.Clone(c.touched[i])})
	w.Store(c.buf[i*isa.WordSize:])
	if !slices.Contains(c.touched[i], r) {
		c.touched[i] = append(c.touched[i], r)
	}
}

func (c *codeState) demangled() string {
	if c.cppName == "" {
		c.cppName = c.Name
		if c.Demangle != nil {
			c.cppName = c.Demangle(c.Name)
		}
	}
	return c.cppName
}

// view returns instruction i decoded, or nil where there is none. The view is good
// until the next call for another instruction.
func (c *codeState) view(i int) *view {
	if i < 0 || i >= c.n {
		return nil
	}
	if c.views == nil {
		c.views = make([]view, viewSlots)
	}
	w := c.word(i)
	v := &c.views[i%viewSlots]
	if v.code == nil || v.idx != i || v.in.Word != w {
		buf := v.buf[:0]
		*v = view{code: c, idx: i, in: c.table.Decode(w), buf: buf}
	}
	return v
}

// A view is an instruction, decoded, with its text and operands made when asked for.
type view struct {
	code     *codeState
	idx      int
	in       isa.Inst
	buf      []byte // text, empty until made
	parts    isa.Parts
	hasParts bool
}

func (v *view) pc() uint64 { return uint64(v.idx) * isa.WordSize }

func (v *view) text() []byte {
	if len(v.buf) == 0 {
		v.buf = v.code.table.AppendText(v.buf, v.in, v.pc())
	}
	return v.buf
}

// mnemonic returns the mnemonic with its modifiers, LDG.E.64, or nothing for a word
// without text.
func (v *view) mnemonic() []byte {
	if v.in.Status != isa.StatusKnown {
		return nil
	}
	t := v.text()
	if len(t) > 0 && t[0] == '@' {
		_, t, _ = bytes.Cut(t, []byte(" "))
	}
	if i := bytes.IndexByte(t, ' '); i >= 0 {
		t = t[:i]
	}
	return t
}

// guard returns the guard as conditions see it: P0, !UP1, PT for none.
func (v *view) guard() string {
	return guardText(v.in.Word, v.uniformGuard())
}

func (v *view) uniformGuard() bool {
	return v.in.Variant != nil && v.in.Variant.Guard == isa.GuardUP
}

func guardText(w isa.Word, uniform bool) string {
	s := "P"
	if uniform {
		s = "UP"
	}
	if i := isa.GuardField.Get(w); i == 7 {
		s += "T"
	} else {
		s += string(rune('0' + i))
	}
	if isa.GuardNot.Get(w) != 0 {
		s = "!" + s
	} else if s == "UPT" {
		s = "PT"
	}
	return s
}

// group returns the text of a modifier group's value, "-" for the default.
func (v *view) group(name string) (string, bool) {
	if v.in.Variant == nil {
		return "", false
	}
	for _, g := range v.code.table.Groups(v.in.Variant) {
		if g.Name == name {
			raw := g.Field.Get(v.in.Word)
			if raw >= uint64(len(g.Values)) {
				return "", false
			}
			if s := g.Values[raw].Text; s != "" {
				return s, true
			}
			return "-", true
		}
	}
	return "", false
}

func (v *view) split() *isa.Parts {
	if !v.hasParts {
		v.parts, v.hasParts = v.code.table.Split(v.in, v.pc()), true
	}
	return &v.parts
}

// operand returns a named operand's text. imm also means the offset of an address
// when no operand has that name.
func (v *view) operand(name string) (operandText, bool) {
	i, ok := v.operandIndex(name)
	if !ok {
		return "", false
	}
	return operandText(v.split().Operands[i]), true
}

func (v *view) operandIndex(name string) (int, bool) {
	if v.in.Status != isa.StatusKnown {
		return 0, false
	}
	parts := v.split()
	for i, n := range parts.Names {
		if n == name {
			return i, true
		}
	}
	if name == "imm" {
		for i := range parts.Operands {
			if operandText(parts.Operands[i]).address() >= 0 {
				return i, true
			}
		}
	}
	return 0, false
}
