package code

import "github.com/cupatch/cupatch/isa"

// A Flow has the basic block and the loop depth of each instruction, as far as
// the targets of relative branches tell: indirect branches and calls have none.
type Flow struct {
	Block, Loop []int
}

// Flow returns the kernel's flow, computed when first asked for.
func (c *State) Flow() *Flow {
	if c.flowed != nil {
		return c.flowed
	}
	f := &Flow{Block: make([]int, c.N), Loop: make([]int, c.N)}
	leader := make([]bool, c.N+1)
	last := map[int]int{} // loop header → last backward branch to it
	for i := range c.N {
		in := c.Table.Decode(c.Word(i))
		kind := in.Flow()
		if kind.EndsBlock() {
			leader[i+1] = true
		}
		target, ok := in.Target(uint64(i) * isa.WordSize)
		if !ok || target%isa.WordSize != 0 || target >= uint64(c.N)*isa.WordSize {
			continue
		}
		to := int(target / isa.WordSize)
		leader[to] = true
		// A branch to itself is the end of a kernel, not a loop.
		if to < i && kind.Kind == isa.FlowBranch {
			last[to] = max(last[to], i)
		}
	}
	b := 0
	for i := range c.N {
		if i > 0 && leader[i] {
			b++
		}
		f.Block[i] = b
	}
	// Loops are counted with a running sum of where they start and end.
	step := make([]int, c.N+1)
	for from, to := range last {
		step[from]++
		step[to+1]--
	}
	depth := 0
	for i := range c.N {
		depth += step[i]
		f.Loop[i] = depth
	}
	c.flowed = f
	return f
}

// inFlow reports whether the word says where blocks start or end.
func (c *State) inFlow(w isa.Word) bool {
	in := c.Table.Decode(w)
	_, ok := in.TargetField()
	return ok || in.Flow().EndsBlock()
}
