// Package corpustest walks the public corpus for tests. It is apart from package oracletest because
// the tests of elfx use that one.
package corpustest

import (
	"crypto/sha256"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/scripts/nv/oracle"
	"github.com/cupatch/cupatch/scripts/nv/oracletest"
)

// A Cubin is a cubin of the public corpus.
type Cubin struct {
	Entry *elfx.Entry
	Path  string // a file with the cubin alone
	Tool  string // the nvdisasm that knows it
}

// Each calls fn with each different cubin of the public corpus that has 128-bit
// instructions, or of the files below CUPATCH_CUBINS. It is for tests that take minutes, which are
// skipped unless CUPATCH_LONG is set; without a corpus they are skipped too, or fail if
// CUPATCH_ORACLE is set.
func Each(t *testing.T, fn func(Cubin)) {
	t.Helper()
	oracletest.Long(t)
	root := os.Getenv("CUPATCH_CUBINS")
	if root == "" {
		root = filepath.Join(oracle.CacheDir(), "corpus")
	}
	if _, err := os.Stat(root); err != nil {
		if os.Getenv("CUPATCH_ORACLE") != "" {
			t.Fatal(err)
		}
		t.Skipf("no corpus (%v); scripts/corpus downloads it", err)
	}
	seen := map[[32]byte]bool{}
	path := filepath.Join(t.TempDir(), "k.cubin")
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		f, err := elfx.OpenFile(name, nil)
		if err != nil {
			return nil // of no GPU code
		}
		defer f.Close()
		for _, e := range f.Entries() {
			if e.Kind != elfx.KindELF {
				continue
			}
			data, err := e.Data()
			if err != nil || seen[sha256.Sum256(data)] {
				continue
			}
			seen[sha256.Sum256(data)] = true
			c, err := elfx.ParseCubin(data)
			if err != nil || c.InstructionSize() != 16 {
				continue
			}
			if err := os.WriteFile(path, data, 0o666); err != nil {
				return err
			}
			tool := "nvdisasm"
			if c.Layout == elfx.LayoutOld {
				tool = "nvdisasm12"
			}
			fn(Cubin{Entry: e, Path: path, Tool: tool})
			e.Done()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
