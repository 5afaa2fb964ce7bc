package patch

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// docTable returns what stands in back quotes in the first column of the tables of a
// section of docs/rules.md.
func docTable(tb testing.TB, section string) []string {
	tb.Helper()
	data, err := os.ReadFile("../docs/rules.md")
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
		if _, err := ParseMatch(s); err != nil {
			t.Errorf("MATCH %s: %v", s, err)
		}
	}
	for _, s := range docTable(t, "CHANGES") {
		if _, err := ParseRule("", 1, "LDG => "+s); err != nil {
			t.Errorf("CHANGES %s: %v", s, err)
		}
	}
	table := miniTable(t)
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
		text := match + " if " + s + " == " + s + " => stall=1"
		r, err := ParseRule("", 1, text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if _, err := NewPlanner([]*Rule{r}, table, Options{}); err != nil {
			t.Errorf("CONDITION %s: %v", text, err)
		}
	}
	for _, s := range docTable(t, "What is refused") {
		if _, err := ParseAllow(s); err != nil {
			t.Errorf("%s: %v", s, err)
		}
	}
	for _, s := range docTable(t, "What is warned of") {
		if _, err := ParseSilent(s); err != nil {
			t.Errorf("%s: %v", s, err)
		}
	}
}
