package isa

import (
	"encoding/binary"
	"slices"
	"sync"
	"sync/atomic"
)

// A program is a variant compiled for speed. Its operations print the text; its
// checks are the choices that may say that the word is illegal or silent, its others
// those that may say that it is of another variant.
type program struct {
	v      *Variant
	sched  Sched // as in v
	ops    []op
	checks []check
	others []check
	maxLen int // an upper bound for the length of the text
	// relative says that the text may depend on the address.
	relative bool
	// steady says that it is not, and that neither text nor status depend on bits that
	// Word.Unscheduled clears.
	steady bool
	does   atomic.Pointer[behavior]

	table       *Table // that decodes with it, or nil
	number      int    // of v in the table
	effectsOnce sync.Once
	effects     *EffectProgram // see Inst.effectProgram
}

// A check is a choice of which some entries are no text.
type check struct {
	index gather
	table []uint16
}

// An op prints a part of the text. What most need stands together in one cache line;
// the rest is in more.
type op struct {
	code  opCode
	get   gather
	short short // opShort
	// names are the texts by the value of get: opName, opPick.
	names []short
	more  *opMore
}

// opMore is the part of an op that the simple ones do not have.
type opMore struct {
	lit   string   // opLit
	texts []medium // opMedium: the first; opPickMedium: by index
	kind  Kind     // opNum
	shift uint8    // opNum, like xor and add as in Slot
	sign  uint8    // opNum: the number of bits to shift up and down again
	xor   uint64
	add   int64
	table []uint16 // opAlt, like alts
	alts  [][]op
	slot  *Slot // opSlot
}

type opCode uint8

const (
	opShort      opCode = iota // a literal of at most 7 bytes
	opLit                      // a longer literal
	opMedium                   // a literal of at most 16 bytes
	opPick                     // one of short literals
	opPickMedium               // one of literals of at most 16 bytes
	opName                     // a register
	opPlain                    // opName or opPick by one run of bits
	opAlt                      // one of several alternatives
	opNum                      // a number of one range of bits
	opSlot                     // any other operand
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

// A medium is a text of at most 16 bytes.
type medium struct {
	lo, hi uint64
	n      int
}

const maxMedium = 16

func makeMedium(s string) medium {
	var b [maxMedium]byte
	return medium{n: copy(b[:], s), lo: binary.LittleEndian.Uint64(b[:]), hi: binary.LittleEndian.Uint64(b[8:])}
}

// A step takes bits of a word to a place in an index.
type step struct {
	hi    bool  // bits of Word.Hi
	shift uint8 // of the lowest bit
	out   uint8 // the place of the lowest bit in the index
	mask  uint64
	// equal says that the outcome is one bit, whether the bits are arg.
	equal bool
	arg   uint64
	test  *Test // any other test: the outcome is one bit at out
}

// A gather puts an index together from a word: from a first run of bits, to which
// more may add.
type gather struct {
	hi    bool
	shift uint8
	mask  uint64
	more  *[]step
}

// get returns what s reads from w, in its place.
func (s *step) get(w Word) uint64 {
	x := w.Lo
	if s.hi {
		x = w.Hi
	}
	x = x >> (s.shift & 63) & s.mask
	if s.equal {
		if x != s.arg {
			return 0
		}
		x = 1
	}
	return x << (s.out & 63)
}

// plain returns what a gather of one run of bits reads from w.
func (g *gather) plain(w Word) uint64 {
	x := w.Lo
	if g.hi {
		x = w.Hi
	}
	return x >> (g.shift & 63) & g.mask
}

// value returns the index that g reads from w.
func (g *gather) value(w Word) uint64 {
	if g.more != nil {
		return g.plain(w) | g.rest(w)
	}
	return g.plain(w)
}

func (g *gather) rest(w Word) (x uint64) {
	steps := *g.more
	for i := range steps {
		s := &steps[i]
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

// newGather returns the gather of steps. Its own run is the first step if that is a
// plain one at place 0, and of no bits otherwise.
func newGather(steps []step) gather {
	var g gather
	if len(steps) > 0 && steps[0].test == nil && !steps[0].equal && steps[0].out == 0 {
		g.hi, g.shift, g.mask = steps[0].hi, steps[0].shift, steps[0].mask
		steps = steps[1:]
	}
	if len(steps) > 0 {
		more := slices.Clone(steps)
		g.more = &more
	}
	return g
}

// stepRoom is how many steps a gather has, mostly; they stand on the stack while it is made.
const stepRoom = 16

func fieldGather(f Field) gather {
	var room [stepRoom]step
	return newGather(fieldSteps(room[:0], f, 0))
}

// indexGather returns the gather of the index into p's table.
func indexGather(p *Piece) gather {
	var room, runRoom [stepRoom]step
	steps := room[:0]
	out := uint8(0)
	for i := range p.Tests {
		t := &p.Tests[i]
		run := fieldSteps(runRoom[:0], t.Field, out)
		switch {
		case t.Kind == TestValue:
			steps = append(steps, run...)
		case t.Kind == TestEq && len(run) == 1:
			run[0].equal, run[0].arg = true, t.Arg
			steps = append(steps, run[0])
		default:
			steps = append(steps, step{out: out, test: t})
		}
		out += uint8(t.width())
	}
	return newGather(steps)
}

// compile returns the program of v, which passes Check.
func compile(v *Variant) *program {
	p := &program{v: v, sched: v.Sched, maxLen: len("@!UPT ")}
	n := 0
	for i := range v.Template {
		if n++; len(v.Template[i].Tests) == 0 {
			n += len(v.Template[i].Alts[0]) - 1
		}
	}
	p.ops = make([]op, 0, n)
	var read Word // bits that decide text and status
	for i := range v.Template {
		piece := &v.Template[i]
		for _, t := range piece.Tests {
			read = read.Or(t.Field.Mask())
		}
		for _, a := range piece.Alts {
			if s, _ := relativeSlot(a); s != nil {
				p.relative = true
			}
			for j := range a {
				read = read.Or(a[j].Slot.Field.Mask())
			}
		}
		if len(piece.Tests) == 0 {
			p.ops = appendAlt(p.ops, piece.Alts[0])
			p.maxLen += altLen(piece.Alts[0])
			continue
		}
		index := indexGather(piece)
		if slices.Contains(piece.Table, PieceIllegal) || slices.Contains(piece.Table, PieceSilent) {
			p.checks = append(p.checks, check{index, piece.Table})
		}
		if slices.Contains(piece.Table, PieceOther) {
			p.others = append(p.others, check{index, piece.Table})
		}
		o, n := choiceOp(piece, index)
		p.ops = append(p.ops, o)
		p.maxLen += n
	}
	p.steady = !p.relative && read.Hi&unscheduledMask == 0
	return p
}

// other reports whether w, which has p's constant bits, is of another variant.
func (p *program) other(w Word) bool {
	for i := range p.others {
		if p.others[i].table[p.others[i].index.value(w)] == PieceOther {
			return true
		}
	}
	return false
}

// choiceOp returns the op of a piece with tests, and the greatest length of its
// text.
func choiceOp(p *Piece, index gather) (op, int) {
	o := op{code: opPick, get: index}
	most := 0
	for _, a := range p.Alts {
		most = max(most, altLen(a))
		switch {
		case len(a) == 0 || len(a) == 1 && a[0].Lit != "" && len(a[0].Lit) <= maxShort:
		case len(a) == 1 && a[0].Lit != "" && len(a[0].Lit) <= maxMedium:
			o.code = max(o.code, opPickMedium)
		default:
			o.code = opAlt
		}
	}
	switch o.code {
	case opAlt:
		o.more = &opMore{table: p.Table, alts: make([][]op, len(p.Alts))}
		for i, a := range p.Alts {
			o.more.alts[i] = appendAlt(make([]op, 0, len(a)), a)
		}
	case opPickMedium:
		o.more = &opMore{texts: make([]medium, len(p.Table))}
		for i, x := range p.Table {
			if int(x) < len(p.Alts) && len(p.Alts[x]) > 0 {
				o.more.texts[i] = makeMedium(p.Alts[x][0].Lit)
			}
		}
	default:
		o.names = make([]short, len(p.Table))
		for i, x := range p.Table {
			if int(x) < len(p.Alts) && len(p.Alts[x]) > 0 {
				o.names[i] = makeShort(p.Alts[x][0].Lit)
			}
		}
	}
	return o.quicker(), most
}

// quicker returns o with the quicker one of two codes, where there are two.
func (o op) quicker() op {
	if (o.code == opName || o.code == opPick) && o.get.more == nil {
		o.code = opPlain
	}
	return o
}

// maxSlot is an upper bound for the length of an operand's text: a double has a
// sign, 21 digits, a point and an exponent.
const maxSlot = 32

// altLen returns the greatest length of a's text.
func altLen(a Alt) int {
	most := 0
	for i := range a {
		if most += len(a[i].Lit); a[i].Lit == "" {
			most += maxSlot
		}
	}
	return most
}

// appendAlt appends the ops that print a.
func appendAlt(ops []op, a Alt) []op {
	for i := range a {
		e := &a[i]
		switch {
		case e.Lit == "":
			ops = append(ops, slotOp(&e.Slot))
		case len(e.Lit) <= maxShort:
			ops = append(ops, op{code: opShort, short: makeShort(e.Lit)})
		case len(e.Lit) <= maxMedium:
			ops = append(ops, op{code: opMedium, more: &opMore{texts: []medium{makeMedium(e.Lit)}}})
		default:
			ops = append(ops, op{code: opLit, more: &opMore{lit: e.Lit}})
		}
	}
	return ops
}

// slotOp returns the op that prints s.
func slotOp(s *Slot) op {
	o := op{code: opSlot, get: fieldGather(s.Field)}
	switch s.Kind {
	case KindReg, KindUReg, KindPred, KindUPred:
		if names := registerNames(s); names != nil {
			o.code, o.names = opName, names
			return o.quicker()
		}
	}
	m := &opMore{kind: s.Kind, xor: s.Xor, shift: s.Shift, add: s.Add, slot: s}
	switch s.Kind {
	case KindHex, KindDec:
		o.code = opNum
	case KindSHex, KindRel:
		o.code = opNum
		m.sign = uint8(64 - s.Field.Width())
	}
	o.more = m
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
