// Package wordgen makes words to ask nvdisasm about. It changes words of real code, and
// fills opcodes and the constant bits of encoding classes of any architecture with random
// bits; it never looks at what a table says of a word, so that its words find what a table
// lacks too.
//
// Every function returns the same words for the same random numbers.
package wordgen

import (
	"math/rand/v2"

	"github.com/cupatch/cupatch/isa"
)

// A Shape is the constant bits of an encoding class.
type Shape struct{ Mask, Value isa.Word }

// Shapes returns the different shapes of the classes of the tables.
func Shapes(tables []*isa.Table) []Shape {
	seen := map[Shape]bool{}
	var out []Shape
	for _, t := range tables {
		for _, v := range t.Variants() {
			s := Shape{v.Mask, v.Value}
			if !seen[s] {
				seen[s] = true
				out = append(out, s)
			}
		}
	}
	return out
}

// A Source is what words are made from.
type Source struct {
	Real    []isa.Word // words of real code
	Shapes  []Shape
	Opcodes []int // bits 0–11, and bit 91 as bit 12
}

// NewSource returns the source of words of real code, and of the shapes and opcodes of the
// classes of tables.
func NewSource(real []isa.Word, tables []*isa.Table) *Source {
	s := &Source{Real: real, Shapes: Shapes(tables)}
	seen := map[int]bool{}
	for _, p := range s.Shapes {
		if op := p.Value.Opcode(); !seen[op] {
			seen[op] = true
			s.Opcodes = append(s.Opcodes, op)
		}
	}
	return s
}

// Spread returns n words for each of the 8,192 opcodes, and for each shape.
func (s *Source) Spread(r *rand.Rand, n int) []isa.Word {
	var out []isa.Word
	for range n {
		for op := range 1 << 13 {
			out = append(out, withOpcode(random(r), op))
		}
		for _, p := range s.Shapes {
			out = append(out, random(r).AndNot(p.Mask).Or(p.Value))
		}
	}
	return out
}

// A Sort is a way of making words.
type Sort struct {
	Name string
	// Make returns n words, or none where the source has nothing to make them from.
	Make func(s *Source, r *rand.Rand, n int) []isa.Word
}

// Sorts lists the ways.
func Sorts() []Sort {
	return []Sort{
		{"uniform", (*Source).uniform},
		{"flips", (*Source).flips},
		{"splices", (*Source).splices},
		{"windows", (*Source).windows},
		{"transplants", (*Source).transplants},
	}
}

// The bits that words have in common.
var (
	opcodeMask  = isa.Bits(0, 11).Mask().Or(isa.BitWord(91))
	controlMask = isa.Bits(105, 127).Mask()
	formField   = isa.Bits(9, 11) // which operand is an immediate, a constant, …
)

// withOpcode returns w with the opcode op.
func withOpcode(w isa.Word, op int) isa.Word {
	return w.AndNot(opcodeMask).Or(isa.Word{Lo: uint64(op & 0xfff), Hi: uint64(op>>12) << 27})
}

// random returns a word of random bits, each set with a probability of a half, or a
// quarter, or three quarters.
func random(r *rand.Rand) isa.Word {
	w := isa.Word{Lo: r.Uint64(), Hi: r.Uint64()}
	switch r.IntN(4) {
	case 0:
		w = w.And(isa.Word{Lo: r.Uint64(), Hi: r.Uint64()})
	case 1:
		w = w.Or(isa.Word{Lo: r.Uint64(), Hi: r.Uint64()})
	}
	return w
}

// control gives w, five times of eight, a schedule and a guard that every class has, and
// once the schedule 0, the only one of some classes.
func control(w isa.Word, r *rand.Rand) isa.Word {
	x := r.Uint64()
	switch r.IntN(8) {
	case 0, 1:
		return w
	case 2:
		w = isa.ReuseField.MustSet(isa.Bits(105, 109).MustSet(w, 0), 0)
		return isa.GuardField.MustSet(isa.GuardNot.MustSet(w, 0), x&7)
	}
	c := isa.Control{Stall: uint8(1 + x%11), Yield: x>>8&1 == 1, WBar: uint8(x >> 9 & 7), RBar: uint8(x >> 12 & 7), Wait: uint8(x >> 15 & 63)}
	w = c.Set(w.AndNot(controlMask))
	if x>>21&3 > 0 {
		w = isa.GuardField.MustSet(isa.GuardNot.MustSet(w, 0), 7)
	}
	return w
}

// uniform returns words with one of the opcodes, random in all other bits.
func (s *Source) uniform(r *rand.Rand, n int) []isa.Word {
	if len(s.Opcodes) == 0 {
		return nil
	}
	out := make([]isa.Word, n)
	for i := range out {
		out[i] = control(withOpcode(random(r), s.Opcodes[r.IntN(len(s.Opcodes))]), r)
	}
	return out
}

// Unscheduled returns words like those of the sort uniform, with a schedule that no class
// has: nvdisasm refuses them all, and names their classes.
func (s *Source) Unscheduled(r *rand.Rand, n int) []isa.Word {
	out := s.uniform(r, n)
	for i := range out {
		out[i] = isa.Bits(105, 109).MustSet(out[i], 16)
	}
	return out
}

// flips returns words of real code with 1 to 40 bits flipped, more often a few than many.
func (s *Source) flips(r *rand.Rand, n int) []isa.Word {
	if len(s.Real) == 0 {
		return nil
	}
	out := make([]isa.Word, n)
	for i := range out {
		w := s.Real[r.IntN(len(s.Real))]
		for range 1 + r.IntN(1+r.IntN(40)) {
			w = w.Xor(isa.BitWord(r.IntN(128)))
		}
		out[i] = w
	}
	return out
}

// splices returns words that have some stretches of bits from one word of real code and
// the others from another one, mostly of the same opcode.
func (s *Source) splices(r *rand.Rand, n int) []isa.Word {
	if len(s.Real) == 0 {
		return nil
	}
	byOpcode := map[int][]isa.Word{}
	for _, w := range s.Real {
		byOpcode[w.Opcode()] = append(byOpcode[w.Opcode()], w)
	}
	out := make([]isa.Word, n)
	for i := range out {
		a, b := s.Real[r.IntN(len(s.Real))], s.Real[r.IntN(len(s.Real))]
		if same := byOpcode[a.Opcode()]; r.IntN(3) > 0 {
			b = same[r.IntN(len(same))]
		}
		var m isa.Word
		for range 1 + r.IntN(4) {
			lo := 12 + r.IntN(116)
			m = m.Xor(isa.Bits(lo, min(127, lo+r.IntN(48))).Mask())
		}
		out[i] = a.AndNot(m).Or(b.And(m))
	}
	return out
}

// windows returns words of real code with every value of 8 to 10 neighboring bits.
func (s *Source) windows(r *rand.Rand, n int) []isa.Word {
	if len(s.Real) == 0 {
		return nil
	}
	out := make([]isa.Word, 0, n)
	for len(out) < n {
		w := s.Real[r.IntN(len(s.Real))]
		width := 8 + r.IntN(3)
		lo := r.IntN(129 - width)
		f := isa.Bits(lo, lo+width-1)
		for v := range min(1<<width, n-len(out)) {
			out = append(out, f.MustSet(w, uint64(v)))
		}
	}
	return out
}

// transplants returns words with the constant bits of a class of any architecture, as they
// are, or under the opcode of another form of the instruction, or with one of them changed,
// and random in all other bits.
func (s *Source) transplants(r *rand.Rand, n int) []isa.Word {
	if len(s.Shapes) == 0 {
		return nil
	}
	out := make([]isa.Word, n)
	for i := range out {
		p := s.Shapes[r.IntN(len(s.Shapes))]
		w := control(random(r), r).AndNot(p.Mask).Or(p.Value)
		switch r.IntN(4) {
		case 0:
			w = formField.MustSet(w, uint64(r.IntN(8)))
			w.Hi ^= uint64(r.IntN(2)) << 27
		case 1:
			if b := 16 + r.IntN(89); p.Mask.Bit(b) == 1 && b != 91 {
				w = w.Xor(isa.BitWord(b))
			}
		}
		out[i] = w
	}
	return out
}
