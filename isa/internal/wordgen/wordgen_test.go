package wordgen

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cupatch/cupatch/isa"
)

var source = Source{
	Real:    []isa.Word{{Lo: 0x0000000402047981, Hi: 0x001ea8000c1e1900}, {Lo: 0x0000000502047221, Hi: 0x000fca0000000000}},
	Shapes:  []Shape{{isa.Bits(0, 11).Mask().Or(isa.BitWord(91)).Or(isa.BitWord(76)), isa.Word{Lo: 0x981, Hi: 1 << 12}}},
	Opcodes: []int{0x221, 0x1981},
}

func TestSorts(t *testing.T) {
	for _, s := range Sorts() {
		const n = 3000
		ws := s.Make(&source, rand.New(rand.NewPCG(1, 2)), n)
		if len(ws) != n {
			t.Errorf("%s: %d words", s.Name, len(ws))
		}
		if again := s.Make(&source, rand.New(rand.NewPCG(1, 2)), n); !slices.Equal(ws, again) {
			t.Errorf("%s: other words the second time", s.Name)
		}
		if none := s.Make(&Source{}, rand.New(rand.NewPCG(1, 2)), n); none != nil {
			t.Errorf("%s: words from nothing", s.Name)
		}
	}
}

func TestUniform(t *testing.T) {
	var or, and isa.Word
	and = and.Not()
	for _, w := range source.uniform(rand.New(rand.NewPCG(1, 2)), 3000) {
		if op := w.Opcode(); op != 0x221 && op != 0x1981 {
			t.Fatalf("%v has the opcode %#x", w, op)
		}
		or, and = or.Or(w), and.And(w)
	}
	if free := opcodeMask.Not(); !or.And(free).Xor(free).IsZero() || !and.And(free).IsZero() {
		t.Errorf("bits that are never set: %v; always set: %v", or.Not(), and)
	}
}

func TestFlips(t *testing.T) {
	most := 0
	for _, w := range source.flips(rand.New(rand.NewPCG(1, 2)), 3000) {
		n := min(w.Xor(source.Real[0]).OnesCount(), w.Xor(source.Real[1]).OnesCount())
		most = max(most, n)
	}
	if most < 20 || most > 40 {
		t.Errorf("up to %d flips", most)
	}
}

// A splice holds no bit that neither of its words has.
func TestSplices(t *testing.T) {
	same := source.Real[0].Xor(source.Real[1]).Not()
	mixed := 0
	for _, w := range source.splices(rand.New(rand.NewPCG(1, 2)), 3000) {
		if !w.Xor(source.Real[0]).And(same).IsZero() {
			t.Fatalf("%v is no splice", w)
		}
		if w != source.Real[0] && w != source.Real[1] {
			mixed++
		}
	}
	if mixed < 300 {
		t.Errorf("%d of 3000 are mixed", mixed)
	}
}

// A window has every value once.
func TestWindows(t *testing.T) {
	seen := map[isa.Word]bool{}
	ws := source.windows(rand.New(rand.NewPCG(5, 2)), 1<<10)
	for _, w := range ws[:256] {
		seen[w] = true
	}
	if len(seen) != 256 {
		t.Errorf("%d different words in the first window", len(seen))
	}
}

// A transplant keeps the constant bits, or has another form, or one bit changed.
func TestTransplants(t *testing.T) {
	p := source.Shapes[0]
	kept, form, bit := 0, 0, 0
	for _, w := range source.transplants(rand.New(rand.NewPCG(1, 2)), 3000) {
		d := w.Xor(p.Value).And(p.Mask)
		switch {
		case d.IsZero():
			kept++
		case d.AndNot(isa.Bits(9, 11).Mask().Or(isa.BitWord(91))).IsZero():
			form++
		case d == isa.BitWord(76):
			bit++
		default:
			t.Fatalf("%v differs in %v", w, d)
		}
	}
	if kept < 1000 || form < 100 || bit == 0 {
		t.Errorf("%d kept, %d of other forms, %d with a bit changed", kept, form, bit)
	}
}
