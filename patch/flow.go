package patch

import "github.com/cupatch/cupatch/isa"

// A flowInfo has the basic block and the loop depth of each instruction, as far as
// the targets of relative branches tell: indirect branches and calls have none.
type flowInfo struct {
	block, loop []int
}

// flow returns the kernel's flow, computed when first asked for.
func (c *codeState) flow() *flowInfo {
	if c.flowed != nil {
		return c.flowed
	}
	f := &flowInfo{block: make([]int, c.n), loop: make([]int, c.n)}
	leader := make([]bool, c.n+1)
	last := map[int]int{} // loop header → last backward branch to it
	for i := range c.n {
		in := c.table.Decode(c.word(i))
		kind := in.Flow()
		if kind.EndsBlock() {
			leader[i+1] = true
		}
		target, ok := in.Target(uint64(i) * isa.WordSize)
		if !ok || target%isa.WordSize != 0 || target >= uint64(c.n)*isa.WordSize {
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
	for i := range c.n {
		if i > 0 && leader[i] {
			b++
		}
		f.block[i] = b
	}
	// Loops are counted with a running sum of where they start and end.
	step := make([]int, c.n+1)
	for from, to := range last {
		step[from]++
		step[to+1]--
	}
	depth := 0
	for i := range c.n {
		depth += step[i]
		f.loop[i] = depth
	}
	c.flowed = f
	return f
}

// inFlow reports whether the word says where blocks start or end.
func (c *codeState) inFlow(w isa.Word) bool {
	in := c.table.Decode(w)
	_, ok := in.TargetField()
	return ok || in.Flow().EndsBlock()
}
