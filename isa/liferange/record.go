package liferange

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/cupatch/cupatch/isa"
)

// A Case is a word with what nvdisasm marks there.
type Case struct {
	Word  isa.Word
	Marks isa.Effects
}

// String returns c as a line of a file of cases: the word, low half first, the registers
// read and, behind an arrow, those written.
func (c Case) String() string {
	return strings.TrimRight(fmt.Sprintf("%s %s -> %s", c.Word, c.Marks.Reads, c.Marks.Writes), " ")
}

// Record asks o for cases of the classes of t for which want is true: of each some words
// that together show every count that f has for it. Words with registers that nvdisasm
// does not show are left out.
func Record(t *isa.Table, f *isa.EffectsFile, o *Oracle, want func(class string) bool) ([]Case, error) {
	r := rand.New(rand.NewPCG(1, 4))
	var classes []*class
	var words [][]isa.Word
	for _, v := range t.Variants() {
		rules, ok := f.Rules[v.Class]
		if !ok || !want(v.Class) || slices.ContainsFunc(classes, func(c *class) bool { return c.name == v.Class }) {
			continue
		}
		g := newGenerator(t, v, r)
		if !g.ok {
			continue
		}
		c := &class{name: v.Class, variants: []*variant{{generator: g}}, cands: candidates(v, o.Arch), rules: withoutFacts(rules)}
		classes, words = append(classes, c), append(words, c.recordWords())
	}
	if err := probeFlow(o, classes); err != nil {
		return nil, err
	}
	var asked []known
	var of []*class
	straight := map[string]bool{}
	for i, c := range classes {
		straight[c.name] = c.straight
		for _, w := range words[i] {
			if !c.straight {
				w = alone(c.variants[0].v, w)
			}
			asked, of = append(asked, known{w, c.variants[0].v}), append(of, c)
		}
	}
	answers, err := askWords(o, asked, straight)
	if err != nil {
		return nil, err
	}
	var out []Case
	for i, a := range answers {
		w := asked[i].w
		p := isa.CompileEffects(asked[i].v, of[i].rules)
		got, marks := compare(p, w, a.Effects)
		if a.OK && !isCall(asked[i].v) && got == p.Effects(w) {
			out = append(out, Case{w, marks})
		}
	}
	return out, nil
}

// recordWords returns words of c that show every count of its rules.
func (c *class) recordWords() []isa.Word {
	v := c.variants[0]
	var words []isa.Word
	shown := map[string]bool{}
	for k := range 300 {
		with, fixed := place(c.cands, v.rand)
		w, ok := v.sample(k%9, with, fixed.AndNot(v.v.Mask))
		if !ok {
			continue
		}
		fresh := len(words) == 0
		for i := range c.rules {
			r := &c.rules[i]
			key := fmt.Sprint(i, " ", r.Counts[index(r.Tests, w)])
			if !shown[key] {
				shown[key], fresh = true, true
			}
		}
		if fresh {
			words = append(words, w)
		}
	}
	return words
}
