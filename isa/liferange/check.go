package liferange

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/cupatch/cupatch/isa"
)

// A Report says how the effects of a table compare with nvdisasm.
type Report struct {
	Arch     string `json:"arch"`
	Words    int    `json:"words"`    // of those given: different ones, silent and illegal ones left out
	Answered int    `json:"answered"` // by nvdisasm
	Equal    int    `json:"equal"`    // of the answered
	// Hidden is how many of the equal have registers that nvdisasm does not show, and that
	// were not compared: UR0–UR3, UR63 and above.
	Hidden  int        `json:"hidden"`
	Unknown int        `json:"unknown"` // words of classes without effects
	Kinds   []Disagree `json:"disagreements"`
}

// A Disagree counts what is wrong with a class.
type Disagree struct {
	Class   string `json:"class"`
	What    string `json:"what"`
	Count   int    `json:"count"`
	Example string `json:"example"`
}

// RandomWords returns n legal words of random classes of t, with random registers and
// modifiers.
func RandomWords(t *isa.Table, n int, seed uint64) []isa.Word {
	r := rand.New(rand.NewPCG(seed, 2))
	var gens []*generator
	for _, v := range t.Variants() {
		if g := newGenerator(t, v, r); g.ok {
			gens = append(gens, g)
		}
	}
	words := make([]isa.Word, 0, n)
	for tries := 0; len(words) < n && tries < 100*n && len(gens) > 0; tries++ {
		g := gens[r.IntN(len(gens))]
		if w, ok := g.sample(4+r.IntN(5), isa.Word{}, isa.Word{}); ok {
			if r.IntN(4) == 0 {
				guard := isa.GuardNot.MustSet(isa.GuardField.MustSet(w, r.Uint64()), r.Uint64())
				if in := t.Decode(guard); in.Variant == g.v && in.Status == isa.StatusKnown && !in.BadSched {
					w = guard
				}
			}
			words = append(words, w)
		}
	}
	return words
}

// A checker compares words with nvdisasm.
type checker struct {
	t        *isa.Table
	o        *Oracle
	rules    map[string][]isa.AccessRule
	straight map[string]bool
	alone    map[isa.Word]bool // words asked for with their targets taken away
	programs map[*isa.Variant]*isa.EffectProgram
	report   *Report
	kinds    map[[2]string]*Disagree
}

// Check compares the effects f with nvdisasm's answers for words, each of which counts
// once.
func Check(t *isa.Table, f *isa.EffectsFile, o *Oracle, words []isa.Word, progress func(done, all int)) (*Report, error) {
	c := &checker{t: t, o: o, rules: map[string][]isa.AccessRule{}, programs: map[*isa.Variant]*isa.EffectProgram{},
		alone: map[isa.Word]bool{}, report: &Report{Arch: t.Arch().String()}, kinds: map[[2]string]*Disagree{}}
	for class, rules := range f.Rules {
		c.rules[class] = withoutFacts(rules)
	}
	todo := c.choose(words)
	if err := c.probe(); err != nil {
		return nil, err
	}
	for start := 0; start < len(todo); start += 4 * batch {
		part := todo[start:min(start+4*batch, len(todo))]
		if err := c.part(part); err != nil {
			return nil, err
		}
		if progress != nil {
			progress(start+len(part), len(todo))
		}
	}
	for _, k := range c.kinds {
		c.report.Kinds = append(c.report.Kinds, *k)
	}
	slices.SortFunc(c.report.Kinds, func(a, b Disagree) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Class, b.Class), cmp.Compare(a.What, b.What))
	})
	return c.report, nil
}

// choose returns the words that nvdisasm can be asked about.
func (c *checker) choose(words []isa.Word) []known {
	seen := make(map[isa.Word]bool, len(words))
	var out []known
	for _, w := range words {
		w = quiet(w)
		if seen[w] {
			continue
		}
		seen[w] = true
		in := c.t.Decode(w)
		if in.Status != isa.StatusKnown || in.BadSched {
			continue
		}
		c.report.Words++
		if _, ok := c.rules[in.Variant.Class]; !ok {
			c.report.Unknown++
			c.disagree(in, "has no effects", c.t.Text(in, 0))
			continue
		}
		if c.programs[in.Variant] == nil {
			c.programs[in.Variant] = isa.CompileEffects(in.Variant, c.rules[in.Variant.Class])
		}
		out = append(out, known{w, in.Variant})
	}
	return out
}

// quiet returns w with stall, barriers and waits of which nothing here depends, so that
// words that differ in them alone are asked for once. Reuse flags and classes that demand
// a value keep theirs.
func quiet(w isa.Word) isa.Word {
	w.Hi &^= 0x3f << 52 // the barriers waited for
	return w
}

// probe finds out which classes of the words let the next one run.
func (c *checker) probe() error {
	var classes []*class
	r := rand.New(rand.NewPCG(1, 3))
	byName := map[string]*class{}
	for v := range c.programs {
		k := byName[v.Class]
		if k == nil {
			k = &class{name: v.Class}
			byName[v.Class] = k
			classes = append(classes, k)
		}
		k.variants = append(k.variants, &variant{generator: newGenerator(c.t, v, r)})
	}
	slices.SortFunc(classes, func(a, b *class) int { return cmp.Compare(a.name, b.name) })
	if err := probeFlow(c.o, classes); err != nil {
		return err
	}
	c.straight = map[string]bool{}
	for _, k := range classes {
		if k.formOnly {
			delete(c.rules, k.name) // nvdisasm has no answer
		}
		c.straight[k.name] = k.straight
	}
	return nil
}

// part asks about some words and compares.
func (c *checker) part(words []known) error {
	var asked []known
	for _, k := range words {
		if _, ok := c.rules[k.v.Class]; !ok {
			continue
		}
		if !c.straight[k.v.Class] {
			if k.w = alone(k.v, k.w); c.alone[k.w] {
				continue
			}
			c.alone[k.w] = true
		}
		asked = append(asked, k)
	}
	answers, err := askWords(c.o, asked, c.straight)
	if err != nil {
		return err
	}
	for i, k := range asked {
		c.compare(k, &answers[i])
	}
	return nil
}

// compare compares one word.
func (c *checker) compare(k known, a *Answer) {
	in := c.t.Decode(k.w)
	if !a.OK {
		c.disagree(in, "is not answered: "+firstLine(a.Complaint), c.t.Text(in, 0))
		return
	}
	c.report.Answered++
	got, want := compare(c.programs[k.v], k.w, a.Effects)
	if isCall(k.v) {
		// What the calling convention says of the callee is marked too.
		want.Reads, want.Writes = both(want.Reads, got.Reads), both(want.Writes, got.Writes)
	}
	if got != want {
		c.disagree(in, "has other effects", fmt.Sprintf("%s: reads %s writes %s, nvdisasm reads %s writes %s", c.t.Text(in, 0),
			got.Reads, got.Writes, want.Reads, want.Writes))
		return
	}
	c.report.Equal++
	if got != c.programs[k.v].Effects(k.w) {
		c.report.Hidden++
	}
}

func firstLine(s string) string {
	for i := range s {
		if s[i] == '\n' {
			return s[:i]
		}
	}
	return s
}

// disagree counts a disagreement, and keeps the first of its kind.
func (c *checker) disagree(in isa.Inst, what, example string) {
	key := [2]string{in.Variant.Class, what}
	if c.kinds[key] == nil {
		c.kinds[key] = &Disagree{Class: key[0], What: what, Example: fmt.Sprintf("%s %s", in.Word, example)}
	}
	c.kinds[key].Count++
}
