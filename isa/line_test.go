package isa

import (
	"strings"
	"testing"
)

func TestParseLine(t *testing.T) {
	code := Control{Stall: 4, Yield: true, WBar: 1, RBar: 2, Wait: 3}
	for _, c := range []struct {
		in   string
		want Line
	}{
		{"EXIT", Line{Control: DefaultControl, Text: "EXIT"}},
		{"  @P0 EXIT ;", Line{Control: DefaultControl, Text: "@P0 EXIT", TextPos: 2}},
		{"[B01----:R2:W1:Y:S04] EXIT", Line{Control: code, HasControl: true, Text: "EXIT", TextPos: 22}},
		{"EXIT &req={0,1} &rd=0x2 &wr=0x1 ?WAIT4_END_GROUP ;", Line{Control: code, HasControl: true, Nvidia: true, Text: "EXIT"}},
		{"  /*0070*/ [B01----:R2:W1:Y:S04] EXIT ; // last",
			Line{PC: 0x70, HasPC: true, Control: code, HasControl: true, Text: "EXIT", TextPos: 33}},
		{"EXIT &req={1,0} &wr_early=0x2 &wr=0x1 ?WAIT4_END_GROUP;", Line{Control: code, HasControl: true, Nvidia: true, Text: "EXIT"}},
		{"/*0000*/ EXIT ?WAIT4_END_GROUP ?BARRIER_EXEMPT; /* 0x1 0x2 */ // here", Line{HasPC: true, HasControl: true, Nvidia: true, TextPos: 9, Word: Word{Lo: 1, Hi: 2}, HasWord: true,
			Control: Control{Stall: 4, Yield: true, WBar: NoBar, RBar: NoBar, Batch: 5}, Text: "EXIT"}},
		{"[B------:R-:W-:Y:S04:T5] EXIT ; /* 0x1 */ /* 0x2 */", Line{HasControl: true, TextPos: 25,
			Control: Control{Stall: 4, Yield: true, WBar: NoBar, RBar: NoBar, Batch: 5}, Text: "EXIT"}},
		{"EXIT ; &req={1,0} &rd=0x2 &wr=0x1 ?WAIT4_END_GROUP // last", Line{Control: code, HasControl: true, Nvidia: true, Text: "EXIT"}},
		{"BPT.???7 ???255 ?trans1 ;", Line{Control: DefaultControl, HasControl: true, Nvidia: true, Text: "BPT.???7 ???255"}},
		{"/*0x10*/ EXIT", Line{PC: 0x10, HasPC: true, Control: DefaultControl, Text: "EXIT", TextPos: 9}},
	} {
		if got, err := ParseLine(c.in); err != nil || got != c.want {
			t.Errorf("%q: got %+v, %v, want %+v", c.in, got, err, c.want)
		}
	}
	for _, c := range []struct{ in, want string }{
		{"/*x*/ EXIT", "column 1: expected an address"},
		{"[B01----:R2:W1:Y:S16] EXIT", "does not fit 4 bits"},
		{"[B01", "bracket"},
		{"[B01----:R2:W1:Y:S04] EXIT ?trans1", "before the text and another after it"},
		{"EXIT ?trans99", "write ?WAIT1"},
		{"EXIT ; xyz", `column 8: expected a comment after the semicolon, found "xyz"`},
		{"EXIT ; EXIT ;", "column 8: expected a comment"},
		{"EXIT ; /* a */ b // c", `column 16: expected a comment after the semicolon, found "b"`},
		{"[B01----:R2:W1:Y:S04] EXIT ; ?trans1", "before the text and another after it"},
	} {
		if got, err := ParseLine(c.in); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %+v, %v, want an error with %q", c.in, got, err, c.want)
		}
	}
}

func TestEncodeLineReuse(t *testing.T) {
	tab := miniTable(t)
	encode := func(s string, like *Word) (Word, error) {
		l, err := ParseLine(s)
		if err != nil {
			t.Fatal(err)
		}
		return tab.EncodeLine(l, like, Allow{"schedule": true})
	}
	if w, err := encode("[B------:R-:W-:-:S03] FADD R1, R2.reuse, 1", nil); err != nil || ControlOf(w).Reuse != 1 || ControlOf(w).Stall != 3 {
		t.Errorf("with reuse: %v, %v", w, err)
	}
	if w, err := encode("[B------:R-:W-:Y:S03] FADD R1, R2.reuse, 1", nil); err == nil || !strings.Contains(err.Error(), "reuse flag does not go with Y") {
		t.Errorf("reuse and yield: %v, %v", w, err)
	}
	yields, err := encode("[B------:R-:W-:Y:S03] FADD R1, R2, 1", nil)
	if err != nil {
		t.Fatal(err)
	}
	if w, err := encode("FADD R1, R2.reuse, 1", &yields); err != ErrReuse {
		t.Errorf("reuse in place of a word that yields: %v, %v", w, err)
	}
	if w, err := encode("[B------:R-:W-:-:S03] FADD R1, R2.reuse, 1", &yields); err != nil || ControlOf(w).Reuse != 1 {
		t.Errorf("reuse, and no yield any more: %v, %v", w, err)
	}
	// Only the first source of this FADD has a reuse flag: nvdisasm refuses bit 124.
	flagged, err := encode("[B------:R-:W-:-:S03] FADD R1, R2, 1", nil)
	if err != nil {
		t.Fatal(err)
	}
	flagged.Hi |= 4 << 58
	l, err := ParseLine("FADD R4, R2, 1")
	if err != nil {
		t.Fatal(err)
	}
	all, err := Load(Arch{SM: 90})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := all.EncodeLine(l, &flagged, nil); err == nil || err.Error() != "refused: FADD of these operands has the reuse flags a, and this has c (--allow schedule permits it)" {
		t.Errorf("a reuse flag that the class lacks: %v", err)
	}
	like, err := encode("[B------:R-:W-:Y:S03] FADD R1, R2, 1", nil)
	if err != nil {
		t.Fatal(err)
	}
	like.Hi |= 5 << 58 // a batch number
	if w, err := encode("FADD R4, R2, 1", &like); err != nil || ControlOf(w).Batch != 5 {
		t.Errorf("the batch number should stay: %v, %v", w, err)
	}
	if w, err := encode("[B------:R-:W-:-:S03] FADD R4, R2, 1", &like); err != nil || ControlOf(w).Reuse != 0 {
		t.Errorf("the batch number became reuse flags: %v, %v", w, err)
	}
}

func TestParseWord(t *testing.T) {
	w, rest, err := ParseWord(" 0x0000000402047981,  001EA8000c1e1900 30")
	if err != nil || w != (Word{0x0000000402047981, 0x001ea8000c1e1900}) || rest != " 30" {
		t.Errorf("got %v, %q, %v", w, rest, err)
	}
	for _, s := range []string{"", "1", "x 1", "0x10000000000000000 1", "1 -1", "0x 1"} {
		if w, _, err := ParseWord(s); err == nil {
			t.Errorf("%q: got %v", s, w)
		}
	}
}
