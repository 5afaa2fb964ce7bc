package isa

import (
	"cmp"
	"slices"
)

// A Table knows the instructions of one architecture. It never changes after it
// was made and is safe for concurrent use.
type Table struct {
	arch     Arch
	variants []*Variant
	// cands holds the variants by opcode, and within an opcode the most specific
	// first; those of opcode i are cands[first[i]:first[i+1]].
	cands []candidate
	first [numOpcodes + 1]uint16
}

// A candidate is what Decode needs to know of a variant.
type candidate struct {
	mask, value Word
	v           *Variant
}

// numOpcodes is the number of values of the opcode, bits 0–11 and 91.
const numOpcodes = 1 << 13

// opcodeOf returns the opcode of w, bit 91 on top.
func opcodeOf(w Word) int { return int(w.Lo&0xfff | w.Hi>>27&1<<12) }

// NewTable returns the table of the variants vs, which it keeps and which must not
// change afterwards. Where the patterns of several variants fit a word, the one with
// the most constant bits decides, and among equals the one that comes first.
func NewTable(arch Arch, vs []*Variant) *Table {
	t := &Table{arch: arch, variants: vs}
	for _, v := range vs {
		t.cands = append(t.cands, candidate{v.Mask, v.Value, v})
	}
	slices.SortStableFunc(t.cands, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(opcodeOf(a.value), opcodeOf(b.value)),
			cmp.Compare(b.mask.OnesCount(), a.mask.OnesCount()))
	})
	i := 0
	for op := range numOpcodes {
		for i < len(t.cands) && opcodeOf(t.cands[i].value) == op {
			i++
		}
		t.first[op+1] = uint16(i)
	}
	return t
}

// Arch returns the architecture that t describes.
func (t *Table) Arch() Arch { return t.arch }

// Variants returns the variants of t. They must not be changed.
func (t *Table) Variants() []*Variant { return t.variants }

// Decode says what w is. It never fails: a word that no variant fits has the status
// StatusUnknown.
func (t *Table) Decode(w Word) Inst {
	op := opcodeOf(w)
	for _, c := range t.cands[t.first[op]:t.first[op+1]] {
		if w.And(c.mask) != c.value {
			continue
		}
		in := Inst{Word: w, Variant: c.v, BadSched: !c.v.Sched.Legal(w)}
		for i := range c.v.Template {
			switch c.v.Template[i].choose(w) {
			case int(PieceIllegal):
				in.Status = StatusIllegal
				return in
			case int(PieceSilent):
				in.Status = StatusSilent
			}
		}
		return in
	}
	return Inst{Word: w, Status: StatusUnknown}
}

// choose returns the index of the alternative that p prints in w, or PieceIllegal
// or PieceSilent.
func (p *Piece) choose(w Word) int {
	if len(p.Tests) == 0 {
		return 0
	}
	index, shift := uint64(0), uint(0)
	for _, t := range p.Tests {
		index |= t.outcome(w) << shift
		shift += t.width()
	}
	return int(p.Table[index])
}

// outcome returns the answer to t in w.
func (t *Test) outcome(w Word) uint64 {
	x := t.Field.Get(w)
	yes := false
	switch t.Kind {
	case TestValue:
		return x
	case TestEq:
		yes = x == t.Arg
	case TestPow2:
		top := uint64(1) << (t.Field.Width() - 1)
		yes = x != 0 && x&(x-1) == 0 && x != 1<<16 && x != top
	case TestNeg:
		yes = x>>(t.Field.Width()-1) != 0
	}
	if yes {
		return 1
	}
	return 0
}

// width returns the number of bits that t's outcome takes in an index.
func (t *Test) width() uint {
	if t.Kind == TestValue {
		return uint(t.Field.Width())
	}
	return 1
}
