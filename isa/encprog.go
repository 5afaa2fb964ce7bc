package isa

import "slices"

// An encodeForm is a variant prepared for reading text.
type encodeForm struct {
	pieces []encodePiece
}

// An encodePiece is a piece prepared for reading.
type encodePiece struct {
	*Piece
	index gather
	pins  Word        // the bits of tests of the kind TestValue
	alts  []encodeAlt // in the order of trying
}

// An encodeAlt is an alternative and the patterns of bits that choose it.
type encodeAlt struct {
	Alt
	id    uint16
	first byte // the first byte of its text; 0 if that depends
	masks []Word
	cubes []bitCube
}

// A bitCube is a pattern of a word's bits.
type bitCube struct{ mask, value Word }

// newEncodeForm prepares v.
func newEncodeForm(v *Variant) *encodeForm {
	f := &encodeForm{}
	for i := range v.Template {
		p := encodePiece{Piece: &v.Template[i], index: indexGather(&v.Template[i])}
		for _, t := range p.Tests {
			if t.Kind == TestValue {
				p.pins = p.pins.Or(t.Field.Mask())
			}
		}
		for id, a := range p.Alts {
			p.alts = append(p.alts, newEncodeAlt(&p, uint16(id), a))
		}
		// Longer literals first: .EF before .E, and nothing at all last.
		slices.SortStableFunc(p.alts, func(a, b encodeAlt) int { return a.rank() - b.rank() })
		f.pieces = append(f.pieces, p)
	}
	return f
}

// rank orders alternatives for trying.
func (a *encodeAlt) rank() int {
	if len(a.Alt) == 0 {
		return 1
	}
	return -len(a.Alt[0].Lit)
}

func newEncodeAlt(p *encodePiece, id uint16, a Alt) encodeAlt {
	e := encodeAlt{Alt: a, id: id, masks: make([]Word, len(a))}
	for i := range a {
		if a[i].Lit == "" {
			e.masks[i] = a[i].Slot.Field.Mask()
		}
	}
	if len(a) > 0 && a[0].Lit != "" {
		e.first = a[0].Lit[0]
	}
	for _, c := range coverOf(p.Table, id) {
		e.cubes = append(e.cubes, p.bits(c))
	}
	return e
}

// bits returns what the pattern c of index bits says of the word's bits. That a test
// fails says nothing about single bits.
func (p *encodePiece) bits(c cube) bitCube {
	var b bitCube
	place := 0
	for _, t := range p.Tests {
		for k := range int(t.width()) {
			bit := place + k
			if c.free>>bit&1 != 0 {
				continue
			}
			one := uint64(c.value >> bit & 1)
			f, x := t.Field, uint64(0)
			switch {
			case t.Kind == TestValue:
				f, x = f.bit(k), one
			case t.Kind == TestNeg:
				f, x = f.bit(f.Width()-1), one
			case t.Kind == TestEq && one == 1:
				x = t.Arg
			default:
				continue
			}
			b.mask = b.mask.Or(f.Mask())
			b.value = f.MustSet(b.value, x)
		}
		place += int(t.width())
	}
	return b
}

// bit returns the field of bit k of f.
func (f Field) bit(k int) Field {
	for _, r := range f {
		if k < int(r.N) {
			return Field{{r.Lo + uint8(k), 1}}
		}
		k -= int(r.N)
	}
	return nil
}

// coverOf returns patterns that fit just those indexes of table that have the given
// entry, the one with the lowest index first.
func coverOf(table []uint16, entry uint16) []cube {
	all := uint32(len(table))
	covered := make([]bool, len(table))
	var cubes []cube
	for i, x := range table {
		if x != entry || covered[i] {
			continue
		}
		c := cube{uint32(i), 0, x}
		for bit := all >> 1; bit > 0; bit >>= 1 {
			d := cube{c.value ^ bit, c.free, x}
			if d.each(func(j uint32) bool { return table[j] == entry }) {
				c.free |= bit
				c.value &^= bit
			}
		}
		c.each(func(j uint32) bool { covered[j] = true; return true })
		cubes = append(cubes, c)
	}
	return cubes
}
