package learn

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/isa/internal/wordgen"
)

// huntRounds bounds how often the whole table is tested and mended.
const huntRounds = 5

// samplesPerVariant is the number of random words of each variant in a hunt.
const samplesPerVariant = 300

// maxTries bounds how often a hunt has a class learned again.
const maxTries = 2

// hunt tests the table of all classes on the seeds and on mutants of them. Words of
// unknown classes are added to the pool; classes that got words wrong are queued to be
// learned again with those words. It returns the number of words, and of those that were
// wrong.
func (l *run) hunt(os []*session, round uint64) (hunted, total int, err error) {
	var vs []*isa.Variant
	for _, r := range l.sorted() {
		if r.Variant != nil {
			vs = append(vs, r.Variant)
		}
	}
	t := isa.NewTable(l.opt.Arch, vs)
	words := l.mutants(round)
	if round == 0 {
		words = append(words, l.opt.Seeds...)
	}
	for _, v := range vs {
		if l.sampled[v] {
			continue
		}
		l.sampled[v] = true
		ws := Sample(t, v, samplesPerVariant)
		words = append(words, ws...)
		if len(ws) > 0 {
			words = append(words, eachValue(t, v, ws[0])...)
		}
	}
	wrong := make([]int, len(os))
	err = each(os, func(i int, o *session) {
		n := len(words)
		wrong[i] = l.test(o, t, words[n*i/len(os):n*(i+1)/len(os)])
	})
	for _, n := range wrong {
		total += n
	}
	return len(words), total, err
}

// mutants returns words of every sort, made from seeds and from examples of every class.
func (l *run) mutants(round uint64) []isa.Word {
	rng := rand.New(rand.NewPCG(17, round))
	src := l.source()
	seeds := src.Real
	src.Real = l.pool.examples()
	for i := 0; i < len(seeds) && i < len(src.Real); i++ { // as many as there are examples
		src.Real = append(src.Real, seeds[rng.IntN(len(seeds))])
	}
	sorts := wordgen.Sorts()
	var out []isa.Word
	for _, s := range sorts {
		out = append(out, s.Make(src, rng, l.opt.Mutants/len(sorts))...)
	}
	return out
}

// test compares t with nvdisasm on words and sorts out what is wrong.
func (l *run) test(o *session, t *isa.Table, words []isa.Word) int {
	var bad []isa.Word
	var refused []bool
	var blamed []key // the variants that decided
	for i, a := range o.Ask(words) {
		m, miss := compare(t, words[i], a)
		if k := (key{uint16(words[i].Opcode()), a.Class}); a.Class != "" {
			if _, learned := l.results[k]; !learned {
				l.pool.add(a.Class, words[i])
			}
		}
		if miss && (a.OK || m.in.Status != isa.StatusUnknown) {
			bad, refused = append(bad, words[i]), append(refused, !a.OK)
			k := key{}
			if m.in.Variant != nil {
				k = key{uint16(words[i].Opcode()), m.in.Variant.Class}
			}
			blamed = append(blamed, k)
		}
	}
	again := map[key]bool{}
	for i, name := range o.ClassOf(bad) {
		k := key{uint16(bad[i].Opcode()), name}
		l.mu.Lock()
		if _, learned := l.results[blamed[i]]; learned && blamed[i] != k && l.tries[blamed[i]] < maxTries {
			// The variant took a word that is not its own.
			delete(l.known, blamed[i])
			again[blamed[i]] = true
		}
		own, learned := l.results[k]
		if learned && len(l.hard[k]) < 60 {
			l.hard[k] = append(l.hard[k], bad[i])
		}
		if blamed[i] != k && (learned || name == "") && (refused[i] || fits(own.Variant, bad[i])) && len(l.hard[blamed[i]]) < 60 {
			l.hard[blamed[i]] = append(l.hard[blamed[i]], bad[i])
		}
		if learned && l.tries[k] < maxTries {
			delete(l.known, k)
			again[k] = true
		}
		l.mu.Unlock()
		if !learned {
			l.pool.add(name, bad[i])
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for k := range again {
		l.tries[k]++
		l.pool.again(k)
	}
	return len(bad)
}

// fits reports whether w has the constant bits of v, which may be nil.
func fits(v *isa.Variant, w isa.Word) bool {
	return v != nil && w.Xor(v.Value).And(v.Mask).IsZero()
}

// sorted returns the results in order of opcode and class.
func (l *run) sorted() []Result {
	var rs []Result
	for _, r := range l.results {
		rs = append(rs, r)
	}
	slices.SortFunc(rs, func(a, b Result) int {
		return cmp.Or(cmp.Compare(a.Opcode, b.Opcode), cmp.Compare(a.Class, b.Class))
	})
	return rs
}
