package rule

import (
	"errors"
	"math/bits"
)

// A pass is the work of all rules on one kernel, one rule after another.
type pass struct {
	planner   *Planner
	code      *state
	plan      *KernelPlan
	matched   bitset // instructions to which some rule has changes
	refused   bitset
	matches   []int // by rule
	refusedBy []int
	together  [][]int // instructions that one window changed
}

// run applies every rule in order.
func (ps *pass) run() error {
	p := ps.planner
	ps.matches, ps.refusedBy = make([]int, len(p.rules)), make([]int, len(p.rules))
	active := make([]bool, len(p.rules))
	ps.plan.meant = active
	any := false
	for i, c := range p.rules {
		active[i] = ps.kernelHolds(c)
		any = any || active[i]
	}
	if !any {
		return nil
	}
	sc := p.scratch.Get().(*scratch)
	defer p.scratch.Put(sc)
	sc.scan(p, ps.code.Data)
	for i, c := range p.rules {
		if !active[i] {
			continue
		}
		if err := ps.rule(i, c, ps.code.candidates(c, sc.lists[i]), sc.items[i]); err != nil {
			return err
		}
	}
	return nil
}

// kernelHolds evaluates the part of a condition that depends on the kernel alone.
func (ps *pass) kernelHolds(c *compiled) bool {
	ctx := evalCtx{code: ps.code, rule: c}
	for _, x := range c.kernelCond {
		if !x.holds(&ctx) {
			return false
		}
	}
	return true
}

// windowBudget bounds the questions that a rule may ask about one kernel.
const windowBudget = 20_000_000

// rule applies one rule from the first candidate to the last.
func (ps *pass) rule(n int, c *compiled, cands []int32, caches []*itemCache) error {
	ctx := &evalCtx{code: ps.code, rule: c, allow: ps.planner.opts.Allow, steps: windowBudget + 64*ps.code.N,
		caches: caches, planner: ps.planner}
	ctx.win.start, ctx.win.size = make([]int, len(c.items)), make([]int, len(c.items))
	var taken []int
	at := func(i int) error {
		if !ctx.search(i) {
			if ctx.steps <= 0 {
				return c.rule.errAt(&c.rule.match, 0, "the search for windows in kernel %s takes too long; narrow the gaps", ps.code.Name)
			}
			return nil
		}
		return ps.window(n, ctx, &taken)
	}
	for _, i := range cands {
		if int(i) >= ctx.next {
			if err := at(int(i)); err != nil {
				return err
			}
		}
	}
	if c.rule.Last {
		ps.code.take(taken)
	}
	return nil
}

// window applies a rule's changes to a window that matches.
func (ps *pass) window(n int, ctx *evalCtx, taken *[]int) error {
	c := ctx.rule
	ctx.next = ctx.win.end
	if c.run == 0 && len(c.items) == 1 {
		return ps.runAlone(n, ctx, taken)
	}
	ps.matches[n]++
	ps.code.journal = ps.code.journal[:0]
	for k := range c.items {
		if c.items[k].gap {
			continue
		}
		for m := range ctx.win.size[k] {
			ctx.member = 0
			if k == c.run {
				if m >= len(ctx.win.members) {
					break
				}
				ctx.member = ctx.win.members[m]
				m = ctx.member
			}
			i := ctx.win.start[k] + m
			*taken = append(*taken, i)
			ok, err := ps.instruction(n, ctx, k, i)
			if err != nil {
				return err
			}
			if !ok {
				ps.code.undo()
				return nil
			}
		}
	}
	ps.keepTogether()
	return nil
}

// keepTogether remembers which instructions the window at hand changed, if they are several.
func (ps *pass) keepTogether() {
	if len(ps.code.journal) < 2 {
		return
	}
	group := make([]int, len(ps.code.journal))
	for i, s := range ps.code.journal {
		group[i] = s.i
	}
	ps.together = append(ps.together, group)
}

// runAlone applies a rule that is one run: the condition is asked for each member in
// turn, after the changes of those before it.
func (ps *pass) runAlone(n int, ctx *evalCtx, taken *[]int) error {
	ctx.resetSeen()
	for m := range ctx.win.size[0] {
		ctx.member = m
		if ctx.rule.cond == nil || ctx.rule.cond.holds(ctx) {
			ps.matches[n]++
			i := ctx.win.start[0] + m
			*taken = append(*taken, i)
			if _, err := ps.instruction(n, ctx, 0, i); err != nil {
				return err
			}
		}
	}
	return nil
}

// instruction applies the changes for item k to instruction i. It returns false where
// the change is refused and left out.
func (ps *pass) instruction(n int, ctx *evalCtx, k, i int) (bool, error) {
	c := ctx.rule
	if c.changes && len(c.lists[k]) == 0 {
		return true, nil
	}
	ps.matched.set(i, ps.code.N)
	ctx.self = i
	ed := &editing{ctx: ctx, old: ps.code.ViewOf(i, ps.code.Word(i)), word: ps.code.Word(i)}
	err := ed.run(c.lists[k])
	if err == nil {
		ps.code.set(i, ed.word, c.rule)
		return true, nil
	}
	var re *Error
	if ps.planner.opts.SkipRefused && errors.As(err, &re) {
		ps.refused.set(i, ps.code.N)
		ps.refusedBy[n]++
		return false, nil
	}
	return false, err
}

// A bitset is a set of instruction indexes.
type bitset []uint64

// set adds i, which is below n.
func (b *bitset) set(i, n int) {
	if *b == nil {
		*b = make(bitset, (n+63)/64)
	}
	(*b)[i/64] |= 1 << (i % 64)
}

func (b bitset) has(i int) bool { return b != nil && b[i/64]>>(i%64)&1 != 0 }

func (b bitset) count() int {
	n := 0
	for _, w := range b {
		n += bits.OnesCount64(w)
	}
	return n
}

func (b bitset) each(f func(i int)) {
	for k, w := range b {
		for ; w != 0; w &= w - 1 {
			f(k*64 + bits.TrailingZeros64(w))
		}
	}
}
