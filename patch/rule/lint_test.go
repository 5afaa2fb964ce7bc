package rule

import (
	"strings"
	"testing"

	"github.com/cupatch/cupatch/patch/check"
	"github.com/cupatch/cupatch/patch/code"
	"github.com/cupatch/cupatch/patch/internal/patchtest"
)

// TestLint checks each warning, and that its name silences it.
func TestLint(t *testing.T) {
	for _, test := range []struct{ name, before, rule, want string }{
		{check.WarnWait, "[B------:R-:W2:-:S01] LDG.E R4, desc[UR4][R2.64]\nNOP\n[B--2---:R-:W-:-:S01] FFMA R0, R4, R1, R0", "FFMA => wait-=2",
			"no longer waits for scoreboard 2, which the instruction at 0x0 sets"},
		{check.WarnWait, "[B------:R-:W2:-:S01] LDG.E R4, desc[UR4][R2.64]\n[B--2---:R-:W-:-:S01] NOP\n[B--2---:R-:W-:-:S01] FFMA R0, R4, R1, R0", "FFMA => wait-=2", ""},
		{check.WarnScoreboard, "[B------:R-:W2:-:S01] LDG.E R4, desc[UR4][R2.64]\n[B--2---:R-:W-:-:S01] FFMA R0, R4, R1, R0", "LDG => wbar=-",
			"no longer sets scoreboard 2, for which the instruction at 0x10 waits"},
		{check.WarnScoreboard, "[B------:R-:W2:-:S01] LDG.E R4, desc[UR4][R2.64]\n[B--2---:R-:W-:-:S01] FFMA R0, R4, R1, R0", "LDG => NOP",
			"no longer sets scoreboard 2"},
		{check.WarnScoreboard, "[B------:R-:W2:-:S01] LDG.E R4, desc[UR4][R2.64]\n[B------:R-:W2:-:S01] LDG.E R5, desc[UR4][R2.64]\n[B--2---:R-:W-:-:S01] FFMA R0, R4, R1, R0", "LDG if pc == 0 => wbar=-", ""},
		{check.WarnStall, "[B------:R-:W-:-:S04] FFMA R0, R4, R1, R0\n[B------:R-:W-:-:S05] FFMA R0, R4, R1, R0", "FFMA if pc == 0 => stall=2",
			"stall 2 is below 4, the least that this kind of instruction has in the kernel"},
		{check.WarnStall, "[B------:R-:W-:-:S04] FFMA R0, R4, R1, R0\n[B------:R-:W-:-:S02] FFMA R0, R4, R1, R0", "FFMA if pc == 0 => stall=2", ""},
		{check.WarnReuse, "FFMA R0, R4, R1, R0\nFFMA R4, R0, R1, R0\nFFMA R5, R4, R1, R0", "FFMA if pc == 0 => reuse.a=1", "R4 is kept for reuse and written at 0x10"},
		{check.WarnReuse, "FFMA R0, R4, R1, R0\nFFMA R5, R4, R1, R0\nFFMA R4, R4, R1, R0", "FFMA if pc == 0 => reuse.a=1", ""},
		{check.WarnReuse, "FFMA R0, R4.reuse, R1, R0\nFFMA R5, R0, R1, R0\nFFMA R6, R4, R1, R0", "FFMA if pc == 0x10 => dst=R4", "R4 is written here and kept for reuse by the instruction at 0x0"},
		{check.WarnReuse, "FFMA R0, R4.reuse, R1, R0\nFFMA R5, R4, R1, R0\nFFMA R6, R4, R1, R0", "FFMA if pc == 0x10 => dst=R4", ""},
		{check.WarnReuse, "FFMA R0, R4.reuse, R1, R0\nFFMA R4, R0, R1, R0\nFFMA R6, R4, R1, R0", "FFMA if pc == 0x10 => src1=R2", ""},
		{check.WarnRelocation, "NOP\nFFMA R0, R4, R1, R0", "FFMA => .FTZ", "the word is relocated (symbol sym)"},
		{check.WarnInfo, "NOP\nFFMA R0, R4, R1, R0", "FFMA => .FTZ", "the kernel's attributes list this instruction: EIATTR_EXIT_INSTR_OFFSETS"},
		{check.WarnInfo, "NOP\nFFMA R0, R4, R1, R0", "FFMA => stall=3", ""},
	} {
		for _, silent := range []bool{false, true} {
			opts := Options{Allow: check.Allow{check.RefuseFootprint: true}}
			if silent {
				opts.Silent = map[string]bool{test.name: true}
			}
			got := lintText(t, test.before, test.rule, opts)
			var hit string
			for _, w := range got {
				if w.Name == test.name {
					hit = w.Msg
				}
			}
			switch {
			case silent && hit != "":
				t.Errorf("%s: not silenced: %s", test.rule, hit)
			case !silent && test.want == "" && hit != "":
				t.Errorf("%s: %s", test.rule, hit)
			case !silent && !strings.Contains(hit, test.want):
				t.Errorf("%s: got %v, want %s: %s", test.rule, got, test.name, test.want)
			}
		}
	}
	if _, err := check.ParseSilent("wait,waits"); err == nil || !strings.Contains(err.Error(), "mercury") {
		t.Errorf("a name that no warning has: %v", err)
	}
}

func lintText(tb testing.TB, before, rule string, opts Options) []check.Warning {
	tb.Helper()
	table := patchtest.MiniTable(tb)
	r, err := Parse("", 1, rule)
	if err != nil {
		tb.Fatal(err)
	}
	p, err := NewPlanner([]*Rule{r}, table, opts)
	if err != nil {
		tb.Fatal(err)
	}
	plan, err := p.Kernel(&code.Kernel{
		Name: "k", Data: patchtest.Code(tb, table, patchtest.Lines(before)),
		Relocs: map[uint64]string{16: "sym"}, Info: map[uint64][]string{16: {"EIATTR_EXIT_INSTR_OFFSETS"}},
	})
	if err != nil {
		tb.Fatal(err)
	}
	return plan.Warnings
}
