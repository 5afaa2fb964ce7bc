package isa

import (
	"strings"
	"testing"
)

// The layout of the fields is CuAssembler's; the first word is a BRA with all
// barriers none, the others move one field each. The batch numbers are named as nvdisasm
// 12.8 names them for FADD on sm_120.
func TestControlString(t *testing.T) {
	for _, c := range []struct {
		hi           uint64
		text, nvidia string
	}{
		{0x000fc00000000000, "[B------:R-:W-:Y:S00]", ""},
		{0x000fc20000000000, "[B------:R-:W-:Y:S01]", "?WAIT1_END_GROUP"},
		{0x000fe20000000000, "[B------:R-:W-:-:S01]", "?trans1"},
		{0x000fc80000000000, "[B------:R-:W-:Y:S04]", "?WAIT4_END_GROUP"},
		{0x003fc00000000000, "[B01----:R-:W-:Y:S00]", "&req={1,0}"},
		{0x0034480000000000, "[B01----:R2:W1:Y:S04]", "&req={1,0} &rd=0x2 &wr=0x1 ?WAIT4_END_GROUP"},
		{0x020df60000000000, "[B-----5:R6:W-:-:S11]", "&req={5} &rd=0x6 ?trans11"},
		{0x040fc80000000000, "[B------:R-:W-:Y:S04:T1]", "?WAIT4_END_GROUP ?BATCH_START"},
		{0x080fc80000000000, "[B------:R-:W-:Y:S04:T2]", "?WAIT4_END_GROUP ?BATCH_START_TILE"},
		{0x0c0fc80000000000, "[B------:R-:W-:Y:S04:T3]", "?WAIT4_END_GROUP ????3"},
		{0x100fc80000000000, "[B------:R-:W-:Y:S04:T4]", "?WAIT4_END_GROUP ?BATCH_END"},
		{0x177fc80000000000, "[B012-45:R-:W-:Y:S04:T5]", "&req={5,4,2,1,0} ?WAIT4_END_GROUP ?BARRIER_EXEMPT"},
		{0x000fe00000000000, "[B------:R-:W-:-:S00]", "?sched16"},
		{0x000ffe0000000000, "[B------:R-:W-:-:S15]", "?sched31"},
	} {
		got := ControlOf(Word{Hi: c.hi})
		if got.String() != c.text || got.Nvidia() != c.nvidia {
			t.Errorf("%#x: got %s %q, want %s %q", c.hi, got, got.Nvidia(), c.text, c.nvidia)
		}
		if w := got.Set(Word{}); w.Hi != c.hi {
			t.Errorf("%s: Set gives %#x, want %#x", got, w.Hi, c.hi)
		}
		for _, s := range []string{c.text, strings.Trim(c.text, "[]"), c.nvidia} {
			if s == "" {
				continue
			}
			if p, err := ParseControl(s); err != nil || p != got {
				t.Errorf("ParseControl(%q) = %+v, %v, want %+v", s, p, err, got)
			}
		}
	}
}

func TestControlTopBits(t *testing.T) {
	yield := ControlOf(Word{Hi: 5<<58 | 0x000fc20000000000})
	if yield.Batch != 5 || yield.Reuse != 0 {
		t.Errorf("bit 109 = 0: got batch %d, reuse %d, want 5, 0", yield.Batch, yield.Reuse)
	}
	reuse := ControlOf(Word{Hi: 5<<58 | 0x000fe20000000000})
	if reuse.Batch != 0 || reuse.Reuse != 5 {
		t.Errorf("bit 109 = 1: got batch %d, reuse %d, want 0, 5", reuse.Batch, reuse.Reuse)
	}
	const noYield = 1 << 45 // bit 109
	w := Word{Hi: 7<<58 | 1<<63}
	for _, c := range []struct {
		old, want uint64
		code      Control
	}{
		{noYield | 7<<58 | 1<<63, 7<<58 | 1<<63 | 0x000fe20000000000, DefaultControl},                // reuse flags stay
		{7<<58 | 1<<63, 1<<63 | 0x000fe20000000000, DefaultControl},                                  // a batch number is no reuse flag
		{7<<58 | 1<<63, 5<<58 | 1<<63 | 0x000fc20000000000, Control{1, true, NoBar, NoBar, 0, 0, 5}}, // the code says it
		{noYield | 7<<58, 0x000fc20000000000, Control{1, true, NoBar, NoBar, 0, 0, 0}},
	} {
		if got := c.code.SetCode(Word{Hi: c.old}).Hi; got != c.want {
			t.Errorf("%s over %#x: got %#x, want %#x", c.code, c.old, got, c.want)
		}
	}
	if got := DefaultControl.Set(w).Hi; got != 1<<63|0x000fe20000000000 {
		t.Errorf("Set: got %#x", got)
	}
}

func TestParseControlErrors(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"[B------:R-:W-:-:S16]", "does not fit 4 bits"},
		{"[B------:R-:W-:-:S99]", "does not fit 4 bits"},
		{"[B------:R8:W-:-:S01]", "R: a scoreboard"},
		{"[B------:R7:W-:-:S01]", "R: a scoreboard is 0 to 6, or - for none, not 7"},
		{"[B------:R-:W7:-:S01]", "W: a scoreboard is 0 to 6, or - for none, not 7"},
		{"[B------:R-:W-:Y:S01:T8]", "T0 to T7"},
		{"[B------:R-:W-:Y:S01:T]", "T0 to T7"},
		{"[B------:R-:W-:-:S01:T1]", "only an instruction that yields"},
		{"&wr=0x7", "a scoreboard is 0 to 6"},
		{"&wr=0x", "a scoreboard is 0x0 to 0x6"},
		{"&req={1,1}", "each once"},
		{"?trans1 ?BATCH_START", "goes with ?WAITn_END_GROUP"},
		{"[B------:R-:Wx:-:S01]", "W: a scoreboard"},
		{"[B1-----:R-:W-:-:S01]", "scoreboard 0 is written 0 or -"},
		{"[B------:R-:W-:y:S01]", "yield is Y or -"},
		{"[B------:R-:W-:-:S1]", "write it like"},
		{"[B------:R-:W-:-:S+1]", "two decimal digits"},
		{"[B------:R-:W-:-:S01", "bracket"},
		{"", "write it like"},
		{"&req={6}", "write scoreboards"},
		{"&req={0", "write scoreboards"},
		{"&rd=0x9", "a scoreboard"},
		{"?WAIT16_END_GROUP", "write ?WAIT1"},
		{"?trans12", "write ?WAIT1"},
		{"?trans1 ?trans2", "second time"},
		{"&foo", "none of"},
	} {
		if got, err := ParseControl(c.in); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("ParseControl(%q) = %v, %v, want an error with %q", c.in, got, err, c.want)
		}
	}
	if c, err := ParseControl("[B------:R6:W6:-:S01]"); err != nil || c.RBar != 6 || c.WBar != 6 {
		t.Errorf("R6, W6: %+v, %v", c, err)
	}
}

func FuzzParseControl(f *testing.F) {
	f.Add("[B01----:R2:W0:Y:S04]")
	f.Add("&req={0,1} &rd=0x2 &wr=0x0 ?WAIT4_END_GROUP")
	f.Fuzz(func(t *testing.T, s string) {
		c, err := ParseControl(s)
		if err != nil {
			return
		}
		again, err := ParseControl(c.String())
		if err != nil || again != c {
			t.Errorf("%q: %+v prints as %s, which reads as %+v, %v", s, c, c, again, err)
		}
	})
}

// nvdisasm was asked: the batch numbers 0–5 with schedule values 1–15, only 0 with
// schedule 0, 0, 1, 2, 4 and 5 for uniform classes.
func TestSchedLegal(t *testing.T) {
	word := func(sched, top uint64) Word { return Word{Hi: sched<<41 | top<<58} }
	for _, c := range []struct {
		s          Sched
		sched, top uint64
		want       bool
	}{
		{7, 17, 7, true}, {5, 17, 5, true}, {5, 17, 2, false}, {0, 27, 0, true}, {0, 28, 0, false},
		{7, 16, 0, false}, {7, 31, 0, false}, {0, 0, 0, true}, {7, 0, 1, false}, {0, 1, 5, true},
		{0, 15, 6, false}, {0, 4, 3, true}, {SchedUniform, 4, 3, false}, {SchedUniform, 4, 4, true},
	} {
		if got := c.s.Legal(word(c.sched, c.top)); got != c.want {
			t.Errorf("Sched(%d).Legal(schedule %d, top %d) = %v", c.s, c.sched, c.top, got)
		}
	}
}
