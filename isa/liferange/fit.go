package liferange

import (
	"slices"

	"github.com/cupatch/cupatch/isa"
)

// A point is a word and how many registers one of its fields names there.
type point struct {
	w isa.Word
	n int
}

// A feature is a test on which a count may depend; cheaper ones are preferred.
type feature struct {
	test isa.Test
	cost int
}

// features returns the tests that may decide how many registers a field of v names.
func features(v *isa.Variant, cs []candidate) []feature {
	var fs []feature
	var seen, registers isa.Word
	for i := range cs {
		if cs[i].settable {
			registers = registers.Or(cs[i].field.Mask())
		}
	}
	registers = registers.Or(keep)
	add := func(t isa.Test, cost int) {
		for _, f := range fs {
			if f.test.Kind == t.Kind && f.test.Arg == t.Arg && slices.Equal(f.test.Field, t.Field) {
				return
			}
		}
		fs = append(fs, feature{t, cost})
	}
	for i := range v.Template {
		for _, t := range v.Template[i].Tests {
			m := t.Field.Mask()
			switch {
			case !m.And(keep).IsZero():
			case t.Kind == isa.TestEq:
				add(t, 2)
			case t.Kind == isa.TestValue && m.And(registers).IsZero() && t.Field.Width() <= 8:
				add(t, 1)
				seen = seen.Or(m)
			}
		}
	}
	for i := range v.Template {
		for _, alt := range v.Template[i].Alts {
			for _, e := range alt {
				m := e.Slot.Field.Mask()
				if e.Lit == "" && e.Slot.Field.Width() <= 5 && m.And(registers).IsZero() {
					add(isa.Test{Field: e.Slot.Field}, 2) // such as the mask of a texture's channels
					seen = seen.Or(m)
				}
			}
		}
	}
	for i := range cs {
		if c := &cs[i]; c.settable {
			arg := uint64(c.end())
			if c.invert {
				arg = 0
			}
			add(isa.Test{Field: c.field, Kind: isa.TestEq, Arg: arg}, 3)
		}
	}
	rest := seen.Or(registers).Or(v.Mask).Not()
	for b := range 105 {
		if rest.Bit(b) != 0 {
			add(isa.Test{Field: isa.Bits(b, b)}, 6)
		}
	}
	return fs
}

// A fitted count is a function of few tests that gives every point's count.
type fitted struct {
	tests  []isa.Test
	counts []int // by index; unknown where no point is
}

// fit finds the fewest cheap tests that tell points of different counts apart. It
// reports false where there are none.
func fit(all []point, fs []feature) (fitted, bool) {
	var chosen []feature
	points := all
	if step := len(all)/fitPoints + 1; step > 1 {
		points = nil
		for i := 0; i < len(all); i += step {
			points = append(points, all[i])
		}
	}
	for {
		if conflicts(points, chosen) == 0 {
			break
		}
		_, score := spread(points, chosen)
		best := -1
		for i := range fs {
			_, mixed := spread(points, append(chosen[:len(chosen):len(chosen)], fs[i]))
			if s := mixed + 0.02*float64(fs[i].cost*fs[i].test.Field.Width()); s < score-0.05 {
				best, score = i, s
			}
		}
		if best < 0 {
			return fitted{}, false
		}
		chosen = append(chosen, fs[best])
		if len(chosen) > 14 || bitsOf(chosen) > 48 {
			return fitted{}, false
		}
	}
	chosen = reduce(points, chosen)
	if bitsOf(chosen) > 14 {
		return fitted{}, false
	}
	f := fitted{counts: make([]int, 1<<bitsOf(chosen))}
	for _, c := range chosen {
		f.tests = append(f.tests, c.test)
	}
	for i := range f.counts {
		f.counts[i] = unknown
	}
	votes := make([]map[int]int, len(f.counts))
	for _, p := range all {
		i := index(f.tests, p.w)
		if votes[i] == nil {
			votes[i] = map[int]int{}
		}
		votes[i][p.n]++
	}
	for i, v := range votes {
		if v != nil {
			f.counts[i] = elected(v)
		}
	}
	return f, true
}

// elected returns the count with the most votes. A few words mislead: a run may end with
// its file, or look longer because another operand's follows it. The longer of two with as
// many votes is less likely to be cut short.
func elected(votes map[int]int) int {
	best := unknown
	for n, have := range votes {
		if best == unknown || have > votes[best] || have == votes[best] && n > best {
			best = n
		}
	}
	return best
}

// fitPoints is about the greatest number of points from which tests are chosen.
const fitPoints = 6000

func bitsOf(fs []feature) int {
	n := 0
	for _, f := range fs {
		n += int(testWidth(f.test))
	}
	return n
}

// conflicts returns the number of points that are not of the most frequent count among
// those with the same outcomes.
func conflicts(points []point, fs []feature) int {
	bad, _ := spread(points, fs)
	return bad
}

// spread groups the points by the outcomes of fs. It returns the number of points that are
// not of their group's most frequent count, and how mixed the groups are: the number of
// points that one picked at random from each point's group would get wrong.
func spread(points []point, fs []feature) (bad int, mixed float64) {
	groups := map[string]map[int]int{}
	var key []byte
	for _, p := range points {
		key = key[:0]
		for i := range fs {
			x := fs[i].test.Outcome(p.w)
			key = append(key, byte(x), byte(x>>8))
		}
		g := groups[string(key)]
		if g == nil {
			g = map[int]int{}
			groups[string(key)] = g
		}
		g[p.n]++
	}
	for _, g := range groups {
		all, most, squares := 0, 0, 0
		for _, n := range g {
			all, most, squares = all+n, max(most, n), squares+n*n
		}
		bad += all - most
		mixed += float64(all) - float64(squares)/float64(all)
	}
	return bad, mixed
}

// reduce drops tests, and bits of tests, that are not needed, the dearest first.
func reduce(points []point, fs []feature) []feature {
	slices.SortStableFunc(fs, func(a, b feature) int { return b.cost - a.cost })
	for i := 0; i < len(fs); {
		less := slices.Delete(slices.Clone(fs), i, i+1)
		if conflicts(points, less) == 0 {
			fs = less
			continue
		}
		if fs[i].test.Kind == isa.TestValue {
			for _, b := range fs[i].test.Field.Bits() {
				if fs[i].test.Field.Width() == 1 {
					break
				}
				less := slices.Clone(fs)
				less[i].test.Field = without(less[i].test.Field, b)
				if conflicts(points, less) == 0 {
					fs = less
				}
			}
		}
		i++
	}
	slices.SortStableFunc(fs, func(a, b feature) int { return int(a.test.Field[0].Lo) - int(b.test.Field[0].Lo) })
	return fs
}

// without returns f without the bit b.
func without(f isa.Field, b int) isa.Field {
	var out isa.Field
	for _, x := range f.Bits() {
		if x == b {
			continue
		}
		if n := len(out); n > 0 && int(out[n-1].Lo+out[n-1].N) == x {
			out[n-1].N++
		} else {
			out = append(out, isa.Range{Lo: uint8(x), N: 1})
		}
	}
	return out
}

// complete fills in the counts that are unknown with those next to them, so that few
// patterns say all; where there are none it uses the most frequent one.
func (f *fitted) complete() []uint8 {
	counts := slices.Clone(f.counts)
	most := map[int]int{}
	common := 0
	for _, n := range counts {
		if n == unknown {
			continue
		}
		if most[n]++; most[n] > most[common] {
			common = n
		}
	}
	for i, n := range f.counts {
		if n != unknown {
			continue
		}
		votes := map[int]int{}
		best := common
		for b := 1; b < len(counts); b <<= 1 {
			if m := f.counts[i^b]; m != unknown {
				if votes[m]++; votes[m] > votes[best] {
					best = m
				}
			}
		}
		counts[i] = best
	}
	out := make([]uint8, len(counts))
	for i, n := range counts {
		out[i] = uint8(n)
	}
	return out
}
