package isa

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
)

// What nvdisasm 13.5.37 prints in FADD, HADD2, HADD2.BF16_V2 and DADD on sm_90.
func TestFloatText(t *testing.T) {
	for _, c := range []struct {
		kind Kind
		bits uint64
		want string
	}{
		{KindF32, 0, "0"},
		{KindF32, 0x80000000, "-0.0 "},
		{KindF32, 0x3f800000, "1"},
		{KindF32, 0x7f800000, "+INF "},
		{KindF32, 0xff800000, "-INF "},
		{KindF32, 0x7fc00000, "+QNAN "},
		{KindF32, 0xffffffff, "-QNAN "},
		{KindF32, 0x7f800001, "+SNAN "},
		{KindF32, 0x7fbfffff, "+SNAN "},
		{KindF32, 0xff800001, "-SNAN "},
		{KindF32, 0x4e6e6b28, "1.00000000000000000000e+09"},
		{KindF32, 0x4e6e6b27, "999999936"},
		{KindF32, 0xce6e6b28, "-1.00000000000000000000e+09"},
		{KindF32, 0x00000001, "1.4012984643248170709e-45"},
		{KindF32, 0x33800000, "5.9604644775390625e-08"},
		{KindF32, 0x3dcccccd, "0.10000000149011611938"},
		{KindF32, 0x7f7fffff, "3.40282346638528859812e+38"},
		{KindF32, 0x00800000, "1.175494350822287508e-38"},
		{KindF32, 0x38d1b717, "9.9999997473787516356e-05"},
		{KindF32, 0x3a83126f, "0.0010000000474974513054"},
		{KindF16, 0x8000, "-0.0 "},
		{KindF16, 0x7c00, "+INF "},
		{KindF16, 0x7dff, "+SNAN "},
		{KindF16, 0xffff, "-QNAN "},
		{KindF16, 0x8001, "-5.9604644775390625e-08"},
		{KindF16, 0xfbff, "-65504"},
		{KindF16, 0x3555, "0.333251953125"},
		{KindBF16, 0x7c00, "2.65845599156983174581e+36"},
		{KindBF16, 0x0001, "9.183549615799121156e-41"},
		{KindBF16, 0x7f81, "+SNAN "},
		{KindBF16, 0xffc0, "-QNAN "},
		{KindBF16, 0x4e6e, "998244352"},
		{KindBF16, 0xce6f, "-1.00243865600000000000e+09"},
		{KindF64, 0x80000000, "-0.0 "},
		{KindF64, 0x7ff00000, "+INF "},
		{KindF64, 0x7ff00001, "+SNAN "},
		{KindF64, 0xfff80000, "-QNAN "},
		{KindF64, 0x41cdcd64, "999999488"},
		{KindF64, 0x41cdcd65, "1.00000000000000000000e+09"},
		{KindF64, 0x00001234, "9.8885003858981689884e-311"},
		{KindF64, 0x7c001234, "1.95772467577188290241e+289"},
	} {
		if got := string(appendFloat(nil, c.kind, c.bits)); got != c.want {
			t.Errorf("kind %d, %#x: got %q, want %q", c.kind, c.bits, got, c.want)
		}
	}
}

// TestAppendDecimal compares with package strconv.
func TestAppendDecimal(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 5))
	done := 0
	for range 300000 {
		v := float64(math.Float32frombits(r.Uint32()))
		switch r.IntN(4) {
		case 0:
			v = math.Float64frombits(r.Uint64() >> r.IntN(64) << 32)
		case 1:
			v = float64(r.IntN(4000)-2000) / float64(int(1)<<r.IntN(12))
		case 2:
			v = math.Ldexp(float64(r.Uint32()>>r.IntN(32)), r.IntN(160)-80)
		}
		if v == 0 || math.IsInf(v, 0) || math.IsNaN(v) {
			continue
		}
		got, ok := appendDecimal(nil, v)
		if !ok {
			continue
		}
		done++
		want := strconv.FormatFloat(v, 'g', 20, 64)
		if math.Abs(v) >= 1e9 {
			want = strconv.FormatFloat(v, 'e', 20, 64)
		}
		if string(got) != want {
			t.Fatalf("seed %d: %x: got %s, want %s", seed, v, got, want)
		}
	}
	if done < 100000 {
		t.Errorf("only %d numbers tried", done)
	}
}

// nvdisasm 12 calls every NaN of 16 and 32 bits quiet; encoding like a word keeps the bits
// that the text does not tell.
func TestQuietNaN(t *testing.T) {
	file, err := ParseTable("arch sm_70\nclass x 0x421\n  text FADD {32:63 f32q}\n", nil)
	if err != nil {
		t.Fatal(err)
	}
	tab := NewTable(file.Arch, file.Variants)
	for imm, want := range map[uint64]string{
		0x7f800001: "FADD +QNAN", 0xffbfffff: "FADD -QNAN", 0x7fc00001: "FADD +QNAN", 0x7f800000: "FADD +INF", 0x3f800000: "FADD 1",
	} {
		w := Bits(32, 63).MustSet(Word{Lo: 0x7421}, imm)
		got := tab.Text(tab.Decode(w), 0)
		if got != want {
			t.Errorf("%#x: got %q, want %q", imm, got, want)
		}
		if back, err := tab.Encode(got, 0, &w); err != nil || back != w {
			t.Errorf("%q like %v: %v, %v", got, w, back, err)
		}
		if bare, err := tab.Encode(got, 0, nil); err != nil || tab.Text(tab.Decode(bare), 0) != want {
			t.Errorf("%q: %v, %v", got, bare, err)
		}
	}
}
