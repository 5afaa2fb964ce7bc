package patch

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/patch/internal/patchtest"
)

// TestChangedMeanwhile writes two patches that were made from the same file: the second
// must not undo the first in silence.
func TestChangedMeanwhile(t *testing.T) {
	path := proof(t)
	made := func(text string) *Content {
		f, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		c, err := Rewrite(f.File, planText(t, f, text).Edits, elfx.RewriteOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	a, b := made("LDG!.EF => .EF"), made("STG!.EF => .EF")
	if _, err := a.WriteFile(path, WriteOption{}); err != nil {
		t.Fatal(err)
	}
	first, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.WriteFile(path, WriteOption{}); !errors.Is(err, ErrChanged) {
		t.Errorf("the second: %v, want that the file was changed", err)
	}
	if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, first) {
		t.Errorf("the file changed anyway, %v", err)
	}
	if _, err := b.WriteFile(filepath.Join(filepath.Dir(path), "other.cubin"), WriteOption{}); err != nil {
		t.Errorf("another path: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// proof returns the path of a copy of a cubin.
func proof(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(patchtest.Path("testdata/cubin/new/sm_90/proof.cubin"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "proof.cubin")
	if err := os.WriteFile(path, data, 0o640); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestPatchAtOnce patches one file several times at once: every patch that reports success
// must be in the result, and at least one does.
func TestPatchAtOnce(t *testing.T) {
	path := proof(t)
	old, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rules := []string{"LDG!.EF => .EF", "STG!.EF => .EF", "FADD => stall=9", "FFMA => stall=9", "IADD3 => stall=9", "IMAD => stall=9"}
	done := make([]*Plan, len(rules))
	var wg sync.WaitGroup
	for i, text := range rules {
		wg.Go(func() {
			f, err := Open(path)
			if err != nil {
				t.Error(err)
				return
			}
			defer f.Close()
			p := planText(t, f, text)
			switch _, err := p.WriteFile(path, WriteOption{}); {
			case err == nil:
				done[i] = p
			case !errors.Is(err, ErrChanged):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	now, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	all, n := Edits{}, 0
	for _, p := range done {
		if p != nil {
			n++
			for number, list := range p.Edits {
				all[number] = append(all[number], list...)
			}
		}
	}
	f, err := elfx.Open("old", old, nil)
	if err != nil {
		t.Fatal(err)
	}
	if list := verified(t, f, now, all); n == 0 || len(list) > 0 {
		t.Errorf("%d patches succeeded; against them: %v", n, list)
	}
}

// TestAttributesStay replaces a file with a special mode.
func TestAttributesStay(t *testing.T) {
	path := proof(t)
	if err := os.Chmod(path, 0o751|fs.ModeSetuid); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := planText(t, f, "LDG!.EF => .EF").WriteFile(path, WriteOption{}); err != nil {
		t.Fatal(err)
	}
	st, err := os.Stat(path)
	if err != nil || st.Mode() != 0o751|fs.ModeSetuid {
		t.Errorf("mode %v, %v, want setuid and 0751", st.Mode(), err)
	}
}
