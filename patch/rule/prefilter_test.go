package rule

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/patch/code"
	"github.com/cupatch/cupatch/patch/internal/patchtest"
)

// TestPrefilter compares the scan, which looks at deciding bits only and remembers
// answers, with matching every instruction by its text.
func TestPrefilter(t *testing.T) {
	table := patchtest.Table(t, "sm_90")
	var rules []*Rule
	for i, s := range []string{
		"IMAD.MOV", "LDG.E.EF!.64", "@P* *", "*", "@!P0 *", "I*.U32", "FFMA{2,}", "*.E", "@UP* *", "NOP", "LDG ; FFMA", "*!.E",
	} {
		r, err := ParseMatch(s)
		if err != nil {
			t.Fatal(err)
		}
		r.Number = i + 1
		rules = append(rules, r)
	}
	p, err := NewPlanner(rules, table, Options{LaxOpcodes: true})
	if err != nil {
		t.Fatal(err)
	}
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 5))
	vs := table.Variants()
	data := make([]byte, 40000*isa.WordSize)
	for off := 0; off < len(data); off += isa.WordSize {
		v := vs[r.IntN(len(vs))]
		w := isa.Word{Lo: r.Uint64(), Hi: r.Uint64()}
		if r.IntN(20) > 0 {
			w = w.AndNot(v.Mask).Or(v.Value)
		}
		if r.IntN(2) == 0 {
			w.Lo |= 7 << 12 // most real instructions have no guard
		}
		w.Store(data[off:])
	}
	sc := newScratch(p.rules)
	sc.scan(p, data)
	c := p.newCodeState(&code.Kernel{Data: data})
	for k, rule := range p.rules {
		var want []int32
		for i := range c.N {
			if rule.items[0].matches(c, i) {
				want = append(want, int32(i))
			}
		}
		if !slices.Equal(want, sc.lists[k]) {
			t.Errorf("seed %d: %s: the scan finds %d instructions, the text %d", seed, rule.rule.Source(), len(sc.lists[k]), len(want))
		}
		ctx := &evalCtx{code: c, rule: rule, caches: sc.items[k], planner: p}
		for i := range c.N {
			if _, found := slices.BinarySearch(want, int32(i)); ctx.matches(0, i) != found {
				t.Fatalf("seed %d: %s: instruction %d", seed, rule.rule.Source(), i)
			}
		}
	}
}
