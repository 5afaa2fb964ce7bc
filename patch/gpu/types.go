package gpu

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// A Type is the type of a scalar argument or of the elements of a buffer.
type Type uint8

// The types. F16 and BF16 are IEEE half precision and bfloat16.
const (
	I8 Type = iota
	U8
	I16
	U16
	I32
	U32
	I64
	U64
	F16
	BF16
	F32
	F64
)

var types = [...]struct {
	name   string
	size   int
	signed bool
	float  bool
}{
	I8: {"i8", 1, true, false}, U8: {"u8", 1, false, false}, I16: {"i16", 2, true, false}, U16: {"u16", 2, false, false},
	I32: {"i32", 4, true, false}, U32: {"u32", 4, false, false}, I64: {"i64", 8, true, false}, U64: {"u64", 8, false, false},
	F16: {"f16", 2, true, true}, BF16: {"bf16", 2, true, true}, F32: {"f32", 4, true, true}, F64: {"f64", 8, true, true},
}

const typeNames = "i8 u8 i16 u16 i32 u32 i64 u64 f16 bf16 f32 f64"

func (t Type) String() string { return types[t].name }

// Size returns the size of a value in bytes.
func (t Type) Size() int { return types[t].size }

func parseType(s string) (Type, error) {
	for t, d := range types {
		if d.name == s {
			return Type(t), nil
		}
	}
	return 0, fmt.Errorf("no type %q: want one of %s", s, typeNames)
}

// parse reads a value as its bits, of which the low Size bytes count. A float may be
// written by its bits, 0f3F800000 and the like, as PTX does.
func (t Type) parse(s string) (uint64, error) {
	d := types[t]
	bad := func(why string) (uint64, error) { return 0, fmt.Errorf("value %q of type %s: %s", s, t, why) }
	if d.float {
		if hex, ok := strings.CutPrefix(strings.ToLower(s), "0f"); ok {
			v, err := strconv.ParseUint(hex, 16, 8*d.size)
			if err != nil || len(hex) != 2*d.size {
				return bad(fmt.Sprintf("want %d hex digits after 0f", 2*d.size))
			}
			return v, nil
		}
		v, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return bad("not a number")
		}
		return t.fromFloat(v), nil
	}
	v, err := parseInt(s)
	switch limit := uint64(1) << (8*d.size - 1); {
	case err != nil:
		return bad("not an integer")
	case v.negative && !d.signed:
		return bad("negative")
	case v.negative && v.abs > limit, !v.negative && d.signed && v.abs >= limit, !v.negative && v.abs > limit-1+limit:
		return bad("does not fit")
	case v.negative:
		return -v.abs, nil
	}
	return v.abs, nil
}

// An integer is a number of 64 bits and its sign.
type integer struct {
	negative bool
	abs      uint64
}

// parseInt reads an integer as Go writes them, with an optional suffix K, M or G for
// powers of 1024.
func parseInt(s string) (integer, error) {
	var v integer
	digits, negative := strings.CutPrefix(s, "-")
	shift := 0
	if digits != "" {
		if i := strings.IndexByte("KMG", digits[len(digits)-1]); i >= 0 {
			digits, shift = digits[:len(digits)-1], 10*(i+1)
		}
	}
	abs, err := strconv.ParseUint(digits, 0, 64)
	if err != nil || abs > math.MaxUint64>>shift {
		return v, fmt.Errorf("%q is no integer", s)
	}
	return integer{negative, abs << shift}, nil
}

// fromFloat returns the bits of v, rounded to nearest even.
func (t Type) fromFloat(v float64) uint64 {
	switch t {
	case F16:
		return uint64(roundFloat(v, 5, 10))
	case BF16:
		return uint64(roundFloat(v, 8, 7))
	case F32:
		return uint64(math.Float32bits(float32(v)))
	}
	return math.Float64bits(v)
}

// roundFloat returns the bits of v in an IEEE format of 1+exp+man bits.
func roundFloat(v float64, exp, man int) uint16 {
	sign := uint16(0)
	if math.Signbit(v) {
		sign, v = 1<<(exp+man), -v
	}
	inf := uint16(1<<exp-1) << man
	switch {
	case v != v:
		return sign | inf | 1<<(man-1)
	case math.IsInf(v, 0):
		return sign | inf
	case v == 0:
		return sign
	}
	_, e := math.Frexp(v)
	e-- // v = m * 2^e with 1 <= m < 2
	bias := 1<<(exp-1) - 1
	if e > bias {
		return sign | inf
	}
	e = max(e, 1-bias) // subnormal numbers have the least exponent
	q := uint32(math.RoundToEven(math.Ldexp(v, man-e)))
	// A q that rounding made too large carries into the exponent, as it should.
	return sign | uint16(uint32(e+bias-1)<<man+q)
}

// store writes the low bytes of bits to b.
func (t Type) store(b []byte, bits uint64) {
	switch t.Size() {
	case 1:
		b[0] = byte(bits)
	case 2:
		binary.LittleEndian.PutUint16(b, uint16(bits))
	case 4:
		binary.LittleEndian.PutUint32(b, uint32(bits))
	default:
		binary.LittleEndian.PutUint64(b, bits)
	}
}

// load reads the bits of the value at the start of b.
func (t Type) load(b []byte) uint64 {
	switch t.Size() {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(binary.LittleEndian.Uint16(b))
	case 4:
		return uint64(binary.LittleEndian.Uint32(b))
	}
	return binary.LittleEndian.Uint64(b)
}

// Format writes a value for people: bits as a number of the type.
func (t Type) Format(bits uint64) string {
	switch t {
	case I8:
		return strconv.Itoa(int(int8(bits)))
	case I16:
		return strconv.Itoa(int(int16(bits)))
	case I32:
		return strconv.Itoa(int(int32(bits)))
	case I64:
		return strconv.FormatInt(int64(bits), 10)
	case F16:
		return strconv.FormatFloat(smallFloat(uint16(bits), 5, 10), 'g', -1, 32)
	case BF16:
		return strconv.FormatFloat(smallFloat(uint16(bits), 8, 7), 'g', -1, 32)
	case F32:
		return strconv.FormatFloat(float64(math.Float32frombits(uint32(bits))), 'g', -1, 32)
	case F64:
		return strconv.FormatFloat(math.Float64frombits(bits), 'g', -1, 64)
	}
	return strconv.FormatUint(bits, 10)
}

// smallFloat is the inverse of roundFloat.
func smallFloat(bits uint16, exp, man int) float64 {
	m, e := int(bits&(1<<man-1)), int(bits>>man&(1<<exp-1))
	v := 0.0
	switch bias := 1<<(exp-1) - 1; {
	case e == 1<<exp-1 && m != 0:
		return math.NaN()
	case e == 1<<exp-1:
		v = math.Inf(1)
	case e == 0:
		v = math.Ldexp(float64(m), 1-bias-man)
	default:
		v = math.Ldexp(float64(m+1<<man), e-bias-man)
	}
	if bits>>(exp+man) != 0 {
		v = -v
	}
	return v
}

// hex writes the bits of a value.
func (t Type) hex(bits uint64) string {
	return fmt.Sprintf("0x%0*x", 2*t.Size(), bits&(1<<(8*t.Size()-1)<<1-1))
}
