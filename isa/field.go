package isa

import (
	"fmt"
	"strconv"
	"strings"
)

// A Range is N consecutive bits of a word, the lowest being bit Lo.
type Range struct{ Lo, N uint8 }

// A Field is a value stored in one or more ranges of bits, the value's low part in
// the first range. A field holds at most 64 bits.
type Field []Range

// Bits returns the field of bits lo to hi, both included.
func Bits(lo, hi int) Field { return Field{{uint8(lo), uint8(hi - lo + 1)}} }

// Width returns the number of bits of f.
func (f Field) Width() int {
	n := 0
	for _, r := range f {
		n += int(r.N)
	}
	return n
}

// Mask returns the word in which exactly f's bits are set.
func (f Field) Mask() Word {
	var m Word
	for _, r := range f {
		for i := 0; i < int(r.N); i++ {
			m = m.Or(BitWord(int(r.Lo) + i))
		}
	}
	return m
}

// Bits returns the numbers of f's bits, that of the value's lowest bit first.
func (f Field) Bits() []int {
	var bs []int
	for _, r := range f {
		for i := range int(r.N) {
			bs = append(bs, int(r.Lo)+i)
		}
	}
	return bs
}

// Get returns f's value in w.
func (f Field) Get(w Word) uint64 {
	var v uint64
	shift := uint(0)
	for _, r := range f {
		v |= r.get(w) << shift
		shift += uint(r.N)
	}
	return v
}

// Set returns w with f holding v. A value that needs more bits than f has is an
// error, never cut off.
func (f Field) Set(w Word, v uint64) (Word, error) {
	if n := f.Width(); n < 64 && v>>uint(n) != 0 {
		return w, fmt.Errorf("value %#x does not fit the %d bits %s", v, n, f)
	}
	return f.MustSet(w, v), nil
}

// MustSet is Set for a value known to fit; it cuts off what does not.
func (f Field) MustSet(w Word, v uint64) Word {
	for _, r := range f {
		w = r.set(w, v)
		v >>= uint(r.N)
	}
	return w
}

// String returns f as `24:31`, `72`, or `40:52,54` for a split field.
func (f Field) String() string {
	var b strings.Builder
	for i, r := range f {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(int(r.Lo)))
		if r.N > 1 {
			b.WriteByte(':')
			b.WriteString(strconv.Itoa(int(r.Lo) + int(r.N) - 1))
		}
	}
	return b.String()
}

// ParseField reads what String prints.
func ParseField(s string) (Field, error) {
	var f Field
	for _, part := range strings.Split(s, ",") {
		lo, hi, two := strings.Cut(part, ":")
		if !two {
			hi = lo
		}
		a, err1 := strconv.ParseUint(lo, 10, 7)
		b, err2 := strconv.ParseUint(hi, 10, 7)
		if err1 != nil || err2 != nil || b < a {
			return nil, fmt.Errorf("bad bit range %q", part)
		}
		f = append(f, Range{uint8(a), uint8(b - a + 1)})
	}
	if f.Width() > 64 || f.Mask().OnesCount() != f.Width() {
		return nil, fmt.Errorf("field %q is wider than 64 bits or names a bit twice", s)
	}
	return f, nil
}

func (r Range) get(w Word) uint64 {
	lo := uint(r.Lo)
	var v uint64
	switch {
	case lo >= 64:
		v = w.Hi >> (lo - 64)
	case lo == 0:
		v = w.Lo
	default:
		v = w.Lo>>lo | w.Hi<<(64-lo)
	}
	return v & (1<<r.N - 1)
}

func (r Range) set(w Word, v uint64) Word {
	m := uint64(1)<<r.N - 1
	v &= m
	lo := uint(r.Lo)
	if lo >= 64 {
		w.Hi = w.Hi&^(m<<(lo-64)) | v<<(lo-64)
		return w
	}
	w.Lo = w.Lo&^(m<<lo) | v<<lo
	if lo > 0 {
		w.Hi = w.Hi&^(m>>(64-lo)) | v>>(64-lo)
	}
	return w
}
