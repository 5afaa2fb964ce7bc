package isa

import (
	"math/rand/v2"
	"os"
	"testing"

	"github.com/cupatch/cupatch/internal/oracletest"
)

// miniTable returns a small table, made by hand.
func miniTable(tb testing.TB) *Table {
	text, err := os.ReadFile("testdata/mini.txt")
	if err != nil {
		tb.Fatal(err)
	}
	f, err := ParseTable(string(text), nil)
	if err != nil {
		tb.Fatal(err)
	}
	return NewTable(f.Arch, f.Variants)
}

// usedBits returns the bits that v's text and guard depend on.
func usedBits(v *Variant) Word {
	m := guardMask
	for _, p := range v.Template {
		for _, t := range p.Tests {
			m = m.Or(t.Field.Mask())
		}
		for _, a := range p.Alts {
			for _, e := range a {
				if e.Lit == "" {
					m = m.Or(e.Slot.Field.Mask())
				}
			}
		}
	}
	return m.AndNot(controlMask)
}

// TestMiniOracle compares random words of the small table with nvdisasm.
func TestMiniOracle(t *testing.T) {
	tab := miniTable(t)
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 3))
	var words []Word
	for _, v := range tab.Variants() {
		for range 300 {
			used := usedBits(v)
			if r.IntN(3) == 0 {
				used = used.Xor(randomField(r, 24).Mask())
			}
			w := Word{r.Uint64(), r.Uint64()}.And(used).AndNot(v.Mask).Or(v.Value)
			words = append(words, DefaultControl.Set(w))
		}
	}
	bad := 0
	for i, a := range oracletest.Disassemble(t, "sm_90", words) {
		if got := tab.Text(tab.Decode(words[i]), a.PC); got != a.Text && bad < 20 {
			bad++
			t.Errorf("seed %d: %v: got %q, nvdisasm prints %q %s", seed, words[i], got, a.Text, a.Refused)
		}
	}
}
