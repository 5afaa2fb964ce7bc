package patch_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/patch"
	"github.com/cupatch/cupatch/patch/code"
	"github.com/cupatch/cupatch/patch/edit"
)

// TestScheduleBasalt asks basalt-sass 1.0, another checker for sm_120, which knows latencies that
// were measured on a card, what it thinks of our schedules: no kernel may have more errors than with
// the control codes of ptxas. BASALT is the program, from PyPI; nvdisasm has to be in the path.
func TestScheduleBasalt(t *testing.T) {
	basalt := os.Getenv("BASALT")
	if os.Getenv("CUPATCH_LONG") == "" || basalt == "" {
		t.Skip("CUPATCH_LONG=1 and BASALT")
	}
	nvdisasm, err := exec.LookPath("nvdisasm")
	if err != nil {
		t.Skip(err)
	}
	files, err := filepath.Glob("../testdata/cubin/new/sm_120/*.cubin")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	checked := 0
	for _, path := range files {
		f, err := elfx.OpenFile(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		target, err := code.Open(f.Entries()[0])
		if err != nil {
			t.Fatal(err)
		}
		plan, err := (&patch.Rescheduler{}).Cubin(target)
		if err != nil {
			t.Fatal(err)
		}
		data := bytes.Clone(target.Cubin.Data())
		if err := edit.Apply(data, plan.Edits); err != nil {
			t.Fatal(err)
		}
		f.Close()
		ours := filepath.Join(t.TempDir(), "ours.cubin")
		if err := os.WriteFile(ours, data, 0o644); err != nil {
			t.Fatal(err)
		}
		old, ok := basaltErrors(basalt, nvdisasm, path)
		now, ok2 := basaltErrors(basalt, nvdisasm, ours)
		if !ok || !ok2 {
			continue // no code, or code that it does not read
		}
		checked++
		if now > old {
			t.Errorf("%s: basalt finds %d errors, and %d with the control codes of ptxas", path, now, old)
		}
	}
	if checked < 15 {
		t.Errorf("%d files checked", checked)
	}
}

// basaltErrors returns how many errors basalt finds.
func basaltErrors(basalt, nvdisasm, path string) (n int, ok bool) {
	out, _ := exec.Command(basalt, "--cuda-bin", filepath.Dir(nvdisasm), "verify", path).Output()
	m := regexp.MustCompile(`checked across blocks: (?:clean|(\d+) errors?)`).FindSubmatch(out)
	if m == nil {
		return 0, false
	}
	n, _ = strconv.Atoi(string(m[1])) // nothing where it is clean
	return n, true
}
