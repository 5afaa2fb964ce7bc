package recipe

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/patch/code"
	"github.com/cupatch/cupatch/patch/internal/patchtest"
	"github.com/cupatch/cupatch/patch/rule"
)

// A recipe that uses everything.
const sinkRecipe = `description = "everything"
arch = ["sm_90"]
toolkit = ["12.4", "13.0"]
allow = "schedule"

[param.hint]
values = ["EF", "EL"]
default = "EF"

[param.least]
values = [64, 128]

[[rule]]
name = "wide"
match = "LDG.E!.CONSTANT"
if = 'kernel matches "^k" and width >= ${least} and evict == "-" and not (prefetch in ["LTC64B"])'
set = ".${hint} stall=max(stall,4)"
expect = ">=1"
last = true

[[rule]]
name = "pair"
match = "x:LDG.E ; ...{0,4} ; y:FFMA"
if = "y.src1 == x.dst and x.wbar == 2"
set = "x: evict=EL ; y: wait+=2 reuse.b=- -.FTZ"
arch = "sm_90"

[[rule]]
name = "run"
match = "FFMA{2,}"
if = "i % 2 == 1 and n < 100 and seen(src2) == 0 and prev.yield == \"-\""
set = "yield=Y"

[[test]]
name = "all"
arch = "sm_90"
kernel = "k"
param.least = 64
before = '''
[B------:R-:W2:-:S01] LDG.E.64 R4, desc[UR4][R2.64] ;
[B------:R-:W2:-:S01] LDG.E R6, desc[UR4][R2.64] ;
[B------:R-:W-:-:S01] FFMA R0, R6, R1.reuse, R0 ;
[B------:R-:W-:-:S01] FFMA R0, R6, R2, R0 ;
'''
after = '''
[B------:R-:W2:-:S04] LDG.E.EF.64 R4, desc[UR4][R2.64] ;
[B------:R-:W2:-:S01] LDG.E.EL R6, desc[UR4][R2.64] ;
[B--2---:R-:W-:-:S01] FFMA R0, R6, R1, R0 ;
[B------:R-:W-:Y:S01] FFMA R0, R6, R2, R0 ;
'''
`

// planSink runs a recipe's test and plans it for a table.
func planSink(tb testing.TB, text string) error {
	tb.Helper()
	rc, err := Parse("r.toml", []byte(text))
	if err != nil {
		return err
	}
	table := patchtest.MiniTable(tb)
	for i := range rc.Tests {
		if err := rc.runTest(&rc.Tests[i], table); err != nil {
			return err
		}
	}
	combos, err := rc.Combinations(nil, 100)
	if err != nil {
		return err
	}
	for _, c := range combos {
		rules, err := rc.Rules(c)
		if err != nil {
			return err
		}
		if _, err := rule.NewPlanner(rules, table, rule.Options{}); err != nil {
			return err
		}
	}
	return nil
}

func TestRecipe(t *testing.T) {
	if err := planSink(t, sinkRecipe); err != nil {
		t.Fatal(err)
	}
	rc, err := Parse("r.toml", []byte(sinkRecipe))
	if err != nil {
		t.Fatal(err)
	}
	combos, err := rc.Combinations(map[string]string{"hint": "EL"}, 10)
	if err != nil || len(combos) != 2 || combos[0]["least"] != "64" || combos[0]["hint"] != "EL" {
		t.Errorf("combinations %v: %v", combos, err)
	}
	if _, err := rc.Combinations(nil, 3); err == nil {
		t.Error("4 combinations fit a limit of 3")
	}
	if _, err := rc.Rules(map[string]string{"hint": "NA"}); err == nil || !strings.Contains(err.Error(), "EF, EL") {
		t.Errorf("a value that the parameter does not have: %v", err)
	}
	if _, err := rc.Rules(map[string]string{"hnit": "EF"}); err == nil || !strings.Contains(err.Error(), "hint") {
		t.Errorf("a parameter that the recipe does not have: %v", err)
	}
}

// position is how errors of a recipe start.
var position = regexp.MustCompile(`^r\.toml:\d+:\d+: |^(all|wide|pair|run): |r\.toml: \w+: (before|after):\d+:`)

// TestRecipeMutations breaks the recipe in more than 200 ways, one letter of one word
// at a time. Each must give an error with its place: a misspelled word must not be
// overlooked, and must not change what is edited.
func TestRecipeMutations(t *testing.T) {
	free := regexp.MustCompile(`^(description|name|toolkit)\b|^kernel = `) // what is said there is free
	word := regexp.MustCompile(`[A-Za-z_]{2,}`)
	count := 0
	linesOf := strings.SplitAfter(sinkRecipe, "\n")
	for n, line := range linesOf {
		skip := 0
		if free.MatchString(line) {
			skip = strings.IndexByte(line, '=')
			if strings.HasPrefix(line, "name") {
				continue // a name may be anything
			}
		}
		for _, at := range word.FindAllStringIndex(line, -1) {
			if skip > 0 && at[0] > skip {
				continue
			}
			for _, i := range []int{at[0], (at[0] + at[1]) / 2, at[1] - 1} {
				mutated := line[:i] + "q" + line[i+1:]
				text := strings.Join(slices.Concat(linesOf[:n], []string{mutated}, linesOf[n+1:]), "")
				err := planSink(t, text)
				count++
				if err == nil {
					t.Errorf("line %d: no error: %s", n+1, mutated)
					continue
				}
				if !position.MatchString(err.Error()) {
					t.Errorf("line %d: %s error without a place: %v", n+1, mutated, err)
				}
			}
		}
	}
	if count < 200 {
		t.Errorf("only %d mutations", count)
	}
	t.Logf("%d mutations", count)
}

func TestRecipeErrors(t *testing.T) {
	const rule = "[[rule]]\nname = \"a\"\nmatch = \"LDG\"\nset = \".EF\"\n"
	for _, test := range []struct{ text, want string }{
		{"", "r.toml:1:1: no [[rule]]"},
		{rule + "sets = \"x\"\n", "r.toml:5:1: unknown key rule.sets"},
		{rule + rule, `r.toml:6:8: two rules have the name "a"`},
		{"[[rule]]\nmatch = \"LDG\"\n", "r.toml:1:3: a rule needs a name"},
		{"[[rule]]\nname = \"a\"\n", `r.toml:1:3: rule "a" has no match`},
		{rule + "[param.x]\ndefault = 1\n", "r.toml:5:2: no rule uses the parameter x"},
		{"[[rule]]\nname = \"a\"\nmatch = \"LDG\"\nset = \".${x}\"\n", `r.toml:4:7: rule "a": set: no parameter x`},
		{"[[rule]]\nname = \"a\"\nmatch = \"LDG\"\nset = \".${x\"\n", "r.toml:4:7:"},
		{"[[rule]]\nname = \"a\"\nmatch = \"LDG.\"\n", `r.toml:3:9: rule "a": match: column 5: want a modifier after .`},
		{"[[rule]]\nname = \"a\"\nmatch = \"LDG => .EF\"\n", `rule "a": match: column 5: => belongs in a one-line rule`},
		{"[[rule]]\nname = \"a\"\nmatch = \"LDG if stall == 1\"\n", `rule "a": match: column 5: the condition goes into if`},
		{"[[rule]]\nname = \"a\"\nmatch = \"LDG\"\n", `r.toml:1:3: rule "a": set: column 1: no changes`},
		{"[[rule]]\nname = \"a\"\nmatch = \"LDG\"\nset = \" \"\n", `r.toml:4:7: rule "a": set: column 1: no changes`},
		{"[[rule]]\nname = \"a\"\nmatch = \"LDG\"\nset = \".${x}\"\n", `no parameter x; the recipe has none`},
		{"[[rule]]\nname = \"a\"\nmatch = \"LDG\"\nset = \".${x}${y}\"\n[param.x]\ndefault = 1\n", `no parameter y; there are: x`},
		{"arch = \"sm_x\"\n" + rule, "r.toml:1:8:"},
		{"arch = [\"sm_90\", \"sm_91\"]\n" + rule, "r.toml:1:18: sm_91 is no architecture that a rule can be for; there are sm_70 sm_72"},
		{"arch = 90\n" + rule, "r.toml:1:8: want text or a list of texts"},
		{"allow = \"everything\"\n" + rule, "r.toml:1:9: unknown --allow name"},
		{rule + "if = \"stall ==\"\n", `r.toml:5:6: rule "a": if: column 8: unexpected token`},
		{rule + "expect = \"some\"\n", `r.toml:5:10: expect "some"`},
		{rule + "expect = true\n", "r.toml:5:10: expect takes"},
		{rule + "expect = \"4..1\"\n", "wrong way round"},
		{rule + "last = 1\n", "r.toml:5:8:"},
		{rule + "[param.x]\n", "r.toml:5:2: parameter x has neither"},
		{rule + "[param.x]\nvalues = [1, 1]\n", "r.toml:6:14: value 1 is listed twice"},
		{rule + "[param.x]\nvalues = [1]\ndefault = 2\n", "r.toml:7:11: default 2 is none of"},
		{rule + "[param.x]\nvalues = [true]\n", "r.toml:6:11: a parameter's value is text or a number"},
		{rule + "[[test]]\narch = \"sm_90\"\nbefore = \"NOP ;\"\n", "r.toml:5:3: a test needs before, and either after or error"},
		{rule + "[guard.kernels]\nk = \"md5:1\"\n", "r.toml:6:5: want sha256:"},
		{rule + "[guard.kernels]\nk = \"sha256:" + strings.Repeat("z", 64) + "\"\n", "r.toml:6:5: want sha256:"},
		{rule + "name = \"b\"\n", "r.toml:5:"},
		{"x = [", "r.toml:1:"},
	} {
		_, err := Parse("r.toml", []byte(test.text))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q:\n got  %v\n want %s", test.text, err, test.want)
		}
	}
}

// TestGuard checks toolkit and code hashes.
func TestGuard(t *testing.T) {
	target := patchtest.OpenCubin(t, patchtest.LoadsCubin)
	k := &target.Cubin.Kernels()[0]
	const rule = "[[rule]]\nname = \"a\"\nmatch = \"LDG\"\nset = \".EF\"\n"
	hash := func(_ *elfx.Cubin, k *elfx.Kernel, scheme string) (string, error) {
		if scheme != "code1" {
			return "", errors.New("no hash " + scheme)
		}
		return strings.Repeat("ab", 32), nil
	}
	for _, test := range []struct{ guard, want string }{
		{fmt.Sprintf("%s = \"code1 %s\"", k.Name, strings.Repeat("ab", 32)), ""},
		{fmt.Sprintf("%s = \"code1:%s\"", k.Name, strings.Repeat("ab", 32)), ""},
		{fmt.Sprintf("%s = \"code1 %s\"", k.Name, strings.Repeat("cd", 32)), "r.toml:6:17: guard: kernel " + k.Name + " has changed"},
		{fmt.Sprintf("%s = \"sha256:%s\"", k.Name, code.Hash(k.Data())), ""},
		{fmt.Sprintf("%s = [\"sha256:%s\", \"sha256:%s\"]", k.Name, strings.Repeat("0", 64), code.Hash(k.Data())), ""},
		{fmt.Sprintf("%s = \"sha256:%s\"", k.Name, strings.Repeat("0", 64)), "kernel " + k.Name + " has changed"},
		{fmt.Sprintf("nobody = \"sha256:%s\"", strings.Repeat("0", 64)), "kernel nobody is missing"},
	} {
		rc, err := Parse("r.toml", []byte(rule+"[guard.kernels]\n"+test.guard+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		err = rc.CheckGuard(cubins(target), hash)
		var ge *GuardError
		switch {
		case test.want == "" && err != nil:
			t.Errorf("%s: %v", test.guard, err)
		case test.want != "" && (!errors.As(err, &ge) || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s: %v, want %s", test.guard, err, test.want)
		}
	}
	rc, err := Parse("r.toml", []byte(rule+"[guard.kernels]\n"+k.Name+" = \"code9 "+strings.Repeat("ab", 32)+"\"\n"))
	if err != nil {
		t.Fatal(err)
	}
	var re *Error
	if err := rc.CheckGuard(cubins(target), hash); !errors.As(err, &re) || err.Error() != "r.toml:6:17: no hash code9" {
		t.Errorf("an unknown hash: %v", err)
	}
	rc, err = Parse("r.toml", []byte("toolkit = \"1.0\"\n"+rule))
	if err != nil {
		t.Fatal(err)
	}
	if err := rc.CheckGuard(cubins(target), nil); err == nil || !strings.Contains(err.Error(), target.Cubin.Toolkit) {
		t.Errorf("toolkit: %v", err)
	}
}

func cubins(list ...*code.Target) []*elfx.Cubin {
	var out []*elfx.Cubin
	for _, t := range list {
		out = append(out, t.Cubin)
	}
	return out
}
