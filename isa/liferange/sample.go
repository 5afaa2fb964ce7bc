package liferange

import (
	"math/rand/v2"

	"github.com/cupatch/cupatch/isa"
)

// A generator makes legal words of one variant.
type generator struct {
	table  *isa.Table
	v      *isa.Variant
	rand   *rand.Rand
	pieces []choice
	free   isa.Word // bits that words differ in
	base   isa.Word
	ok     bool // base is a legal word
}

// A choice is a piece of the variant's text of which some entries are no text.
type choice struct {
	tests []isa.Test
	table []uint16
	legal []uint64 // the indexes of those that are
}

// keep are the bits of a word that a generator leaves alone: the guard, and the control
// bits, which no register but those of the guard depends on.
var keep = func() isa.Word {
	w := isa.Bits(12, 15).Mask()
	for _, f := range []isa.Field{isa.Bits(105, 127)} {
		w = w.Or(f.Mask())
	}
	return w
}()

func newGenerator(t *isa.Table, v *isa.Variant, r *rand.Rand) *generator {
	g := &generator{table: t, v: v, rand: r, free: v.Mask.Or(keep).Not()}
	for i := range v.Template {
		p := &v.Template[i]
		c := choice{tests: p.Tests, table: p.Table}
		for x, e := range p.Table {
			if e < isa.PieceOther {
				c.legal = append(c.legal, uint64(x))
			}
		}
		if len(c.legal) < len(p.Table) && len(c.legal) > 0 {
			g.pieces = append(g.pieces, c)
		}
	}
	for range 2000 {
		w := isa.DefaultControl.Set(g.random().AndNot(v.Mask).Or(v.Value))
		w = isa.GuardField.MustSet(isa.GuardNot.MustSet(w, 0), 7)
		w.Hi &^= 7 << 61
		if w, g.ok = g.mend(w, v.Mask); g.ok {
			g.base = w
			break
		}
	}
	return g
}

func (g *generator) random() isa.Word { return isa.Word{Lo: g.rand.Uint64(), Hi: g.rand.Uint64()} }

// mend changes w where its choices are illegal, fixed bits aside. It reports whether the
// result is a legal word of the variant.
func (g *generator) mend(w, fixed isa.Word) (isa.Word, bool) {
	for range 6 {
		if in := g.table.Decode(w); in.Variant == g.v && in.Status == isa.StatusKnown && !in.BadSched {
			return w, true
		}
		for i := range g.pieces {
			c := &g.pieces[i]
			if c.table[index(c.tests, w)] < isa.PieceOther {
				continue
			}
			w = g.set(w, c.tests, c.legal[g.rand.IntN(len(c.legal))], fixed)
		}
	}
	return w, false
}

// index returns the index that tests read from w.
func index(tests []isa.Test, w isa.Word) uint64 {
	var x uint64
	out := uint(0)
	for _, t := range tests {
		x |= t.Outcome(w) << out
		out += testWidth(t)
	}
	return x
}

func testWidth(t isa.Test) uint {
	if t.Kind == isa.TestValue {
		return uint(t.Field.Width())
	}
	return 1
}

// set returns w with the fields of tests changed, fixed bits aside, so that they read x.
func (g *generator) set(w isa.Word, tests []isa.Test, x uint64, fixed isa.Word) isa.Word {
	for _, t := range tests {
		n := testWidth(t)
		want := x & (1<<n - 1)
		x >>= n
		v := want
		if t.Kind != isa.TestValue {
			if t.Outcome(w) == want {
				continue
			}
			if v = g.rand.Uint64(); want == 1 && t.Kind == isa.TestEq {
				v = t.Arg
			}
		}
		m := t.Field.Mask().AndNot(fixed)
		w = w.AndNot(m).Or(t.Field.MustSet(isa.Word{}, v).And(m))
	}
	return w
}

// sample returns a legal word that differs from the base in random bits, the more the
// higher share, in eighths; bits of fixed are as in with.
func (g *generator) sample(share int, with, fixed isa.Word) (isa.Word, bool) {
	change := g.random()
	switch {
	case share < 2:
		change = change.And(g.random()).And(g.random())
	case share < 4:
		change = change.And(g.random())
	case share >= 7:
		change = isa.Word{}.Not()
	}
	w := g.base.Xor(g.random().And(change).And(g.free))
	return g.mend(w.AndNot(fixed).Or(with.And(fixed)), g.v.Mask.Or(fixed).Or(keep))
}
