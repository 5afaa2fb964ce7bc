package isa

import (
	"math"
	"strconv"
	"strings"
)

// at returns byte i of s; beyond its end stand blanks, which texts lose there.
func at(s string, i int) byte {
	if i < len(s) {
		return s[i]
	}
	return ' '
}

// parse reads what s prints from text at pos. It returns the value of the field and
// the place after what it read, or -1 where text holds nothing that s can print. base
// is the field's value in the word that the text says nothing of; loose also lets pass
// numbers that s writes in another way.
func (s *Slot) parse(text string, pos int, pc, base uint64, loose bool) (uint64, int) {
	if pos >= len(text) {
		return 0, -1
	}
	n := uint(s.Field.Width())
	switch s.Kind {
	case KindReg, KindUReg, KindPred, KindUPred:
		return s.parseRegister(text, pos, n)
	case KindDec:
		x, end := scanDec(text, pos)
		return s.unsigned(x, end, n)
	case KindHex:
		x, neg, end := scanHex(text, pos, loose)
		if neg && end >= 0 {
			// A negative number in an unsigned field stands for its two's complement.
			if !loose || n < 64 && x > 1<<(n-1) {
				return 0, -1
			}
			x = -x & (^uint64(0) >> (64 - n))
		}
		return s.unsigned(x, end, n)
	case KindSHex, KindRel:
		x, neg, end := scanHex(text, pos, loose)
		if neg {
			x = -x
		}
		if s.Kind == KindRel {
			x -= pc + WordSize
		}
		return s.signed(x, end, n)
	case KindLog2:
		x, neg, end := scanHex(text, pos, loose)
		if neg || x > 63 {
			return 0, -1
		}
		return s.unsigned(1<<x, end, n)
	case KindF16, KindBF16, KindF32, KindF64, KindF16Q, KindBF16Q, KindF32Q:
		base = (base^s.Xor)<<s.Shift + uint64(s.Add)
		x, end := floatFormats[s.Kind].parse(text, pos, base, loose)
		return s.unsigned(x, end, n)
	}
	return 0, -1
}

// unsigned takes back what printing did to the field's value: it returns the value
// of an n-bit field that gives x, and end, or -1 where there is none.
func (s *Slot) unsigned(x uint64, end int, n uint) (uint64, int) {
	x -= uint64(s.Add)
	if x&(1<<s.Shift-1) != 0 || n < 64 && x>>s.Shift>>n != 0 {
		return 0, -1
	}
	return x>>s.Shift ^ s.Xor, end
}

// signed is unsigned for kinds that extend the sign.
func (s *Slot) signed(x uint64, end int, n uint) (uint64, int) {
	x -= uint64(s.Add)
	v := int64(x) >> s.Shift
	if x&(1<<s.Shift-1) != 0 || v<<(64-n)>>(64-n) != v {
		return 0, -1
	}
	return uint64(v)&(^uint64(0)>>(64-n)) ^ s.Xor, end
}

// parseRegister reads a register's name.
func (s *Slot) parseRegister(text string, pos int, n uint) (uint64, int) {
	r := &registers[s.Kind]
	if !strings.HasPrefix(text[pos:], r.prefix) {
		return 0, -1
	}
	pos += len(r.prefix)
	ones := ^uint64(0) >> (64 - n)
	if at(text, pos) == r.special {
		return ones ^ s.Xor, pos + 1
	}
	x, end := scanDec(text, pos)
	v, end := s.unsigned(x, end, n)
	if v^s.Xor == ones {
		return 0, -1
	}
	return v, end
}

// scanDec reads a decimal number without leading zeros.
func scanDec(s string, pos int) (uint64, int) {
	x, start := uint64(0), pos
	for ; pos < len(s) && s[pos] >= '0' && s[pos] <= '9'; pos++ {
		if x > math.MaxUint64/10-1 {
			return 0, -1
		}
		x = x*10 + uint64(s[pos]-'0')
	}
	if pos == start || s[start] == '0' && pos > start+1 {
		return 0, -1
	}
	return x, pos
}

// scanHex reads a hexadecimal number with an optional sign; if loose is true, also a
// decimal one.
func scanHex(s string, pos int, loose bool) (x uint64, neg bool, end int) {
	if neg = at(s, pos) == '-'; neg {
		pos++
	}
	if at(s, pos) != '0' || at(s, pos+1) != 'x' {
		if x, end = scanDec(s, pos); !loose || end < 0 || isWordByte(at(s, end)) {
			return 0, false, -1
		}
		return x, neg, end
	}
	start := pos + 2
	for pos = start; pos < len(s) && pos < start+16; pos++ {
		d := strings.IndexByte(hexDigits, s[pos]|0x20)
		if d < 0 || !loose && s[pos] >= 'A' && s[pos] <= 'F' {
			break
		}
		x = x<<4 | uint64(d)
	}
	zeros := s[min(start, len(s)):min(pos, len(s))]
	if pos == start || !loose && len(zeros) > 1 && zeros[0] == '0' {
		return 0, false, -1
	}
	return x, neg, pos
}

// isWordByte reports whether c may be part of a name or number.
func isWordByte(c byte) bool {
	return c == '_' || c == '?' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
}

// parse reads a float as nvdisasm prints it and returns its bits; if loose is true
// also a number that the format rounds, and 0x… for the bits themselves.
func (f floatFormat) parse(s string, pos int, base uint64, loose bool) (uint64, int) {
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
			return f.blank(x, s, pos)
		}
		pos++
	}
	if loose && at(s, pos) == '0' && at(s, pos+1) == 'x' {
		x, _, end := scanHex(s, pos, true)
		return x, end
	}
	for pos < len(s) && (s[pos] >= '0' && s[pos] <= '9' || s[pos] == '.' && at(s, pos+1) >= '0' && at(s, pos+1) <= '9') {
		pos++
	}
	if at(s, pos) == 'e' && (at(s, pos+1) == '-' || at(s, pos+1) == '+') {
		for pos += 2; pos < len(s) && s[pos] >= '0' && s[pos] <= '9'; pos++ {
		}
	}
	v, err := strconv.ParseFloat(s[start:min(pos, len(s))], 64)
	if err != nil {
		return 0, -1
	}
	x, exact := f.round(v)
	switch {
	case !exact && !loose:
		return 0, -1
	case x == sign && sign != 0:
		if !loose || at(s, pos) == ' ' {
			return f.blank(x, s, pos)
		}
	}
	return x, pos
}

// blank skips the blank that special values carry at their end.
func (f floatFormat) blank(x uint64, s string, pos int) (uint64, int) {
	if at(s, pos) != ' ' {
		return 0, -1
	}
	return x, pos + 1
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
