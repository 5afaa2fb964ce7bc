package diff

import (
	"slices"
	"strings"
	"testing"

	"github.com/cupatch/cupatch/patch/internal/patchtest"
)

// TestHunkHeaders compares the places of hunks without context with those that GNU diff
// -U0 writes for the same lines.
func TestHunkHeaders(t *testing.T) {
	table := patchtest.MiniTable(t)
	const src = "FFMA R5, R3, R3, R5\nFFMA R6, R3, R3, R6\nFFMA R7, R3, R3, R7\nEXIT"
	const more = "FFMA R9, R3, R3, R9\nFFMA R10, R3, R3, R10\n"
	for _, test := range []struct {
		what, now string
		want      []string
	}{
		{"inserted in front", more + src, []string{"@@ -0,0 +1,2 @@"}},
		{"inserted behind the first", strings.Replace(src, "\n", "\n"+more, 1), []string{"@@ -1,0 +2,2 @@"}},
		{"one deleted", strings.Replace(src, "FFMA R6, R3, R3, R6\n", "", 1), []string{"@@ -2 +1,0 @@"}},
	} {
		a, b := source(t, table, src), source(t, table, test.now)
		p := Printer{Context: -1}
		k := &KernelDiff{CodeDiff: Compare(a, b), Kinds: Other}
		var got []string
		for _, l := range strings.Split(string(p.AppendKernel(nil, k)), "\n") {
			if strings.HasPrefix(l, "@@") {
				got = append(got, l)
			}
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", test.what, got, test.want)
		}
	}
}
