package learn

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"

	"github.com/cupatch/cupatch/isa"
)

// The bits that every instruction shares.
var (
	schedField  = isa.Bits(105, 109)
	guardField  = isa.Bits(12, 15)
	opcodeMask  = isa.Bits(0, 11).Mask().Or(isa.BitWord(91))
	controlMask = isa.Bits(105, 127).Mask()
	reuseMask   = isa.Bits(122, 124).Mask()
	schedMask   = schedField.Mask().Or(reuseMask)
	guardMask   = guardField.Mask()
)

// quiet is the control code of every base word: no barriers, stall 1, no yield, so
// that bits 122–124 are reuse flags.
var quiet = isa.Control{Stall: 1, WBar: 7, RBar: 7}

// quieten gives w the quiet control code, keeping reuse flags, and no guard.
func quieten(w isa.Word) isa.Word {
	reuse := w.And(reuseMask)
	w = quiet.Set(w.AndNot(controlMask)).Or(reuse)
	return guardField.MustSet(w, 7)
}

// An atom is one thing that can differ from the base word: a bit that is flipped, or
// an operand that takes a special value.
type atom struct {
	bit   int // -1 for a test
	field isa.Field
	test  isa.Test
	yes   uint64 // a value of field for which the test says yes
}

// set returns w with the atom's bits as in the base, or as in the base with the atom
// applied.
func (a atom) set(w, base isa.Word, on bool) isa.Word {
	m := a.field.Mask()
	w = w.AndNot(m).Or(base.And(m))
	if !on {
		return w
	}
	if a.bit >= 0 {
		return w.Xor(isa.BitWord(a.bit))
	}
	return a.field.MustSet(w, a.yes)
}

// An operand is a field that prints as a number.
type operand struct {
	field isa.Field
	bits  []int
	toks  []int // base tokens that print it
}

// A class is an encoding class under study.
type class struct {
	o        *session
	rng      *rand.Rand
	name     string
	silent   bool // no word of the class has a text
	drain    bool // the only legal schedule is 0
	relative bool // texts depend on the address
	base     isa.Word
	text     string
	toks     []string
	free     isa.Word // bits that may change within the class
	ign      isa.Word // of these, the ones that never changed anything
	sched    isa.Sched
	guard    isa.Guard

	operands []*operand
	atoms    []atom
	spans    []span
	regions  []*region
	slots    map[int][]isa.Elem // how base tokens print operands

	legals []*region
	legal  [][]int // sets of atoms refused together

	// outside has the answers for the bits whose flip leads out of the class. They are
	// dear to ask for, and stay the same when the base moves.
	outside map[int]Answer

	// admitted has the bits whose flip leads out of the class, but not together with
	// others; disputed says that words with the constant bits of this class were
	// taken from another one.
	admitted isa.Word
	disputed bool
	hard     []isa.Word // words that the whole table got wrong

	found []isa.Word // words of other classes met on the way
	notes []string
}

// A span is a stretch of base tokens that some atoms change.
type span struct {
	lo, hi int
	deps   []int // atoms
}

func (c *class) note(format string, args ...any) {
	c.notes = append(c.notes, fmt.Sprintf(format, args...))
}

// A flip is the answer to the base word with one bit changed.
type flip struct {
	bit int
	ans Answer
	hs  []hunk
	num []int // base tokens whose number changed, when nothing else did
}

// flips asks for every single flip and sorts the bits: part of the key, ignored,
// refused, number, or modifier.
func (c *class) flips(known isa.Word) []flip {
	var fs []flip
	var ws []isa.Word
	var asked []int
	for b := 16; b < 128; b++ {
		if b == 91 || b >= 105 && b < 110 || known.Bit(b) == 1 {
			continue
		}
		if a, ok := c.outside[b]; ok {
			fs = append(fs, flip{bit: b, ans: a})
			continue
		}
		asked = append(asked, len(fs))
		fs = append(fs, flip{bit: b})
		ws = append(ws, c.base.Xor(isa.BitWord(b)))
	}
	for k, a := range c.ask(ws) {
		i := asked[k]
		fs[i].ans = a
		if !a.OK && a.Class != c.name {
			c.outside[fs[i].bit] = a
		}
		if a.OK {
			fs[i].hs = diff(c.toks, tokenize(a.Text))
			fs[i].num = numeric(c.toks, fs[i].hs)
		}
	}
	return fs
}

// numeric returns the changed base tokens when every hunk changes one number into
// another of the same sort, and nil otherwise.
func numeric(toks []string, hs []hunk) []int {
	var out []int
	for _, h := range hs {
		if h.hi-h.lo != len(h.repl) {
			return nil
		}
		for k, r := range h.repl {
			a, ok1 := readNumber(toks[h.lo+k])
			b, ok2 := readNumber(r)
			if !ok1 || !ok2 || a.prefix != b.prefix {
				return nil
			}
			out = append(out, h.lo+k)
		}
	}
	return out
}

// survey learns which bits belong to the class, finds the operands, and moves the
// base to operand values that no single flip makes special.
func (c *class) survey() {
	at0, at16 := c.o.Ask([]isa.Word{c.base})[0], c.o.Ask([]isa.Word{nop, c.base})[1]
	c.relative = at0.Text != at16.Text
	c.text = at0.Text
	c.toks = tokenize(c.text)
	fs := c.flips(isa.Word{})
	c.sortBits(fs)
	for round := 0; round < 4; round++ {
		before := c.shape(fs)
		c.moveOperands()
		c.toks = tokenize(c.text)
		key := c.free.Not()
		fs = c.flips(key)
		c.free = isa.Word{}
		c.sortBits(fs)
		if c.shape(fs) == before && round > 0 {
			break
		}
	}
	c.findAtoms(fs)
}

// explore looks two flips around the base. Words of other classes are handed on; bits
// that leave the class alone, but not together with another, become part of it.
func (c *class) explore() {
	ws := neighbours(c.base)
	for b := 16; b < 105; b++ {
		if b != 91 {
			ws = append(ws, c.base.Xor(isa.BitWord(b)).Xor(isa.BitWord(91)))
		}
	}
	for _, op := range c.operands {
		m := op.field.Mask()
		ws = append(ws, c.base.Or(m), c.base.AndNot(m))
	}
	seen := map[string]bool{c.name: true}
	for i, name := range c.o.ClassOf(ws) {
		if d := ws[i].Xor(c.base); name == c.name && d.And(opcodeMask).IsZero() {
			c.admit(d)
		}
		if name != "" && !seen[name] {
			seen[name] = true
			c.found = append(c.found, ws[i])
		}
	}
}

// admit makes bits part of the class which the single flips had shown to leave it: the
// class is no pattern of bits, and has to say which words are not its own.
func (c *class) admit(bits isa.Word) {
	bits = bits.AndNot(c.free).AndNot(controlMask)
	var atoms []int
	for _, b := range bitsOfWord(bits) {
		c.free = c.free.Or(isa.BitWord(b))
		atoms = append(atoms, c.addBit(b))
	}
	c.admitted = c.admitted.Or(bits)
	c.needLegality(atoms...)
}

// shape finds the operands and says which bits they have.
func (c *class) shape(fs []flip) string {
	c.findOperands(fs)
	var b strings.Builder
	for _, op := range c.operands {
		fmt.Fprintln(&b, op.field, op.toks)
	}
	return b.String()
}

// sortBits fills free and ign from the flips. Bits that change more than a
// number are asked for their class.
func (c *class) sortBits(fs []flip) {
	c.ign = isa.Word{}
	var doubt []int
	var ws []isa.Word
	for i, f := range fs {
		b := isa.BitWord(f.bit)
		switch {
		case f.ans.OK && len(f.hs) == 0 && f.ans.Text != "":
			c.free, c.ign = c.free.Or(b), c.ign.Or(b)
		case f.ans.OK && f.num != nil:
			c.free = c.free.Or(b)
		case f.ans.OK:
			doubt = append(doubt, i)
			ws = append(ws, c.base.Xor(b))
		case f.ans.Class == c.name && f.bit < 122:
			c.free = c.free.Or(b)
		case f.bit >= 122 && f.bit <= 124 && c.reuseAlone(f.bit):
			c.free = c.free.Or(b)
		case f.ans.Class != "" && f.ans.Class != c.name:
			c.found = append(c.found, c.base.Xor(b))
		}
	}
	for k, name := range c.o.ClassOf(ws) {
		b := isa.BitWord(fs[doubt[k]].bit)
		switch {
		case name == c.name:
			c.free = c.free.Or(b)
		case name != "":
			c.found = append(c.found, ws[k])
		}
	}
}

// reuseAlone reports whether a reuse flag is legal without the others of the base.
func (c *class) reuseAlone(bit int) bool {
	w := c.base.AndNot(reuseMask).Or(isa.BitWord(bit))
	return c.o.Ask([]isa.Word{w})[0].OK
}

// good returns a value for an operand of n bits, not one of used: far from zero, all
// ones and powers of two, and positive. A narrow operand of a base word stays two flips
// away from all ones.
func (c *class) good(n int, used map[uint64]bool, forBase bool) uint64 {
	if n == 1 {
		if forBase {
			return 0
		}
		return c.rng.Uint64() & 1
	}
	if n <= 3 {
		pick := []uint64{1, 2, 4, 3, 5}
		if !forBase {
			c.rng.Shuffle(len(pick), func(i, j int) { pick[i], pick[j] = pick[j], pick[i] })
		}
		for _, v := range pick {
			if v < 1<<n-1 && !used[v] {
				used[v] = true
				return v
			}
		}
		return 1 + c.rng.Uint64()%2
	}
	for try := 0; ; try++ {
		v := c.rng.Uint64() & (1<<n - 1)
		if n > 8 {
			v &= 1<<(n-1) - 1
		}
		ones := bits.OnesCount64(v)
		if ones >= 2 && n-ones >= 2 && plainFloat(v, n) && (!used[v] || try > 50) {
			used[v] = true
			return v
		}
	}
}

// plainFloat reports whether v, read as any float of n bits, stays two flips away from
// infinities and NaNs.
func plainFloat(v uint64, n int) bool {
	zeros := func(lo, hi int) int { return hi - lo + 1 - bits.OnesCount64(v>>lo&(1<<(hi-lo+1)-1)) }
	switch n {
	case 16:
		return zeros(10, 14) >= 2 && zeros(7, 14) >= 2 // half, bfloat16
	case 32:
		return zeros(23, 30) >= 2 && zeros(20, 30) >= 2 // single, upper half of a double
	}
	return true
}

// moveOperands gives every operand a good value, as long as the text keeps its shape.
func (c *class) moveOperands() {
	if len(c.operands) == 0 {
		return
	}
	for try := 0; try < 40; try++ {
		used := map[uint64]bool{}
		w := c.base
		for _, op := range c.operands {
			if try < 30 || c.rng.IntN(2) == 0 {
				w = op.field.MustSet(w, c.good(len(op.bits), used, true))
			}
		}
		a := c.ask([]isa.Word{w})[0]
		if a.OK && sameShape(c.toks, tokenize(a.Text)) && c.o.ClassOf([]isa.Word{w})[0] == c.name {
			c.base, c.text = w, a.Text
			return
		}
	}
	c.note("operands stay at the values of the base")
}

// sameShape reports whether two texts differ in numbers only.
func sameShape(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] == b[i] {
			continue
		}
		x, ok1 := readNumber(a[i])
		y, ok2 := readNumber(b[i])
		if !ok1 || !ok2 || x.prefix != y.prefix {
			return false
		}
	}
	return true
}

// findOperands groups the bits that change numbers by the token they change.
func (c *class) findOperands(fs []flip) {
	c.operands = nil
	byTok := map[int]*operand{}
	texts := map[int]map[int]string{}
	for _, f := range fs {
		if !f.ans.OK || f.num == nil || f.bit >= 122 {
			continue
		}
		t := f.num[0]
		if byTok[t] == nil {
			byTok[t] = &operand{}
			texts[t] = map[int]string{}
			c.operands = append(c.operands, byTok[t])
		}
		op := byTok[t]
		op.bits = append(op.bits, f.bit)
		for _, n := range f.num {
			if !slices.Contains(op.toks, n) {
				op.toks = append(op.toks, n)
			}
		}
		texts[t][f.bit] = tokenize(f.ans.Text)[t]
	}
	for t, op := range byTok {
		op.bits = orderBits(op.bits, sample{tok: c.toks[t]}, texts[t])
		op.field = fieldOf(op.bits)
	}
	sort.Slice(c.operands, func(i, j int) bool { return c.operands[i].toks[0] < c.operands[j].toks[0] })
}

// findAtoms makes an atom of every bit that changes the text otherwise than as a
// number, or is refused.
func (c *class) findAtoms(fs []flip) {
	operandBits := isa.Word{}
	for _, op := range c.operands {
		operandBits = operandBits.Or(op.field.Mask())
	}
	for _, f := range fs {
		b := isa.BitWord(f.bit)
		if c.free.And(b).IsZero() || !c.ign.And(b).IsZero() || !operandBits.And(b).IsZero() {
			continue
		}
		c.addBit(f.bit)
	}
}

// addBit makes bit an atom and returns its number.
func (c *class) addBit(bit int) int {
	for i, a := range c.atoms {
		if a.bit == bit {
			return i
		}
	}
	c.ign = c.ign.AndNot(isa.BitWord(bit))
	f := isa.Bits(bit, bit)
	c.atoms = append(c.atoms, atom{bit: bit, field: f, test: isa.Test{Field: f}})
	return len(c.atoms) - 1
}

// addTest makes a test of an operand an atom and returns its number.
func (c *class) addTest(t isa.Test, yes uint64) int {
	for i, a := range c.atoms {
		if a.bit < 0 && a.test.Kind == t.Kind && a.test.Arg == t.Arg && a.field.String() == t.Field.String() {
			return i
		}
	}
	c.atoms = append(c.atoms, atom{bit: -1, field: t.Field, test: t, yes: yes})
	return len(c.atoms) - 1
}
