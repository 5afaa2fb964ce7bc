package code

import (
	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/isa/kernel"
)

// Flow returns the control flow of the code as planned so far, computed when it is first
// asked for and again after a change of it.
func (c *State) Flow() *kernel.Graph {
	if c.flow == nil {
		src := kernel.Code{Table: c.Table, Data: c.buf}
		for _, f := range c.Functions() {
			src.Functions = append(src.Functions, f.Offset)
		}
		if c.kernel != nil {
			src.Targets = c.kernel.BranchTargets()
		}
		c.flow = kernel.New(src)
	}
	return c.flow
}

// inFlow reports whether the word says where blocks start or end.
func (c *State) inFlow(w isa.Word) bool {
	in := c.Table.Decode(w)
	_, ok := in.TargetField()
	return ok || in.Flow().EndsBlock()
}
