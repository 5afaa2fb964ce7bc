package learn

import (
	"maps"
	"slices"

	"github.com/cupatch/cupatch/isa"
)

// simplify rewrites the choices of v without changing what any word means: which values
// are refused, or of another class, is said once, in a piece without text, and the pieces
// with text forget the bits that they tested for nothing else. So the field that a modifier
// stands in is the field that decides it.
func simplify(v *isa.Variant) {
	var holes, rest []isa.Piece
	for _, p := range v.Template {
		h, ok := holesOf(&p)
		switch {
		case !ok || hasText(&p) && len(h.Table) == len(p.Table):
			rest = append(rest, p)
		case hasText(&p) || slices.Contains(p.Table, isa.PieceSilent):
			rest, holes = append(rest, p), append(holes, h)
		default:
			holes = append(holes, h)
		}
	}
	holes = withoutImplied(holes)
	for _, lenient := range []bool{false, true} {
		for i, p := range rest {
			var others []testBit
			for k := range rest {
				if lenient && k != i && hasText(&rest[k]) {
					others = append(others, testBits(&rest[k])...)
				}
			}
			rest[i] = forget(p, holes, others)
		}
	}
	texts := rest
	for _, h := range holes {
		if !impliedBy(texts, &h) {
			rest = append(rest, forget(h, texts, testBits(&h)))
		}
	}
	v.Template = rest
}

// hasText reports whether p may print anything.
func hasText(p *isa.Piece) bool {
	return slices.ContainsFunc(p.Alts, func(a isa.Alt) bool { return len(a) > 0 })
}

// holesOf returns the piece without text that refuses, or leaves to other classes, what p
// does, with as few tests as that needs. It reports whether there is anything of that kind.
func holesOf(p *isa.Piece) (isa.Piece, bool) {
	h := isa.Piece{Tests: p.Tests, Table: make([]uint16, len(p.Table)), Alts: []isa.Alt{nil}}
	any := false
	for i, x := range p.Table {
		if isHole(x) {
			h.Table[i] = x
			any = true
		}
	}
	if !any {
		return h, false
	}
	h = dropUnused(h)
	return h, len(h.Tests) > 0
}

func isHole(x uint16) bool { return x == isa.PieceIllegal || x == isa.PieceOther }

// withoutImplied drops the pieces that say nothing beyond what another one says.
func withoutImplied(holes []isa.Piece) []isa.Piece {
	// The widest first, so that of two that say the same about their values the narrow
	// one goes.
	slices.SortStableFunc(holes, func(a, b isa.Piece) int { return len(b.Table) - len(a.Table) })
	var kept []isa.Piece
	for i := range holes {
		if !impliedBy(kept, &holes[i]) {
			kept = append(kept, holes[i])
		}
	}
	return kept
}

// impliedBy reports whether the pieces in by say all that hole does.
func impliedBy(by []isa.Piece, hole *isa.Piece) bool {
	for i, x := range hole.Table {
		if isHole(x) && !slices.ContainsFunc(by, func(q isa.Piece) bool { return implies(&q, hole, i) }) {
			return false
		}
	}
	return true
}

// A testBit is one bit of the index into a piece's table: a bit of the word, or a test.
type testBit struct {
	bit  int // -1 for a test
	kind isa.TestKind
	arg  uint64
	at   string
}

func testBits(p *isa.Piece) []testBit {
	var out []testBit
	for _, t := range p.Tests {
		if t.Kind != isa.TestValue {
			out = append(out, testBit{-1, t.Kind, t.Arg, t.Field.String()})
			continue
		}
		for _, b := range t.Field.Bits() {
			out = append(out, testBit{bit: b})
		}
	}
	return out
}

// implies reports whether hole, a piece without text, says of every word that has index i
// in p's table at least what p does.
func implies(hole, p *isa.Piece, i int) bool {
	if len(hole.Tests) == 0 {
		return false
	}
	x := p.Table[i]
	mine := testBits(p)
	known, free := 0, []int(nil)
	for k, b := range testBits(hole) {
		j := slices.Index(mine, b)
		if j < 0 {
			free = append(free, k)
		} else {
			known |= i >> j & 1 << k
		}
	}
	for n := range 1 << len(free) {
		index := known
		for k, b := range free {
			index |= n >> k & 1 << b
		}
		if y := hole.Table[index]; y != isa.PieceOther && y != x {
			return false
		}
	}
	return true
}

// forget returns p without the index bits that it needs only for what holes say: tests of
// operands, and bits of the word. A bit that decides which texts there may be stays, unless
// it is among others, the bits that other pieces print: who wants a text has to set all bits
// that belong to it.
func forget(p isa.Piece, holes []isa.Piece, others []testBit) isa.Piece {
	if len(p.Tests) == 0 {
		return p
	}
	care := make([]bool, len(p.Table))
	for i, x := range p.Table {
		care[i] = !isHole(x) || !slices.ContainsFunc(holes, func(h isa.Piece) bool { return implies(&h, &p, i) })
	}
	table := slices.Clone(p.Table)
	bits := testBits(&p)
	for b := len(bits) - 1; b >= 0; b-- {
		if bits[b].bit < 0 || slices.Contains(others, bits[b]) || sameTexts(table, care, b) {
			table, care = forgetBit(table, care, b)
		}
	}
	q := dropUnused(isa.Piece{Tests: p.Tests, Table: table, Alts: p.Alts})
	if len(q.Tests) == 0 && len(q.Table) > 0 {
		return p // all of it is holes
	}
	return q
}

// sameTexts reports whether the same entries are there that count, whatever index bit b
// is.
func sameTexts(table []uint16, care []bool, b int) bool {
	var seen [2]map[uint16]bool
	for v := range seen {
		seen[v] = map[uint16]bool{}
	}
	for i, x := range table {
		if care[i] && !isHole(x) {
			seen[i>>b&1][x] = true
		}
	}
	return maps.Equal(seen[0], seen[1])
}

// forgetBit makes table, where only the entries count that care names, independent of index
// bit b, or returns it as it is where that cannot be.
func forgetBit(table []uint16, care []bool, b int) ([]uint16, []bool) {
	for i := range table {
		if j := i ^ 1<<b; care[i] && care[j] && table[i] != table[j] {
			return table, care
		}
	}
	table, care = slices.Clone(table), slices.Clone(care)
	for i := range table {
		if j := i ^ 1<<b; care[i] && !care[j] {
			table[j], care[j] = table[i], true
		}
	}
	// Where neither counts, what is left must agree too.
	for i := range table {
		if j := i ^ 1<<b; i < j && table[i] != table[j] {
			table[j] = table[i]
		}
	}
	return table, care
}
