package kernel

import "github.com/cupatch/cupatch/isa"

// calls is how blocks end, for questions whose answers flow against the edges and through
// the calls of a section, until nothing changes.
type calls struct {
	g       *Graph
	exits   []exit
	callers map[int32][]int // blocks with a call, by the block called
	returns []bool          // by block: some path from its start leads to a return
	work    []int           // blocks to look at
	queued  []bool
}

// An exit is how control leaves a block.
type exit struct {
	flow   isa.Flow
	callee int32 // block that a call goes to, -1 for none or for another section's
}

func newCalls(g *Graph) *calls {
	c := &calls{g: g, exits: make([]exit, len(g.Blocks)), callers: map[int32][]int{}, queued: make([]bool, len(g.Blocks))}
	for k := range g.Blocks {
		c.exits[k] = exit{flow: g.Inst(g.Blocks[k].End - 1).Flow(), callee: -1}
		if to, ok := g.Callee(k); ok {
			c.exits[k].callee = int32(to)
			c.callers[int32(to)] = append(c.callers[int32(to)], k)
		}
	}
	c.returns = make([]bool, len(g.Blocks))
	c.until(func(k int) bool {
		b, e := &g.Blocks[k], &c.exits[k]
		now := b.Open || e.flow.Kind == isa.FlowReturn || c.calling(k) && e.callee < 0
		for _, x := range b.Succs {
			now = now || c.returns[x.Block] && c.goesOn(k, x)
		}
		if now == c.returns[k] {
			return false
		}
		c.returns[k] = now
		return true
	})
	return c
}

// comesBack reports whether block k ends with a call after which control may go on in the
// block after it.
func (c *calls) comesBack(k int) bool {
	e := &c.exits[k]
	return c.calling(k) && (e.callee < 0 || c.returns[e.callee])
}

// goesOn reports whether control can take an edge out of block k: not the one after a call
// of a function that never returns.
func (c *calls) goesOn(k int, x Edge) bool {
	e := &c.exits[k]
	return e.callee < 0 || x.Kind != FallThrough || e.flow.Conditional || c.returns[e.callee]
}

// calling reports whether block k ends with a call, always or under a guard.
func (c *calls) calling(k int) bool { return c.exits[k].flow.Kind == isa.FlowCall }

// until calls step with blocks until it reports no change for any. A block is looked at
// again when one that it leads to has changed, or the function that it calls.
func (c *calls) until(step func(k int) bool) {
	// Blocks that nothing leads to are still code. Those of a depth-first search come
	// last, the first of them at the end: information flows against the edges.
	for k := range c.g.Blocks {
		if !c.g.Blocks[k].Reachable {
			c.again(k)
		}
	}
	for _, k := range c.g.order {
		c.again(int(k))
	}
	for len(c.work) > 0 {
		k := c.work[len(c.work)-1]
		c.work = c.work[:len(c.work)-1]
		c.queued[k] = false
		if !step(k) {
			continue
		}
		for _, e := range c.g.Blocks[k].Preds {
			c.again(e.Block)
		}
		for _, from := range c.callers[int32(k)] {
			c.again(from)
		}
	}
}

// again puts block k on the list of blocks to look at.
func (c *calls) again(k int) {
	if !c.queued[k] {
		c.queued[k] = true
		c.work = append(c.work, k)
	}
}
