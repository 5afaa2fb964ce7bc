package rule

import (
	"math/rand/v2"
	"testing"

	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/patch/code"
	"github.com/cupatch/cupatch/patch/internal/patchtest"
)

// TestPlainRegister compares the registers read from bits with those read from the
// text, on random words of every variant.
func TestPlainRegister(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 3))
	for _, arch := range []string{"sm_75", "sm_90", "sm_100"} {
		table := patchtest.Table(t, arch)
		fast := 0
		for _, v := range table.Variants() {
			for _, o := range table.Operands(v) {
				reg, ok := fastRegisters(table, []*isa.Variant{v}, o.Name)[v]
				if !ok {
					continue
				}
				fast++
				for range 20 {
					w := isa.Word{Lo: r.Uint64(), Hi: r.Uint64()}.AndNot(v.Mask).Or(v.Value)
					w.Hi = w.Hi&^(31<<41) | 17<<41
					code := code.NewState(&code.Kernel{}, table)
					view := code.ViewOf(0, w)
					if view.Inst.Variant != v || view.Inst.Status != isa.StatusKnown {
						continue
					}
					op, ok := view.Operand(o.Name)
					if got := reg.value(w); !ok || op.Value() != got {
						t.Fatalf("seed %d: %s %s %v: bits say %s, the text %q says %s", seed, arch, o.Name, w, got, view.Text(), op.Value())
					}
				}
			}
		}
		if fast == 0 {
			t.Errorf("%s: no plain registers", arch)
		}
		t.Logf("%s: %d operands", arch, fast)
	}
}
