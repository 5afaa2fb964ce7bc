package code

import (
	"bytes"
	"slices"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/isa/kernel"
)

// Flow returns the control flow of the code as planned so far, computed when it is first
// asked for and again after a change of it. It is for questions about blocks and loops
// only: instructions may be older than what is planned.
func (c *State) Flow() *kernel.Graph {
	if c.flow == nil {
		c.flow = c.graph()
	}
	return c.flow
}

// DataFlow returns the control flow of the code as planned so far, for questions about
// registers.
func (c *State) DataFlow() *kernel.Graph {
	if c.data == nil {
		c.data = c.graph()
	}
	return c.data
}

func (c *State) graph() *kernel.Graph { return kernel.New(c.Source()) }

// Source returns the code as planned so far, with what the cubin says of its flow.
func (c *State) Source() kernel.Code {
	src := kernel.Code{Table: c.Table, Data: c.buf}
	if c.dirty {
		src.Data = bytes.Clone(c.buf) // which the plan goes on to change
	}
	for _, f := range c.Functions() {
		src.Functions = append(src.Functions, f.Offset)
	}
	if c.kernel != nil {
		src.Targets = c.kernel.BranchTargets()
	}
	return src
}

// changed drops what is no longer so when an instruction becomes another.
func (c *State) changed(old, now isa.Word) {
	if old.Xor(now).AndNot(ControlMask).IsZero() || c.flow == nil && c.data == nil {
		return
	}
	a, b := c.Table.Decode(old), c.Table.Decode(now)
	if c.flow != nil && (inFlow(a) || inFlow(b)) {
		c.flow = nil
	}
	if c.data != nil && !sameData(a, b) {
		c.data, c.origins, c.live, c.pressure = nil, nil, nil, nil
	}
}

// inFlow reports whether the instruction says where blocks start or end.
func inFlow(in isa.Inst) bool {
	_, ok := in.TargetField()
	return ok || in.Flow().EndsBlock()
}

// sameData reports whether two instructions do the same with registers, as far as anybody
// asks: they differ in what a modifier such as a cache hint says.
func sameData(a, b isa.Inst) bool {
	return a.Effects() == b.Effects() && a.HasEffects() == b.HasEffects() && a.Variant == b.Variant && a.Flow() == b.Flow() &&
		a.Formula() == b.Formula() && a.IsGuarded() == b.IsGuarded() && slices.EqualFunc(a.AppendOperands(nil), b.AppendOperands(nil),
		func(x, y isa.Operand) bool {
			return x.IsReg == y.IsReg && x.File == y.File && x.First == y.First && x.Value == y.Value && x.Index == y.Index
		})
}

// Live returns the registers whose values are needed after instruction i.
func (c *State) Live(i int) isa.RegSet {
	if c.live == nil {
		c.live = c.DataFlow().Live().Sets()
	}
	return c.live[i]
}

// Pressure returns the registers that instruction i takes, of each file.
func (c *State) Pressure(i int) kernel.Pressure {
	if c.pressure == nil {
		c.pressure = c.DataFlow().Live().Pressure()
	}
	return c.pressure[i]
}

// Origin returns where the address of memory instruction i comes from.
func (c *State) Origin(i int) kernel.Origin {
	if c.origins == nil {
		c.origins = c.DataFlow().Origins(c.kernel != nil && c.kernel.Entry, c.params().isPointer)
	}
	return c.origins.Address(i)
}

// Param returns the number of the kernel parameter that the address of memory instruction i
// comes from, and false where it comes from anywhere else or nobody knows.
func (c *State) Param(i int) (ordinal int, ok bool) {
	o := c.Origin(i)
	if o.Kind != kernel.OriginConstant || o.Bank != 0 {
		return 0, false
	}
	if p := c.params().at(o.Offset); p != nil {
		return p.Ordinal, true
	}
	return 0, false
}

// params are a kernel's parameters in constant bank 0.
type params struct {
	base int // -1 where nobody says
	list []elfx.Param
}

func (c *State) params() *params {
	if c.parameters == nil {
		c.parameters = &params{base: -1}
		if c.kernel != nil {
			if base, ok := c.kernel.ParamBase(); ok {
				c.parameters = &params{base, c.kernel.ParamList()}
			}
		}
	}
	return c.parameters
}

// at returns the parameter that has the byte of constant bank 0 at an offset.
func (p *params) at(offset int) *elfx.Param {
	for i := range p.list {
		if q := &p.list[i]; p.base >= 0 && offset >= p.base+q.Offset && offset < p.base+q.Offset+q.Size {
			return q
		}
	}
	return nil
}

// pointerSize is the size of a pointer, in bytes.
const pointerSize = 8

// isPointer reports whether a word of a constant bank may be the low one of a pointer: one
// with a multiple of its size as its offset, in a parameter that has room for it. Other
// banks hold addresses of variables.
func (p *params) isPointer(bank, offset int) bool {
	if offset%pointerSize != 0 || offset < 0 {
		return false
	}
	if bank != 0 || p.base < 0 {
		return true
	}
	q := p.at(offset)
	return q != nil && offset+pointerSize <= p.base+q.Offset+q.Size
}
