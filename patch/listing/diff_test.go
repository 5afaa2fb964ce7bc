package listing_test

import (
	"strings"
	"testing"

	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/patch/code"
	"github.com/cupatch/cupatch/patch/edit"
	"github.com/cupatch/cupatch/patch/internal/patchtest"
	"github.com/cupatch/cupatch/patch/listing"
)

// TestDiffOfBits sees that a word which reads as before says which bits differ.
func TestDiffOfBits(t *testing.T) {
	table := patchtest.MiniTable(t)
	before := patchtest.Code(t, table, patchtest.Lines("EXIT\nNOP"))
	old := isa.LoadWord(before)
	now, err := isa.Bits(122, 122).Set(old, 1)
	if err != nil {
		t.Fatal(err)
	}
	c := &code.Kernel{Name: "k", Data: before, FileOffset: -1}
	got := string(listing.AppendDiff(nil, table, c, "x", []edit.Edit{{Kernel: "k", Old: old, New: now}}, 0))
	want := "--- x k\n+++ x k\n@@ -1,1 +1,1 @@\n-/*0000*/ " + patchtest.Control + "EXIT ;\n+/*0000*/ " + patchtest.Control + "EXIT ; // illegal schedule // bits[122..122] 0x0 -> 0x1\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	now.Lo ^= 1 // too far away for one field
	got = string(listing.AppendDiff(nil, table, c, "x", []edit.Edit{{Kernel: "k", Old: old, New: now}}, 0))
	if !strings.Contains(got, "// word 0x") && !strings.Contains(got, ".word") {
		t.Errorf("far bits:\n%s", got)
	}
}
