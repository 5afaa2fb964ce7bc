package isa

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// A Table knows the instructions of one architecture. It never changes after it
// was made and is safe for concurrent use.
type Table struct {
	arch     Arch
	variants []*Variant
	// byVariant is the candidate of each of variants.
	byVariant []*candidate
	// cands holds the variants by opcode, and within an opcode the most specific
	// first; those of opcode i are cands[first[i]:first[i+1]].
	cands  []candidate
	first  [numOpcodes + 1]uint16
	all    sync.Once // completes the variants
	groups sync.Map  // *Variant → []*Group
	// operands is like groups: *Variant → []OperandInfo.
	operands sync.Map
	// opcodeBits has what OpcodeBits returns, by opcode.
	opcodeBits [numOpcodes]atomic.Pointer[Word]
	effects    effectsTable

	namesOnce sync.Once
	names     map[string][]*candidate
}

// A candidate is what Decode needs to know of a variant.
type candidate struct {
	mask, value Word
	v           *Variant
	pending     *pending // what is still to read of v, or nil
	table       *Table
	number      int // of v in Table.variants
	prog        atomic.Pointer[program]
	enc         atomic.Pointer[encodeForm]
}

// numOpcodes is the number of values of the opcode, bits 0–11 and 91.
const numOpcodes = 1 << 13

// NewTable returns the table of the variants vs, which it keeps and which must not
// change afterwards. Where the patterns of several variants fit a word, the one with
// the most constant bits decides, and among equals the one that comes first.
func NewTable(arch Arch, vs []*Variant) *Table {
	t := &Table{arch: arch, variants: vs, cands: make([]candidate, len(vs)), byVariant: make([]*candidate, len(vs))}
	for i, n := range triedOrder(vs) {
		t.put(i, n, nil, vs[n])
	}
	t.fill()
	return t
}

// triedOrder returns the numbers of variants in the order in which they are tried.
func triedOrder(vs []*Variant) []int {
	order := make([]int, len(vs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		a, b := vs[i], vs[j]
		return cmp.Or(cmp.Compare(a.Value.Opcode(), b.Value.Opcode()),
			cmp.Compare(b.Mask.OnesCount(), a.Mask.OnesCount()))
	})
	return order
}

// put makes variant n the i-th to be tried.
func (t *Table) put(i, n int, p *pending, v *Variant) {
	c := &t.cands[i]
	c.mask, c.value, c.v, c.pending, c.table, c.number = v.Mask, v.Value, v, p, t, n
	t.byVariant[n] = c
}

// fill notes which candidates each opcode has.
func (t *Table) fill() {
	op := 0
	for i := range t.cands {
		for o := t.cands[i].value.Opcode(); op <= o; op++ {
			t.first[op] = uint16(i)
		}
	}
	for ; op < len(t.first); op++ {
		t.first[op] = uint16(len(t.cands))
	}
}

// Arch returns the architecture that t describes.
func (t *Table) Arch() Arch { return t.arch }

// Variants returns the variants of t. They must not be changed.
func (t *Table) Variants() []*Variant {
	t.all.Do(func() {
		for i := range t.cands {
			t.cands[i].complete()
		}
	})
	return t.variants
}

// Variant returns variant n, counted from 0 in the order of Variants. It must not be changed.
func (t *Table) Variant(n int) *Variant {
	t.byVariant[n].complete()
	return t.variants[n]
}

// freeSchedule reports whether no variant with the opcode op is told by bits that
// [Word.Unscheduled] clears.
func (t *Table) freeSchedule(op int) bool {
	for i := t.first[op]; i < t.first[op+1]; i++ {
		if t.cands[i].mask.Hi&unscheduledMask != 0 {
			return false
		}
	}
	return true
}

// find returns what is known of the variant that w has, or nil.
func (t *Table) find(w Word) *candidate {
	c, _ := t.findProgram(w)
	return c
}

// findProgram is like find and returns the variant's compiled form too.
func (t *Table) findProgram(w Word) (*candidate, *program) {
	op := w.Opcode()
	cands := t.cands[t.first[op]:t.first[op+1]]
	for i := range cands {
		c := &cands[i]
		if (w.Lo^c.value.Lo)&c.mask.Lo|(w.Hi^c.value.Hi)&c.mask.Hi == 0 {
			if p := c.program(); len(p.others) == 0 || !p.other(w) {
				return c, p
			}
		}
	}
	return nil, nil
}

// Decode says what w is. It never fails: a word that no variant fits has the status
// StatusUnknown.
func (t *Table) Decode(w Word) Inst {
	c, p := t.findProgram(w)
	if c == nil {
		return Inst{Word: w, Status: StatusUnknown}
	}
	status := StatusKnown
	for k := range p.checks {
		x := p.checks[k].table[p.checks[k].index.value(w)]
		if x == PieceIllegal {
			status = StatusIllegal
			break
		}
		if x == PieceSilent {
			status = StatusSilent
		}
	}
	return Inst{Word: w, Variant: c.v, Status: status, BadSched: !p.sched.Legal(w), prog: p}
}

// program returns the compiled form of c's variant, which is made when it is first
// asked for.
func (c *candidate) program() *program {
	p := c.prog.Load()
	if p == nil {
		c.complete()
		p = compile(c.v)
		p.table, p.number = c.table, c.number
		p.steady = p.steady && c.table.freeSchedule(c.value.Opcode())
		c.prog.Store(p)
	}
	return p
}

// complete reads what is still to read of c's variant.
func (c *candidate) complete() {
	if c.pending != nil {
		c.pending.read(c.v)
	}
}

// mnemonics returns the names that the text of c's variant may start with, without
// reading what is still to read of it.
func (c *candidate) mnemonics() []string {
	if c.pending != nil {
		return strings.Fields(c.pending.names)
	}
	return c.v.Mnemonics()
}

// encodeForm returns c's variant prepared for reading text.
func (c *candidate) encodeForm() *encodeForm {
	f := c.enc.Load()
	if f == nil {
		c.complete()
		f = newEncodeForm(c.v)
		c.enc.Store(f)
	}
	return f
}

// named returns the variants whose text starts with the instruction name, in the
// order in which they are tried.
func (t *Table) named(name string) []*candidate {
	t.namesOnce.Do(func() {
		t.names = map[string][]*candidate{}
		for i := range t.cands {
			for _, n := range t.cands[i].mnemonics() {
				t.names[n] = append(t.names[n], &t.cands[i])
			}
		}
		for _, cs := range t.names {
			slices.SortStableFunc(cs, func(a, b *candidate) int { return int(b.v.Rank) - int(a.v.Rank) })
		}
	})
	return t.names[name]
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
