package main

import (
	"testing"

	"github.com/cupatch/cupatch/patch"
	"github.com/cupatch/cupatch/patch/rule"
)

// Of several files the compressed cubins are compressed once, to see whether they fit, and
// what came of it is what is written.
func TestPackedOnce(t *testing.T) {
	const name = "../../testdata/fatbin/lz4.fatbin"
	f, err := patch.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := rule.Parse("", 1, "LDG => .EF")
	if err != nil {
		t.Fatal(err)
	}
	plan, err := f.Plan([]*rule.Rule{r}, rule.Options{})
	if err != nil {
		t.Fatal(err)
	}
	run := &patchRun{env: &env{}}
	for range 2 {
		fp := &filePlan{name: name}
		for number, edits := range plan.Edits {
			fp.entries = append(fp.entries, &entryPlan{number: number, packed: true, edits: edits})
		}
		run.files = append(run.files, fp)
	}
	if err := run.tryPacking(); err != nil {
		t.Fatal(err)
	}
	for _, fp := range run.files {
		made := fp.change().content
		if made == nil {
			t.Fatalf("%s: nothing was made", fp.name)
		}
		if err := fp.change().make(&run.target); err != nil || fp.change().content != made {
			t.Errorf("%s: made again: %v", fp.name, err)
		}
		fp.change().close()
	}
}
