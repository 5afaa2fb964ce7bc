package rule

import (
	"fmt"

	"github.com/cupatch/cupatch/patch/check"
	"github.com/expr-lang/expr/ast"
)

// A window is a place where a rule's items match.
type window struct {
	start []int // by item: index of its first instruction
	size  []int // by item: how many instructions
	end   int   // index after the last instruction
	// members holds the positions in the run for which the condition holds; it is
	// used only in rules of several items.
	members []int
}

// An evalCtx is where an expression is evaluated.
type evalCtx struct {
	code   *state
	rule   *compiled
	win    window
	self   int // the instruction that is tested or changed
	member int // position in the rule's run
	counts []seenCount
	steps  int // left of the budget
	next   int // where the next window may start
	allow  check.Allow
	// divided is set where an expression has no value because it divides by 0.
	divided bool

	caches  []*itemCache // by item; nil: nothing is remembered
	planner *Planner
}

// index returns the instruction that stands for an item.
func (ctx *evalCtx) index(item int) int {
	if item == ctx.rule.run {
		return ctx.win.start[item] + ctx.member
	}
	return ctx.win.start[item]
}

func (ctx *evalCtx) runPos() int { return ctx.member }

func (ctx *evalCtx) runLen() int { return ctx.win.size[ctx.rule.run] }

// search looks for a window that starts at instruction i.
func (ctx *evalCtx) search(i int) bool {
	return ctx.place(0, i)
}

// place puts item k and those after it at instruction i and on.
func (ctx *evalCtx) place(k, i int) bool {
	if k == len(ctx.rule.items) {
		ctx.win.end = i
		return i > ctx.win.start[0] && ctx.works()
	}
	it := &ctx.rule.items[k]
	ctx.win.start[k] = i
	switch {
	case it.gap:
		for g := it.min; g <= it.max && i+g <= ctx.code.N; g++ {
			ctx.win.size[k] = g
			if ctx.place(k+1, i+g) {
				return true
			}
			if ctx.steps <= 0 {
				return false
			}
		}
		return false
	case it.run:
		if i > 0 && ctx.fits(k, i-1) {
			return false // the run starts earlier: a run is all of its members
		}
		n := ctx.runAt(k, i)
		if n < it.min || it.max >= 0 && n > it.max {
			return false
		}
		ctx.win.size[k] = n
		return ctx.place(k+1, i+n)
	}
	ctx.win.size[k] = 1
	return ctx.fits(k, i) && ctx.place(k+1, i+1)
}

// fits reports whether instruction i matches item k, and pays for the question.
func (ctx *evalCtx) fits(k, i int) bool {
	ctx.steps--
	return i < ctx.code.N && ctx.steps > 0 && !ctx.code.taken[i] && ctx.matches(k, i)
}

// runAt returns the number of consecutive instructions from i on that match item k.
func (ctx *evalCtx) runAt(k, i int) int {
	n := 0
	for ctx.fits(k, i+n) {
		n++
	}
	return n
}

// works reports whether the condition holds for the window as placed. Where the rule
// has a run, the condition is asked for each member, and one is enough; a rule that is
// nothing but a run is asked member by member when it is applied.
func (ctx *evalCtx) works() bool {
	c := ctx.rule
	ctx.win.members = ctx.win.members[:0]
	if c.run < 0 {
		ctx.member = 0
		return c.cond == nil || c.cond.holds(ctx)
	}
	if len(c.items) == 1 {
		return true
	}
	ctx.resetSeen()
	for m := range ctx.win.size[c.run] {
		ctx.steps--
		ctx.member = m
		if c.cond == nil || c.cond.holds(ctx) {
			ctx.win.members = append(ctx.win.members, m)
		}
	}
	return len(ctx.win.members) > 0 || ctx.win.size[c.run] == 0 && c.cond == nil
}

// seen compiles seen(field).
func (c *exprCompiler) seen(args []ast.Node, pos int) (*compiledExpr, error) {
	run := c.rule.runItem()
	switch {
	case len(args) != 1:
		return nil, c.errorf(pos, "seen takes one field")
	case run < 0:
		return nil, c.errorf(pos, "seen counts in a run, and the rule has %s", c.rule.runCount()).
			hint("a run is written PATTERN{min,max}")
	case c.owner == nil:
		return nil, c.errorf(pos, "seen works in conditions only")
	}
	inner := *c
	inner.self, inner.owner = run, nil
	x, err := inner.expr(args[0])
	if err != nil {
		return nil, err
	}
	if x.field == nil || x.field.item != run || x.field.delta != 0 {
		return nil, c.errorf(x.pos, "seen takes a field of the run's instruction")
	}
	key := x.keyFunc()
	c.owner.seen = append(c.owner.seen, key)
	k := len(c.owner.seen) - 1
	return &compiledExpr{typ: typeInt, pos: pos, num: func(ctx *evalCtx) (int64, bool) {
		v, ok := key(ctx)
		return int64(ctx.countTo(k, ctx.member)[v]), ok
	}}, nil
}

// keyFunc returns x's value as text, for counting.
func (x *compiledExpr) keyFunc() func(*evalCtx) (string, bool) {
	switch x = x.asText(); x.typ {
	case typeInt:
		num := x.num
		return func(ctx *evalCtx) (string, bool) { v, ok := num(ctx); return fmt.Sprint(v), ok }
	case typeBool:
		truth := x.truth
		return func(ctx *evalCtx) (string, bool) { v, ok := truth(ctx); return fmt.Sprint(v), ok }
	}
	return x.text
}

// A seenCount counts the values of a field in the members of a run.
type seenCount struct {
	values map[string]int
	upTo   int // members counted
}

// resetSeen forgets the members counted so far.
func (ctx *evalCtx) resetSeen() {
	if ctx.counts == nil {
		ctx.counts = make([]seenCount, len(ctx.rule.seen))
	}
	for k := range ctx.counts {
		ctx.counts[k].upTo = 0
		clear(ctx.counts[k].values)
	}
}

// countTo returns the counts of field k in the members before m. They are counted
// when somebody asks; no member changes after its turn, so that it comes to the same.
func (ctx *evalCtx) countTo(k, m int) map[string]int {
	c := &ctx.counts[k]
	if c.values == nil {
		c.values = map[string]int{}
	}
	at := ctx.member
	for ; c.upTo < m; c.upTo++ {
		ctx.member = c.upTo
		if v, ok := ctx.rule.seen[k](ctx); ok {
			c.values[v]++
		}
	}
	ctx.member = at
	return c.values
}
