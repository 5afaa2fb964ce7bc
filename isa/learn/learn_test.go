package learn

import (
	"reflect"
	"strings"
	"testing"

	"github.com/cupatch/cupatch/isa"
)

func TestTokenize(t *testing.T) {
	for text, want := range map[string]string{
		"LDG.E.EF.128 R4, [R2.64+-0x10], !PT": "LDG|.E|.EF|.128| |R4|,| |[|R2|.64|+|-0x10|]|,| |!|PT",
		"FFMA R0, -|R1|.reuse, 1.5, -INF ":    "FFMA| |R0|,| |-|||R1|||.reuse|,| |1.5|,| |-INF| ",
		"FADD R0, R1, -4.50000000000000e+10":  "FADD| |R0|,| |R1|,| |-4.50000000000000e+10",
		"SUATOM.D.1D_ARRAY.ADD R0, [R2]":      "SUATOM|.D|.1D_ARRAY|.ADD| |R0|,| |[|R2|]",
		"HADD2 R0, R1.H0_H0, 0.5.H1":          "HADD2| |R0|,| |R1|.H0_H0|,| |0.5|.H1",
		"DEPBAR.LE SB0, 0x3, {5,4}":           "DEPBAR|.LE| |SB0|,| |0x3|,| |{|5|,|4|}",
	} {
		toks := tokenize(text)
		if got := strings.Join(toks, "|"); got != want {
			t.Errorf("%q:\n got %s\nwant %s", text, got, want)
		}
		if strings.Join(toks, "") != text {
			t.Errorf("%q: tokens do not join to the text", text)
		}
	}
}

func TestDiff(t *testing.T) {
	base := tokenize("LDG.E.EF.64 R4, [R2+0x10], !P3")
	for other, want := range map[string][]hunk{
		"LDG.E.EF.64 R4, [R2+0x10], !P3": nil,
		"LDG.E.64 R4, [R2+0x10], !P3":    {{2, 3, nil}},
		"LDG.E.EF.64 R5, [R2+0x10], !P3": {{5, 6, []string{"R5"}}},
		"LDG.E.EF.64 R4, [R2+0x10]":      {{13, 17, nil}},
		"LDG.EF.64 R4, [0x10], !P3":      {{1, 2, nil}, {9, 11, nil}},
	} {
		got := diff(base, tokenize(other))
		if len(got) != len(want) {
			t.Errorf("%q: %v, want %v", other, got, want)
			continue
		}
		for i := range got {
			if got[i].lo != want[i].lo || got[i].hi != want[i].hi || strings.Join(got[i].repl, "") != strings.Join(want[i].repl, "") {
				t.Errorf("%q: %v, want %v", other, got, want)
			}
		}
	}
}

func TestReadNumber(t *testing.T) {
	for tok, want := range map[string]number{
		"R16": {"R", 16}, "UR4": {"UR", 4}, "RZ": {"R", -1}, "UPT": {"UP", -1}, "P0": {"P", 0},
		"0x1f": {"0x", 31}, "-0x10": {"0x", -16}, "1.5": {"f", 0}, "-INF": {"f", 0}, "+QNAN": {"f", 0},
		"1e-05": {"f", 0}, "SB3": {"SB", 3},
	} {
		if got, ok := readNumber(tok); !ok || got != want {
			t.Errorf("%s: %v %v, want %v", tok, got, ok, want)
		}
	}
	for _, tok := range []string{".64", "LDG", ",", "???255", "1D_ARRAY", "-", ""} {
		if got, ok := readNumber(tok); ok {
			t.Errorf("%q is read as %v", tok, got)
		}
	}
}

// The weights of an operand's bits come from the numbers that flips print, wherever the
// bits stand.
func TestOrderBits(t *testing.T) {
	base := sample{tok: "P5"} // 0b101: flipping bit 1 gives PT
	got := orderBits([]int{78, 77, 79}, base, map[int]string{77: "P4", 78: "PT", 79: "P1"})
	if want := []int{77, 78, 79}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	split := orderBits([]int{40, 41, 54}, sample{tok: "0x0"}, map[int]string{54: "0x1", 40: "0x2", 41: "0x4"})
	if f := fieldOf(split); f.String() != "54,40:41" {
		t.Errorf("field %s, want 54,40:41", f)
	}
}

func TestFitSlot(t *testing.T) {
	word := func(v uint64) isa.Word { return isa.Bits(24, 31).MustSet(isa.Word{}, v) }
	for _, c := range []struct {
		toks map[uint64]string
		want string
	}{
		{map[uint64]string{5: "R5", 7: "R7", 255: "RZ"}, "R12"},
		{map[uint64]string{5: "UR7", 8: "UR10"}, "UR14"}, // printed plus two
		{map[uint64]string{5: "0x14", 16: "0x40"}, "0x30"},
		{map[uint64]string{5: "0x5", 253: "-0x3"}, "0xc"},
		{map[uint64]string{5: "gsb5", 6: "gsb6"}, "gsb12"},
	} {
		var ss []sample
		for v, tok := range c.toks {
			ss = append(ss, sample{word(v), 0, tok})
		}
		e, ok := fitSlot(isa.Bits(24, 31), ss)
		if !ok {
			t.Errorf("%v: no fit", c.toks)
			continue
		}
		if got := render(e, word(12), 0); got != c.want {
			t.Errorf("%v: prints 12 as %s, want %s", c.toks, got, c.want)
		}
	}
}

func TestDropUnused(t *testing.T) {
	p := isa.Piece{
		Tests: []isa.Test{{Field: isa.Bits(72, 73)}, {Field: isa.Bits(24, 31), Kind: isa.TestEq, Arg: 255}},
		Table: []uint16{0, 0, 1, 1, 0, 0, 1, 1},
		Alts:  []isa.Alt{{{Lit: ".A"}}, {{Lit: ".B"}}},
	}
	q := dropUnused(p)
	if len(q.Tests) != 1 || q.Tests[0].Field.String() != "73" || !reflect.DeepEqual(q.Table, []uint16{0, 1}) {
		t.Errorf("%v %v, want bit 73 alone", q.Tests, q.Table)
	}
}
