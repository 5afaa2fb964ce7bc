package gpu

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Bits of numbers as the formats define them: IEEE 754-2019 tables, and bfloat16 as the
// upper half of a float.
func TestScalars(t *testing.T) {
	for _, c := range []struct{ arg, want string }{
		{"i32:5", "05000000"},
		{"i32:-1", "ffffffff"},
		{"i8:-128", "80"},
		{"u8:255", "ff"},
		{"u16:0x1234", "3412"},
		{"u32:1M", "00001000"},
		{"i64:-9223372036854775808", "0000000000000080"},
		{"u64:18446744073709551615", "ffffffffffffffff"},
		{"f32:2.5", "00002040"},
		{"f32:-0", "00000080"},
		{"f32:0f40200000", "00002040"},
		{"f64:1", "000000000000f03f"},
		{"f16:1", "003c"},
		{"f16:65504", "ff7b"},
		{"f16:65520", "007c"},                  // rounds to infinity
		{"f16:2049", "0068"},                   // ties to even: 2048
		{"f16:5.9604644775390625e-08", "0100"}, // the least subnormal number
		{"f16:-2", "00c0"},
		{"f16:nan", "007e"},
		{"bf16:1", "803f"},
		{"bf16:3.3895313892515355e38", "7f7f"}, // the largest number
		{"bf16:-inf", "80ff"},
		{"hex:0011aaBB", "0011aabb"},
		{"null", "0000000000000000"},
	} {
		a, err := ParseArg(c.arg)
		if err != nil {
			t.Errorf("%s: %v", c.arg, err)
		} else if got := hex.EncodeToString(a.value); got != c.want || a.Size() != len(c.want)/2 {
			t.Errorf("%s: %s of %d bytes, want %s", c.arg, got, a.Size(), c.want)
		}
	}
}

func TestBuffers(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "data:1")
	if err := os.WriteFile(file, []byte{1, 2, 3, 4, 5, 6, 7, 8}, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ arg, want string }{
		{"buf:u8:3", "000000"},
		{"buf:u16:2:zeros", "00000000"},
		{"buf:f32:2:const(2.5)", "0000204000002040"},
		{"buf:i32:3:iota", "000000000100000002000000"},
		{"buf:f16:3:iota", "0000003c0040"},
		{"buf:u32:@" + file, "0102030405060708"},
		// splitmix64 from the state mix(7): the fill's documentation promises the same
		// numbers everywhere, so this must never change.
		{"buf:u64:1:random(7)", ""},
		{"buf:u8:64:random(1,5,6)", strings.Repeat("05", 64)},
		{"buf:i8:4:random(1,-3,-2)", "fdfdfdfd"},
	} {
		a, err := ParseArg(c.arg)
		if err != nil {
			t.Errorf("%s: %v", c.arg, err)
			continue
		}
		b := make([]byte, a.bytes())
		a.fill(b, 0)
		if got := hex.EncodeToString(b); c.want != "" && got != c.want {
			t.Errorf("%s: %s, want %s", c.arg, got, c.want)
		}
		// The second half by itself is the same as in the whole.
		half := a.count / 2
		part := make([]byte, a.bytes()-half*int64(a.typ.Size()))
		a.fill(part, half)
		if string(part) != string(b[half*int64(a.typ.Size()):]) {
			t.Errorf("%s: the elements from %d on are different by themselves", c.arg, half)
		}
	}
}

// The first two outputs of splitmix64 from seed 0, as its authors' C code prints them.
func TestMix(t *testing.T) {
	for x, want := range []uint64{0xe220a8397b1dcdaf, 0x6e789e6aa1b965f4} {
		if got := mix(uint64(x)); got != want {
			t.Errorf("mix(%d) = %#x, want %#x", x, got, want)
		}
	}
}

func TestRandomRange(t *testing.T) {
	a, err := ParseArg("buf:f32:4096:random(3,10,12)")
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, a.bytes())
	a.fill(b, 0)
	low, high := 0, 0
	for i := 0; i < len(b); i += 4 {
		v := smallFloat(uint16(F32.load(b[i:])>>16), 8, 7) // good enough to tell the half
		if v < 10 || v > 12 {
			t.Fatalf("element %d is %v", i/4, v)
		}
		if v < 11 {
			low++
		} else {
			high++
		}
	}
	if low < 1800 || high < 1800 {
		t.Errorf("%d in the lower half, %d in the upper", low, high)
	}
}

func TestFormat(t *testing.T) {
	for _, c := range []struct {
		typ  Type
		bits uint64
		want string
	}{
		{I8, 0xff, "-1"}, {U8, 0xff, "255"}, {I16, 0x8000, "-32768"}, {I32, 0xffffffff, "-1"}, {I64, 1 << 63, "-9223372036854775808"},
		{U64, 1 << 63, "9223372036854775808"}, {F32, 0x40200000, "2.5"}, {F64, 0x3ff0000000000000, "1"},
		{F16, 0x3c00, "1"}, {F16, 0x0001, "5.9604645e-08"}, {F16, 0xfc00, "-Inf"}, {BF16, 0x3f80, "1"}, {F16, 0x7e00, "NaN"},
	} {
		if got := c.typ.Format(c.bits); got != c.want {
			t.Errorf("%v %#x: %s, want %s", c.typ, c.bits, got, c.want)
		}
	}
}

// Each mistake is answered with what would have worked, or what is wrong.
func TestBadArgs(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"5", "want TYPE:VALUE"},
		{"", "want TYPE:VALUE"},
		{"i33:5", `no type "i33": want one of i8 u8`},
		{"i32:", "not an integer"},
		{"i32:2.5", "not an integer"},
		{"i32:2147483648", "does not fit"},
		{"i8:-129", "does not fit"},
		{"u8:256", "does not fit"},
		{"u32:-1", "negative"},
		{"u64:18446744073709551616", "not an integer"},
		{"i64:9223372036854775808", "does not fit"},
		{"u64:17179869184G", "not an integer"},
		{"f32:x", "not a number"},
		{"f32:0f4020", "want 8 hex digits"},
		{"hex:012", "pairs of hex digits"},
		{"hex:", "pairs of hex digits"},
		{"buf:f32", "number of elements"},
		{"buf:f32:0", "number of elements"},
		{"buf:f32:-4", "number of elements"},
		{"buf:f64:1024G", "too many"},
		{"buf:f32:4:ones", "want zeros, const(X), iota"},
		{"buf:f32:4:const", "want zeros, const(X), iota"},
		{"buf:f32:4:const(1", "no closing parenthesis"},
		{"buf:f32:4:const(y)", "not a number"},
		{"buf:f32:4:random(x)", "want a number"},
		{"buf:f32:4:random(1,2)", "want zeros"},
		{"buf:f32:4:random(1,2,1)", "the lower one first"},
		{"buf:u8:4:random(1,7,7)", "the lower one first"},
		{"buf:i8:4:random(1,0,200)", "does not fit"},
		{"buf:f32:@nosuchfile", "no such file"},
		{"ptr:x", "position of a buffer"},
		{"ptr:0", "position of a buffer"},
		{"ptr:1+x", "number of bytes"},
		{"buf:u8:4 ptr:1+5", "the buffer has 4 bytes"},
		{"i32:1 ptr:1", "argument 1 is no buffer"},
		{"ptr:2", "argument 2 is no buffer"},
	} {
		_, err := ParseArgs(strings.Split(c.args, " "))
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "argument ") {
			t.Errorf("%q: %v, want %q", c.args, err, c.want)
		}
	}
}

func TestDims(t *testing.T) {
	for _, c := range []struct {
		text  string
		block bool
		want  string
	}{
		{"7", false, "7,1,1"},
		{"0x10, 2,3", false, "16,2,3"},
		{"2147483647,65535,65535", false, "2147483647,65535,65535"},
		{"32,32", true, "32,32,1"},
		{"1024", true, "1024,1,1"},
		{"1,1,64", true, "1,1,64"},
		{"0", false, "want 1 to 2147483647"},
		{"1,65536", false, "Y is 65536: want 1 to 65535"},
		{"1,2,3,4", false, "want X, X,Y or X,Y,Z"},
		{"x", false, "want X, X,Y or X,Y,Z"},
		{"", true, "want X, X,Y or X,Y,Z"},
		{"1025", true, "want 1 to 1024"},
		{"1,1,65", true, "Z is 65: want 1 to 64"},
		{"64,32", true, "2048 threads, more than the 1024"},
	} {
		parse := ParseGrid
		if c.block {
			parse = ParseBlock
		}
		d, err := parse(c.text)
		got := d.String()
		if err != nil {
			got = err.Error()
		}
		if err == nil && got != c.want || !strings.Contains(got, c.want) {
			t.Errorf("%q: %s, want %s", c.text, got, c.want)
		}
	}
}
