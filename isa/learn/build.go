package learn

import (
	"errors"
	"slices"
	"strings"

	"github.com/cupatch/cupatch/isa"
)

// solve builds the regions and learns all of their pieces.
func (c *class) solve() error {
	for round := 0; round < 12; round++ {
		c.buildRegions()
		again := false
		for _, r := range c.regions {
			err := c.enumerate(r)
			if errors.Is(err, errMoreSpans) {
				again = true
				break
			}
			if err != nil {
				return err
			}
		}
		if !again {
			return c.solveLegality()
		}
	}
	return errors.New("the regions do not settle")
}

// solveLegality learns which values are refused together.
func (c *class) solveLegality() error {
	c.legals = nil
	for _, r := range c.legalityRegions() {
		if err := c.enumerate(r); err != nil {
			return err
		}
		c.legals = append(c.legals, r)
	}
	return nil
}

// variant assembles what was learned.
func (c *class) variant() *isa.Variant {
	key := c.free.Or(schedMask).Or(guardMask).Not()
	v := &isa.Variant{Class: c.name, Mask: key, Value: c.base.And(key), Guard: c.guard, Sched: c.sched,
		Ignored: c.ign.AndNot(controlMask), Default: c.base.And(c.ign).AndNot(controlMask)}
	if c.silent {
		v.Template = silentPieces(c.name)
		v.Ignored = c.free.AndNot(controlMask)
		v.Default = v.Ignored.And(c.base)
	}
	lit := func(lo, hi int) {
		if lo < hi {
			v.Template = append(v.Template, isa.Piece{Alts: []isa.Alt{c.baseAlt(lo, hi)}})
		}
	}
	t := 0
	for _, r := range c.regions {
		lit(t, r.lo)
		v.Template = append(v.Template, withReuse(r.piece))
		t = r.hi
	}
	lit(t, len(c.toks))
	for _, r := range c.legals {
		if len(r.piece.Tests) > 0 {
			v.Template = append(v.Template, withReuse(r.piece))
		}
	}
	if c.drain {
		v.Template = append(v.Template, drainOnly())
	}
	if c.o.QuietNaN {
		v = quietNaNs(v)
	}
	simplify(v)
	v.Template = joinPieces(v.Template)
	// A bit that the base hides may be part of what another form prints.
	for _, f := range usedFields(v) {
		v.Ignored = v.Ignored.AndNot(f.Mask())
	}
	v.Default = v.Default.And(v.Ignored)
	return v
}

// quietKinds are the kinds that print as an nvdisasm does that calls every NaN quiet.
var quietKinds = map[isa.Kind]isa.Kind{isa.KindF16: isa.KindF16Q, isa.KindBF16: isa.KindBF16Q, isa.KindF32: isa.KindF32Q}

// quietNaNs returns v with those kinds.
func quietNaNs(v *isa.Variant) *isa.Variant {
	q := *v
	q.Template = slices.Clone(v.Template)
	for i := range q.Template {
		p := &q.Template[i]
		p.Alts = slices.Clone(p.Alts)
		for k := range p.Alts {
			p.Alts[k] = slices.Clone(p.Alts[k])
			for n := range p.Alts[k] {
				if e := &p.Alts[k][n]; e.Lit == "" && quietKinds[e.Slot.Kind] != 0 {
					e.Slot.Kind = quietKinds[e.Slot.Kind]
				}
			}
		}
	}
	return &q
}

// usedFields lists the fields that v prints or tests.
func usedFields(v *isa.Variant) []isa.Field {
	out := slotFields(v)
	for _, p := range v.Template {
		for _, t := range p.Tests {
			out = append(out, t.Field)
		}
	}
	return out
}

// drainOnly is a piece that allows no schedule but 0.
func drainOnly() isa.Piece {
	p := isa.Piece{Tests: []isa.Test{{Field: schedField}}, Table: make([]uint16, 32), Alts: []isa.Alt{nil}}
	for i := 1; i < 32; i++ {
		p.Table[i] = isa.PieceIllegal
	}
	return p
}

// silentPieces are the pieces of a class that nvdisasm accepts and never prints: the stem of
// the class's name for a mnemonic, and that it is silent.
func silentPieces(name string) []isa.Piece {
	stem, _, _ := strings.Cut(name, "_")
	return []isa.Piece{
		{Alts: []isa.Alt{{{Lit: strings.ToUpper(stem)}}}},
		{Tests: []isa.Test{{Field: isa.Bits(0, 0)}}, Table: []uint16{isa.PieceSilent, isa.PieceSilent}, Alts: []isa.Alt{nil}},
	}
}

// joinPieces merges neighbors that have no tests.
func joinPieces(ps []isa.Piece) []isa.Piece {
	var out []isa.Piece
	for _, p := range ps {
		if n := len(out); n > 0 && len(p.Tests) == 0 && len(out[n-1].Tests) == 0 {
			out[n-1].Alts = []isa.Alt{compact(append(append(isa.Alt{}, out[n-1].Alts[0]...), p.Alts[0]...))}
			continue
		}
		out = append(out, p)
	}
	return out
}

// withReuse makes a piece that tests a reuse flag test bit 109 too: with that bit clear,
// bits 122–124 are a batch number.
func withReuse(p isa.Piece) isa.Piece {
	if len(p.Tests) == 0 || p.Tests[0].Kind != isa.TestValue {
		return p
	}
	bs := p.Tests[0].Field.Bits()
	reuse := 0
	for i, b := range bs {
		if b >= 122 {
			reuse |= 1 << i
		}
	}
	if reuse == 0 {
		return p
	}
	q := p
	q.Tests = append([]isa.Test{}, p.Tests...)
	q.Tests[0].Field = fieldOf(append([]int{109}, bs...))
	q.Table = make([]uint16, 2*len(p.Table))
	for i := range q.Table {
		j := i >> 1
		if i&1 == 0 {
			j &^= reuse
		}
		q.Table[i] = p.Table[j]
	}
	return q
}
