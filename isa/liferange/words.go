package liferange

import (
	"slices"
	"strings"

	"github.com/cupatch/cupatch/isa"
)

// wide is `FADD R254, R254, +SNAN` on every architecture: a kernel that has it shows the
// marks of all R.
var wide = isa.Word{Lo: 0x7f800001fefe7421, Hi: 0x000fca0000000000}

// newWords returns words of v to ask for.
func (c *class) newWords(v *variant, round int) []isa.Word {
	if !v.ok {
		return nil
	}
	n := laterSamples
	if round == 0 {
		n = firstSamples
	}
	if round > 3 || c.clean > 0 {
		n = manySamples
	}
	if c.inherited {
		n = fewSamples
	}
	if !c.straight {
		n = min(n, 60)
	}
	n = max(n/len(c.variants), fewSamples)
	var words []isa.Word
	for k := range n {
		with, fixed := place(c.cands, v.rand)
		if round%3 == 2 && k%2 == 0 {
			with, fixed = isa.Word{}, isa.Word{}
		}
		fixed = fixed.AndNot(v.v.Mask)
		for range 3 {
			if w, ok := v.sample(k%9, with, fixed); ok {
				words = append(words, w)
				break
			}
		}
	}
	if matrix := strings.Contains(c.name, "mma"); matrix && (round == 1 && !c.inherited || round == 0 && c.inherited) {
		words = append(words, c.allWords(v, allBits)...)
	} else if c.inherited {
		words = append(words, c.allWords(v, fewBits)...)
	} else if c.clean == 1 && !matrix {
		words = append(words, c.allWords(v, mostBits)...)
	}
	for i := range c.rules {
		more := c.cellWords(v, &c.rules[i])
		if c.inherited {
			more = more[:min(len(more), fewCells)]
		}
		words = append(words, more...)
	}
	return words
}

// conditional reports whether some count depends on modifiers: those of which few words
// have the right ones are seen late.
func (c *class) conditional() bool {
	return slices.ContainsFunc(c.rules, func(r isa.AccessRule) bool { return len(r.Tests) > 0 })
}

// allWords returns a word for every combination of v's modifiers, if they are not more
// than so many bits. Of the matrix instructions few combinations of shape and types mean
// anything, and random words hardly meet them.
func (c *class) allWords(v *variant, most int) []isa.Word {
	var tests []isa.Test
	taken := v.v.Mask.Or(keep)
	for _, k := range c.all {
		if k.settable {
			taken = taken.Or(k.field.Mask())
		}
	}
	bits := 0
	for _, f := range features(v.v, c.all) {
		if f.test.Kind == isa.TestValue && f.cost == 1 && f.test.Field.Mask().And(taken).IsZero() {
			tests, taken, bits = append(tests, f.test), taken.Or(f.test.Field.Mask()), bits+f.test.Field.Width()
		}
	}
	if bits > most {
		return nil
	}
	var words []isa.Word
	for x := range uint64(1) << bits {
		with, fixed := place(c.cands, v.rand)
		fixed = fixed.AndNot(v.v.Mask)
		w := v.set(v.base.AndNot(fixed).Or(with.And(fixed)), tests, x, v.v.Mask.Or(keep))
		if in := v.table.Decode(w); in.Variant == v.v && in.Status == isa.StatusKnown && !in.BadSched {
			words = append(words, w)
		}
	}
	return words
}

// cellWords returns words for the outcomes of r's tests of which few words of v show a
// count.
func (c *class) cellWords(v *variant, r *isa.AccessRule) []isa.Word {
	if len(r.Tests) == 0 {
		return nil
	}
	seen := c.shownCounts(v, r)
	var words []isa.Word
	for x := range seen {
		if seen[x] >= cellWords || len(words) >= cellSamples {
			continue
		}
		var m isa.Word
		for _, t := range r.Tests {
			m = m.Or(t.Field.Mask())
		}
		for range 3 {
			with, fixed := place(c.cands, v.rand)
			fixed = fixed.AndNot(m).AndNot(v.v.Mask)
			w := v.set(v.base.AndNot(fixed).Or(with.And(fixed)), r.Tests, uint64(x), v.v.Mask.Or(keep))
			w, ok := v.mend(w, v.v.Mask.Or(m).Or(keep))
			if ok && index(r.Tests, w) == uint64(x) {
				words = append(words, w)
				break
			}
		}
	}
	return words
}

// shownCounts returns, for each outcome of r's tests, how many words of v show the count of
// the field: a word where another operand's registers come in between shows none.
func (c *class) shownCounts(v *variant, r *isa.AccessRule) []int {
	seen := make([]int, len(r.Counts))
	at := slices.IndexFunc(c.cands, func(k candidate) bool {
		return k.file == r.File && k.invert == r.Invert && k.add == r.Add && slices.Equal(k.field, r.Field)
	})
	for i, w := range v.words {
		a := &v.answers[i]
		if !a.OK {
			continue
		}
		set, implied := &a.Reads, &c.implied.Reads
		if r.Writes {
			set, implied = &a.Writes, &c.implied.Writes
		}
		if at < 0 || attribute(c.cands, w, set, implied)[at] != unknown {
			seen[index(r.Tests, w)]++
		}
	}
	return seen
}
