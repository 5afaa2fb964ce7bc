package recipe

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/cupatch/cupatch/patch/check"
	"github.com/cupatch/cupatch/patch/internal/patchtest"
	"github.com/cupatch/cupatch/patch/rule"
)

// docTable returns what stands in back quotes in the first column of the tables of a
// section of docs/rules.md.
func docTable(tb testing.TB, section string) []string {
	tb.Helper()
	data, err := os.ReadFile("../../docs/rules.md")
	if err != nil {
		tb.Fatal(err)
	}
	_, text, ok := strings.Cut(string(data), "\n## "+section+"\n")
	if !ok {
		tb.Fatalf("no section %s", section)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	var out []string
	quoted := regexp.MustCompile("`([^`]+)`")
	for _, line := range strings.Split(text, "\n") {
		cells := strings.Split(line, "|")
		if len(cells) < 3 {
			continue
		}
		for _, m := range quoted.FindAllStringSubmatch(cells[1], -1) {
			out = append(out, m[1])
		}
	}
	if len(out) < 5 {
		tb.Fatalf("section %s has only %q", section, out)
	}
	return out
}

// TestDocs sees that what docs/rules.md shows is the language that is read.
func TestDocs(t *testing.T) {
	for _, s := range docTable(t, "MATCH") {
		if _, err := rule.ParseMatch(s); err != nil {
			t.Errorf("MATCH %s: %v", s, err)
		}
	}
	for _, s := range docTable(t, "CHANGES") {
		if _, err := rule.Parse("", 1, "LDG => "+s); err != nil {
			t.Errorf("CHANGES %s: %v", s, err)
		}
	}
	table := patchtest.MiniTable(t)
	for _, s := range docTable(t, "CONDITION") {
		match := "LDG"
		switch {
		case s == "i" || s == "n":
			match = "LDG{2,}"
		case s == "seen(x)":
			match, s = "LDG{2,}", "seen(stall)"
		case s == "a.x":
			match, s = "a:LDG", "a.stall"
		case strings.HasSuffix(s, ".x"):
			s = strings.TrimSuffix(s, "x") + "stall"
		case s == "target":
			match = "BRA"
		case s == "dst2" || s == "src2":
			match = "FFMA"
			s = strings.Replace(s, "dst2", "dst", 1)
		}
		with := s
		if s == "reads" || s == "writes" || s == "live" { // sets
			with = `"R4"`
		}
		text := match + " if " + s + " == " + with + " => stall=1"
		r, err := rule.Parse("", 1, text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if _, err := rule.NewPlanner([]*rule.Rule{r}, table, rule.Options{}); err != nil {
			t.Errorf("CONDITION %s: %v", text, err)
		}
	}
	for _, s := range docTable(t, "What is refused") {
		if _, err := check.ParseAllow(s); err != nil {
			t.Errorf("%s: %v", s, err)
		}
	}
	for _, s := range docTable(t, "Warnings") {
		if _, err := check.ParseSilent(s); err != nil {
			t.Errorf("%s: %v", s, err)
		}
	}
}

// docSamples returns the fenced samples of a language in docs/rules.md.
func docSamples(tb testing.TB, language string) []string {
	tb.Helper()
	data, err := os.ReadFile("../../docs/rules.md")
	if err != nil {
		tb.Fatal(err)
	}
	parts := strings.Split(string(data), "```")
	if len(parts)%2 == 0 {
		tb.Fatal("a fence is never closed")
	}
	var out []string
	for i := 1; i < len(parts); i += 2 {
		lang, text, _ := strings.Cut(parts[i], "\n")
		if lang != language {
			tb.Errorf("a sample in %q", lang)
			continue
		}
		out = append(out, text)
	}
	return out
}

// TestDocSamples loads every recipe that docs/rules.md shows as it is printed, and runs its
// tests.
func TestDocSamples(t *testing.T) {
	samples := docSamples(t, "toml")
	if len(samples) == 0 {
		t.Fatal("no samples")
	}
	for _, text := range samples {
		rc, err := Parse("rules.md", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if len(rc.Tests) == 0 || !rc.HasGuard() {
			t.Errorf("the sample has %d tests, guard %v", len(rc.Tests), rc.HasGuard())
		}
		for i := range rc.Tests {
			if err := rc.runTest(&rc.Tests[i], patchtest.Table(t, rc.Tests[i].Arch.String())); err != nil {
				t.Error(err)
			}
		}
		for _, hint := range rc.Params[0].Values {
			rules, err := rc.Rules(map[string]string{rc.Params[0].Name: hint})
			if err != nil {
				t.Fatal(err)
			}
			for _, arch := range rc.Arch {
				if _, err := rule.NewPlanner(rules, patchtest.Table(t, arch), rule.Options{}); err != nil {
					t.Errorf("%s: %v", arch, err)
				}
			}
		}
	}
}

// TestRuleWithoutChanges sees that a rule without set is one that keeps its instructions
// from later rules, that a parameter without a default takes its first value, and that a
// run from 0 on may be missing.
func TestRuleWithoutChanges(t *testing.T) {
	rc, err := Parse("r.toml", []byte(`
[param.hint]
values = ["EL", "EF"]
[[rule]]
name = "keep"
match = "LDG.E.64"
last = true
[[rule]]
name = "rest"
match = "LDG"
set = "evict=${hint}"
[[rule]]
name = "gap"
match = "LDG ; FFMA{0,} ; x:NOP"
set = "x: stall=5"
[[rule]]
name = "run"
match = "FFMA{0,}"
set = "stall=3"
[[test]]
arch = "sm_90"
before = '''
LDG.E.64 R4, desc[UR4][R2.64] ;
LDG.E R4, desc[UR4][R2.64] ;
NOP ;
LDG.E R4, desc[UR4][R2.64] ;
FFMA R0, R1, R2, R3 ;
NOP ;
'''
after = '''
LDG.E.64 R4, desc[UR4][R2.64] ;
LDG.E.EL R4, desc[UR4][R2.64] ;
[B------:R-:W-:-:S05] NOP ;
LDG.E.EL R4, desc[UR4][R2.64] ;
[B------:R-:W-:-:S03] FFMA R0, R1, R2, R3 ;
[B------:R-:W-:-:S05] NOP ;
'''
`))
	if err != nil {
		t.Fatal(err)
	}
	if err := rc.runTest(&rc.Tests[0], patchtest.MiniTable(t)); err != nil {
		t.Error(err)
	}
}
