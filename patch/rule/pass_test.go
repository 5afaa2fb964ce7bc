package rule

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cupatch/cupatch/patch/code"
	"github.com/cupatch/cupatch/patch/internal/patchtest"
	"github.com/google/go-cmp/cmp"
)

// TestOrder checks that rules are passes: a later one sees what an earlier one did.
func TestOrder(t *testing.T) {
	got, plan, err := planText(t, patchtest.Lines("LDG.E.EF R0, desc[UR4][R2.64]\nLDG.E.EL R1, desc[UR4][R2.64]"), Options{},
		"LDG.EF => .EL", "LDG.EL => .NA")
	if err != nil {
		t.Fatal(err)
	}
	if want := patchtest.Lines("LDG.E.NA R0, desc[UR4][R2.64]\nLDG.E.NA R1, desc[UR4][R2.64]"); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if plan.Edits[0].Rule != "1, 2" || plan.Edits[1].Rule != "2" {
		t.Errorf("rules %q and %q", plan.Edits[0].Rule, plan.Edits[1].Rule)
	}
	if s := plan.Summary; s.Matched != 2 || s.Changed != 2 || s.Rules[0].Matches != 1 || s.Rules[1].Matches != 2 {
		t.Errorf("summary %+v", s)
	}
}

// TestOrderOpcode checks that a rule meets instructions that an earlier rule made.
func TestOrderOpcode(t *testing.T) {
	got, _, err := planText(t, patchtest.Lines("FFMA R0, R1, R2, R3\nNOP"), Options{}, "FFMA => NOP", "NOP => stall=3")
	if err != nil {
		t.Fatal(err)
	}
	if want := patchtest.Lines("[B------:R-:W-:-:S03] NOP\n[B------:R-:W-:-:S03] NOP"); got != want {
		t.Errorf("got\n%s", got)
	}
}

// TestBackToStart checks that a word which comes back to what it was is no edit.
func TestBackToStart(t *testing.T) {
	_, plan, err := planText(t, patchtest.Lines("LDG.E R0, desc[UR4][R2.64]"), Options{}, "LDG => .EF", "LDG => evict=-")
	if err != nil {
		t.Fatal(err)
	}
	if len(plan.Edits) != 0 || plan.Summary.Same != 1 {
		t.Errorf("%d edits, summary %+v", len(plan.Edits), plan.Summary)
	}
}

func TestLast(t *testing.T) {
	table := patchtest.MiniTable(t)
	first, err := Parse("first", 1, "LDG if pc == 0 => .EF")
	if err != nil {
		t.Fatal(err)
	}
	first.Last = true
	second, err := Parse("second", 2, "LDG => .EL")
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewPlanner([]*Rule{first, second}, table, Options{})
	if err != nil {
		t.Fatal(err)
	}
	data := patchtest.Code(t, table, patchtest.Lines("LDG.E R0, desc[UR4][R2.64]\nLDG.E R1, desc[UR4][R2.64]"))
	plan, err := p.Kernel(&code.Kernel{Name: "k", Data: data})
	if err != nil {
		t.Fatal(err)
	}
	if len(plan.Edits) != 2 || plan.Edits[0].Rule != "first" || plan.Edits[1].Rule != "second" {
		t.Errorf("%+v", plan.Edits)
	}
}

// TestRelative checks which rules are marked: those that would change their own
// output further.
func TestRelative(t *testing.T) {
	const before = "LDG.E.EF R0, desc[UR4][R2.64]\nLDG.E.EL R1, desc[UR4][R2.64]\nFFMA R0, R1, R2, R3"
	for _, test := range []struct {
		rules []string
		want  bool
	}{
		{[]string{"LDG => .EF"}, false},
		{[]string{"FFMA => stall+=1"}, true},
		{[]string{"FFMA => ~yield"}, true},
		{[]string{"FFMA => @P0 @!"}, true},
		{[]string{"FFMA => stall=max(stall,4)"}, false},
		{[]string{"LDG.EF => .NA", "LDG.EL => .EF"}, true},
		{[]string{"LDG.EL => .NA", "LDG.EF => .EL"}, true},
		{[]string{"LDG.EF => .EL"}, false},
	} {
		_, plan, err := planText(t, patchtest.Lines(before), Options{}, test.rules...)
		if err != nil {
			t.Fatalf("%v: %v", test.rules, err)
		}
		if got := plan.Summary.Relative(); got != test.want {
			t.Errorf("%v: relative is %v", test.rules, got)
		}
	}
}

// TestRuns checks that a run is all of its members.
func TestRuns(t *testing.T) {
	run := func(n int) string { return strings.Repeat("FFMA R0, R1, R2, R3\n", n) + "NOP\n" }
	for _, test := range []struct {
		rule   string
		before string
		want   []int // addresses
	}{
		{"FFMA{3} => stall=2", run(3), []int{0, 16, 32}},
		{"FFMA{3} => stall=2", run(4), nil},
		{"FFMA{2,3} => stall=2", run(4) + run(2), []int{80, 96}},
		{"FFMA{2,} if i == n-1 => stall=2", run(4) + run(2), []int{48, 96}},
		{"NOP ; FFMA{2,} => ; stall=2", run(1) + run(2) + run(3), []int{32, 48, 80, 96, 112}},
		{"x:NOP ; y:FFMA{2,} if i == 0 => x: stall=3 ; y: stall=2", run(1) + run(2), []int{16, 32}},
		{"x:FFMA{0,1} ; y:NOP => y: stall=2", run(1) + run(2) + run(0), []int{16, 80}},
		{"FFMA{2,} if seen(dst) == 1 => stall=2", run(3), []int{16}},
		{"x:NOP ; ...{1,9} ; y:FFMA{2,} => y: stall=2", run(1) + run(2) + run(3), []int{80, 96, 112}},
	} {
		_, plan, err := planText(t, patchtest.Lines(test.before), Options{}, test.rule)
		if err != nil {
			t.Fatalf("%s: %v", test.rule, err)
		}
		var got []int
		for _, e := range plan.Edits {
			got = append(got, int(e.PC))
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.rule, diff)
		}
	}
}

// TestWindowsDoNotOverlap checks leftmost, shortest and non-overlapping.
func TestWindowsDoNotOverlap(t *testing.T) {
	_, plan, err := planText(t, patchtest.Lines("NOP\nNOP\nNOP\nNOP\nNOP"), Options{}, "x:NOP ; y:NOP => y: stall=2")
	if err != nil {
		t.Fatal(err)
	}
	if len(plan.Edits) != 2 || plan.Edits[0].PC != 16 || plan.Edits[1].PC != 48 {
		t.Errorf("%+v", plan.Edits)
	}
}

// TestRefusedWindow checks that a window is changed as a whole or not at all.
func TestRefusedWindow(t *testing.T) {
	const before = "FFMA R0, R1, R2, R3\nLDG.E.64 R4, desc[UR4][R2.64]\nFFMA R0, R1, R2, R3\nLDG.E R4, desc[UR4][R2.64]"
	got, plan, err := planText(t, patchtest.Lines(before), Options{SkipRefused: true}, "FFMA ; LDG => stall=3 ; size=-")
	if err != nil {
		t.Fatal(err)
	}
	want := "FFMA R0, R1, R2, R3\nLDG.E.64 R4, desc[UR4][R2.64]\n[B------:R-:W-:-:S03] FFMA R0, R1, R2, R3\nLDG.E R4, desc[UR4][R2.64]"
	if got != patchtest.Lines(want) {
		t.Errorf("got\n%s", got)
	}
	if plan.Summary.Refused != 1 || len(plan.Edits) != 1 {
		t.Errorf("summary %+v", plan.Summary)
	}
}

// TestUnknownWords checks that a word nobody knows can be found and its control fields
// and guard be changed, and that it is never mistaken for something else.
func TestUnknownWords(t *testing.T) {
	const before = "NOP\n.word 0x0000000000009fff, 0x000fe20000000000\nNOP"
	got, _, err := planText(t, patchtest.Lines(before), Options{}, "* if pc == 0x10 => stall=5 @!P2 wait+=3", "*.E => stall=9")
	if err != nil {
		t.Fatal(err)
	}
	if want := patchtest.Lines("NOP\n[B---3--:R-:W-:-:S05] .word 0x000000000000afff, 0x008fea0000000000\nNOP"); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if _, _, err := planText(t, patchtest.Lines(before), Options{}, "* if pc == 0x10 => .EF"); err == nil || !strings.Contains(err.Error(), "not known") {
		t.Errorf("a modifier of an unknown word: %v", err)
	}
	if _, _, err := planText(t, patchtest.Lines(before), Options{}, "* if pc == 0x10 => stall=12"); err == nil || !strings.Contains(err.Error(), "yield=Y") {
		t.Errorf("an illegal schedule of an unknown word: %v", err)
	}
	_, plan, err := planText(t, patchtest.Lines(before), Options{}, "* if pc == 0x10 => bits[24..31]=7")
	if err != nil || len(plan.Edits) != 1 {
		t.Errorf("raw bits of an unknown word: %v", err)
	}
	for _, pc := range []string{"0x0", "0x20"} {
		if _, plan, err = planText(t, patchtest.Lines(before), Options{}, "@P* * if pc == "+pc+" => stall=2"); err != nil || len(plan.Edits) != 0 {
			t.Errorf("@P* matches an instruction without a guard: %v", err)
		}
	}
}

// TestBudget checks that a rule which would search for ever ends with an error.
func TestBudget(t *testing.T) {
	before := strings.Repeat("NOP\n", 4000)
	_, _, err := planText(t, patchtest.Lines(before), Options{}, "NOP ; ...{0,4000} ; NOP ; ...{0,4000} ; NOP ; ...{0,4000} ; EXIT => ; ; ; stall=5")
	var re *Error
	if !errors.As(err, &re) || !strings.Contains(err.Error(), "takes too long") {
		t.Errorf("got %v", err)
	}
}

// TestSeveralRuns checks that fields of two runs cannot be told apart.
func TestSeveralRuns(t *testing.T) {
	_, _, err := planText(t, patchtest.Lines("NOP"), Options{}, "x:NOP{1,} ; y:FFMA{1,} if x.stall == 1 => x: stall=2")
	if err == nil || !strings.Contains(err.Error(), "several runs") {
		t.Errorf("got %v", err)
	}
}

// TestKernelNames checks that a test of the kernel's name holds for either spelling.
func TestKernelNames(t *testing.T) {
	table := patchtest.MiniTable(t)
	data := patchtest.Code(t, table, patchtest.Lines("NOP"))
	for cond, want := range map[string]bool{
		`kernel == "_Z4gemmPf"`:             true,
		`kernel == "gemm(float*)"`:          true,
		`kernel matches "^gemm"`:            true,
		`kernel startsWith "_Z"`:            true,
		`kernel != "gemm(float*)"`:          false,
		`kernel in ["a", "gemm(float*)"]`:   true,
		`not (kernel contains "gemm")`:      false,
		`kernel == "gemm"`:                  false,
		`arch == "90"`:                      true,
		`arch == "sm_80"`:                   false,
		`entry == "7" and file == "lib.so"`: true,
		`entry == 7`:                        true,
		`entry in [6, 7] and entry < 8`:     true,
		`entry != 7 or entry > 7`:           false,
		`entry matches "^7$"`:               true,
	} {
		r, err := Parse("", 1, "NOP if "+cond+" => stall=2")
		if err != nil {
			t.Fatal(err)
		}
		p, err := NewPlanner([]*Rule{r}, table, Options{})
		if err != nil {
			t.Fatalf("%s: %v", cond, err)
		}
		demangle := func(string) string { return "gemm(float*)" }
		plan, err := p.Kernel(&code.Kernel{Name: "_Z4gemmPf", Data: data, Demangle: demangle, Entry: "7", File: "lib.so"})
		if err != nil {
			t.Fatal(err)
		}
		if got := len(plan.Edits) == 1; got != want {
			t.Errorf("%s holds: %v", cond, got)
		}
	}
}

// TestMissingFields checks that a comparison with a field which the instruction lacks
// is false, whatever the operator.
func TestMissingFields(t *testing.T) {
	before := patchtest.Lines("NOP\nLDG.E R4, desc[UR4][R2.64]")
	for cond, want := range map[string]string{
		`evict != "EF"`:              "10",
		`evict == "EF"`:              "",
		`not (evict == "EF")`:        "0 10",
		`evict not in ["EF"]`:        "10",
		`width < 64`:                 "10",
		`width*2 != 7`:               "10",
		`dst != src1`:                "10",
		`dst == "R4"`:                "10",
		`src1 == "R2"`:               "10",
		`src1 == "desc[UR4][R2.64]"`: "10",
		`imm == 0`:                   "10",
		`prev.stall == 1`:            "10",
		`next.stall == 1`:            "0",
		`prev.evict == "-"`:          "",
		`reuse.a == false`:           "0 10",
		`wbar == "-"`:                "0 10",
		`wbar == 7`:                  "0 10",
		`wait == "-"`:                "0 10",
		`not (2 in wait)`:            "0 10",
		`guard == "PT"`:              "0 10",
		`yield == "-"`:               "0 10",
		`(pc > 0 ? width : 5) == 5`:  "0",
		`pc / 2 == 8`:                "10",
		`1 % (pc-pc % 16) == 0`:      "",
		`5 % pc == 5`:                "10",
		`1 < 2 < 3 and pc >= 0x10`:   "10",
	} {
		checkHolds(t, before, cond, want)
	}
}

// checkHolds sees at which addresses of before, in hexadecimal, a condition holds.
func checkHolds(t *testing.T, before, cond, want string) {
	t.Helper()
	_, plan, err := planText(t, before, Options{}, "* if "+cond+" => stall=2")
	if err != nil {
		t.Errorf("%s: %v", cond, err)
		return
	}
	var pcs []string
	for _, e := range plan.Edits {
		pcs = append(pcs, fmt.Sprintf("%x", e.PC))
	}
	if got := strings.Join(pcs, " "); got != want {
		t.Errorf("%s holds at %q, want %q", cond, got, want)
	}
}

// TestNeverRefusesCompilerOutput plans rules that say what is there already: nothing
// that a compiler wrote may be refused, and nothing may change.
func TestNeverRefusesCompilerOutput(t *testing.T) {
	for _, name := range []string{"new/sm_90/gemm", "new/sm_90/control", "old/sm_80/loads", "new/sm_75/arith", "new/sm_100/lea"} {
		target := patchtest.OpenCubin(t, "../../testdata/cubin/"+name+".cubin")
		r, err := Parse("", 1, "* => stall=stall wbar=wbar rbar=rbar wait+=-")
		if err != nil {
			t.Fatal(err)
		}
		plan, err := Plan(target, []*Rule{r}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		edits, sum := plan.Edits, plan.Summary
		if len(edits) > 0 || sum.Matched != sum.Seen || sum.Seen == 0 {
			t.Errorf("%s: %d edits, %+v", name, len(edits), sum)
		}
	}
}
