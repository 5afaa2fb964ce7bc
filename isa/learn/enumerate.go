package learn

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/cupatch/cupatch/isa"
)

// maxCombos bounds the words that one region may need.
const maxCombos = 1 << 14

// fills is the number of operand fillings, the base among them, from which slots are
// told.
const fills = 4

// A combo is one setting of a region's atoms.
type combo struct {
	on    []int
	words [fills]isa.Word
	ans   [fills]Answer
	toks  [fills][]string
	other bool // the word belongs to another class
	lo    int  // the region's tokens in toks
	hi    int
	ok    bool
}

// combos lists all settings of the atoms: every bit on or off, and for each operand at
// most one test.
func (c *class) combos(deps []int) ([]*combo, error) {
	sets := [][]int{nil}
	for i := 0; i < len(deps); i++ {
		a := deps[i]
		choices := []int{a}
		if c.atoms[a].bit < 0 {
			// All tests of one operand exclude each other.
			if slices.ContainsFunc(deps[:i], func(b int) bool { return c.atoms[b].bit < 0 && c.exclusive(a, b) }) {
				continue
			}
			for _, b := range deps[i+1:] {
				if c.atoms[b].bit < 0 && c.exclusive(a, b) {
					choices = append(choices, b)
				}
			}
		}
		n := len(sets)
		for _, ch := range choices {
			for _, s := range sets[:n] {
				sets = append(sets, append(slices.Clone(s), ch))
			}
		}
		if len(sets) > maxCombos {
			return nil, fmt.Errorf("%d atoms are too many to enumerate", len(deps))
		}
	}
	sort.SliceStable(sets, func(i, j int) bool { return len(sets[i]) < len(sets[j]) })
	out := make([]*combo, len(sets))
	for i, s := range sets {
		out[i] = &combo{on: s}
	}
	return out, nil
}

// fill gives the operands random values, minding the atoms that are on.
func (c *class) fill(on []int) isa.Word {
	w := c.base
	used := map[uint64]bool{}
	for _, op := range c.operands {
		w = op.field.MustSet(w, c.good(len(op.bits), used, false))
	}
	for _, i := range on {
		a := c.atoms[i]
		if a.bit >= 0 {
			w = w.AndNot(a.field.Mask()).Or(c.base.Xor(isa.BitWord(a.bit)).And(a.field.Mask()))
		} else {
			w = a.field.MustSet(w, c.yesValue(a))
		}
	}
	return w
}

// askCombos asks for the combos in all fillings.
func (c *class) askCombos(cs []*combo) {
	ws := make([]isa.Word, len(cs))
	for i, k := range cs {
		k.words[0] = c.with(k.on...)
		ws[i] = k.words[0]
	}
	for i, a := range c.ask(ws) {
		cs[i].ans[0] = a
		cs[i].toks[0] = tokenize(a.Text)
	}
	for f := 1; f < fills; f++ {
		ws, idx := ws[:0], []int{}
		for i, k := range cs {
			if k.ans[0].OK && k.ans[0].Text != "" {
				k.words[f] = c.fill(k.on)
				ws = append(ws, k.words[f])
				idx = append(idx, i)
			}
		}
		for j, a := range c.ask(ws) {
			k := cs[idx[j]]
			k.ans[f], k.toks[f] = a, tokenize(a.Text)
			for try := 0; try < 6 && (!a.OK || !sameShape(k.toks[0], k.toks[f])); try++ {
				k.words[f] = c.fill(k.on)
				a = c.ask(k.words[f : f+1])[0]
				k.ans[f], k.toks[f] = a, tokenize(a.Text)
			}
		}
	}
}

// enumerate learns the piece of r: it asks for every setting of its atoms.
func (c *class) enumerate(r *region) error {
	if r.done {
		return nil
	}
	cs, err := c.combos(r.deps)
	if err != nil {
		return err
	}
	if len(r.deps) == 0 {
		r.piece = isa.Piece{Alts: []isa.Alt{c.baseAlt(r.lo, r.hi)}}
		r.done = true
		return nil
	}
	c.askCombos(cs)
	c.findForeign(cs)
	for _, k := range cs {
		if !k.ans[0].OK || k.ans[0].Text == "" || k.other {
			continue
		}
		if r.lo == len(c.toks) && r.hi == r.lo && !slices.Contains(c.regions, r) {
			k.ok = true // legality only
			continue
		}
		h := c.holds(k.words[0], k.ans[0].PC, k.on)
		cut, cost := c.align(k.toks[0], h)
		if cost >= impossible {
			c.addHunks(diff(c.toks, k.toks[0]), k.on...)
			return errMoreSpans
		}
		k.lo, k.hi, k.ok = cut[r][0], cut[r][1], true
		r.known[join(k.toks[0][k.lo:k.hi])] = true
	}
	err = c.tabulateRegion(r, cs)
	if err != nil && c.tabulateOperands(r) {
		return errMoreSpans
	}
	return err
}

// tabulateOperands turns the narrow operands of a region that could not be explained into
// modifier bits, and reports whether there were any.
func (c *class) tabulateOperands(r *region) bool {
	found := false
	for _, op := range slices.Clone(c.operands) {
		inside := slices.ContainsFunc(op.toks, func(t int) bool { return t >= r.lo && t < r.hi })
		if inside && len(op.bits) <= 8 && len(op.bits)+len(r.deps) <= 14 {
			c.tabulate(op)
			found = true
		}
	}
	return found
}

// findForeign marks the combos that belong to other classes, where that may matter.
func (c *class) findForeign(cs []*combo) {
	if c.admitted.IsZero() && !c.disputed {
		return
	}
	ws := make([]isa.Word, len(cs))
	for i, k := range cs {
		ws[i] = k.words[0]
	}
	for i, name := range c.o.ClassOf(ws) {
		cs[i].other = name != "" && name != c.name
	}
}

// errMoreSpans says that the regions have to be built anew.
var errMoreSpans = fmt.Errorf("regions changed")

func (c *class) baseAlt(lo, hi int) isa.Alt {
	var alt isa.Alt
	for t := lo; t < hi; t++ {
		if e := c.slots[t]; e != nil {
			alt = append(alt, e...)
		} else {
			alt = append(alt, isa.Elem{Lit: c.toks[t]})
		}
	}
	return compact(alt)
}

// compact joins neighboring literals.
func compact(alt isa.Alt) isa.Alt {
	var out isa.Alt
	for _, e := range alt {
		if n := len(out); n > 0 && e.Lit != "" && out[n-1].Lit != "" {
			out[n-1].Lit += e.Lit
			continue
		}
		out = append(out, e)
	}
	return out
}

// alternative finds the template of one combo's part of the text.
func (c *class) alternative(k *combo) (isa.Alt, error) {
	var alt isa.Alt
	for i := k.lo; i < k.hi; i++ {
		var ss []sample
		same := true
		for f := 0; f < fills; f++ {
			if k.ans[f].OK && len(k.toks[f]) == len(k.toks[0]) {
				ss = append(ss, sample{k.words[f], k.ans[f].PC, k.toks[f][i]})
				same = same && k.toks[f][i] == k.toks[0][i]
			}
		}
		if len(ss) < 2 && len(c.operands) > 0 {
			return nil, fmt.Errorf("%q: no second filling has the same shape", k.ans[0].Text)
		}
		if same {
			alt = append(alt, isa.Elem{Lit: k.toks[0][i]})
			continue
		}
		e, ok := c.slotFor(ss)
		if !ok {
			return nil, fmt.Errorf("%q: no operand prints %q", k.ans[0].Text, k.toks[0][i])
		}
		alt = append(alt, e...)
	}
	return compact(alt), nil
}

// slotFor finds the operand and the way of printing it that gives the samples: first
// the ways already known, then all.
func (c *class) slotFor(ss []sample) ([]isa.Elem, bool) {
	toks := make([]int, 0, len(c.slots))
	for t := range c.slots {
		toks = append(toks, t)
	}
	sort.Ints(toks)
	for _, t := range toks {
		if matches(c.slots[t], ss) {
			return c.slots[t], true
		}
	}
	var second []isa.Elem
	for _, op := range c.operands {
		e, ok := fitSlot(op.field, ss)
		if !ok {
			continue
		}
		s := e[len(e)-1].Slot
		if s.Add == 0 && s.Xor == 0 {
			return e, true
		}
		if second == nil {
			second = e
		}
	}
	if second == nil {
		// A form with a wider immediate than the base shows.
		if e, ok := fitSlot(isa.Bits(32, 63), ss); ok {
			return e, true
		}
	}
	return second, second != nil
}

// tabulateRegion makes the piece of r from its combos.
func (c *class) tabulateRegion(r *region, cs []*combo) error {
	var bs []int
	var tests []isa.Test
	for _, d := range r.deps {
		if a := c.atoms[d]; a.bit >= 0 {
			bs = append(bs, a.bit)
		} else {
			tests = append(tests, a.test)
		}
	}
	sort.Ints(bs)
	p := isa.Piece{}
	if len(bs) > 0 {
		p.Tests = append(p.Tests, isa.Test{Field: fieldOf(bs)})
	}
	p.Tests = append(p.Tests, tests...)
	size := 1 << (len(bs) + len(tests))
	p.Table = make([]uint16, size)
	seen := make([]bool, size)
	index := map[string]uint16{}
	for _, k := range cs {
		i := pieceIndex(&p, k.words[0])
		if seen[i] {
			continue
		}
		seen[i] = true
		switch {
		case k.other:
			p.Table[i] = isa.PieceOther
		case !k.ans[0].OK:
			p.Table[i] = isa.PieceIllegal
		case k.ans[0].Text == "":
			p.Table[i] = isa.PieceSilent
		default:
			alt, err := c.alternative(k)
			if err != nil {
				return err
			}
			key := altKey(alt)
			n, ok := index[key]
			if !ok {
				n, ok = k.printedBy(p.Alts)
			}
			if !ok {
				n = uint16(len(p.Alts))
				index[key] = n
				p.Alts = append(p.Alts, alt)
			}
			p.Table[i] = n
		}
	}
	// Settings that no word has, such as two tests of one operand, take the entry of a
	// setting without the last test.
	for i := range p.Table {
		for t := len(tests) - 1; !seen[i] && t >= 0; t-- {
			j := i &^ (1 << (len(bs) + t))
			if j != i && seen[j] {
				p.Table[i], seen[i] = p.Table[j], true
			}
		}
	}
	if len(p.Alts) == 0 {
		p.Alts = []isa.Alt{nil}
	}
	r.piece = dropUnused(p)
	r.done = true
	return nil
}

// printedBy finds an alternative that prints k's part of the text in all fillings, so
// that a register that prints as RZ needs no alternative of its own.
func (k *combo) printedBy(alts []isa.Alt) (uint16, bool) {
	for n, alt := range alts {
		same := true
		for f := 0; f < fills && same; f++ {
			if k.ans[f].OK && len(k.toks[f]) == len(k.toks[0]) {
				same = render(alt, k.words[f], k.ans[f].PC) == join(k.toks[f][k.lo:k.hi])
			}
		}
		if same {
			return uint16(n), true
		}
	}
	return 0, false
}

func altKey(alt isa.Alt) string {
	var b strings.Builder
	for _, e := range alt {
		fmt.Fprintf(&b, "%q%v", e.Lit, e.Slot)
	}
	return b.String()
}

func pieceIndex(p *isa.Piece, w isa.Word) uint64 {
	i, shift := uint64(0), 0
	for _, t := range p.Tests {
		i |= t.Outcome(w) << shift
		if t.Kind == isa.TestValue {
			shift += t.Field.Width()
		} else {
			shift++
		}
	}
	return i
}

// dropUnused removes the bits and tests on which the table does not depend.
func dropUnused(p isa.Piece) isa.Piece {
	n := 0
	for 1<<n < len(p.Table) {
		n++
	}
	for b := n - 1; b >= 0; b-- {
		used := false
		for i := range p.Table {
			used = used || p.Table[i] != p.Table[i^1<<b]
		}
		if used {
			continue
		}
		var t []uint16
		for i := range p.Table {
			if i>>b&1 == 0 {
				t = append(t, p.Table[i])
			}
		}
		p.Table = t
		p.Tests = dropTest(p.Tests, b)
	}
	if len(p.Tests) == 0 && p.Table[0] < isa.PieceOther {
		p.Alts = []isa.Alt{p.Alts[p.Table[0]]}
		p.Table = nil
	}
	return p
}

// dropTest removes index bit b from the tests.
func dropTest(tests []isa.Test, b int) []isa.Test {
	var out []isa.Test
	at := 0
	for _, t := range tests {
		n := 1
		if t.Kind == isa.TestValue {
			n = t.Field.Width()
		}
		if b >= at && b < at+n {
			if t.Kind == isa.TestValue && n > 1 {
				bs := t.Field.Bits()
				t.Field = fieldOf(slices.Delete(bs, b-at, b-at+1))
				out = append(out, t)
			}
		} else {
			out = append(out, t)
		}
		at += n
	}
	return out
}
