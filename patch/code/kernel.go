package code

import (
	"bytes"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/isa/kernel"
)

// A Kernel is the instructions of one kernel, and what a plan wants to know about it.
type Kernel struct {
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
	target *Target      // tells lines
}

// Relocations returns the relocated addresses of the code and their symbols.
func (c *Kernel) Relocations() map[uint64]string {
	if c.Relocs == nil && c.kernel != nil {
		c.Relocs = map[uint64]string{}
		for _, r := range c.kernel.Relocs() {
			c.Relocs[r.Offset&^(isa.WordSize-1)] = r.Symbol
		}
	}
	return c.Relocs
}

// Attributes returns the addresses that attributes of the kernel list, and which ones.
func (c *Kernel) Attributes() map[uint64][]string {
	if c.Info == nil && c.kernel != nil {
		c.Info = c.kernel.InfoOffsets()
	}
	return c.Info
}

// Functions returns the functions in the kernel's section, by their offsets in it.
func (c *Kernel) Functions() []elfx.Function {
	if c.kernel == nil {
		return nil
	}
	return c.kernel.Functions()
}

// A State is a kernel that is being changed: its words as planned so far.
type State struct {
	*Kernel
	Table *isa.Table
	N     int    // instructions
	buf   []byte // Data until the first change, then a copy
	dirty bool   // buf is a copy

	views []View // viewSlots of them, made when the first one is asked for
	flow  *kernel.Graph

	// What is known of registers, dropped when that changes.
	data     *kernel.Graph
	live     []isa.RegSet // after each instruction
	pressure []kernel.Pressure
	origins  *kernel.Origins

	parameters *params
	cppName    string
	lines      []elfx.LineRow
	lined      bool // lines has been asked for
}

// viewSlots is the number of decoded instructions kept; a power of two.
const viewSlots = 64

func NewState(c *Kernel, t *isa.Table) *State {
	return &State{Kernel: c, Table: t, buf: c.Data, N: len(c.Data) / isa.WordSize}
}

// Planned returns the code as planned so far, which is not to be changed.
func (c *State) Planned() []byte { return c.buf }

// Word returns instruction i as planned so far.
func (c *State) Word(i int) isa.Word { return isa.LoadWord(c.buf[i*isa.WordSize:]) }

// Old returns instruction i as it was.
func (c *State) Old(i int) isa.Word { return isa.LoadWord(c.Data[i*isa.WordSize:]) }

// Put replaces instruction i.
func (c *State) Put(i int, w isa.Word) {
	old := c.Word(i)
	if old == w {
		return
	}
	if !c.dirty {
		c.buf, c.dirty = bytes.Clone(c.Data), true
	}
	c.changed(old, w)
	w.Store(c.buf[i*isa.WordSize:])
}

// Demangled returns the kernel's C++ name, or its name where it has none.
func (c *State) Demangled() string {
	if c.cppName == "" {
		c.cppName = c.Name
		if c.Demangle != nil {
			c.cppName = c.Demangle(c.Name)
		}
	}
	return c.cppName
}

// View returns instruction i decoded, or nil where there is none. The view is good
// until the next call for another instruction.
func (c *State) View(i int) *View {
	if i < 0 || i >= c.N {
		return nil
	}
	if c.views == nil {
		c.views = make([]View, viewSlots)
	}
	w := c.Word(i)
	v := &c.views[i%viewSlots]
	if v.State == nil || v.Index != i || v.Inst.Word != w {
		buf := v.buf[:0]
		*v = View{State: c, Index: i, Inst: c.Table.Decode(w), buf: buf}
	}
	return v
}

// ViewOf returns the word w decoded as instruction i.
func (c *State) ViewOf(i int, w isa.Word) *View {
	return &View{State: c, Index: i, Inst: c.Table.Decode(w)}
}
