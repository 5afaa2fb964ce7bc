package rule

import (
	"os"
	"strings"
	"testing"

	"github.com/cupatch/cupatch/patch/internal/patchtest"
)

// TestFieldTable ties the table of fields to the documentation, and sees that a row says
// all that it must: what it reads, and how it is set or why it cannot be.
func TestFieldTable(t *testing.T) {
	docs, err := os.ReadFile(patchtest.Path("docs/rules.md"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range fieldTable {
		f := &fieldTable[i]
		if name := strings.TrimSuffix(f.name, "a..b]"); !strings.Contains(string(docs), "`"+name) {
			t.Errorf("docs/rules.md does not have %s", f.name)
		}
		if _, err := Parse("", 1, strings.FieldsFunc(f.name, func(c rune) bool { return c == '.' || c == '[' })[0]+":LDG => .EF"); err == nil {
			t.Errorf("%s can be a label", f.name)
		}
		if f.kind == fieldBits {
			continue
		}
		if f.num == nil && f.text == nil && f.regs == nil && f.truth == nil {
			t.Errorf("%s reads nothing", f.name)
		}
		if (f.regs != nil) != (f.kind == fieldRegs) {
			t.Errorf("%s: is it a set of registers or not?", f.name)
		}
		if settable := f.flag || f.most > 0; settable == (f.fixed != "") {
			t.Errorf("%s: can it be set or not?", f.name)
		}
		if f.can != nil && f.num == nil {
			t.Errorf("%s has the range of a number and is none", f.name)
		}
	}
}
