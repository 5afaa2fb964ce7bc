package isa

import (
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/cupatch/cupatch/scripts/nv/oracletest"
)

// miniTable returns a small table, made by hand. The tests of patch use it too.
func miniTable(tb testing.TB) *Table {
	text, err := os.ReadFile("testdata/mini.txt")
	if err != nil {
		tb.Fatal(err)
	}
	f, err := ParseTable(string(text), nil)
	if err != nil {
		tb.Fatal(err)
	}
	return NewTable(f.Arch, f.Variants)
}

// usedBits returns the bits that v's text and guard depend on.
func usedBits(v *Variant) Word {
	m := guardMask
	for _, p := range v.Template {
		for _, t := range p.Tests {
			m = m.Or(t.Field.Mask())
		}
		for _, a := range p.Alts {
			for _, e := range a {
				if e.Lit == "" {
					m = m.Or(e.Slot.Field.Mask())
				}
			}
		}
	}
	return m.AndNot(controlMask)
}

// TestMiniOracle compares random words of the small table with nvdisasm.
func TestMiniOracle(t *testing.T) {
	tab := miniTable(t)
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 3))
	var words []Word
	for _, v := range tab.Variants() {
		if v.Class == "qgmma" { // made up
			continue
		}
		for range 300 {
			used := usedBits(v)
			if r.IntN(3) == 0 {
				used = used.Xor(randomField(r, 24).Mask())
			}
			w := Word{r.Uint64(), r.Uint64()}.And(used).AndNot(v.Mask).Or(v.Value)
			words = append(words, DefaultControl.Set(w))
		}
	}
	bad := 0
	for i, a := range oracletest.Disassemble(t, "sm_90", words) {
		if got := tab.Text(tab.Decode(words[i]), a.PC); got != a.Text && bad < 20 {
			bad++
			t.Errorf("seed %d: %v: got %q, nvdisasm prints %q %s", seed, words[i], got, a.Text, a.Refused)
		}
	}
}

// FuzzEncode checks that a text gives an error, or a word that prints what encodes to
// that word again.
func FuzzEncode(f *testing.F) {
	tab := miniTable(f)
	f.Add("LDG.E.EF.LTC128B.U8 P1, R8, desc[UR4][R16.64+-0x65afa0], !PT", uint64(0))
	f.Add("@!P0 FADD.FTZ.RM R1, -|R2|.reuse, +INF ", uint64(0x40))
	f.Add("DADD R0, R2, 1.00000000000000000000e+09", uint64(0))
	f.Add("BRA !P3, 0x130", uint64(0x1000))
	f.Add(".word 0x0000000000000000, 0x0000000000000000", uint64(0))
	f.Fuzz(func(t *testing.T, text string, pc uint64) {
		w, err := tab.Encode(text, pc, nil)
		if err != nil {
			if w != (Word{}) {
				t.Errorf("%q: a word and %v", text, err)
			}
			return
		}
		in := tab.Decode(w)
		again, err := tab.Encode(tab.Text(in, pc), pc, nil)
		if err != nil || again != w && in.Status == StatusKnown {
			t.Errorf("%q: %v prints %q, which encodes to %v, %v", text, w, tab.Text(in, pc), again, err)
		}
	})
}

func TestEncodeErrors(t *testing.T) {
	tab := miniTable(t)
	for _, c := range []struct {
		text string
		pos  int
		want string
	}{
		{"", 0, "an instruction of sm_90"},
		{"FADDD R1", 0, "an instruction of sm_90"},
		{"@P8 FADD R0, R1, 0", 0, "a guard"},
		{"@UP0 FADD R0, R1, 0", 0, "FADD has guards @P0 to @PT, not @UP0"},
		{"FADD.SAT.RM R1, R3, 1", 8, "a blank"},
		{"FADD R1, R300, 1", 9, "there is no R300 here; there are R0 to R254 and RZ"},
		{"FADD R1, R2", 11, "`, `"},
		{"FADD R1, R2, R3", 13, "a number"},
		{"FADD R1, R2, 1, R4", 14, "the end"},
		{"BRA 0x2", 4, "the target 0x2 is no multiple of 4 away from here"},
		{"LDG.E R0, desc[UR4][R2.64+0x1000000]", 26, "0x1000000 does not fit; the number here goes from -0x800000 to 0x7fffff"},
		{"FADD R1, R2, -1e+40", 13, "-1e+40 is too great"},
		{"FADD R1, R2, -0x3f800000", 13, "have no sign"},
		{"DADD R2, R4, 0.1", 13, "0.1 needs the lower half of a double, which the instruction has no room for; the nearest number here is 0.10000002384185791016"},
		{"LDG. E R0, desc[UR4][R2.64]", 4, "`"},
		{"LDG.E E R0, desc[UR4][R2.64]", 6, "a register"},
	} {
		_, err := tab.Encode(c.text, 0, nil)
		e, ok := err.(*SyntaxError)
		if !ok || e.Pos != c.pos || !strings.Contains(e.Expected+e.Problem, c.want) {
			t.Errorf("%q: got %+v, want column %d, %q", c.text, err, c.pos+1, c.want)
		}
	}
}

// TestEncodeNaN: only the bits that a NaN needs are set, and those of a NaN stay.
func TestEncodeNaN(t *testing.T) {
	tab := miniTable(t)
	for _, c := range []struct {
		text       string
		like, want uint64 // the high half of Lo
	}{
		{"FADD R1, R2, -QNAN", 0, 0xffc00000},
		{"FADD R1, R2, +SNAN", 0, 0x7f800001},
		{"FADD R1, R2, +QNAN", 0x3dcccccd, 0x7fc00000},
		{"FADD R3, R2, -QNAN", 0xfff00000, 0xfff00000},
		{"FADD R3, R2, +INF", 0xfff00000, 0x7f800000},
	} {
		like := Word{Lo: 0x02017421 | c.like<<32, Hi: 0x000fe20000000000}
		w, err := tab.Encode(c.text, 0, &like)
		if err != nil || w.Lo>>32 != c.want {
			t.Errorf("%s like %#x: got %#x, %v, want %#x", c.text, c.like, w.Lo>>32, err, c.want)
		}
	}
}

// TestEncodeLoose has texts as people write them.
func TestEncodeLoose(t *testing.T) {
	tab := miniTable(t)
	for _, c := range []struct{ text, want string }{
		{"FADD  R1,R2 ,0.1", "FADD R1, R2, 0.10000000149011611938"},
		{"FADD R1, R2, 0x40490fdb", "FADD R1, R2, 3.1415927410125732422"},
		{"FADD R1, R2, -INF", "FADD R1, R2, -INF"},
		{"DADD R2, R4, 1.5e0", "DADD R2, R4, 1.5"},
		{"FADD R1, R2, 1e10", "FADD R1, R2, 1.00000000000000000000e+10"},
		{"FADD R1, R2, 1E-3", "FADD R1, R2, 0.0010000000474974513054"},
		{"FADD\tR1,\tR2, 1", "FADD R1, R2, 1"},
		{"LDG.E R0, desc[UR4][R2.64+0x0]", "LDG.E R0, desc[UR4][R2.64]"},
		{"BRA 48", "BRA 0x30"},
		{"LDG.E R0, desc[UR4][ R2.64 + 0x10 ]", "LDG.E R0, desc[UR4][R2.64+0x10]"},
	} {
		w, err := tab.Encode(c.text, 0, nil)
		if got := tab.Text(tab.Decode(w), 0); err != nil || got != c.want {
			t.Errorf("%q: got %q, %v, want %q", c.text, got, err, c.want)
		}
	}
}
