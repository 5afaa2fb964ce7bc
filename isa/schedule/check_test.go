package schedule

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cupatch/cupatch/isa"
	assembler "github.com/cupatch/cupatch/isa/internal/assemble"
	"github.com/cupatch/cupatch/isa/kernel"
)

// assemble returns the flow of instructions with control codes, one a line.
func assemble(tb testing.TB, arch, text string) (*isa.Table, *kernel.Graph) {
	tb.Helper()
	table, data := assembler.Code(tb, arch, text)
	return table, kernel.New(kernel.Code{Table: table, Data: data})
}

// checkText returns what is found in text, a line for each finding: name, kind, the two
// instructions, register, cycles, and cycles needed.
func checkText(tb testing.TB, arch, text string) string {
	tb.Helper()
	table, g := assemble(tb, arch, text)
	m, err := Load(table.Arch())
	if err != nil {
		tb.Fatal(err)
	}
	var out []string
	for _, f := range NewChecker(m, table).Check(g) {
		out = append(out, fmt.Sprintf("%s %s %d %d %s %d/%d", f.Name, f.Kind, f.First, f.Second, f.File.Names()[f.Register], f.Cycles, f.Need.Cycles))
	}
	return strings.Join(out, "\n")
}

// TestCheck has what a schedule may do wrong, and what looks wrong and is not. The distances
// are those that were measured by hand on other code of ptxas.
func TestCheck(t *testing.T) {
	for _, c := range []struct{ name, code, want string }{
		{"in time", "[B------:R-:W-:-:S04] FADD R0, R1, R2\nFADD R3, R0, R0\nEXIT", ""},
		{"too soon", "[B------:R-:W-:-:S03] FADD R0, R1, R2\nFADD R3, R0, R4\nEXIT", "stall read 0 1 R0 3/4"},
		{"stalls add up", "[B------:R-:W-:-:S02] FADD R0, R1, R2\n[B------:R-:W-:-:S01] NOP\nFADD R3, R0, R4\nEXIT", "stall read 0 2 R0 3/4"},
		{"drained", "[B------:R-:W-:Y:S00] FADD R0, R1, R2\nFADD R3, R0, R4\nEXIT", ""},
		{"into memory", "[B------:R-:W-:-:S04] IMAD R0, R1, R2, RZ\nLDS R3, [R0]\nEXIT", "stall read 0 1 R0 4/5"},
		{"guard", "[B------:R-:W-:Y:S12] ISETP.GE.AND P0, PT, R0, R1, PT\n@P0 FADD R2, R2, R3\nEXIT", "stall guard 0 1 P0 12/13"},
		{"guard in time", "[B------:R-:W-:Y:S13] ISETP.GE.AND P0, PT, R0, R1, PT\n@P0 FADD R2, R2, R3\nEXIT", ""},
		{"predicate", "[B------:R-:W-:-:S04] ISETP.GE.AND P0, PT, R0, R1, PT\nSEL R2, R2, R3, P0\nEXIT", ""},
		{"waited", "[B------:R-:W2:-:S02] LDG.E R0, desc[UR4][R2.64]\n[B--2---:R-:W-:-:S04] FADD R3, R0, R4\nEXIT", ""},
		{"other board", "[B------:R-:W2:-:S02] LDG.E R0, desc[UR4][R2.64]\n[B-1----:R-:W-:-:S04] FADD R6, R0, R4\nEXIT", "wait read 0 1 R0 2/0"},
		{"no board", "[B------:R-:W-:-:S02] LDG.E R0, desc[UR4][R2.64]\n[B--2---:R-:W-:-:S04] FADD R6, R0, R4\nEXIT", "scoreboard read 0 1 R0 2/0"},
		{"overwritten result", "[B------:R-:W2:-:S02] LDG.E R0, desc[UR4][R2.64]\n[B------:R-:W-:-:S04] FADD R0, R5, R4\nEXIT", "wait rewrite 0 1 R0 2/0"},
		{"overwritten source", "[B------:R3:W-:-:S02] STG.E desc[UR4][R2.64], R0\n[B------:R-:W-:-:S04] FADD R0, R5, R4\nEXIT", "wait overwrite 0 1 R0 2/0"},
		{"read source", "[B------:R3:W-:-:S02] STG.E desc[UR4][R2.64], R0\n[B---3--:R-:W-:-:S04] FADD R0, R5, R4\nEXIT", ""},
		{"result says that sources are read", "[B------:R-:W0:-:S02] LDG.E R0, desc[UR4][R2.64]\n[B0-----:R-:W-:-:S04] FADD R2, R5, R4\nEXIT", ""},
		{"later read", "[B------:R-:W-:-:S02] STG.E desc[UR4][R2.64], R0\n[B------:R0:W-:-:S02] STG.E desc[UR4][R2.64], R6\n[B0-----:R-:W-:-:S04] FADD R0, R5, R4\nEXIT", ""},
		{"exclusive guards", "[B------:R-:W0:-:S02] @P5 LDG.E R0, desc[UR4][R2.64]\n@!P5 FADD R0, R5, R4\nEXIT", ""},
		{"guards no longer exclusive", "[B------:R-:W0:-:S02] @P5 LDG.E R0, desc[UR4][R2.64]\n[B------:R-:W-:Y:S13] ISETP.GE.AND P5, PT, R6, R1, PT\n@!P5 FADD R0, R5, R4\nEXIT", "wait rewrite 0 2 R0 15/0"},
		{"branch knows its guard", "[B------:R-:W0:-:S02] @P5 LDG.E R0, desc[UR4][R2.64]\n[B------:R-:W-:Y:S05] @P5 EXIT\nFADD R0, R5, R4\nEXIT", ""},
		{"in order", "[B------:R-:W-:-:S02] LDS R0, [R8]\n[B------:R-:W1:-:S02] LDS R1, [R8+0x4]\n[B-1----:R-:W-:-:S04] FADD R2, R0, R4\nEXIT", ""},
		{"not in order", "[B------:R-:W-:-:S02] LDG.E R0, desc[UR4][R8.64]\n[B------:R-:W1:-:S02] LDG.E R1, desc[UR4][R8.64]\n[B-1----:R-:W-:-:S04] FADD R2, R0, R4\nEXIT", "scoreboard read 0 2 R0 4/0"},
		{"counted", "[B------:R-:W0:-:S02] LDG.E R0, desc[UR4][R8.64]\n[B------:R-:W0:-:S02] LDG.E R1, desc[UR4][R8.64]\n[B------:R-:W-:-:S04] DEPBAR.LE SB0, 0x1\n[B------:R-:W-:-:S04] FADD R2, R0, R4\n[B------:R-:W-:-:S04] FADD R2, R1, R4\nEXIT", "wait read 1 4 R1 10/0"},
		{"around a loop", "[B------:R-:W-:-:S04] NOP\n[B------:R-:W-:-:S04] FADD R3, R0, R4\n[B------:R-:W0:-:S02] LDG.E R0, desc[UR4][R8.64]\n[B------:R-:W-:Y:S05] @P1 BRA 0x10\nEXIT", "wait read 2 1 R0 7/0"},
		{"on one of two ways", "[B------:R-:W0:-:S02] LDG.E R0, desc[UR4][R8.64]\n[B------:R-:W-:Y:S05] @P1 BRA 0x30\n[B0-----:R-:W-:-:S04] NOP\n[B------:R-:W-:-:S04] FADD R3, R0, R4\nEXIT", "wait read 0 3 R0 7/0"},
		{"into a function", "[B------:R-:W-:-:S02] FADD R0, R1, R2\n[B------:R-:W-:-:S01] CALL.REL.NOINC 0x30\nEXIT\nFADD R3, R0, R4\nRET.REL.NODEC R20 0x0", "stall read 0 3 R0 3/4"},
	} {
		if got := checkText(t, "sm_90a", c.code); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// TestTables sees that the models are in the form in which they are written, and rest on
// something.
func TestTables(t *testing.T) {
	names, err := filepath.Glob("tables/*.txt")
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		m, err := Parse(string(text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if string(Format(m)) != string(text) {
			t.Errorf("%s is not as Format writes it", name)
		}
		if want := "tables/" + m.Arch.String() + ".txt"; name != want {
			t.Errorf("%s is for %s", name, m.Arch)
		}
		for k, r := range m.rules {
			if r.Seen < few || k.rule == Least && (r.Cycles < 1 || r.Cycles >= maxAge || r.Place == "") {
				t.Errorf("%s: %v: %v", name, k, r)
			}
		}
	}
}

// TestParseErrors sees that damaged models are refused.
func TestParseErrors(t *testing.T) {
	for _, s := range []string{"", "arch", "arch x", "arch sm_90\nmost read R FADD - 4 100 x", "arch sm_90\nleast write R FADD - 4 100 x", "arch sm_90\nleast read X FADD - 4 100 x", "arch sm_90\nleast read R FADD - 4", "arch sm_90\nwait read R FADD - x"} {
		if _, err := Parse(s); err == nil {
			t.Errorf("%q is accepted", s)
		}
	}
}
