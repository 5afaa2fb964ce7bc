package assign

import (
	"strings"
	"testing"

	"github.com/cupatch/cupatch/isa"
	assembler "github.com/cupatch/cupatch/isa/internal/assemble"
	"github.com/cupatch/cupatch/isa/kernel"
	"github.com/cupatch/cupatch/isa/schedule"
)

// scheduler returns a scheduler for code, and the code.
func scheduler(tb testing.TB, arch, text string) (*Scheduler, kernel.Code) {
	tb.Helper()
	table, data := assembler.Code(tb, arch, text)
	h, err := Load(table.Arch())
	if err != nil {
		tb.Fatal(err)
	}
	m, err := schedule.Load(table.Arch())
	if err != nil {
		tb.Fatal(err)
	}
	return NewScheduler(h, table, schedule.NewChecker(m, table)), kernel.Code{Table: table, Data: data}
}

// codes returns the control codes that text gets, in one line.
func codes(tb testing.TB, arch, text string, within func(i int) bool) string {
	tb.Helper()
	s, c := scheduler(tb, arch, text)
	ctrl, found := s.Schedule(c, within)
	if len(found) > 0 {
		tb.Errorf("%s: %s", text, found[0].Message())
	}
	var out []string
	for _, x := range ctrl {
		x.Yield = false // which is habit alone
		out = append(out, strings.Trim(x.String(), "[]"))
	}
	return strings.Join(out, " ")
}

// TestSchedule has what control codes have to do. The distances are those that were
// measured by hand on other code of ptxas: 4 cycles from an FADD to the next, 13 to a guard.
func TestSchedule(t *testing.T) {
	for _, c := range []struct{ name, code, want string }{
		{"fixed latency", "FADD R0, R1, R2\nFADD R3, R0, R0\nEXIT", "B------:R-:W-:-:S04"},
		{"guard", "ISETP.GE.AND P0, PT, R0, R1, PT\n@P0 FADD R2, R2, R3\nEXIT", "B------:R-:W-:-:S13"},
		{"result of a load", "LDG.E R0, desc[UR4][R2.64]\nFADD R6, R0, R4\nEXIT", "B------:R-:W0:-:S02 B0-----"},
		{"source of a store", "STG.E desc[UR4][R2.64], R0\nFADD R0, R5, R4\nEXIT", "B------:R0:W-:-:S02 B0-----"},
		{"nothing follows", "STG.E desc[UR4][R2.64], R0\nEXIT", "B------:R-:W-"},
		{"wanted at once", "LDG.E R0, desc[UR4][R2.64]\nLDG.E R1, desc[UR4][R2.64+0x4]\nFADD R6, R0, R1\nEXIT", "B------:R-:W0:-:S04 B------:R-:W0:-:S02 B0-----"},
		{"counted", "LDGDEPBAR\nDEPBAR.LE SB3, 0x1\nEXIT", "B------:R-:W3"},
	} {
		if got := codes(t, "sm_90", c.code, nil); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// A load of one round of a loop is waited for in the next.
func TestScheduleLoop(t *testing.T) {
	got := codes(t, "sm_90", "FADD R6, R0, R4\nLDG.E R0, desc[UR4][R2.64]\n@P0 BRA 0x0\nEXIT", nil)
	if f := strings.Fields(got); !strings.HasPrefix(f[0], "B0-----") || !strings.HasPrefix(f[1], "B------:R-:W0") {
		t.Error(got)
	}
}

// More loads than scoreboards are shared out, and none goes without.
func TestScheduleMany(t *testing.T) {
	var b strings.Builder
	for i := range 12 {
		b.WriteString("LDG.E R" + isa.FileR.Names()[i+20][1:] + ", desc[UR4][R2.64]\n")
	}
	for i := range 12 {
		b.WriteString("FADD R6, R6, R" + isa.FileR.Names()[i+20][1:] + "\n")
	}
	got := strings.Fields(codes(t, "sm_90", b.String()+"EXIT", nil))
	seen := map[string]bool{}
	for _, c := range got[:12] {
		_, w, _ := strings.Cut(c, ":W")
		if w[0] == '-' {
			t.Errorf("no scoreboard: %s", c)
		}
		seen[w[:1]] = true
	}
	if len(seen) != 6 {
		t.Errorf("%d scoreboards of 6: %v", len(seen), got)
	}
}

// Outside what gets new control codes they are only made longer.
func TestScheduleWithin(t *testing.T) {
	code := "[B------:R-:W3:-:S07] LDG.E R0, desc[UR4][R2.64]\n[B------:R-:W-:-:S01] FADD R7, R0, R8\n[B------:R-:W-:-:S01] FADD R9, R7, R8\nEXIT"
	got := codes(t, "sm_90", code, func(i int) bool { return i == 1 })
	if want := "B------:R-:W3:-:S07 B---3--:R-:W-:-:S04 B------:R-:W-:-:S01"; !strings.HasPrefix(got, want) {
		t.Errorf("%s, want %s", got, want)
	}
}

// What nobody has seen is survived, and so is code that is none.
func TestScheduleUnknown(t *testing.T) {
	s, c := scheduler(t, "sm_90", "FADD R0, R1, R2\nEXIT")
	c.Data = append([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, c.Data...)
	if ctrl, _ := s.Schedule(c, nil); len(ctrl) != 3 || ctrl[0] != isa.ControlOf(isa.LoadWord(c.Data)) {
		t.Error(ctrl)
	}
	if ctrl, _ := s.Schedule(kernel.Code{Table: c.Table}, nil); len(ctrl) != 0 {
		t.Error(ctrl)
	}
}

// All tables are read, and written again as they are.
func TestTables(t *testing.T) {
	list, err := files.ReadDir("tables")
	if err != nil || len(list) < 13 {
		t.Fatal(len(list), err)
	}
	for _, f := range list {
		text, err := files.ReadFile("tables/" + f.Name())
		if err != nil {
			t.Fatal(err)
		}
		h, err := Parse(string(text))
		if err != nil {
			t.Fatal(f.Name(), err)
		}
		if string(Format(h)) != string(text) {
			t.Errorf("%s is written otherwise", f.Name())
		}
	}
}

func TestParseErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"instructions 1", "no line"},
		{"arch sm_90\nboards X 1", "line 2: a line boards has 5 words, not 3"},
		{"arch sm_90\nnone", `"none" is no kind of line`},
		{"arch sm_90\nsafe read Q FADD 4 1", `"Q" is no register file`},
		{"arch sm_90\nsafe see R FADD 4 1", `"see" is no kind of dependence`},
		{"arch sm_90\nstall A B 0=17/1:1", `"17" is no number from 0 to 15`},
		{"arch sm_90\nleast read R A x", `"x" is no number`},
	} {
		if _, err := Parse(c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.text, err, c.want)
		}
	}
}

// What is learned from a few lines of code is what they say.
func TestMiner(t *testing.T) {
	table, data := assembler.Code(t, "sm_90", "[B------:R-:W-:-:S05] FADD R0, R1, R2\n[B------:R-:W0:-:S02] LDG.E R3, desc[UR4][R0.64]\n[B0-----:R-:W-:-:S01] FADD R5, R3, R4\nEXIT")
	m := NewMiner(table)
	for _, look := range []func(*kernel.Graph){m.Count, m.Look, m.Issue} {
		look(kernel.New(kernel.Code{Table: table, Data: data}))
	}
	got := string(Format(m.Habits()))
	for _, line := range []string{"boards LDG.E 1 1 0", "set LDG 2 1", "least read R FADD 5:LDG@24*2=1"} {
		if !strings.Contains(got, line+"\n") {
			t.Errorf("no line %q in\n%s", line, got)
		}
	}
}
