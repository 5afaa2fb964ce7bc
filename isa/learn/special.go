package learn

import (
	"slices"

	"github.com/cupatch/cupatch/isa"
)

// fitOperands finds how each operand prints. One that cannot be fitted becomes a
// group of modifier bits when it is narrow.
func (c *class) fitOperands(fs []flip) {
	c.slots = map[int][]isa.Elem{}
	byBit := map[int]flip{}
	for _, f := range fs {
		byBit[f.bit] = f
	}
	base := c.ask([]isa.Word{c.base})[0]
	var kept []*operand
	for _, op := range c.operands {
		fitted := map[int][]isa.Elem{}
		ok := true
		if len(op.bits) > 64 {
			c.note("%d bits change %q", len(op.bits), c.toks[op.toks[0]])
			continue
		}
		for _, t := range op.toks {
			samples := []sample{{c.base, base.PC, c.toks[t]}}
			for _, b := range op.bits {
				f := byBit[b]
				samples = append(samples, sample{c.base.Xor(isa.BitWord(b)), f.ans.PC, tokenize(f.ans.Text)[t]})
			}
			e, fits := fitSlot(op.field, samples)
			if !fits && len(op.bits) <= 16 {
				e, fits = c.fitSplit(op, samples)
			}
			ok = ok && fits && c.slots[t] == nil
			fitted[t] = e
		}
		if !ok && len(op.bits) > 12 {
			c.note("operand %s prints as %q in no known way", op.field, c.toks[op.toks[0]])
		}
		if !ok {
			for _, b := range op.bits {
				a := c.addBit(b)
				c.addHunks(byBit[b].hs, a)
			}
			continue
		}
		for t, e := range fitted {
			c.slots[t] = e
			c.addSpan(t, t+1)
		}
		kept = append(kept, op)
	}
	c.operands = kept
}

// fitSplit tries an operand whose highest bits were not met as numbers, because their
// flip was refused or special: no such form is known yet, so it only tries the order of
// the word.
func (c *class) fitSplit(op *operand, samples []sample) ([]isa.Elem, bool) {
	bs := slices.Clone(op.bits)
	slices.Sort(bs)
	f := fieldOf(bs)
	e, ok := fitSlot(f, samples)
	if ok {
		op.bits, op.field = bs, f
	}
	return e, ok
}

// findSpecials looks for operand values that change more than the number.
func (c *class) findSpecials() {
	for i := 0; i < len(c.operands); i++ {
		op := c.operands[i]
		vals := c.probes(op)
		ws := make([]isa.Word, len(vals))
		for k, v := range vals {
			ws[k] = op.field.MustSet(c.base, v)
		}
		var odd []int
		answers := c.ask(ws)
		for k, a := range answers {
			if !a.OK || Normalize(trim(c.baseText(0, len(c.toks), ws[k], a.PC))) != a.Text {
				odd = append(odd, k)
			}
		}
		if len(odd) == 0 {
			continue
		}
		if len(op.bits) <= 8 && len(odd) > 6 {
			c.tabulate(op)
			i--
			continue
		}
		c.addTests(op, vals, odd, answers)
	}
}

func trim(s string) string {
	for len(s) > 0 && s[len(s)-1] == ' ' {
		s = s[:len(s)-1]
	}
	return s
}

// tabulate turns a narrow operand into modifier bits.
func (c *class) tabulate(op *operand) {
	for _, b := range op.bits {
		a := c.addBit(b)
		for _, t := range op.toks {
			c.addSpan(t, t+1, a)
		}
		w := c.base.Xor(isa.BitWord(b))
		if ans := c.ask([]isa.Word{w})[0]; ans.OK {
			c.addHunks(diff(c.toks, tokenize(ans.Text)), a)
		}
	}
	for _, t := range op.toks {
		delete(c.slots, t)
	}
	c.operands = slices.DeleteFunc(c.operands, func(o *operand) bool { return o == op })
}

// probes lists the values of op worth trying: all of a narrow field.
func (c *class) probes(op *operand) []uint64 {
	n := len(op.bits)
	var vals []uint64
	if n <= 8 {
		for v := uint64(0); v < 1<<n; v++ {
			vals = append(vals, v)
		}
		return vals
	}
	ones := ^uint64(0) >> (64 - n)
	vals = append(vals, 0, 3, 5, 7, ones, ones-1)
	for k := 0; k < n; k++ {
		vals = append(vals, 1<<k)
	}
	for k := 0; k < 6; k++ {
		v := c.good(n, map[uint64]bool{}, false)
		vals = append(vals, v, v|1<<(n-1))
	}
	return vals
}

// addTests explains the special values of op by tests.
func (c *class) addTests(op *operand, vals []uint64, odd []int, answers []Answer) {
	n := len(op.bits)
	top := uint64(1) << (n - 1)
	var pow2, neg int
	for _, k := range odd {
		v := vals[k]
		if isPow2(v) && v != 1 && v != 1<<16 && v != top {
			pow2++
		}
		if v&top != 0 && !isPow2(v) {
			neg++
		}
	}
	add := func(t isa.Test, yes uint64, ans Answer) {
		a := c.addTest(t, yes)
		if ans.OK {
			c.addHunks(diff(c.toks, tokenize(ans.Text)), a)
		}
	}
	count := 0
	for _, k := range odd {
		v := vals[k]
		switch {
		case n > 8 && pow2 >= 6 && isPow2(v) && v != 1 && v != 1<<16 && v != top:
			add(isa.Test{Field: op.field, Kind: isa.TestPow2}, 32, answers[k])
		case n > 8 && neg >= 6 && v&top != 0:
			add(isa.Test{Field: op.field, Kind: isa.TestNeg}, c.good(n, map[uint64]bool{}, false)|top, answers[k])
		case count < 8:
			count++
			add(isa.Test{Field: op.field, Kind: isa.TestEq, Arg: v}, v, answers[k])
		}
	}
}

// yesValue returns a value for which the test of a says yes, at random where there are
// several.
func (c *class) yesValue(a atom) uint64 {
	n := a.field.Width()
	switch a.test.Kind {
	case isa.TestPow2:
		for {
			if k := 1 + c.rng.IntN(n-2); k != 16 {
				return 1 << k
			}
		}
	case isa.TestNeg:
		return c.good(n, map[uint64]bool{}, false) | 1<<(n-1)
	}
	return a.yes
}
