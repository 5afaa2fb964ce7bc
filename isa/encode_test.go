package isa

import (
	"math/rand/v2"
	"testing"
)

// legalWord returns a word of v that has text, all else random, or false.
func legalWord(r *rand.Rand, tab *Table, v *Variant) (Word, bool) {
	for range 50 {
		w := Word{r.Uint64(), r.Uint64()}.AndNot(v.Mask).Or(v.Value)
		w = DefaultControl.Set(w)
		if in := tab.Decode(w); in.Variant == v && in.Status == StatusKnown {
			return w, true
		}
	}
	return Word{}, false
}

// separated puts brackets around the operands of v, so that texts say where they
// end.
func separated(v *Variant) *Variant {
	v.Normalize()
	for i := range v.Template {
		for j := range v.Template[i].Tests {
			// Which bits make a power of two, several such tests may leave too open.
			if t := &v.Template[i].Tests[j]; t.Kind == TestPow2 {
				t.Kind = TestNeg
			}
		}
		for j, a := range v.Template[i].Alts {
			var b Alt
			for _, e := range a {
				if e.Lit == "" {
					// One text for many values would leave bits open that others fix.
					if e.Slot.Kind >= KindF16 {
						e.Slot.Kind = KindHex
					}
					e.Slot.Add = max(e.Slot.Add, 0)
					b = append(b, Elem{Lit: " <"}, e, Elem{Lit: ">"})
				} else {
					b = append(b, e)
				}
			}
			v.Template[i].Alts[j] = b
		}
	}
	v.Normalize()
	return v
}

// TestEncodeRandom encodes what random variants print.
func TestEncodeRandom(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 2))
	n, failed := 0, 0
	for i := range 1000 {
		v := separated(randomVariant(r, i))
		tab := NewTable(Arch{90, ""}, []*Variant{v})
		for range 10 {
			w, ok := legalWord(r, tab, v)
			if !ok {
				continue
			}
			n++
			text := tab.Text(tab.Decode(w), 0x1000)
			if got, err := tab.Encode(text, 0x1000, &w); err != nil || got != w {
				t.Fatalf("seed %d: like %v: %q: got %v, %v", seed, w, text, got, err)
			}
			got, err := tab.Encode(text, 0x1000, nil)
			if err != nil {
				t.Logf("seed %d: variant %d: %q: %v", seed, i, text, err)
				failed++
				continue
			}
			if again := tab.Text(tab.Decode(got), 0x1000); again != text {
				t.Errorf("seed %d: variant %d: %q encodes to a word with the text %q", seed, i, text, again)
			}
		}
	}
	// Random tests of one piece may look at the same bits and rule one another out;
	// what is left then is not always found.
	if n < 1000 || failed > n/100 {
		t.Errorf("%d of %d words have a text that does not encode", failed, n)
	}
}
