package isa

import (
	"math"
	"strings"
)

// at returns byte i of s; beyond its ends stand blanks, which texts lose there.
func at(s string, i int) byte {
	if i >= 0 && i < len(s) {
		return s[i]
	}
	return ' '
}

// A spelling says how numbers may be written.
type spelling uint8

const (
	asPrinted spelling = iota // as nvdisasm prints them
	loosely                   // also in other ways that say the same
	rounded                   // also floats that the field cannot hold: the nearest that it can
)

// parse reads what s prints from text at pos. It returns the value of the field and
// the place after what it read, or -1 where text holds nothing that s can print. base
// is the field's value in the word that the text says nothing of.
func (s *Slot) parse(text string, pos int, pc, base uint64, how spelling) (uint64, int) {
	loose := how > asPrinted
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
			// A negative number stands for its two's complement where that is a whole register.
			if !loose || n < 32 || n < 64 && x > 1<<(n-1) {
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
		if loose && !neg && n == 32 && s.Kind == KindSHex && s.Shift == 0 && x>>31 == 1 {
			x = uint64(int64(int32(x))) // all bits of a register: 0xffffffff is -0x1
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
		x, end, problem := floatFormats[s.Kind].parse(text, pos, base, how)
		if problem != "" {
			return 0, -1
		}
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
		if x, end = scanDec(s, pos); !loose || end < 0 || isWordByte(at(s, end)) || isFraction(s, end) {
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

// isFraction reports whether s goes on at pos with a point and a digit.
func isFraction(s string, pos int) bool {
	return at(s, pos) == '.' && at(s, pos+1) >= '0' && at(s, pos+1) <= '9'
}

// isWordByte reports whether c may be part of a name or number.
func isWordByte(c byte) bool {
	return c == '_' || c == '?' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
}
