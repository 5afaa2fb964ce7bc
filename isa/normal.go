package isa

import "slices"

// Normalize brings v into the form in which tables are written, without changing
// what it prints: adjacent literals are joined, adjacent pieces without tests too,
// alternatives that nothing chooses are dropped, equal ones are merged, and they stand in
// the order in which the piece's table names them first.
func (v *Variant) Normalize() {
	var out []Piece
	for _, p := range v.Template {
		p = normalPiece(p)
		if n := len(out); n > 0 && len(p.Tests) == 0 && len(out[n-1].Tests) == 0 {
			out[n-1].Alts = []Alt{joinLiterals(slices.Concat(out[n-1].Alts[0], p.Alts[0]))}
			continue
		}
		if len(p.Tests) > 0 || len(p.Alts[0]) > 0 {
			out = append(out, p)
		}
	}
	v.Template = out
}

// normalPiece returns p in normal form; one whose table always names the same
// alternative stays a choice, so that its tests are not forgotten.
func normalPiece(p Piece) Piece {
	if len(p.Tests) == 0 {
		var a Alt
		if len(p.Alts) > 0 {
			a = joinLiterals(p.Alts[0])
		}
		return Piece{Alts: []Alt{a}}
	}
	var alts []Alt
	place := map[uint16]uint16{PieceIllegal: PieceIllegal, PieceSilent: PieceSilent, PieceOther: PieceOther}
	table := make([]uint16, len(p.Table))
	for i, x := range p.Table {
		y, ok := place[x]
		if !ok {
			a := joinLiterals(p.Alts[x])
			k := slices.IndexFunc(alts, func(b Alt) bool { return equalAlt(a, b) })
			if k < 0 {
				k = len(alts)
				alts = append(alts, a)
			}
			y = uint16(k)
			place[x] = y
		}
		table[i] = y
	}
	return Piece{Tests: p.Tests, Table: table, Alts: alts}
}

// joinLiterals joins adjacent literals of a.
func joinLiterals(a Alt) Alt {
	var out Alt
	for _, e := range a {
		n := len(out)
		switch {
		case e.Lit != "" && n > 0 && out[n-1].Lit != "":
			out[n-1].Lit += e.Lit
		default:
			out = append(out, e)
		}
	}
	return out
}

func equalAlt(a, b Alt) bool { return slices.EqualFunc(a, b, equalElem) }

func equalElem(a, b Elem) bool {
	s, t := a.Slot, b.Slot
	return a.Lit == b.Lit && (a.Lit != "" || slices.Equal(s.Field, t.Field) &&
		s.Kind == t.Kind && s.Xor == t.Xor && s.Shift == t.Shift && s.Add == t.Add)
}

// equalPiece reports whether two pieces in normal form are the same.
func equalPiece(a, b Piece) bool {
	return slices.EqualFunc(a.Tests, b.Tests, func(x, y Test) bool {
		return x.Kind == y.Kind && x.Arg == y.Arg && slices.Equal(x.Field, y.Field)
	}) && slices.Equal(a.Table, b.Table) && slices.EqualFunc(a.Alts, b.Alts, equalAlt)
}

// equalVariant reports whether two variants in normal form say the same.
func equalVariant(a, b *Variant) bool {
	return a.Class == b.Class && a.Mask == b.Mask && a.Value == b.Value && a.Guard == b.Guard &&
		a.Sched == b.Sched && a.Rank == b.Rank && a.Ignored == b.Ignored && a.Default == b.Default &&
		slices.EqualFunc(a.Template, b.Template, equalPiece)
}
