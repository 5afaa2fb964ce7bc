package isa

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// parse reads a float as nvdisasm prints it and returns its bits; loosely also 0x… for
// the bits themselves, and a number that the format rounds as it rounds every result. end
// is -1 where s has no number at pos. A number that the field cannot hold is a problem,
// unless it is to be rounded.
func (f floatFormat) parse(s string, pos int, base uint64, how spelling) (x uint64, end int, problem string) {
	loose := how > asPrinted
	sign := uint64(0)
	start := pos
	if c := at(s, pos); c == '-' || c == '+' {
		if c == '-' {
			sign = 1 << (f.expBits + f.fracBits)
		}
		if x, ok := f.special(s[min(pos+1, len(s)):], sign, base); ok {
			pos += len("+INF")
			if s[start+1] != 'I' {
				pos++
			}
			return f.blank(x, s, pos, loose)
		}
		pos++
	}
	if loose && at(s, pos) == '0' && at(s, pos+1) == 'x' {
		x, _, end := scanHex(s, pos, true)
		if pos > start && end >= 0 {
			return 0, end, "0x… are the bits of a float, and have no sign: its sign is the highest of them"
		}
		return x, end, ""
	}
	if pos = skipDecimal(s, pos, loose); pos < 0 {
		return 0, -1, ""
	}
	token := s[start:pos]
	v, err := strconv.ParseFloat(token, 64)
	if err != nil && !math.IsInf(v, 0) {
		return 0, -1, ""
	}
	x, exact := f.round(v)
	exact = exact && err == nil && (v != 0 || isZeroText(token))
	switch {
	case !exact && !loose:
		return 0, -1, ""
	case !exact && how != rounded:
		if problem := f.loss(token, v, x); problem != "" {
			return 0, pos, problem
		}
	}
	if x == sign && sign != 0 {
		return f.blank(x, s, pos, loose)
	}
	return x, pos, ""
}

// skipDecimal returns the place after the decimal number that s has at pos, or -1.
func skipDecimal(s string, pos int, loose bool) int {
	start := pos
	for pos < len(s) && (s[pos] >= '0' && s[pos] <= '9' || isFraction(s, pos)) {
		pos++
	}
	if pos == start {
		return -1
	}
	e := pos
	if c := at(s, e); c != 'e' && (!loose || c != 'E') {
		return pos
	}
	e++
	if c := at(s, e); c == '-' || c == '+' {
		e++
	} else if !loose {
		return pos
	}
	digits := e
	for e < len(s) && s[e] >= '0' && s[e] <= '9' {
		e++
	}
	if e == digits {
		return pos
	}
	return e
}

// isZeroText reports whether all digits of a decimal number but those of its exponent
// are 0.
func isZeroText(token string) bool {
	mantissa, _, _ := strings.Cut(strings.ToLower(token), "e")
	return !strings.ContainsAny(mantissa, "123456789")
}

// loss says why x, the nearest number of the format, is not what token, with the value
// v, says; "" where x is v rounded as the hardware rounds a result of this format. An
// immediate of a double is its upper half and rounds nothing.
func (f floatFormat) loss(token string, v float64, x uint64) string {
	got := f.float64(x)
	nearest := strings.TrimSpace(f.text(x))
	inf := uint64(1)<<f.expBits - 1
	switch {
	case x>>f.fracBits&inf == inf:
		return fmt.Sprintf("%s is too great; the greatest number here is %s", token, strings.TrimSpace(f.text(inf<<f.fracBits-1)))
	case got == 0:
		return fmt.Sprintf("%s is too small; the nearest number here is 0, the least above it %s", token, strings.TrimSpace(f.text(1)))
	case f.expBits == 11:
		return fmt.Sprintf("%s needs the lower half of a double, which the instruction has no room for; the nearest number here is %s", token, nearest)
	case !strings.ContainsAny(token, ".eE"), math.Abs(got-v) > math.Abs(v)/float64(uint64(2)<<f.fracBits):
		return fmt.Sprintf("%s cannot be held; the nearest number here is %s", token, nearest)
	}
	return ""
}

// text returns the number with the bits x as it prints.
func (f floatFormat) text(x uint64) string {
	for k := range floatFormats {
		if floatFormats[k] == f {
			return string(appendFloat(nil, Kind(k), x))
		}
	}
	return ""
}

// blank skips the blank that special values carry at their end, which need not be there
// where texts are read loosely.
func (f floatFormat) blank(x uint64, s string, pos int, loose bool) (uint64, int, string) {
	switch {
	case at(s, pos) == ' ':
		return x, pos + 1, ""
	case loose && !isWordByte(at(s, pos)):
		return x, pos, ""
	}
	return 0, -1, ""
}

// special reads INF, QNAN or SNAN. Many bits print as a NaN: its fraction is that of
// base where base is a NaN too, or a preference of the table, whose exponent is 0. Else
// only the bit is set that must be.
func (f floatFormat) special(s string, sign, base uint64) (uint64, bool) {
	ones := uint64(1)<<f.expBits - 1
	inf := sign | ones<<f.fracBits
	quiet := uint64(1) << (f.fracBits - 1)
	frac := base & (1<<f.fracBits - 1)
	must := quiet
	if f.quiet && frac != 0 {
		must = 0
	}
	if exp := base >> f.fracBits & ones; exp != 0 && exp != ones {
		frac, must = 0, quiet
	}
	switch {
	case strings.HasPrefix(s, "INF"):
		return inf, true
	case strings.HasPrefix(s, "QNAN"):
		return inf | must | frac, true
	case strings.HasPrefix(s, "SNAN"):
		return inf | max(frac&^quiet, 1), true
	}
	return 0, false
}

// round returns the number of the format that is nearest to v, of two the even one,
// and whether it is v.
func (f floatFormat) round(v float64) (uint64, bool) {
	b := math.Float64bits(v)
	sign := b >> 63 << (f.expBits + f.fracBits)
	bias := 1<<(f.expBits-1) - 1
	exp := int(b>>52&0x7ff) - 1023 + bias
	frac := b & (1<<52 - 1)
	drop := 52 - f.fracBits // bits of the fraction to lose
	switch {
	case f.expBits == 11: // a double: subnormal numbers need no care
		exp = int(b >> 52 & 0x7ff)
	case exp < -int(f.fracBits)-1 || b<<1 == 0:
		return sign, b<<1 == 0
	case exp <= 0: // subnormal
		frac |= 1 << 52
		drop += uint(1 - exp)
		exp = 0
	}
	lost := frac & (1<<drop - 1)
	x := uint64(exp)<<f.fracBits + frac>>drop
	if half := uint64(1) << (drop - 1); lost > half || lost == half && x&1 != 0 {
		x++
	}
	if x>>f.fracBits >= 1<<f.expBits-1 {
		return sign | (1<<f.expBits-1)<<f.fracBits, false
	}
	return sign | x, lost == 0
}
