package isa

import (
	"math"
	"strconv"
)

// A floatFormat is a binary format of a float immediate.
type floatFormat struct {
	expBits, fracBits uint
	quiet             bool // a NaN of either kind prints as QNAN
}

var floatFormats = [...]floatFormat{
	KindF16:   {5, 10, false},
	KindBF16:  {8, 7, false},
	KindF32:   {8, 23, false},
	KindF64:   {11, 20, false}, // the upper half of a double
	KindF16Q:  {5, 10, true},
	KindBF16Q: {8, 7, true},
	KindF32Q:  {8, 23, true},
}

// float64 returns the number with the bits x.
func (f floatFormat) float64(x uint64) float64 {
	bias := 1<<(f.expBits-1) - 1
	frac := x & (1<<f.fracBits - 1)
	exp := int(x >> f.fracBits & (1<<f.expBits - 1))
	if exp == 0 {
		exp = 1
	} else {
		frac |= 1 << f.fracBits
	}
	v := math.Ldexp(float64(frac), exp-bias-int(f.fracBits))
	if x>>(f.expBits+f.fracBits)&1 != 0 {
		return -v
	}
	return v
}

// appendFloat appends the number with the bits x as nvdisasm does: with 20
// significant digits, trailing zeros cut off, but from 1e9 in magnitude in exponent form
// with 20 digits after the point. Negative zero, infinities and NaNs carry a space at
// their end, whatever follows.
func appendFloat(dst []byte, k Kind, x uint64) []byte {
	f := floatFormats[k]
	sign := x>>(f.expBits+f.fracBits)&1 != 0
	if inf := uint64(1)<<f.expBits - 1; x>>f.fracBits&inf == inf {
		c := byte('+')
		if sign {
			c = '-'
		}
		dst = append(dst, c)
		switch frac := x & (1<<f.fracBits - 1); {
		case frac == 0:
			return append(dst, "INF "...)
		case f.quiet || frac>>(f.fracBits-1) != 0:
			return append(dst, "QNAN "...)
		}
		return append(dst, "SNAN "...)
	}
	v := f.float64(x)
	if v == 0 {
		if sign {
			return append(dst, "-0.0 "...)
		}
		return append(dst, '0')
	}
	if short, ok := appendDecimal(dst, v); ok {
		return short
	}
	if math.Abs(v) >= 1e9 {
		return strconv.AppendFloat(dst, v, 'e', 20, 64)
	}
	return strconv.AppendFloat(dst, v, 'g', 20, 64)
}
