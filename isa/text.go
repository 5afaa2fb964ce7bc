package isa

import "strconv"

// Text returns the text of in at the address pc, as AppendText writes it.
func (t *Table) Text(in Inst, pc uint64) string {
	var buf [512]byte
	return string(t.AppendText(buf[:0], in, pc))
}

// AppendText appends to dst the text that nvdisasm prints for in at the address pc
// before its semicolon: guard and instruction, no control code, spaces at the end cut
// off. An unknown word is appended as `.word 0xLO, 0xHI`, one that nvdisasm refuses as
// `.illegal …`, and one that it accepts without printing anything as `.silent …`.
func (t *Table) AppendText(dst []byte, in Inst, pc uint64) []byte {
	switch {
	case in.Variant == nil:
		return appendRaw(dst, ".word ", in.Word)
	case in.Status == StatusIllegal:
		return appendRaw(dst, ".illegal ", in.Word)
	case in.Status == StatusSilent:
		return appendRaw(dst, ".silent ", in.Word)
	}
	p := in.prog
	if p == nil {
		p = compile(in.Variant)
	}
	return p.appendText(dst, in.Word, pc)
}

// appendRaw appends name and both halves of w.
func appendRaw(dst []byte, name string, w Word) []byte {
	dst = append(dst, name...)
	dst = AppendHalf(append(dst, "0x"...), w.Lo)
	return AppendHalf(append(dst, ", 0x"...), w.Hi)
}

const hexDigits = "0123456789abcdef"

// AppendHalf appends v as 16 hexadecimal digits, half of a word.
func AppendHalf(dst []byte, v uint64) []byte {
	var b [16]byte
	for i := len(b) - 1; i >= 0; i-- {
		b[i] = hexDigits[v&15]
		v >>= 4
	}
	return append(dst, b[:]...)
}

// appendGuard appends the guard predicate of w and a space, or nothing where it is
// @PT.
func appendGuard(dst []byte, w Word, g Guard) []byte {
	v := w.Lo >> 12 & 15
	if v == 7 || g == GuardNone {
		return dst
	}
	dst = append(dst, '@')
	if v > 7 {
		dst = append(dst, '!')
	}
	if g == GuardUP {
		dst = append(dst, 'U')
	}
	dst = append(dst, 'P')
	if v &= 7; v == 7 {
		dst = append(dst, 'T')
	} else {
		dst = append(dst, '0'+byte(v))
	}
	return append(dst, ' ')
}

// registers names the register files: the prefix of their names and the letter that
// stands for the number when the field is all ones.
var registers = [...]struct {
	prefix  string
	special byte
}{KindReg: {"R", 'Z'}, KindUReg: {"UR", 'Z'}, KindPred: {"P", 'T'}, KindUPred: {"UP", 'T'}}

// append appends the text of s in w.
func (s *Slot) append(dst []byte, w Word, pc uint64) []byte {
	n := uint(s.Field.Width())
	x := s.Field.Get(w) ^ s.Xor
	switch s.Kind {
	case KindReg, KindUReg, KindPred, KindUPred:
		r := registers[s.Kind]
		dst = append(dst, r.prefix...)
		if x == 1<<n-1 {
			return append(dst, r.special)
		}
		return strconv.AppendUint(dst, x<<s.Shift+uint64(s.Add), 10)
	case KindSHex, KindRel:
		x = uint64(int64(x<<(64-n)) >> (64 - n))
	}
	x = x<<s.Shift + uint64(s.Add)
	switch s.Kind {
	case KindDec:
		return strconv.AppendUint(dst, x, 10)
	case KindSHex:
		return appendSHex(dst, int64(x))
	case KindRel:
		return appendSHex(dst, int64(pc+WordSize+x))
	case KindF16, KindBF16, KindF32, KindF64, KindF16Q, KindBF16Q, KindF32Q:
		return appendFloat(dst, s.Kind, x)
	case KindLog2:
		for i := uint64(0); ; i++ {
			if x>>i <= 1 {
				return strconv.AppendUint(append(dst, "0x"...), i, 16)
			}
		}
	}
	return strconv.AppendUint(append(dst, "0x"...), x, 16)
}

// appendSHex appends x as 0x… or -0x….
func appendSHex(dst []byte, x int64) []byte {
	u := uint64(x)
	if x < 0 {
		dst = append(dst, '-')
		u = -u
	}
	return strconv.AppendUint(append(dst, "0x"...), u, 16)
}
