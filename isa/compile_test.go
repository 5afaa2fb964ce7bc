package isa

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// plainText prints w without compiling v: the definition of what a variant means.
func plainText(v *Variant, w Word, pc uint64) (string, Status) {
	text := appendGuard(nil, w, v.Guard)
	status := StatusKnown
	for i := range v.Template {
		p := &v.Template[i]
		entry := uint16(0)
		if len(p.Tests) > 0 {
			index, shift := uint64(0), uint(0)
			for _, t := range p.Tests {
				index |= t.outcome(w) << shift
				shift += t.width()
			}
			entry = p.Table[index]
		}
		switch entry {
		case PieceIllegal:
			return "", StatusIllegal
		case PieceSilent:
			status = StatusSilent
			continue
		}
		for _, e := range p.Alts[entry] {
			if e.Lit != "" {
				text = append(text, e.Lit...)
			} else {
				text = e.Slot.append(text, w, pc)
			}
		}
	}
	return strings.TrimRight(string(text), " "), status
}

// TestCompiled compares compiled variants with plainText.
func TestCompiled(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 6))
	known := 0
	for i := range 2000 {
		v := randomVariant(r, i)
		tab := NewTable(Arch{90, ""}, []*Variant{v})
		for range 20 {
			w := Word{r.Uint64(), r.Uint64()}.AndNot(v.Mask).Or(v.Value)
			pc := r.Uint64() >> r.IntN(64)
			want, status := plainText(v, w, pc)
			in := tab.Decode(w)
			if in.Variant != v || in.Status != status {
				t.Fatalf("seed %d: variant %d: %v: status %d, want %d", seed, i, w, in.Status, status)
			}
			if status != StatusKnown {
				continue
			}
			known++
			if got := tab.Text(in, pc); got != want {
				t.Fatalf("seed %d: variant %d: %v: got %q, want %q", seed, i, w, got, want)
			}
		}
	}
	if known < 1000 {
		t.Errorf("only %d words have text", known)
	}
}
