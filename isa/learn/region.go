package learn

import (
	"slices"
	"sort"
	"strings"

	"github.com/cupatch/cupatch/isa"
)

// A region is a stretch of base tokens that changes as a whole: it becomes one piece
// of the template.
type region struct {
	lo, hi int
	deps   []int // atoms that change it, sorted
	known  map[string]bool
	piece  isa.Piece
	done   bool
}

// addSpan records that the atoms deps change base tokens lo to hi-1.
func (c *class) addSpan(lo, hi int, deps ...int) {
	c.spans = append(c.spans, span{lo, hi, slices.Clone(deps)})
}

// addHunks records a span for every hunk.
func (c *class) addHunks(hs []hunk, deps ...int) {
	for _, h := range hs {
		c.addSpan(h.lo, h.hi, deps...)
	}
}

// buildRegions merges overlapping spans. Regions whose extent and atoms stay the same
// keep what was learned of them.
func (c *class) buildRegions() {
	sort.SliceStable(c.spans, func(i, j int) bool {
		a, b := c.spans[i], c.spans[j]
		if a.lo != b.lo {
			return a.lo < b.lo
		}
		return a.hi < b.hi
	})
	old := c.regions
	c.regions = nil
	c.joinBrackets()
	for _, s := range c.spans {
		if n := len(c.regions); n > 0 {
			last := c.regions[n-1]
			overlap := s.lo < last.hi || s.lo == last.lo && s.hi == last.hi
			if overlap {
				last.hi = max(last.hi, s.hi)
				last.deps = union(last.deps, s.deps)
				continue
			}
		}
		c.regions = append(c.regions, &region{lo: s.lo, hi: s.hi, deps: union(nil, s.deps), known: map[string]bool{}})
	}
	for i, r := range c.regions {
		for _, o := range old {
			if o.lo == r.lo && o.hi == r.hi && slices.Equal(o.deps, r.deps) {
				c.regions[i] = o
			}
		}
	}
}

// joinBrackets joins the spans of one address that share an atom: inside brackets, parts
// vanish together with their separators, and where a text was cut would be a guess.
func (c *class) joinBrackets() {
	for changed := true; changed; {
		changed = false
		for i := range c.spans {
			for j := i + 1; j < len(c.spans); j++ {
				a, b := c.spans[i], c.spans[j]
				if a.lo == b.lo && a.hi == b.hi || !touches(a.deps, b.deps) || !c.sameAddress(min(a.lo, b.lo), max(a.hi, b.hi)) {
					continue
				}
				s := span{min(a.lo, b.lo), max(a.hi, b.hi), union(a.deps, b.deps)}
				c.spans[i], c.spans[j] = s, s
				changed = true
			}
		}
	}
	sort.SliceStable(c.spans, func(i, j int) bool { return c.spans[i].lo < c.spans[j].lo })
}

// sameAddress reports whether base tokens lo to hi-1 lie within one pair of brackets.
func (c *class) sameAddress(lo, hi int) bool {
	open := false
	for t := lo - 1; t >= 0 && c.toks[t] != ","; t-- {
		if c.toks[t] == "[" {
			open = true
			break
		}
		if c.toks[t] == "]" {
			break
		}
	}
	return open && !slices.Contains(c.toks[lo:hi], "[") && !slices.Contains(c.toks[lo:hi], "]")
}

func union(a, b []int) []int {
	out := append(slices.Clone(a), b...)
	slices.Sort(out)
	return slices.Compact(out)
}

func touches(deps, atoms []int) bool {
	for _, a := range atoms {
		if slices.Contains(deps, a) {
			return true
		}
	}
	return false
}

// baseText is the text of base tokens lo to hi-1 with the operands of w.
func (c *class) baseText(lo, hi int, w isa.Word, pc uint64) string {
	var b strings.Builder
	for t := lo; t < hi; t++ {
		if e := c.slots[t]; e != nil {
			b.WriteString(render(e, w, pc))
		} else {
			b.WriteString(c.toks[t])
		}
	}
	return b.String()
}

// An element of the base text in an alignment: a literal token, or a region.
type element struct {
	lit string
	r   *region
}

func (c *class) elements() []element {
	var es []element
	t := 0
	for _, r := range c.regions {
		for ; t < r.lo; t++ {
			es = append(es, element{lit: c.toks[t]})
		}
		es = append(es, element{r: r})
		t = r.hi
	}
	for ; t < len(c.toks); t++ {
		es = append(es, element{lit: c.toks[t]})
	}
	return es
}

// A hold says what a region may be in an alignment.
type hold struct {
	text   string // what is expected
	frozen bool   // nothing else will do
	known  map[string]bool
}

const impossible = 1 << 20

// align cuts toks into the regions' parts. Literals must stand where they are; a
// region that holds an unexpected text costs. It returns for each region the
// tokens from start to end, and the cost, or impossible.
func (c *class) align(toks []string, hold map[*region]hold) (map[*region][2]int, int) {
	es := c.elements()
	n, m := len(es), len(toks)
	joined := join(toks)
	off := make([]int, m+1)
	for i, t := range toks {
		off[i+1] = off[i] + len(t)
	}
	cost := make([]int, (n+1)*(m+1))
	from := make([]int16, (n+1)*(m+1))
	for i := range cost {
		cost[i] = impossible
	}
	cost[0] = 0
	at := func(e, j int) int { return e*(m+1) + j }
	relax := func(e, j, k, extra int) {
		if v := cost[at(e, j)] + extra; v < cost[at(e+1, k)] {
			cost[at(e+1, k)], from[at(e+1, k)] = v, int16(j)
		}
	}
	for e, el := range es {
		for j := 0; j <= m; j++ {
			if cost[at(e, j)] >= impossible {
				continue
			}
			if el.r == nil {
				if j < m && toks[j] == el.lit {
					relax(e, j, j+1, 0)
				}
				continue
			}
			h := hold[el.r]
			for k := j; k <= m; k++ {
				text := joined[off[j]:off[k]]
				switch {
				case sameText(text, h.text):
					relax(e, j, k, 0)
				case !h.frozen && h.known[text]:
					relax(e, j, k, 1)
				case !h.frozen:
					relax(e, j, k, c.surprise(toks[j:k], el.r))
				}
				if h.frozen && len(text) > len(h.text) {
					break
				}
			}
		}
	}
	if cost[at(n, m)] >= impossible {
		return nil, impossible
	}
	out := map[*region][2]int{}
	j := m
	for e := n; e > 0; e-- {
		k := j
		j = int(from[at(e, j)])
		if es[e-1].r != nil {
			out[es[e-1].r] = [2]int{j, k}
		}
	}
	return out, cost[at(n, m)]
}

// sameText compares two texts, minding that a slot may end with a space which the end
// of the line has lost.
func sameText(a, b string) bool {
	if len(a) < len(b) {
		a, b = b, a
	}
	return a == b || b != "" && strings.TrimRight(a, " ") == b
}

// surprise is the cost of finding toks where r is expected: a region may well vanish, but
// hardly holds another sort of operand.
func (c *class) surprise(toks []string, r *region) int {
	cost := 6
	for _, t := range toks {
		if !slices.ContainsFunc(c.toks[r.lo:r.hi], func(b string) bool { return tokenSort(b) == tokenSort(t) }) {
			cost += 2
		}
	}
	return cost
}

// tokenSort tells modifiers, numbers by their register file, and other tokens apart.
func tokenSort(tok string) string {
	if tok[0] == '.' {
		return "."
	}
	if n, ok := readNumber(tok); ok {
		return n.prefix
	}
	if isWordByte(tok[0]) {
		return "word"
	}
	return tok
}
