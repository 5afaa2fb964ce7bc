package learn

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/cupatch/cupatch/isa"
)

// TestSimplify compares the variants of a table before and after, on random words, and
// sees that there is nothing left to simplify.
func TestSimplify(t *testing.T) {
	table, err := isa.Load(isa.Arch{SM: 90, Suffix: "a"})
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for _, v := range table.Variants() {
		w := *v
		w.Template = append([]isa.Piece{}, v.Template...)
		simplify(&w)
		w.Normalize()
		again := w
		again.Template = append([]isa.Piece{}, w.Template...)
		simplify(&again)
		again.Normalize()
		if !reflect.DeepEqual(w, again) {
			t.Errorf("%s: a second time changes it\n%v\n%v", v.Class, w.Template, again.Template)
		}
		if err := w.Check(); err != nil {
			t.Fatalf("%s: %v", v.Class, err)
		}
		old := isa.NewTable(table.Arch(), []*isa.Variant{v})
		now := isa.NewTable(table.Arch(), []*isa.Variant{&w})
		for range 300 {
			x := isa.Word{Lo: rng.Uint64(), Hi: rng.Uint64()}.AndNot(v.Mask).Or(v.Value)
			for _, f := range slotFields(v) {
				if rng.IntN(4) == 0 {
					x = f.MustSet(x, []uint64{0, ^uint64(0) >> (64 - f.Width())}[rng.IntN(2)])
				}
			}
			x = x.AndNot(v.Mask).Or(v.Value)
			a, b := old.Decode(x), now.Decode(x)
			if a.Status != b.Status || a.BadSched != b.BadSched || old.Text(a, 0) != now.Text(b, 0) {
				t.Errorf("%s: %v: %v %q became %v %q", v.Class, x, a.Status, old.Text(a, 0), b.Status, now.Text(b, 0))
				break
			}
		}
	}
}
