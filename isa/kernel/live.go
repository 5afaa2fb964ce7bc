package kernel

import (
	"slices"

	"github.com/cupatch/cupatch/isa"
)

// Live says which registers hold a value that is still needed: one that an instruction
// on some path ahead reads before another value takes its place.
//
// A write under a guard takes the place of nothing, since the old value may stay, except
// for what is only read under the same guard later in the block. What a
// call needs, and what it leaves alone, is known where the function is in the section;
// its returns need what is needed after the calls of it. Where nobody knows how execution
// goes on, at a call of another section, at a return to one and at the end of an Open
// block, every register that the section names is taken to be needed. So it is before an
// instruction whose effects are not known.
type Live struct {
	g   *Graph
	all isa.RegSet   // every register that the section names
	out []isa.RegSet // needed at the end of each block
}

// Live returns what is needed at each place of the graph. It is computed when it is first
// asked for, in time close to linear in the size of the code.
func (g *Graph) Live() *Live {
	g.liveOnce.Do(func() {
		s := &liveSolver{Live: &Live{g: g, out: make([]isa.RegSet, len(g.Blocks))}, calls: newCalls(g), g: g}
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
	n := needs{always: l.out[k]}
	for j := l.g.Blocks[k].End - 1; j > i; j-- {
		n.before(l.g.Inst(j), &l.all)
	}
	return n.set()
}

// Each calls fn for each instruction of block k, from the last to the first, with the
// registers that are needed after it, which fn must not keep.
func (l *Live) Each(k int, fn func(i int, in isa.Inst, live *isa.RegSet)) {
	n := needs{always: l.out[k]}
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

// needs is what is needed at a place in a block.
type needs struct {
	always isa.RegSet
	under  []guardedNeed
}

// A guardedNeed is what is needed only where a guard lets instructions further on in the
// block read it: with the value that its predicate has here.
type guardedNeed struct {
	guard guard
	set   isa.RegSet
}

// A guard is a predicate or its negation.
type guard struct {
	file isa.RegFile
	n    int
	not  bool
}

// guardOf returns the guard of an instruction that has one.
func guardOf(in isa.Inst) guard {
	g := guard{isa.FileP, int(isa.GuardField.Get(in.Word)), isa.GuardNot.Get(in.Word) != 0}
	if in.Variant.Guard == isa.GuardUP {
		g.file = isa.FileUP
	}
	return g
}

// set returns all that is needed.
func (n *needs) set() isa.RegSet {
	all := n.always
	for i := range n.under {
		all = all.Union(n.under[i].set)
	}
	return all
}

// before turns what is needed after an instruction into what is needed before it; all is
// every register of the section.
func (n *needs) before(in isa.Inst, all *isa.RegSet) {
	if !in.HasEffects() {
		n.always, n.under = *all, n.under[:0]
		return
	}
	fx := in.Effects()
	if !in.IsGuarded() {
		n.always = n.always.Minus(fx.Writes)
		for i := range n.under {
			n.under[i].set = n.under[i].set.Minus(fx.Writes)
		}
		n.forget(&fx.Writes)
		n.always = n.always.Union(fx.Reads)
		return
	}
	g := guardOf(in)
	own := n.find(g)
	if own >= 0 {
		n.under[own].set = n.under[own].set.Minus(fx.Writes)
	}
	n.forget(&fx.Writes)
	var predicate isa.RegSet
	predicate.Add(g.file, g.n, 1)
	n.always = n.always.Union(both(fx.Reads, predicate))
	reads := fx.Reads.Minus(predicate).Minus(n.always)
	if reads.IsEmpty() {
		return
	}
	if own = n.find(g); own < 0 {
		own = len(n.under)
		n.under = append(n.under, guardedNeed{guard: g})
	}
	n.under[own].set = n.under[own].set.Union(reads)
}

// find returns the place of a guard, -1 for none.
func (n *needs) find(g guard) int {
	return slices.IndexFunc(n.under, func(x guardedNeed) bool { return x.guard == g })
}

// forget makes what is needed under a guard whose predicate is among writes needed always:
// before the write, the predicate says nothing of what comes after it.
func (n *needs) forget(writes *isa.RegSet) {
	n.under = slices.DeleteFunc(n.under, func(x guardedNeed) bool {
		if !writes.Has(x.guard.file, x.guard.n) {
			return false
		}
		n.always = n.always.Union(x.set)
		return true
	})
}

// A liveSolver finds what is needed at the ends of blocks by going around until nothing
// changes. Sets only grow, and a block is looked at again only when something that it
// leads to has grown.
type liveSolver struct {
	*Live
	*calls
	g    *Graph
	use  []isa.RegSet // needed at the start of a block by itself
	kill []isa.RegSet // what a block overwrites in any case
	in   []isa.RegSet // needed at the start of a block

	// Of the rest of the function from the start of a block on:
	need []isa.RegSet // what it needs itself, whatever is needed after its return
	pass []isa.RegSet // what some path to a return leaves alone

	// What is needed after the calls of the functions that the block is in.
	after []isa.RegSet
}

// summarize runs over each block once.
func (s *liveSolver) summarize() {
	n := len(s.g.Blocks)
	s.use, s.kill, s.in = make([]isa.RegSet, n), make([]isa.RegSet, n), make([]isa.RegSet, n)
	s.need, s.pass, s.after = make([]isa.RegSet, n), make([]isa.RegSet, n), make([]isa.RegSet, n)
	for i := range s.g.at {
		fx := s.g.Inst(i).Effects()
		s.all = s.all.Union(fx.Reads).Union(fx.Writes)
	}
	var need needs
	for k := range s.g.Blocks {
		b := &s.g.Blocks[k]
		need.always, need.under = isa.RegSet{}, need.under[:0]
		unknown := false
		for i := b.End - 1; i >= b.Start; i-- {
			in := s.g.Inst(i)
			need.before(in, &s.all)
			unknown = unknown || !in.HasEffects()
			if !in.IsGuarded() {
				s.kill[k] = s.kill[k].Union(in.Effects().Writes)
			}
		}
		s.use[k] = need.set()
		if unknown { // what comes before it may be overwritten only after it was read
			s.use[k], s.kill[k] = s.all, isa.RegSet{}
		}
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
		need, pass = need.Minus(s.kill[k]).Union(s.use[k]), pass.Minus(s.kill[k])
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
	s.until(func(k int) bool {
		out := s.leaving(k)
		s.out[k] = out
		in := out.Minus(s.kill[k]).Union(s.use[k])
		if in == s.in[k] {
			return false
		}
		s.in[k] = in
		for _, e := range s.g.Blocks[k].Preds {
			if c := s.exits[e.Block].callee; c >= 0 && e.Kind == FallThrough {
				s.demand(int(c), in)
			}
		}
		return true
	})
}

// leaving returns what is needed at the end of block k.
func (s *liveSolver) leaving(k int) isa.RegSet {
	b := &s.g.Blocks[k]
	var out isa.RegSet
	for _, e := range b.Succs {
		out = out.Union(s.in[e.Block])
	}
	switch e := &s.exits[k]; {
	case b.Open || s.calling(k) && e.callee < 0:
		return s.all
	case s.calling(k) && e.flow.Conditional:
		return out.Union(s.need[e.callee])
	case s.calling(k):
		return both(out, s.pass[e.callee]).Union(s.need[e.callee])
	case e.flow.Kind == isa.FlowReturn:
		return out.Union(s.after[k])
	}
	return out
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
