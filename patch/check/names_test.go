package check

import (
	"os"
	"strings"
	"testing"
)

// Every name that --allow and --no-warn take is described in docs/rules.md and in the help of
// patch.
func TestNamesAreDescribed(t *testing.T) {
	rules, err := os.ReadFile("../../docs/rules.md")
	if err != nil {
		t.Fatal(err)
	}
	help, err := os.ReadFile("../../cmd/cupatch/patch.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		names               []string
		option, heading, to string
	}{
		{refuseKinds, "--allow NAMES", "## What is refused", "## Warnings"},
		{warnNames, "--no-warn NAMES", "## Warnings", "## Applying twice"},
	} {
		_, doc, _ := strings.Cut(string(rules), x.heading)
		doc, _, found := strings.Cut(doc, x.to)
		_, option, _ := strings.Cut(string(help), x.option)
		option, _, described := strings.Cut(option, "\n      --")
		if !found || !described {
			t.Fatalf("no section %s, or no option %s", x.heading, x.option)
		}
		for _, name := range x.names {
			if !strings.Contains(doc, "| `"+name+"` |") {
				t.Errorf("docs/rules.md, %s: nothing about %s", x.heading, name)
			}
			if !strings.Contains(option, name) {
				t.Errorf("help of patch: %s does not name %s", x.option, name)
			}
		}
	}
}
