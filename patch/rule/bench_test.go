package rule

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/patch/code"
	"github.com/cupatch/cupatch/patch/internal/patchtest"
)

// benchCode returns a kernel of size bytes in which one instruction of 64 is a load
// and the others are FFMA.
func benchCode(b *testing.B, t *isa.Table, size int) []byte {
	b.Helper()
	ffma, err := t.Encode("FFMA R0, R1, R2.reuse, R3", 0, nil)
	if err != nil {
		b.Fatal(err)
	}
	ldg, err := t.Encode("LDG.E R4, desc[UR4][R2.64]", 0, nil)
	if err != nil {
		b.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	out := make([]byte, size)
	for off := 0; off < size; off += isa.WordSize {
		w := ffma
		if r.IntN(64) == 0 {
			w = ldg
		}
		w.Store(out[off:])
	}
	return out
}

// benchPlan plans rules that match nothing although their opcode occurs, or does not.
func benchPlan(b *testing.B, rules ...string) {
	t := patchtest.MiniTable(b)
	data := benchCode(b, t, 100<<20)
	var rs []*Rule
	for i, text := range rules {
		r, err := Parse("", i+1, text)
		if err != nil {
			b.Fatal(err)
		}
		rs = append(rs, r)
	}
	p, err := NewPlanner(rs, t, Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(data)))
	b.ResetTimer()
	for b.Loop() {
		if _, err := p.Kernel(&code.Kernel{Name: "k", Data: data}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkPlanOne plans one rule whose opcode stands in one instruction of 64.
func BenchmarkPlanOne(b *testing.B) { benchPlan(b, "LDG.E.128 => .EF") }

// BenchmarkPlanTwenty plans twenty such rules.
func BenchmarkPlanTwenty(b *testing.B) {
	var rules []string
	for i := range 20 {
		rules = append(rules, fmt.Sprintf("LDG.E.128 if stall == %d => .EF", i%16))
	}
	benchPlan(b, rules...)
}

// BenchmarkPlanAbsent plans twenty rules for instructions that do not occur.
func BenchmarkPlanAbsent(b *testing.B) {
	var rules []string
	for range 20 {
		rules = append(rules, "STG.E => .EF")
	}
	benchPlan(b, rules...)
}

// BenchmarkPlanRuns plans the FFMA interleave, which looks at every instruction.
func BenchmarkPlanRuns(b *testing.B) {
	benchPlan(b, "FFMA{8,} if (i+1)*16 <= n*9 and reuse.b and (seen(src2) == 0 or prev.reuse.b and prev.src2 == src2) => reuse.b=- ~yield")
}

// BenchmarkPlanConditions plans a rule whose condition is asked for every load.
func BenchmarkPlanConditions(b *testing.B) {
	benchPlan(b, `LDG.E if stall > 9 and kernel matches "^k" => .EF`)
}
