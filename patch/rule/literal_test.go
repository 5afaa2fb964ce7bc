package rule

import (
	"fmt"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/patch/code"
	"github.com/cupatch/cupatch/patch/internal/patchtest"
)

// TestLiteralsOfListings compares every kind of operand in testdata with a literal copied
// from its text: none may be an error, and each must hold.
func TestLiteralsOfListings(t *testing.T) {
	digits := regexp.MustCompile(`[0-9a-f]+`)
	for _, arch := range []string{"sm_75", "sm_80", "sm_90", "sm_100", "sm_120"} {
		files, err := filepath.Glob("../../testdata/cubin/new/" + arch + "/*.cubin")
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d cubins: %v", arch, len(files), err)
		}
		seen := map[string]bool{}
		for _, name := range files {
			target := patchtest.OpenCubin(t, name)
			for i := range target.Cubin.Kernels() {
				cs := newState(target.Kernel(&target.Cubin.Kernels()[i]), target.Table)
				for at := range cs.N {
					parts := *cs.View(at).Split()
					known := map[string]bool{}
					if v := cs.View(at).Inst.Variant; v != nil {
						known = newScope(target.Table, []*isa.Variant{v}).operands
					}
					for k, op := range parts.Operands {
						if !known[parts.Names[k]] {
							continue // a name of this form alone
						}
						text := code.Operand(op)
						for _, s := range []string{text.Value(), text.Plain()} {
							key := parts.Mnemonic + " " + parts.Names[k] + " " + digits.ReplaceAllString(s, "0")
							if seen[key] {
								continue
							}
							seen[key] = true
							literalHolds(t, cs, at, fmt.Sprintf("%s if %s == %q", parts.Mnemonic, parts.Names[k], s))
						}
					}
				}
			}
		}
		t.Logf("%s: %d kinds", arch, len(seen))
	}
}

// literalHolds sees that a rule compiles and that its condition holds for instruction at.
func literalHolds(t *testing.T, cs *state, at int, match string) {
	t.Helper()
	r, err := ParseMatch(match)
	if err != nil {
		t.Error(err)
		return
	}
	c, err := compileRule(r, cs.Table, cs.Table.Arch().String())
	if err != nil {
		t.Errorf("%s: %v", match, err)
		return
	}
	ctx := &evalCtx{code: cs, rule: c, win: window{start: []int{at}, size: []int{1}}}
	if !c.cond.holds(ctx) {
		t.Errorf("%s: does not hold for %s", match, cs.View(at).Text())
	}
}

// TestBits compares bits in conditions with the word.
func TestBits(t *testing.T) {
	before := patchtest.Lines("NOP\nLDG.E R4, desc[UR4][R2.64]\n.word 0x0000000000009fff, 0x000fe20000000000")
	for cond, want := range map[string]string{
		`bits[0..11] == 0x981`:                              "10",
		`bits[0..11] == 0xfff and bits[12..15] == 9`:        "20",
		`prev.bits[0..11] == 0x981`:                         "20",
		`bits[84..86] == 1 and evict == "-"`:                "10",
		`bits[60..69] in [0, 1]`:                            "0 10 20",
		`bits[105..108] == stall`:                           "0 10 20",
		`bits[0..62] > 0x9000 and bits[0..62] < 0x10000`:    "20",
		`bits[91..91] != 0`:                                 "10",
		`not (bits[0..11] == 0x981) and not (pc == 0x20)`:   "0",
		`next.bits[0..11] == 0x981 or next.bits[12..15]==9`: "0 10",
	} {
		checkHolds(t, before, cond, want)
	}
}

// TestFlowFollowsEdits sees that blocks and loops are those of the words as planned: a
// branch that goes away takes its loop with it, another target moves it.
func TestFlowFollowsEdits(t *testing.T) {
	const before = "NOP\nNOP\n@P0 BRA 0x10\nEXIT"
	for _, test := range []struct {
		rules []string
		want  []int // what the last rule matches
	}{
		{[]string{"NOP if loop == 1 => stall=2"}, []int{16}},
		{[]string{"NOP if loop == 1 => stall=2", "BRA => target=0", "NOP if loop == 1 => stall=3"}, []int{0, 16}},
		{[]string{"NOP if loop == 1 => stall=2", "BRA => NOP", "NOP if loop == 1 => stall=3"}, nil},
	} {
		_, plan, err := planText(t, patchtest.Lines(before), Options{}, test.rules...)
		if err != nil {
			t.Fatal(err)
		}
		var got []int
		for _, e := range plan.Edits {
			if stall := isa.ControlOf(e.New).Stall; int(stall) == 1+(len(test.rules)+1)/2 {
				got = append(got, int(e.PC))
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(test.want) {
			t.Errorf("%q: %v, want %v", test.rules, got, test.want)
		}
	}
}
