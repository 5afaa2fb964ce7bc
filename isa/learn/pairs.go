package learn

import (
	"slices"
	"strings"

	"github.com/cupatch/cupatch/isa"
)

// with returns the base word with the given atoms applied.
func (c *class) with(atoms ...int) isa.Word {
	w := c.base
	for _, a := range atoms {
		w = c.atoms[a].set(w, c.base, true)
	}
	return w
}

// exclusive reports whether two atoms are tests of the same operand, or a bit of an
// operand and a test of it.
func (c *class) exclusive(a, b int) bool {
	return !c.atoms[a].field.Mask().And(c.atoms[b].field.Mask()).IsZero()
}

// holds returns what the regions may be for a word that has only the atoms on applied:
// regions without any of them are frozen.
func (c *class) holds(w isa.Word, pc uint64, on []int) map[*region]hold {
	h := map[*region]hold{}
	for _, r := range c.regions {
		h[r] = hold{text: c.baseText(r.lo, r.hi, w, pc), frozen: !touches(r.deps, on), known: r.known}
	}
	return h
}

// single cuts the text of one atom into regions. The second result is false when the
// atom's word is refused, silent, or does not fit the regions.
func (c *class) single(a int, ans Answer) (map[*region]string, bool) {
	if !ans.OK || ans.Text == "" {
		return nil, false
	}
	toks := tokenize(ans.Text)
	w := c.with(a)
	h := c.holds(w, ans.PC, []int{a})
	cut, cost := c.align(toks, h)
	if cost >= impossible {
		return nil, false
	}
	out := map[*region]string{}
	for r, p := range cut {
		out[r] = join(toks[p[0]:p[1]])
		r.known[out[r]] = true
	}
	return out, true
}

func join(toks []string) string { return strings.Join(toks, "") }

// findPairs asks for every pair of atoms. Where the two changes do not compose, the
// regions that come out otherwise are made to depend on both.
func (c *class) findPairs() {
	n := len(c.atoms)
	ws := make([]isa.Word, n)
	for i := range ws {
		ws[i] = c.with(i)
	}
	singles := c.ask(ws)
	type pair struct{ a, b int }
	var ps []pair
	ws = ws[:0]
	refusedPairs := 0
	for a := 0; a < n; a++ {
		for b := a + 1; b < n; b++ {
			if c.exclusive(a, b) {
				continue
			}
			if !singles[a].OK || !singles[b].OK {
				if refusedPairs++; refusedPairs > 400 {
					continue
				}
			}
			ps = append(ps, pair{a, b})
			ws = append(ws, c.with(a, b))
		}
	}
	answers := c.ask(ws)
	for round := 0; round < 6; round++ {
		c.buildRegions()
		texts := make([]map[*region]string, n)
		for i := range texts {
			texts[i], _ = c.single(i, singles[i])
		}
		before := len(c.spans)
		for k, p := range ps {
			c.checkPair(p.a, p.b, ws[k], answers[k], singles, texts)
		}
		if len(c.spans) == before {
			return
		}
	}
}

// checkPair compares the answer to two atoms with the composition of their single
// changes.
func (c *class) checkPair(a, b int, w isa.Word, ans Answer, singles []Answer, texts []map[*region]string) {
	okA, okB := singles[a].OK, singles[b].OK
	switch {
	case !ans.OK && okA && okB:
		c.needLegality(a, b)
		return
	case !ans.OK:
		// Refused alone and refused together: the same table when the value it lacks
		// differs.
		if !okA && !okB && singles[a].Table == singles[b].Table && singles[a].Table != "" && c.bothBits(a, b) {
			c.needLegality(a, b)
		}
		return
	case ans.Text == "":
		if singles[a].Silent() == singles[b].Silent() && !singles[a].Silent() || c.silent && okA != okB {
			c.needLegality(a, b)
		}
		return
	case !okA || !okB:
		c.needLegality(a, b)
		c.addPairHunks(a, b, ans)
		return
	}
	h := c.holds(w, ans.PC, []int{a, b})
	for r, x := range h {
		inA, inB := slices.Contains(r.deps, a), slices.Contains(r.deps, b)
		switch {
		case inA && inB:
			x.text, x.frozen = "", false
		case inA && texts[a] != nil:
			x.text, x.frozen = c.operandText(r, texts[a][r], w, ans.PC), true
		case inB && texts[b] != nil:
			x.text, x.frozen = c.operandText(r, texts[b][r], w, ans.PC), true
		}
		h[r] = x
	}
	toks := tokenize(ans.Text)
	if _, cost := c.align(toks, h); cost < impossible {
		return
	}
	// Find the regions at fault: let all be free, and see which are not as expected.
	for r, x := range h {
		x.frozen = false
		h[r] = x
	}
	cut, cost := c.align(toks, h)
	if cost >= impossible {
		c.addPairHunks(a, b, ans)
		return
	}
	for r, p := range cut {
		if !sameText(join(toks[p[0]:p[1]]), h[r].text) {
			c.addSpan(r.lo, r.hi, a, b)
		}
	}
}

// operandText is text, a region's text under one atom; where the region is an operand
// alone, what the operand prints in w.
func (c *class) operandText(r *region, text string, w isa.Word, pc uint64) string {
	if r.hi-r.lo == 1 && c.slots[r.lo] != nil && text == c.toks[r.lo] {
		return c.baseText(r.lo, r.hi, w, pc)
	}
	return text
}

func (c *class) bothBits(a, b int) bool { return c.atoms[a].bit >= 0 && c.atoms[b].bit >= 0 }

func (c *class) addPairHunks(a, b int, ans Answer) {
	c.addHunks(diff(c.toks, tokenize(ans.Text)), a, b)
}

// needLegality makes a region without text, at the end, which only says which values
// of the atoms are refused together.
func (c *class) needLegality(deps ...int) {
	c.legal = append(c.legal, slices.Clone(deps))
}

// legalityRegions groups the sets of atoms that are refused together.
func (c *class) legalityRegions() []*region {
	var sets [][]int
	for _, d := range c.legal {
		d := union(nil, d)
		rest := sets[:0:0]
		for _, s := range sets {
			if touches(s, d) {
				d = union(d, s)
			} else {
				rest = append(rest, s)
			}
		}
		sets = append(rest, d)
	}
	var out []*region
	for _, s := range sets {
		out = append(out, &region{lo: len(c.toks), hi: len(c.toks), deps: s, known: map[string]bool{}})
	}
	return out
}
