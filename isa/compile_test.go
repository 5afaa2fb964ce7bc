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
		entry := p.entry(w)
		switch {
		case entry == PieceOther:
			return "", StatusUnknown
		case entry == PieceIllegal || status == StatusIllegal:
			status = StatusIllegal
			continue
		case entry == PieceSilent:
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

// entry returns what p chooses in w.
func (p *Piece) entry(w Word) uint16 {
	if len(p.Tests) == 0 {
		return 0
	}
	index, shift := uint64(0), uint(0)
	for _, t := range p.Tests {
		index |= t.outcome(w) << shift
		shift += t.width()
	}
	return p.Table[index]
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
			if (in.Variant == v) != (status != StatusUnknown) || in.Status != status {
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

// TestOther reads a table in which the variant with more constant bits leaves some of its
// words to the other.
func TestOther(t *testing.T) {
	const text = "arch sm_90\n\nclass narrow 0x098f 24:31=0xff\n  text NARROW{87:88=0?:!other}\n\nclass wide 0x098f\n  text WIDE{87:88=3?!other:}\n"
	file, err := ParseTable(text, nil)
	if err != nil {
		t.Fatal(err)
	}
	tab := NewTable(file.Arch, file.Variants)
	for _, c := range []struct {
		src, op uint64
		want    string
	}{{255, 0, "NARROW"}, {255, 1, "WIDE"}, {255, 3, ".word"}, {7, 0, "WIDE"}, {7, 3, ".word"}} {
		w := Bits(87, 88).MustSet(Bits(24, 31).MustSet(Word{Lo: 0x798f}, c.src), c.op)
		in := tab.Decode(w)
		got, _, _ := strings.Cut(tab.Text(in, 0), " ")
		if got != c.want {
			t.Errorf("%v prints %s, want %s", w, got, c.want)
		}
		if in.Variant != nil {
			if back, err := tab.Encode(got, 0, &w); err != nil || back != w {
				t.Errorf("%s is encoded as %v, %v; want %v", got, back, err, w)
			}
		}
	}
}
