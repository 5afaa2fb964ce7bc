package isa

import (
	"math"
	"math/bits"
	"strconv"
)

// fives has the powers of five that fit 128 bits, low half first.
var fives = func() (t [56][2]uint64) {
	t[0][0] = 1
	for i := 1; i < len(t); i++ {
		hi, lo := bits.Mul64(t[i-1][0], 5)
		t[i] = [2]uint64{lo, hi + t[i-1][1]*5}
	}
	return t
}()

// appendDecimal appends v, which is neither zero nor infinite, in the form of
// appendFloat, if all its digits fit a number of 128 bits. It is many times as fast as
// package strconv, which has to be ready for a thousand digits.
func appendDecimal(dst []byte, v float64) ([]byte, bool) {
	hi, lo, point, ok := scaled(v)
	if !ok {
		return dst, false
	}
	var buf [40]byte
	d := decimalDigits(&buf, hi, lo)
	ten := len(d) - 1 - point // the power of ten of the first digit
	keep := 20
	if ten >= 9 {
		keep = 21
	}
	d, carry := roundDigits(d, keep)
	ten += carry
	if v < 0 {
		dst = append(dst, '-')
	}
	switch {
	case ten >= 9:
		return appendExponent(dst, d, 21, ten), true
	case ten < -4:
		return appendExponent(dst, trimZeros(d), 0, ten), true
	case ten < 0:
		dst = append(dst, "0.0000"[:1-ten]...)
		return append(dst, trimZeros(d)...), true
	}
	dst = append(dst, d[:ten+1]...)
	if rest := trimZeros(d[ten+1:]); len(rest) > 0 {
		dst = append(append(dst, '.'), rest...)
	}
	return dst, true
}

// scaled returns the magnitude of v as the number hi:lo divided by 10^point.
func scaled(v float64) (hi, lo uint64, point int, ok bool) {
	b := math.Float64bits(v)
	exp := int(b>>52&0x7ff) - 1075
	if exp == -1075 {
		return 0, 0, 0, false // subnormal
	}
	m := b&(1<<52-1) | 1<<52
	z := bits.TrailingZeros64(m)
	m, exp = m>>z, exp+z
	if exp >= 0 {
		if bits.Len64(m)+exp > 128 {
			return 0, 0, 0, false
		}
		// A shift by 64 or more gives 0.
		return m<<(uint(exp)-64) | m>>(64-uint(exp)), m << uint(exp), 0, true
	}
	if point = -exp; point >= len(fives) {
		return 0, 0, 0, false
	}
	p := fives[point]
	if bits.Len64(m)+bits.Len64(p[0]|-min(p[1], 1))+bits.Len64(p[1]) > 128 {
		return 0, 0, 0, false
	}
	hi, lo = bits.Mul64(m, p[0])
	return hi + m*p[1], lo, point, true
}

// decimalDigits returns the digits of hi:lo, which lie in buf.
func decimalDigits(buf *[40]byte, hi, lo uint64) []byte {
	const chunk = 1e19 // the greatest power of ten of 64 bits
	top := hi / chunk
	mid, r0 := bits.Div64(hi%chunk, lo, chunk)
	top, r1 := bits.Div64(top, mid, chunk)
	buf[0] = '0' + byte(top)
	for i := 19; i > 0; i-- {
		buf[i] = '0' + byte(r1%10)
		buf[i+19] = '0' + byte(r0%10)
		r0, r1 = r0/10, r1/10
	}
	d := buf[:39]
	for len(d) > 1 && d[0] == '0' {
		d = d[1:]
	}
	return d
}

// roundDigits cuts d to n digits, to the nearest, of two the even one. carry is 1
// where rounding made a digit more, so that the power of ten grows.
func roundDigits(d []byte, n int) (digits []byte, carry int) {
	if len(d) <= n {
		return d, 0
	}
	rest := d[n:]
	up := rest[0] > '5'
	if rest[0] == '5' {
		up = len(trimZeros(rest)) > 1 || d[n-1]&1 != 0
	}
	d = d[:n]
	if !up {
		return d, 0
	}
	for i := n - 1; i >= 0; i-- {
		if d[i] < '9' {
			d[i]++
			return d, 0
		}
		d[i] = '0'
	}
	d[0] = '1'
	return d, 1
}

// trimZeros cuts off the zeros at the end of d.
func trimZeros(d []byte) []byte {
	for len(d) > 0 && d[len(d)-1] == '0' {
		d = d[:len(d)-1]
	}
	return d
}

// appendExponent appends d with a point after its first digit and zeros up to n
// digits, and the power of ten.
func appendExponent(dst, d []byte, n, ten int) []byte {
	dst = append(dst, d[0])
	if len(d) > 1 || n > 1 {
		dst = append(append(dst, '.'), d[1:]...)
	}
	for i := len(d); i < n; i++ {
		dst = append(dst, '0')
	}
	sign := byte('+')
	if ten < 0 {
		sign, ten = '-', -ten
	}
	dst = append(dst, 'e', sign)
	if ten < 10 {
		dst = append(dst, '0')
	}
	return strconv.AppendInt(dst, int64(ten), 10)
}
