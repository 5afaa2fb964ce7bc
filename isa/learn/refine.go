package learn

import (
	"fmt"
	"slices"

	"github.com/cupatch/cupatch/isa"
)

// A miss is a word whose text was predicted wrongly.
type miss struct {
	w    isa.Word
	ans  Answer
	pred string
	in   isa.Inst
	// foreign says that the word is of another class, although it has the constant bits
	// of this one.
	foreign bool
}

// predict compares the variant with nvdisasm on words and returns the misses. Words
// that turn out to belong to another class are handed on; they count where bits were
// admitted, or where the whole table got them wrong: elsewhere their own variant decides,
// which has more constant bits.
func (c *class) predict(v *isa.Variant, ws []isa.Word, limit int) []miss {
	t := isa.NewTable(c.o.Arch, []*isa.Variant{v})
	var out []miss
	for _, m := range c.judge(t, ws) {
		if m == nil || m.foreign && !c.mayBeForeign(m.w) {
			continue
		}
		if len(out) >= limit {
			break
		}
		out = append(out, *m)
	}
	return out
}

// judge returns for each word how t, the table of this class alone, misses it, or nil.
// Words of other classes are handed on.
func (c *class) judge(t *isa.Table, ws []isa.Word) []*miss {
	out := make([]*miss, len(ws))
	var wrong []int
	var asked []isa.Word
	for i, a := range c.ask(ws) {
		m, miss := compare(t, ws[i], a)
		if !miss || m.in.Status == isa.StatusUnknown && !a.OK {
			continue
		}
		switch {
		case a.OK || a.Class == "":
			out[i] = &m
			wrong, asked = append(wrong, i), append(asked, ws[i])
		case c.claims(&m, a.Class):
			out[i] = &m
		}
	}
	for k, name := range c.o.ClassOf(asked) {
		if i := wrong[k]; !c.claims(out[i], name) {
			out[i] = nil
		}
	}
	return out
}

// claims reports whether m, a miss of a word that is of the class called name, says
// something of the class under study. Words of other classes are handed on.
func (c *class) claims(m *miss, name string) bool {
	switch name {
	case c.name:
		return true
	case "":
		// Refused without a name, such as a word that two classes fit.
		return !m.ans.OK && m.in.Status == isa.StatusKnown
	}
	if len(c.found) < maxFound {
		c.found = append(c.found, m.w)
	}
	m.foreign = true
	return m.in.Status != isa.StatusUnknown
}

// maxFound bounds the words of other classes that are handed on.
const maxFound = 2000

// mayBeForeign reports whether w, which has the constant bits of the class, has to be
// left to another class where that is its own.
func (c *class) mayBeForeign(w isa.Word) bool {
	return slices.Contains(c.hard, w) || !w.Xor(c.base).And(c.admitted).IsZero()
}

// compare decodes w and reports whether the answer is another.
func compare(t *isa.Table, w isa.Word, a Answer) (miss, bool) {
	in := t.Decode(w)
	m := miss{w: w, ans: a, in: in}
	switch {
	case in.Status == isa.StatusUnknown:
		return m, true
	case in.Status == isa.StatusIllegal || in.BadSched:
		return m, a.OK
	case in.Status == isa.StatusSilent:
		return m, !a.Silent()
	}
	m.pred = Normalize(t.Text(in, a.PC))
	return m, !a.OK || m.pred != a.Text
}

// random returns n words of the class: a part with few atoms changed, a part with many,
// operands ordinary or special, ignored bits and control codes at random.
func (c *class) random(v *isa.Variant, n int) []isa.Word {
	t := isa.NewTable(c.o.Arch, []*isa.Variant{v})
	var ws []isa.Word
	illegal := 0
	for try := 0; len(ws) < n && try < 20*n; try++ {
		w := c.randomWord(v)
		in := t.Decode(w)
		if in.Status == isa.StatusIllegal || in.Status == isa.StatusUnknown {
			if illegal > n/4 {
				continue
			}
			illegal++
		}
		ws = append(ws, w)
	}
	return ws
}

func (c *class) randomWord(v *isa.Variant) isa.Word {
	p := []float64{0.03, 0.1, 0.25, 0.5}[c.rng.IntN(4)]
	if c.rng.IntN(3) == 0 {
		return c.specialWord(v)
	}
	w := c.base
	for _, b := range bitsOfWord(c.free) {
		if c.rng.Float64() < p && (b < 105) {
			w = w.Xor(isa.BitWord(b))
		}
	}
	for _, op := range c.operands {
		n := len(op.bits)
		ones := ^uint64(0) >> (64 - n)
		switch c.rng.IntN(10) {
		case 0:
			w = op.field.MustSet(w, ones)
		case 1:
			w = op.field.MustSet(w, 0)
		case 2:
			w = op.field.MustSet(w, 1<<c.rng.IntN(n))
		case 3:
			w = op.field.MustSet(w, uint64(c.rng.IntN(4))&ones)
		case 4, 5:
			w = op.field.MustSet(w, c.rng.Uint64()&ones)
		case 6, 7, 8:
			w = op.field.MustSet(w, c.good(n, map[uint64]bool{}, false))
		}
	}
	w = randomControl(c.rng.Uint64(), w, v.Sched)
	if c.drain {
		w = w.AndNot(schedMask)
	}
	return w.AndNot(v.Mask).Or(v.Value)
}

// specialWord returns a word in which several tests say yes and few bits are changed:
// aliases need such coincidences.
func (c *class) specialWord(v *isa.Variant) isa.Word {
	var on []int
	for i, a := range c.atoms {
		exclusive := slices.ContainsFunc(on, func(b int) bool { return c.exclusive(i, b) })
		if a.bit < 0 && !exclusive && c.rng.IntN(3) > 0 {
			on = append(on, i)
		}
	}
	w := c.fill(on)
	p := []float64{0, 0.01, 0.03, 0.1}[c.rng.IntN(4)]
	rest := c.free
	for _, op := range c.operands {
		rest = rest.AndNot(op.field.Mask())
	}
	for _, b := range bitsOfWord(rest) {
		if b < 105 && c.rng.Float64() < p {
			w = w.Xor(isa.BitWord(b))
		}
	}
	w = randomControl(c.rng.Uint64(), w, v.Sched)
	if c.drain {
		w = w.AndNot(schedMask)
	}
	return w.AndNot(v.Mask).Or(v.Value)
}

// randomControl sets legal control bits and a guard taken from r.
func randomControl(r uint64, w isa.Word, s isa.Sched) isa.Word {
	ctl := isa.Control{Stall: uint8(r&7) + 1, WBar: uint8(r >> 3 & 7), RBar: uint8(r >> 6 & 7), Wait: uint8(r >> 9 & 63), Yield: r>>15&1 == 1}
	w = ctl.Set(w.AndNot(controlMask))
	top := r >> 16 & uint64(s&7)
	if ctl.Yield {
		top = []uint64{0, 0, 0, 0, 1, 2, 4, 5}[r>>25&7] // 3 is not legal everywhere, and see aliasOff
	}
	w = isa.Bits(122, 124).MustSet(w, top)
	guard := r >> 20 & 31
	if guard > 15 {
		guard = 7
	}
	return guardField.MustSet(w, guard)
}

func bitsOfWord(m isa.Word) []int {
	var bs []int
	for b := 0; b < 128; b++ {
		if m.Bit(b) == 1 {
			bs = append(bs, b)
		}
	}
	return bs
}

// A unit is what shrinking resets at a time.
type unit struct {
	mask isa.Word
	op   *operand // nil for a bit
	bit  int
}

func (c *class) units(w isa.Word) []unit {
	var us []unit
	rest := c.free.AndNot(controlMask.AndNot(reuseMask))
	for _, op := range c.operands {
		us = append(us, unit{mask: op.field.Mask(), op: op})
		rest = rest.AndNot(op.field.Mask())
	}
	for _, b := range bitsOfWord(rest) {
		us = append(us, unit{mask: isa.BitWord(b), bit: b})
	}
	return slices.DeleteFunc(us, func(u unit) bool { return w.Xor(c.base).And(u.mask).IsZero() })
}

// shrink resets as much of a missed word to the base as it can while the prediction
// stays wrong, and returns what is left: nil where the control code is at fault.
func (c *class) shrink(v *isa.Variant, m miss) (miss, []unit) {
	t := isa.NewTable(c.o.Arch, []*isa.Variant{v})
	w := c.quieten(m.w)
	if w.Bit(109) == 1 && m.w.Bit(109) == 0 {
		w = w.AndNot(reuseMask).Or(c.base.And(reuseMask))
	}
	// check returns for each word whether the prediction is still wrong.
	check := func(ws []isa.Word) []*miss {
		out := c.judge(t, ws)
		for i, now := range out {
			if now != nil && (now.foreign != m.foreign || now.w == c.base) {
				out[i] = nil
			}
		}
		return out
	}
	now := check([]isa.Word{w})[0]
	if now == nil {
		return m, nil // the control code or guard is at fault
	}
	m = *now
	for round := 0; round < 12; round++ {
		us := c.units(m.w)
		single := make([]isa.Word, len(us))
		for i, u := range us {
			single[i] = reset(m.w, c.base, u)
		}
		// Those that can be reset alone are reset together, one more at a time.
		var steps []isa.Word
		w := m.w
		for i, still := range check(single) {
			if still != nil {
				w = reset(w, c.base, us[i])
				steps = append(steps, w)
			}
		}
		if len(steps) == 0 {
			break
		}
		for _, still := range check(steps) {
			if still == nil {
				break
			}
			m = *still
		}
	}
	return m, append([]unit{}, c.units(m.w)...)
}

// reset returns w with u as in base.
func reset(w, base isa.Word, u unit) isa.Word { return w.AndNot(u.mask).Or(base.And(u.mask)) }

// learnFrom makes the regions that a miss shows to be wrong depend on what the miss
// consists of.
func (c *class) learnFrom(v *isa.Variant, m miss, stubborn bool) error {
	if outside := m.w.Xor(c.base).And(v.Mask); !outside.AndNot(controlMask).IsZero() {
		c.admit(outside)
		return nil
	}
	m, us := c.shrink(v, m)
	if us == nil {
		return fmt.Errorf("%s: the control code decides: %q", m.w, m.ans.Text)
	}
	var deps []int
	for _, u := range us {
		switch {
		case u.op == nil:
			deps = append(deps, c.addBit(u.bit))
		default:
			deps = append(deps, c.testFor(u.op, m.w)...)
		}
	}
	deps = union(nil, deps)
	switch {
	case m.foreign, !m.ans.OK, m.ans.Text == "", m.in.Status != isa.StatusKnown:
		c.disputed = c.disputed || m.foreign
		c.needLegality(deps...)
		if m.in.Status != isa.StatusKnown && m.ans.OK {
			c.blame(m, deps)
		}
		return nil
	}
	on := c.applied(m.w)
	h := map[*region]hold{}
	for _, r := range c.regions {
		h[r] = hold{text: c.predicted(r, m.w, m.ans.PC), known: r.known}
	}
	toks := tokenize(m.ans.Text)
	cut, cost := c.align(toks, h)
	if cost >= impossible {
		c.addHunks(diff(c.toks, toks), union(on, deps)...)
		return nil
	}
	var wrong []*region
	for _, r := range c.regions {
		p := cut[r]
		if got := join(toks[p[0]:p[1]]); !sameText(got, h[r].text) {
			r.known[got] = true
			c.addSpan(r.lo, r.hi, deps...)
			wrong = append(wrong, r)
		}
	}
	// Where neighbors are wrong together, the cut between them was a guess.
	for i := 1; i < len(wrong); i++ {
		a, b := wrong[i-1], wrong[i]
		if c.onlyModifiers(a.hi, b.lo) {
			c.addSpan(a.lo, b.hi, deps...)
		}
	}
	if stubborn {
		c.joinRelated(wrong, deps)
	}
	return nil
}

// joinRelated makes one region of the wrong ones and of those nearby that depend on the
// same atoms. It is dear to enumerate, but leaves no choice where to cut.
func (c *class) joinRelated(wrong []*region, deps []int) {
	if len(wrong) == 0 {
		return
	}
	const near = 6
	lo, hi := wrong[0].lo, wrong[len(wrong)-1].hi
	for _, r := range c.regions {
		if touches(r.deps, deps) && r.lo <= hi+near && r.hi >= lo-near {
			lo, hi = min(lo, r.lo), max(hi, r.hi)
		}
	}
	all := union(nil, deps)
	for _, r := range c.regions {
		if r.lo >= lo && r.hi <= hi {
			all = union(all, r.deps)
		}
	}
	if len(all) <= 14 {
		c.addSpan(lo, hi, all...)
	}
}

// onlyModifiers reports whether base tokens lo to hi-1 are all modifiers.
func (c *class) onlyModifiers(lo, hi int) bool {
	for _, t := range c.toks[lo:hi] {
		if t[0] != '.' {
			return false
		}
	}
	return true
}

// blame makes every region that wrongly says "refused", "silent" or "of another class"
// depend on deps.
func (c *class) blame(m miss, deps []int) {
	for _, r := range c.regions {
		if len(r.piece.Table) > 0 && r.piece.Table[pieceIndex(&r.piece, m.w)] >= isa.PieceOther {
			c.addSpan(r.lo, r.hi, deps...)
		}
	}
}

// predicted is what region r is thought to print in w.
func (c *class) predicted(r *region, w isa.Word, pc uint64) string {
	n := uint16(0)
	if len(r.piece.Table) > 0 {
		n = r.piece.Table[pieceIndex(&r.piece, w)]
	}
	if int(n) >= len(r.piece.Alts) {
		return ""
	}
	return render(r.piece.Alts[n], w, pc)
}

// applied lists the atoms that differ from the base in w.
func (c *class) applied(w isa.Word) []int {
	var on []int
	for i, a := range c.atoms {
		if a.bit >= 0 && w.Bit(a.bit) != c.base.Bit(a.bit) || a.bit < 0 && a.test.Outcome(w) == 1 {
			on = append(on, i)
		}
	}
	return on
}

// testFor returns the atoms that tell apart the value of op in w.
func (c *class) testFor(op *operand, w isa.Word) []int {
	v := op.field.Get(w)
	for i, a := range c.atoms {
		if a.bit < 0 && a.field.String() == op.field.String() && a.test.Outcome(w) == 1 {
			return []int{i}
		}
	}
	tests := 0
	for _, a := range c.atoms {
		if a.bit < 0 && a.field.String() == op.field.String() {
			tests++
		}
	}
	n := len(op.bits)
	switch {
	case n > 8 && v>>(n-1) == 1 && v != 1<<(n-1) && !isPow2(^v&(1<<n-1)) && v != 1<<n-1:
		return []int{c.addTest(isa.Test{Field: op.field, Kind: isa.TestNeg}, c.good(n, map[uint64]bool{}, false)|1<<(n-1))}
	case n > 8 && isPow2(v) && v != 1 && v != 1<<16 && v != 1<<(n-1):
		return []int{c.addTest(isa.Test{Field: op.field, Kind: isa.TestPow2}, 32)}
	case n <= 8 && tests >= 6:
		c.tabulate(op)
		var out []int
		for _, b := range op.bits {
			out = append(out, c.addBit(b))
		}
		return out
	}
	return []int{c.addTest(isa.Test{Field: op.field, Kind: isa.TestEq, Arg: v}, v)}
}
