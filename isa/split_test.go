package isa

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSplitText(t *testing.T) {
	for _, c := range []struct {
		text string
		want Parts
	}{
		{"@!P0 LDG.E.64.CONSTANT R4, desc[UR4][R2.64+0x10]", Parts{"@!P0", "LDG", []string{"E", "64", "CONSTANT"},
			[]string{"R4", "desc[UR4][R2.64+0x10]"}, []string{"dst", "src1"}}},
		{"LDG.E P1, R8, [R16+-0x65afa0], !PT", Parts{"", "LDG", []string{"E"},
			[]string{"P1", "R8", "[R16+-0x65afa0]", "!PT"}, []string{"dst2", "dst", "src1", "src2"}}},
		{"STG.E desc[UR4][R2.64], R0", Parts{"", "STG", []string{"E"}, []string{"desc[UR4][R2.64]", "R0"}, []string{"src1", "src2"}}},
		{"IADD3 R0, P0, PT, R1, 0x20, RZ", Parts{"", "IADD3", []string{},
			[]string{"R0", "P0", "PT", "R1", "0x20", "RZ"}, []string{"dst", "dst2", "dst3", "src1", "imm", "src3"}}},
		{"ISETP.NE.AND P0, PT, R2, RZ, PT", Parts{"", "ISETP", []string{"NE", "AND"},
			[]string{"P0", "PT", "R2", "RZ", "PT"}, []string{"dst", "dst2", "src1", "src2", "src3"}}},
		{"HADD2 R0, -R1.H0_H0, -0.0 , 0", Parts{"", "HADD2", []string{},
			[]string{"R0", "-R1.H0_H0", "-0.0", "0"}, []string{"dst", "src1", "imm", "imm2"}}},
		{"VOTE.ALL R16, P0, P1", Parts{"", "VOTE", []string{"ALL"}, []string{"R16", "P0", "P1"}, []string{"dst", "dst2", "src1"}}},
		{"DEPBAR.LE SB0, 0x1, {5,4,3}", Parts{"", "DEPBAR", []string{"LE"}, []string{"SB0", "0x1", "{5,4,3}"}, []string{"src1", "imm", "src3"}}},
		{"@UP0 BRA 0x130", Parts{"@UP0", "BRA", []string{}, []string{"0x130"}, []string{"target"}}},
		{"EXIT", Parts{"", "EXIT", []string{}, nil, []string{}}},
		{"BAR.SYNC.DEFER_BLOCKING 0x0", Parts{"", "BAR", []string{"SYNC", "DEFER_BLOCKING"}, []string{"0x0"}, []string{"imm"}}},
		{"RET.REL.NODEC R26 0x74d0", Parts{"", "RET", []string{"REL", "NODEC"}, []string{"R26 0x74d0"}, []string{"src1"}}},
		{"S2R R0, SR_TID.X", Parts{"", "S2R", []string{}, []string{"R0", "SR_TID.X"}, []string{"dst", "src1"}}},
	} {
		if d := cmp.Diff(c.want, splitText(c.text)); d != "" {
			t.Errorf("%s: (-want +got)\n%s", c.text, d)
		}
	}
}

func TestGroups(t *testing.T) {
	tab := miniTable(t)
	ldg := tab.Variants()[3]
	gs := tab.Groups(ldg)
	var names []string
	for _, g := range gs {
		names = append(names, g.Name)
	}
	if want := []string{"e", "evict", "prefetch", "size", "scope"}; !slices.Equal(names, want) {
		t.Fatalf("LDG: got %v, want %v", names, want)
	}
	evict := gs[1]
	if evict.Field.String() != "84:86" || evict.Operand != -1 || evict.Default != 1 || len(evict.Values) != 8 {
		t.Errorf("evict: %+v", evict)
	}
	for i, want := range []GroupValue{{"EF", true}, {"", true}, {"EL", true}, {"LU", true}, {"EU", true}, {"NA", true}, {"INVALID6", false}} {
		if evict.Values[i] != want {
			t.Errorf("evict %d: got %v, want %v", i, evict.Values[i], want)
		}
	}
	fadd := tab.Variants()[1]
	names = nil
	for _, g := range tab.Groups(fadd) {
		names = append(names, g.Name)
	}
	if want := []string{"ftz", "round", "sat", "src1.neg", "src1.abs"}; !slices.Equal(names, want) {
		t.Errorf("FADD: got %v, want %v", names, want)
	}
}

// TestRefusedValues reads a group of which other pieces refuse values: always, with any
// value of another field, and with one of them only.
func TestRefusedValues(t *testing.T) {
	const text = "arch sm_90\n\nclass x 0x098f\n  text X{72:73 op} R0{72:74 r}{72,75 s}\n"
	const lists = "list op = .A | .B | .C | .D\nlist r = - | !illegal | - | - | - | !illegal | !illegal | -\nlist s = - | - | - | !other\n"
	file, err := ParseTable(strings.Replace(text, "\n\n", "\n"+lists+"\n", 1), nil)
	if err != nil {
		t.Fatal(err)
	}
	tab := NewTable(file.Arch, file.Variants)
	gs := tab.Groups(tab.Variants()[0])
	if len(gs) != 1 {
		t.Fatalf("%d groups", len(gs))
	}
	want := []GroupValue{{"A", true}, {"B", false}, {"C", true}, {"D", true}}
	if !slices.Equal(gs[0].Values, want) {
		t.Errorf("got %v, want %v", gs[0].Values, want)
	}
}

// An operand that does not fit is named itself, with its own columns.
func TestWithOperandError(t *testing.T) {
	tab := miniTable(t)
	w, err := tab.Encode("FADD R1, R2, 1", 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = tab.WithOperand(tab.Decode(w), 1, "Q7", 0)
	e, ok := err.(*SyntaxError)
	if !ok || e.Text != "Q7" || e.Pos != 0 || !strings.HasSuffix(e.Error(), `found "Q7"`) {
		t.Errorf("got %v", err)
	}
}

func TestOperands(t *testing.T) {
	tab := miniTable(t)
	var got []string
	for _, o := range tab.Operands(tab.Variants()[3]) {
		got = append(got, o.Name+" "+o.Text)
	}
	if want := []string{"dst2 {P}", "dst {R}", "src1 desc[{UR}][{R}.64+{shex}]", "src2 !{P}"}; !slices.Equal(got, want) {
		t.Errorf("LDG: got %q, want %q", got, want)
	}
}

func TestWithOperand(t *testing.T) {
	tab := miniTable(t)
	w, err := tab.Encode("@P2 LDG.E.EF R4, desc[UR4][R2.64+0x10]", 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	w = Control{Stall: 5, Yield: true, WBar: 2, RBar: 7, Wait: 3, Batch: 4}.Set(w)
	for _, c := range []struct {
		n    int
		text string
		want string
	}{
		{0, "R6", "@P2 LDG.E.EF R6, desc[UR4][R2.64+0x10]"},
		{1, "desc[UR6][R8.64]", "@P2 LDG.E.EF R4, desc[UR6][R8.64]"},
	} {
		got, err := tab.WithOperand(tab.Decode(w), c.n, c.text, 0)
		if err != nil || tab.Text(tab.Decode(got), 0) != c.want || ControlOf(got) != ControlOf(w) {
			t.Errorf("%d %s: got %q, %s, %v", c.n, c.text, tab.Text(tab.Decode(got), 0), ControlOf(got), err)
		}
	}
	for _, n := range []int{-1, 2} {
		if got, err := tab.WithOperand(tab.Decode(w), n, "R6", 0); err == nil || got != w {
			t.Errorf("operand %d: got %v, %v", n, got, err)
		}
	}
	_, err = tab.WithOperand(tab.Decode(w), 0, "R300", 0)
	if e, ok := err.(*SyntaxError); !ok || e.Pos != 0 {
		t.Errorf("R300: got %+v", err)
	}
}

func TestMayMatch(t *testing.T) {
	tab := miniTable(t)
	s := tab.MayMatch(func(m string) bool { return m == "LDG" })
	if !s.Has(Word{Lo: 0x981, Hi: 1 << 27}) || s.Has(Word{Lo: 0x981}) || s.Has(Word{Lo: 0x421}) {
		t.Error("MayMatch(LDG) has the wrong opcodes")
	}
}

func TestWidth(t *testing.T) {
	tab := miniTable(t)
	for text, want := range map[string]int{
		"LDG.E R4, desc[UR4][R2.64]": 32, "LDG.E.U8 R4, desc[UR4][R2.64]": 8, "LDG.E.128.CONSTANT R4, desc[UR4][R2.64]": 128, "BRA 0x0": 0,
	} {
		w, err := tab.Encode(text, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := tab.Decode(w).Memory().Bytes * 8; got != want {
			t.Errorf("%s: got %d, want %d", text, got, want)
		}
	}
}
