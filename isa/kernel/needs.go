package kernel

import (
	"slices"

	"github.com/cupatch/cupatch/isa"
)

// needs is what is needed at a place.
type needs struct {
	always isa.RegSet
	under  []guardedNeed // by guard, in no order
}

// A guardedNeed is what is needed only where a guard holds: with the value that its
// predicate has at the place.
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

// opposite returns the guard that holds where g does not.
func (g guard) opposite() guard { return guard{g.file, g.n, !g.not} }

func (n *needs) clear() { n.always, n.under = isa.RegSet{}, n.under[:0] }

func (n *needs) clone() needs { return needs{n.always, slices.Clone(n.under)} }

// copy makes n what m is.
func (n *needs) copy(m *needs) { n.always, n.under = m.always, append(n.under[:0], m.under...) }

// equal compares two needs that are tidy.
func (n *needs) equal(m *needs) bool {
	if n.always != m.always || len(n.under) != len(m.under) {
		return false
	}
	for i := range n.under {
		if j := m.find(n.under[i].guard); j < 0 || m.under[j].set != n.under[i].set {
			return false
		}
	}
	return true
}

// set returns all that is needed.
func (n *needs) set() isa.RegSet {
	all := n.always
	for i := range n.under {
		all = all.Union(n.under[i].set)
	}
	return all
}

// add adds what is in m.
func (n *needs) add(m *needs) {
	n.always = n.always.Union(m.always)
	for i := range m.under {
		n.put(m.under[i].guard, &m.under[i].set)
	}
}

// addUnder adds what is in m where g holds. What m needs under another guard is needed under
// both; the other one is kept.
func (n *needs) addUnder(g guard, m *needs) {
	n.put(g, &m.always)
	for i := range m.under {
		if x := &m.under[i]; x.guard != g.opposite() {
			n.put(x.guard, &x.set)
		}
	}
}

// put adds set to what is needed under g.
func (n *needs) put(g guard, set *isa.RegSet) {
	if set.IsEmpty() {
		return
	}
	i := n.find(g)
	if i < 0 {
		i = len(n.under)
		n.under = append(n.under, guardedNeed{guard: g})
	}
	n.under[i].set = n.under[i].set.Union(*set)
}

// find returns the place of a guard, -1 for none.
func (n *needs) find(g guard) int {
	return slices.IndexFunc(n.under, func(x guardedNeed) bool { return x.guard == g })
}

// tidy takes what is needed under a guard and its opposite as needed always, and leaves out
// what says nothing.
func (n *needs) tidy() {
	for i := range n.under {
		if x := &n.under[i]; !x.guard.not {
			if j := n.find(x.guard.opposite()); j >= 0 {
				n.always = n.always.Union(both(x.set, n.under[j].set))
			}
		}
	}
	n.under = slices.DeleteFunc(n.under, func(x guardedNeed) bool { return x.set.Minus(n.always) == (isa.RegSet{}) })
	for i := range n.under {
		n.under[i].set = n.under[i].set.Minus(n.always)
	}
}

// overwrite takes away what code without guarded writes overwrites.
func (n *needs) overwrite(writes *isa.RegSet) {
	n.always = n.always.Minus(*writes)
	for i := range n.under {
		n.under[i].set = n.under[i].set.Minus(*writes)
	}
	n.forget(writes)
}

// before turns what is needed after an instruction into what is needed before it; all is
// every register of the section.
func (n *needs) before(in isa.Inst, all *isa.RegSet) {
	if !in.HasEffects() {
		n.always, n.under = *all, n.under[:0]
		return
	}
	fx := in.Effects()
	n.pass(in, &fx)
}

// pass is before of an instruction with known effects.
func (n *needs) pass(in isa.Inst, fx *isa.Effects) {
	if !in.IsGuarded() {
		n.overwrite(&fx.Writes)
		n.always = n.always.Union(fx.Reads)
		return
	}
	g := guardOf(in)
	n.forget(&fx.Writes)
	if own := n.find(g); own >= 0 {
		n.under[own].set = n.under[own].set.Minus(fx.Writes)
	}
	old := both(n.always, fx.Writes) // stays where the guard does not hold
	n.always = n.always.Minus(old)
	n.put(g.opposite(), &old)
	var predicate isa.RegSet
	predicate.Add(g.file, g.n, 1)
	n.always = n.always.Union(both(fx.Reads, predicate))
	n.put(g, &fx.Reads)
}

// forget makes what is needed under a guard whose predicate is among writes needed always:
// before the write, the predicate says nothing of what comes after it.
func (n *needs) forget(writes *isa.RegSet) {
	if writes.P|writes.UP == 0 {
		return
	}
	n.under = slices.DeleteFunc(n.under, func(x guardedNeed) bool {
		if !writes.Has(x.guard.file, x.guard.n) {
			return false
		}
		n.always = n.always.Union(x.set)
		return true
	})
}
