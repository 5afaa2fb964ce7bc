package isa

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// slack is how far beyond the end of the text run may write.
const slack = maxMedium

// appendText appends the text of w, guard included, spaces at the end cut off.
func (p *program) appendText(dst []byte, w Word, pc uint64) []byte {
	dst = slices.Grow(dst, p.maxLen+slack)
	b := dst[:cap(dst)]
	n := len(dst)
	if g := w.Lo >> 12 & 15; g != 7 {
		n = len(appendGuard(dst, w, p.v.Guard))
	}
	n = run(p.ops, b, n, w, pc)
	for n > len(dst) && b[n-1] == ' ' {
		n--
	}
	return b[:n]
}

// put writes x at b[n:] and returns the place after it. It overwrites 8 bytes.
func put(b []byte, n int, x short) int {
	binary.LittleEndian.PutUint64(b[n:], uint64(x))
	return n + int(x>>56)
}

// putMedium writes x at b[n:] and returns the place after it. It overwrites 16 bytes.
func putMedium(b []byte, n int, x *medium) int {
	binary.LittleEndian.PutUint64(b[n:], x.lo)
	binary.LittleEndian.PutUint64(b[n+8:], x.hi)
	return n + x.n
}

// run writes the text of ops for w at b[n:], which is long enough, and returns the
// place after it.
func run(ops []op, b []byte, n int, w Word, pc uint64) int {
	for i := range ops {
		o := &ops[i]
		switch o.code {
		case opShort:
			n = put(b, n, o.short)
		case opPlain:
			n = put(b, n, o.names[o.get.plain(w)])
		case opPick, opName:
			n = put(b, n, o.names[o.get.value(w)])
		case opMedium:
			n = putMedium(b, n, &o.more.texts[0])
		case opPickMedium:
			n = putMedium(b, n, &o.more.texts[o.get.value(w)])
		case opLit:
			n += copy(b[n:], o.more.lit)
		case opAlt:
			n = run(o.more.alts[o.more.table[o.get.value(w)]], b, n, w, pc)
		case opNum:
			n = o.more.number(b, n, o.get.value(w), pc)
		default:
			n = len(o.more.slot.append(b[:n], w, pc))
		}
	}
	return n
}

// number writes the field's value x as a decimal or hexadecimal number.
func (m *opMore) number(b []byte, n int, x, pc uint64) int {
	x ^= m.xor
	switch m.kind {
	case KindDec:
		return putDec(b, n, x<<(m.shift&63)+uint64(m.add))
	case KindHex:
		return putHex(b, n, x<<(m.shift&63)+uint64(m.add))
	}
	x = uint64(int64(x<<(m.sign&63))>>(m.sign&63))<<(m.shift&63) + uint64(m.add)
	if m.kind == KindRel {
		x += pc + WordSize
	}
	if int64(x) < 0 {
		b[n] = '-'
		n++
		x = -x
	}
	return putHex(b, n, x)
}

// putHex writes 0x and x at b[n:].
func putHex(b []byte, n int, x uint64) int {
	digits := (bits.Len64(x|1) + 3) / 4
	b = b[n : n+2+digits]
	b[0], b[1] = '0', 'x'
	for i := len(b) - 1; i >= 2; i-- {
		b[i] = hexDigits[x&15]
		x >>= 4
	}
	return n + 2 + digits
}

// putDec writes x in decimal at b[n:].
func putDec(b []byte, n int, x uint64) int {
	digits := 1
	for y := x; y >= 10; y /= 10 {
		digits++
	}
	for i := n + digits - 1; i >= n; i-- {
		b[i] = '0' + byte(x%10)
		x /= 10
	}
	return n + digits
}
