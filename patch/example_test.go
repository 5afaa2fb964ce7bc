package patch_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/cupatch/cupatch/patch"
	"github.com/cupatch/cupatch/patch/internal/patchtest"
	"github.com/cupatch/cupatch/patch/rule"
)

// Mark the loads in a library as evict-first, wherever and however its cubins are stored,
// and prove that nothing else changed.
func ExampleOpen() {
	dir, name := library() // a shared library with compressed cubins
	defer os.RemoveAll(dir)

	lib, err := patch.Open(name)
	if err != nil {
		log.Fatal(err)
	}
	defer lib.Close()
	ef, err := rule.Parse("stream", 1, `LDG.E if kernel matches "loops" => .EF`)
	if err != nil {
		log.Fatal(err)
	}
	plan, err := lib.Plan([]*rule.Rule{ef}, rule.Options{})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := plan.WriteFile(name, patch.WriteOption{}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(plan.Edits[3][0])
	fmt.Println(plan.Summary.Changed, "of", plan.Summary.Seen, "instructions changed")
	// Output:
	// control_loops+0x140: LDG.E R0, desc[UR6][R4.64] → LDG.E.EF R0, desc[UR6][R4.64]
	// 3 of 568 instructions changed
}

// library writes a shared library with compressed cubins to a new folder.
func library() (dir, name string) {
	fatbin, err := os.ReadFile("../testdata/fatbin/lz4.fatbin")
	if err != nil {
		log.Fatal(err)
	}
	if dir, err = os.MkdirTemp("", "example"); err != nil {
		log.Fatal(err)
	}
	name = filepath.Join(dir, "lib.so")
	if err := os.WriteFile(name, patchtest.Library(fatbin), 0o644); err != nil {
		log.Fatal(err)
	}
	return dir, name
}
