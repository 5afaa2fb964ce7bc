package isa_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cupatch/cupatch/isa"
)

// TestPages decodes, prints and encodes words made from the pages' facts: every value of
// every group of every variant, and random ones.
func TestPages(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, v := range loadPages(t) {
		for _, arch := range v.Archs {
			table := loadTable(t, arch)
			for _, w := range v.words(rng, arch, 200) {
				v.check(t, table, w, arch)
			}
		}
	}
}

// loadTable returns the table for arch.
func loadTable(t *testing.T, arch string) *isa.Table {
	t.Helper()
	a, err := isa.ParseArch(arch)
	if err != nil {
		t.Fatal(err)
	}
	table, err := isa.Load(a)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// check compares what the table makes of w with the page.
func (v *pageVariant) check(t *testing.T, table *isa.Table, w isa.Word, arch string) {
	t.Helper()
	in := table.Decode(w)
	if v.refused(w, arch) {
		if in.Status == isa.StatusKnown || in.Status == isa.StatusSilent {
			t.Errorf("%s %v is refused by nvdisasm, decoded as %q", arch, w, table.Text(in, 0))
		}
		return
	}
	want := v.text(w, arch)
	if got := table.Text(in, 0); got != want || in.Status != isa.StatusKnown || in.BadSched {
		t.Errorf("%s %v: text %q, status %d, want %q", arch, w, got, in.Status, want)
		return
	}
	if got, err := table.Encode(want, 0, &w); err != nil || got != w {
		t.Errorf("%s: %q like %v is encoded as %v, %v", arch, want, w, got, err)
	}
	// Without a word to start from, all that the page has is in the text.
	got, err := table.Encode(want, 0, nil)
	if err != nil {
		t.Errorf("%s: %q: %v", arch, want, err)
		return
	}
	page := isa.Bits(0, 11).Mask().Or(isa.Bits(12, 15).Mask())
	for _, f := range v.Fields {
		page = page.Or(f.Bits.Mask())
	}
	// INVALID7 is a value of two groups: there the text alone does not tell which.
	if strings.Contains(want, "INVALID") && table.Text(table.Decode(got), 0) == want {
		return
	}
	if got.And(page) != w.And(page) {
		t.Errorf("%s: %q is encoded as %v, want %v but for hidden bits", arch, want, got, w)
	}
}
