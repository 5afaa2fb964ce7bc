package isa

import "slices"

// A program is a variant compiled for speed. Its operations print the text; its
// checks are the choices that may say that the word is illegal or silent.
type program struct {
	v      *Variant
	ops    []op
	checks []check
	maxLen int // an upper bound for the length of the text
}

// A check is a choice of which some entries are illegal or silent.
type check struct {
	index gather
	table []uint16
}

// An op prints a part of the text.
type op struct {
	code  opCode
	shift uint8 // opReg and opNum: Slot.Shift
	kind  Kind  // opNum
	short short // opShort
	get   gather
	xor   uint64
	add   int64
	lit   string  // opLit
	names []short // opName: by value; opPick: by index
	table []uint16
	alts  [][]op // opAlt
	slot  *Slot  // opSlot
}

type opCode uint8

const (
	opShort opCode = iota // a literal of at most 7 bytes
	opLit                 // a longer literal
	opPick                // one of short literals
	opName                // a register
	opAlt                 // one of several alternatives
	opNum                 // a number of one range of bits
	opSlot                // any other operand
)

// A short is a text of at most 7 bytes, the first in the lowest byte; the highest
// byte is its length.
type short uint64

func makeShort(s string) short {
	var x short
	for i := len(s) - 1; i >= 0; i-- {
		x = x<<8 | short(s[i])
	}
	return x | short(len(s))<<56
}

const maxShort = 7

// A step takes bits of a word to a place in an index.
type step struct {
	hi    bool  // bits of Word.Hi
	shift uint8 // of the lowest bit
	out   uint8 // the place of the lowest bit in the index
	mask  uint64
	test  *Test // other than TestValue: the outcome is one bit at out
}

// A gather puts an index together from a word: the first step, and more if any.
type gather struct {
	step
	more []step
}

func (s *step) get(w Word) uint64 {
	x := w.Lo
	if s.hi {
		x = w.Hi
	}
	return x >> (s.shift & 63) & s.mask << (s.out & 63)
}

// value returns the index that g reads from w.
func (g *gather) value(w Word) uint64 {
	x := w.Lo
	if g.hi {
		x = w.Hi
	}
	x = x >> (g.shift & 63) & g.mask
	if g.more != nil {
		return x | g.rest(w)
	}
	return x
}

func (g *gather) rest(w Word) (x uint64) {
	for i := range g.more {
		s := &g.more[i]
		if s.test != nil {
			x |= s.test.outcome(w) << (s.out & 63)
		} else {
			x |= s.get(w)
		}
	}
	return x
}

// fieldSteps appends the steps that read f to place out.
func fieldSteps(steps []step, f Field, out uint8) []step {
	for _, r := range f {
		for r.N > 0 {
			s := step{hi: r.Lo >= 64, shift: r.Lo & 63, out: out}
			n := min(r.N, 64-s.shift)
			s.mask = ^uint64(0) >> (64 - n)
			steps = append(steps, s)
			r.Lo, r.N, out = r.Lo+n, r.N-n, out+n
		}
	}
	return steps
}

// newGather returns the gather of steps. The first step of a gather is a plain one
// at place 0, of no bits if there is none such.
func newGather(steps []step) gather {
	if len(steps) > 0 && steps[0].test == nil && steps[0].out == 0 {
		return gather{steps[0], slices.Clip(steps[1:])}
	}
	return gather{step{}, steps}
}

func fieldGather(f Field) gather { return newGather(fieldSteps(nil, f, 0)) }

// indexGather returns the gather of the index into p's table.
func indexGather(p *Piece) gather {
	var steps []step
	out := uint8(0)
	for i := range p.Tests {
		t := &p.Tests[i]
		if t.Kind == TestValue {
			steps = fieldSteps(steps, t.Field, out)
		} else {
			steps = append(steps, step{out: out, test: t})
		}
		out += uint8(t.width())
	}
	return newGather(steps)
}

// compile returns the program of v, which passes Check.
func compile(v *Variant) *program {
	p := &program{v: v, maxLen: len("@!UPT ")}
	for i := range v.Template {
		piece := &v.Template[i]
		if len(piece.Tests) == 0 {
			var n int
			p.ops, n = appendAlt(p.ops, piece.Alts[0])
			p.maxLen += n
			continue
		}
		index := indexGather(piece)
		if slices.Contains(piece.Table, PieceIllegal) || slices.Contains(piece.Table, PieceSilent) {
			p.checks = append(p.checks, check{index, piece.Table})
		}
		o, n := choiceOp(piece, index)
		p.ops = append(p.ops, o)
		p.maxLen += n
	}
	return p
}

// choiceOp returns the op of a piece with tests, and the greatest length of its
// text.
func choiceOp(p *Piece, index gather) (op, int) {
	o := op{code: opPick, get: index}
	most := 0
	shorts := make([]short, len(p.Alts))
	for i, a := range p.Alts {
		ops, n := appendAlt(nil, a)
		most = max(most, n)
		o.alts = append(o.alts, ops)
		switch {
		case len(ops) == 0:
		case len(ops) == 1 && ops[0].code == opShort:
			shorts[i] = ops[0].short
		default:
			o.code = opAlt
		}
	}
	if o.code == opAlt {
		o.table = p.Table
		return o, most
	}
	o.alts = nil
	o.names = make([]short, len(p.Table))
	for i, x := range p.Table {
		if int(x) < len(shorts) {
			o.names[i] = shorts[x]
		}
	}
	return o, most
}

// maxSlot is an upper bound for the length of an operand's text: a double has a
// sign, 21 digits, a point and an exponent.
const maxSlot = 32

// appendAlt appends the ops that print a, and returns the greatest length of its
// text too.
func appendAlt(ops []op, a Alt) ([]op, int) {
	most := 0
	for i := range a {
		e := &a[i]
		switch {
		case e.Lit == "":
			ops = append(ops, slotOp(&e.Slot))
			most += maxSlot
			continue
		case len(e.Lit) <= maxShort:
			ops = append(ops, op{code: opShort, short: makeShort(e.Lit)})
		default:
			ops = append(ops, op{code: opLit, lit: e.Lit})
		}
		most += len(e.Lit)
	}
	return ops, most
}

// slotOp returns the op that prints s.
func slotOp(s *Slot) op {
	o := op{code: opSlot, kind: s.Kind, get: fieldGather(s.Field), xor: s.Xor, shift: s.Shift, add: s.Add, slot: s}
	switch s.Kind {
	case KindReg, KindUReg, KindPred, KindUPred:
		if names := registerNames(s); names != nil {
			o.code, o.names = opName, names
		}
	case KindHex, KindDec:
		o.code = opNum
	case KindSHex, KindRel:
		o.code = opNum
		// The sign: the number of bits to shift a 64-bit value up and down again.
		o.short = short(64 - s.Field.Width())
	}
	return o
}

// registerNames returns the names of all values of s, or nil where one is too long.
func registerNames(s *Slot) []short {
	if n := s.Field.Width(); n <= 8 && s.Xor == 0 && s.Shift == 0 && s.Add == 0 {
		if names := plainNames[s.Kind][n]; names != nil {
			return names
		}
	}
	return makeNames(s)
}

func makeNames(s *Slot) []short {
	n := s.Field.Width()
	names := make([]short, 1<<n)
	flat := Slot{Field: Field{{0, uint8(n)}}, Kind: s.Kind, Xor: s.Xor, Shift: s.Shift, Add: s.Add}
	var buf [maxSlot]byte
	for i := range names {
		text := flat.append(buf[:0], Word{Lo: uint64(i)}, 0)
		if len(text) > maxShort {
			return nil
		}
		names[i] = makeShort(string(text))
	}
	return names
}

// plainNames has the names of the usual registers, by kind and width of the field.
var plainNames = func() (t [KindUPred + 1][9][]short) {
	for _, k := range []struct {
		kind  Kind
		width int
	}{{KindReg, 8}, {KindUReg, 6}, {KindUReg, 8}, {KindPred, 3}, {KindUPred, 3}} {
		t[k.kind][k.width] = makeNames(&Slot{Field: Field{{0, uint8(k.width)}}, Kind: k.kind})
	}
	return t
}()
