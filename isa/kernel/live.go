package kernel

import (
	"github.com/cupatch/cupatch/isa"
)

// Live says which registers hold a value that is still needed: one that an instruction
// on some path ahead reads before another value takes its place.
//
// A write under a guard takes the place of the old value only where the guard holds: the old
// value is needed before it unless it is only read under the same guard, later in the block
// or, as long as the predicate keeps its value, in blocks after it. A branch under a guard
// says the same of all that comes after it on either side. What a call needs, and what it leaves alone, is known where the function is in the section;
// its returns need what is needed after the calls of it. Where nobody knows how execution
// goes on, at a call of another section, at a return to one and at the end of an Open
// block, every register that the section names is taken to be needed. So it is before an
// instruction whose effects are not known.
type Live struct {
	g   *Graph
	all isa.RegSet // every register that the section names
	out []needs    // needed at the end of each block
}

// Live returns what is needed at each place of the graph. It is computed when it is first
// asked for, in time close to linear in the size of the code.
func (g *Graph) Live() *Live {
	g.liveOnce.Do(func() {
		s := &liveSolver{Live: &Live{g: g, out: make([]needs, len(g.Blocks))}, calls: newCalls(g), g: g}
		s.summarize()
		if len(s.callers) > 0 {
			s.solveFunctions()
		}
		s.solve()
		g.live = s.Live
	})
	return g.live
}

// After returns the registers whose values are needed after instruction i. To ask about
// many instructions, use Each.
func (l *Live) After(i int) isa.RegSet {
	k := l.g.at[i]
	n := l.out[k].clone()
	for j := l.g.Blocks[k].End - 1; j > i; j-- {
		n.before(l.g.Inst(j), &l.all)
	}
	return n.set()
}

// Each calls fn for each instruction of block k, from the last to the first, with the
// registers that are needed after it, which fn must not keep.
func (l *Live) Each(k int, fn func(i int, in isa.Inst, live *isa.RegSet)) {
	n := l.out[k].clone()
	for i := l.g.Blocks[k].End - 1; i >= l.g.Blocks[k].Start; i-- {
		in := l.g.Inst(i)
		live := n.set()
		fn(i, in, &live)
		n.before(in, &l.all)
	}
}

// Sets returns the registers whose values are needed after each instruction.
func (l *Live) Sets() []isa.RegSet {
	out := make([]isa.RegSet, len(l.g.at))
	for k := range l.g.Blocks {
		l.Each(k, func(i int, _ isa.Inst, live *isa.RegSet) { out[i] = *live })
	}
	return out
}

// A Pressure is how many registers of each file are taken at one place.
type Pressure struct{ R, UR, P, UP int }

// Pressure returns, for each instruction, how many registers it takes at once: those that
// are needed after it and those that it writes in vain.
func (l *Live) Pressure() []Pressure {
	out := make([]Pressure, len(l.g.at))
	for k := range l.g.Blocks {
		l.Each(k, func(i int, in isa.Inst, live *isa.RegSet) {
			all := live.Union(in.Effects().Writes)
			out[i] = Pressure{all.Len(isa.FileR), all.Len(isa.FileUR), all.Len(isa.FileP), all.Len(isa.FileUP)}
		})
	}
	return out
}

// A liveSolver finds what is needed at the ends of blocks by going around until nothing
// changes. Sets only grow, and a block is looked at again only when something that it
// leads to has grown.
type liveSolver struct {
	*Live
	*calls
	g    *Graph
	sum  []summary // of each block by itself
	ends []branch  // how the guard at its end chooses what comes next
	in   []needs   // needed at the start of a block

	// Of the rest of the function from the start of a block on:
	need []isa.RegSet // what it needs itself, whatever is needed after its return
	pass []isa.RegSet // what some path to a return leaves alone

	// What is needed after the calls of the functions that the block is in.
	after []isa.RegSet
}

// A summary is what a block does, whatever comes after it.
type summary struct {
	needs   needs      // needed at its start by itself
	use     isa.RegSet // needs as a set
	kill    isa.RegSet // what it overwrites in any case
	guarded bool       // something is written under a guard: only a walk tells what that means
}

// A branch is the guard that chooses the way at the end of a block.
type branch struct {
	guard guard
	taken bool // the guard holds where control leaves
	fall  bool // the guard does not hold where control goes on after the block
}

// branchOf returns what the guard of the last instruction of a block decides.
func branchOf(in isa.Inst) branch {
	flow := in.Flow()
	if !in.IsGuarded() || !in.HasEffects() {
		return branch{}
	}
	switch flow.Kind {
	case isa.FlowBranch, isa.FlowIndirect, isa.FlowReturn, isa.FlowExit:
	default:
		return branch{}
	}
	always := in
	always.Word = isa.GuardNot.MustSet(isa.GuardField.MustSet(in.Word, 7), 0)
	return branch{guardOf(in), true, !always.Flow().Conditional}
}

// summarize runs over each block once.
func (s *liveSolver) summarize() {
	n := len(s.g.Blocks)
	s.sum, s.ends, s.in = make([]summary, n), make([]branch, n), make([]needs, n)
	s.need, s.pass, s.after = make([]isa.RegSet, n), make([]isa.RegSet, n), make([]isa.RegSet, n)
	var unknown []int // blocks
	for k := range s.g.Blocks {
		b, x := &s.g.Blocks[k], &s.sum[k]
		known := true
		for i := b.End - 1; i >= b.Start; i-- {
			in := s.g.Inst(i)
			known = known && in.HasEffects()
			fx := in.Effects()
			s.all = s.all.Union(fx.Reads).Union(fx.Writes)
			x.needs.pass(in, &fx)
			if !in.IsGuarded() {
				x.kill = x.kill.Union(fx.Writes)
			} else if !fx.Writes.IsEmpty() {
				x.guarded = true
			}
		}
		x.needs.tidy()
		x.use = x.needs.set()
		s.ends[k] = branchOf(s.g.Inst(b.End - 1))
		if !known {
			unknown = append(unknown, k)
		}
	}
	for _, k := range unknown { // what comes before it may be overwritten only after it was read
		s.sum[k] = summary{needs: needs{always: s.all}, use: s.all}
	}
}

// before turns what is needed at the end of block k into what is needed at its start.
func (s *liveSolver) before(k int, n *needs) {
	x := &s.sum[k]
	if !x.guarded {
		n.overwrite(&x.kill)
		n.add(&x.needs)
		return
	}
	for b, i := &s.g.Blocks[k], s.g.Blocks[k].End-1; i >= b.Start; i-- {
		n.before(s.g.Inst(i), &s.all)
	}
}

// solveFunctions finds need and pass of every block.
func (s *liveSolver) solveFunctions() {
	s.until(func(k int) bool {
		b := &s.g.Blocks[k]
		var need, pass isa.RegSet
		for _, e := range b.Succs {
			need, pass = need.Union(s.need[e.Block]), pass.Union(s.pass[e.Block])
		}
		switch e := &s.exits[k]; {
		case b.Open || s.calling(k) && e.callee < 0:
			need, pass = s.all, s.all
		case s.calling(k):
			c := e.callee
			through := both(need, s.pass[c]).Union(s.need[c])
			if e.flow.Conditional {
				through = through.Union(need)
			} else {
				pass = both(pass, s.pass[c])
			}
			need = through
		case e.flow.Kind == isa.FlowReturn:
			pass = s.all
		}
		need, pass = need.Minus(s.sum[k].kill).Union(s.sum[k].use), pass.Minus(s.sum[k].kill)
		if need == s.need[k] && pass == s.pass[k] {
			return false
		}
		s.need[k], s.pass[k] = need, pass
		return true
	})
}

// solve finds what is needed at the start and the end of every block.
func (s *liveSolver) solve() {
	if len(s.g.Blocks) > 0 {
		s.demand(0, s.all) // whoever called the section is somewhere else
	}
	var in needs
	s.until(func(k int) bool {
		s.leaving(k, &in)
		in.tidy()
		s.out[k].copy(&in)
		s.before(k, &in)
		in.add(&s.in[k]) // what was needed stays so: it goes around until nothing grows
		in.tidy()
		if in.equal(&s.in[k]) {
			return false
		}
		s.in[k].copy(&in)
		set := in.set()
		for _, e := range s.g.Blocks[k].Preds {
			if c := s.exits[e.Block].callee; c >= 0 && e.Kind == FallThrough {
				s.demand(int(c), set)
			}
		}
		return true
	})
}

// leaving sets out to what is needed at the end of block k.
func (s *liveSolver) leaving(k int, out *needs) {
	out.clear()
	b, e := &s.g.Blocks[k], &s.exits[k]
	if b.Open || s.calling(k) && e.callee < 0 {
		out.always = s.all
		return
	}
	end := &s.ends[k]
	for _, x := range b.Succs {
		switch {
		case x.Kind == FallThrough && end.fall:
			out.addUnder(end.guard.opposite(), &s.in[x.Block])
		case x.Kind != FallThrough && end.taken:
			out.addUnder(end.guard, &s.in[x.Block])
		default:
			out.add(&s.in[x.Block])
		}
	}
	switch {
	case s.calling(k): // the function may give predicates another value
		set := out.set()
		if !e.flow.Conditional {
			set = both(set, s.pass[e.callee])
		}
		out.clear()
		out.always = set.Union(s.need[e.callee])
	case e.flow.Kind == isa.FlowReturn && end.taken:
		out.addUnder(end.guard, &needs{always: s.after[k]})
	case e.flow.Kind == isa.FlowReturn:
		out.always = out.always.Union(s.after[k])
	}
}

// demand says that set is needed after a return of the function that starts at block k.
func (s *liveSolver) demand(k int, set isa.RegSet) {
	work := []int{k}
	for len(work) > 0 {
		k := work[len(work)-1]
		work = work[:len(work)-1]
		now := s.after[k].Union(set)
		if now == s.after[k] {
			continue
		}
		s.after[k] = now
		if s.exits[k].flow.Kind == isa.FlowReturn {
			s.again(k)
		}
		for _, e := range s.g.Blocks[k].Succs {
			if s.goesOn(k, e) {
				work = append(work, e.Block)
			}
		}
	}
}

// both returns what is in a and in b.
func both(a, b isa.RegSet) isa.RegSet { return a.Minus(a.Minus(b)) }
