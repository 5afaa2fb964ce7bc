package isa

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// WordSize is the size of an instruction in bytes.
const WordSize = 16

// A Word is one 128-bit instruction. Bit 0 of the instruction is bit 0 of Lo, bit
// 64 is bit 0 of Hi: the numbering of the bit-layout pages and of CuAssembler.
//
//	127      125 122  116  113  110 109 105              91        12  0
//	+--------+-----+----+----+----+---+-----+-------------+---- … --+----+
//	| unused |reuse|wait|rbar|wbar| y |stall|             |x|       |opc.|
//	+--------+-----+----+----+----+---+-----+-------------+---- … --+----+
type Word struct{ Lo, Hi uint64 }

// LoadWord reads the little-endian instruction in the first 16 bytes of b.
func LoadWord(b []byte) Word {
	_ = b[15]
	return Word{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])}
}

// Store writes w into the first 16 bytes of b, little-endian.
func (w Word) Store(b []byte) {
	_ = b[15]
	binary.LittleEndian.PutUint64(b, w.Lo)
	binary.LittleEndian.PutUint64(b[8:], w.Hi)
}

// Bit returns bit i (0–127) of w.
func (w Word) Bit(i int) uint64 {
	if i < 64 {
		return w.Lo >> uint(i) & 1
	}
	return w.Hi >> uint(i-64) & 1
}

// BitWord returns the word whose only set bit is i (0–127).
func BitWord(i int) Word {
	if i < 64 {
		return Word{Lo: 1 << uint(i)}
	}
	return Word{Hi: 1 << uint(i-64)}
}

// And returns w & x.
func (w Word) And(x Word) Word { return Word{w.Lo & x.Lo, w.Hi & x.Hi} }

// Or returns w | x.
func (w Word) Or(x Word) Word { return Word{w.Lo | x.Lo, w.Hi | x.Hi} }

// Xor returns w ^ x.
func (w Word) Xor(x Word) Word { return Word{w.Lo ^ x.Lo, w.Hi ^ x.Hi} }

// AndNot returns w &^ x.
func (w Word) AndNot(x Word) Word { return Word{w.Lo &^ x.Lo, w.Hi &^ x.Hi} }

// Not returns the complement of w.
func (w Word) Not() Word { return Word{^w.Lo, ^w.Hi} }

// IsZero reports whether no bit of w is set.
func (w Word) IsZero() bool { return w.Lo|w.Hi == 0 }

// Opcode returns the 13 bits of the opcode: bits 0–11, and bit 91 as bit 12.
func (w Word) Opcode() int { return int(w.Lo&0xfff | w.Hi>>27&1<<12) }

// OnesCount returns the number of set bits of w.
func (w Word) OnesCount() int { return bits.OnesCount64(w.Lo) + bits.OnesCount64(w.Hi) }

// unscheduledMask has the bits of stall count and scoreboards, 105–108 and 110–121. Bit 109
// decides what the reuse flags mean, which texts show.
const unscheduledMask = (1<<17 - 1 - 1<<4) << 41

// Unscheduled returns w with the bits of stall count and scoreboards cleared.
func (w Word) Unscheduled() Word {
	w.Hi &^= unscheduledMask
	return w
}

// String returns w as `0xLO, 0xHI`, two 64-bit halves of 16 digits, low half first,
// as cuobjdump prints them.
func (w Word) String() string { return fmt.Sprintf("0x%016x, 0x%016x", w.Lo, w.Hi) }
