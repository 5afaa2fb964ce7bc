//go:build unix

package diff

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cupatch/cupatch/elfx"
)

// A file that is cut off after it was opened, or between the first pass and the comparison,
// gives errors of its entries, although they are read in goroutines of their own.
func TestFileBecomesShorter(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "testdata", "fatbin", "stored.fatbin"))
	if err != nil {
		t.Fatal(err)
	}
	open := func(name string, b []byte) (*elfx.File, string) {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, b, 0o666); err != nil {
			t.Fatal(err)
		}
		f, err := elfx.OpenFile(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f, path
	}
	opt := Options{Jobs: 2}
	changed := append([]byte(nil), data...)
	changed[len(changed)-5000] ^= 1
	t.Run("first pass", func(t *testing.T) {
		a, path := open("a.fatbin", data)
		if err := os.Truncate(path, 0); err != nil {
			t.Fatal(err)
		}
		x := newIndex(a, 0, 2, &opt, nil)
		if len(x.entries) == 0 {
			t.Fatal("no entries")
		}
		for _, e := range x.entries {
			if e.err == nil || !strings.Contains(e.err.Error(), "a.fatbin: the file became shorter") {
				t.Errorf("entry %d: %v", e.entry.Number, e.err)
			}
		}
	})
	t.Run("comparison", func(t *testing.T) {
		rest := make([]byte, maxMade) // so that the code of the first pass is not kept
		a, _ := open("a.fatbin", append(data, rest...))
		b, path := open("b.fatbin", append(changed, rest...))
		c := &comparer{opt: opt, r: &Result{}}
		for side, f := range []*elfx.File{a, b} {
			c.index[side] = newIndex(f, side, 1, &opt, nil)
		}
		pairs, _, _ := pairKernels(c.index[0].kernels(), c.index[1].kernels())
		if err := os.Truncate(path, 0); err != nil {
			t.Fatal(err)
		}
		if err := c.run(pairs); err != nil || len(pairs) == 0 {
			t.Fatal(err, pairs)
		}
		if !strings.Contains(fmt.Sprint(c.r.Errors), "b.fatbin: the file became shorter") {
			t.Errorf("errors: %v", c.r.Errors)
		}
	})
}
