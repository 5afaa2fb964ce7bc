package elfx

import (
	"bytes"
	"crypto/sha256"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cupatch/cupatch/scripts/nv/oracle"
	"github.com/cupatch/cupatch/scripts/nv/oracletest"
)

// TestCorpus reads every file of the public corpus (scripts/corpus): each byte of
// each fatbin section is accounted for, each cubin parses, the container and the
// cubin agree on the architecture, and cuobjdump extracts the same cubins where it
// reads the file.
func TestCorpus(t *testing.T) {
	root := filepath.Join(oracle.CacheDir(), "corpus")
	if _, err := os.Stat(root); err != nil || testing.Short() {
		t.Skip("no corpus, run scripts/corpus; or -short")
	}
	oracletest.Tool(t, "cuobjdump")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		f, err := OpenFile(path, nil)
		if err != nil {
			return nil // no GPU code
		}
		defer f.Close()
		rel, _ := filepath.Rel(root, path)
		t.Run(filepath.ToSlash(rel), func(t *testing.T) {
			if err := f.Damage(); err != nil {
				t.Error(err)
			}
			checkAccounts(t, f)
			ours := make(map[[32]byte]int)
			for _, e := range f.Entries() {
				checkEntry(t, e, ours)
			}
			compareExtracted(t, f, path, ours)
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func checkEntry(t *testing.T, e *Entry, ours map[[32]byte]int) {
	if e.Obfuscated() {
		return
	}
	if _, err := e.Data(); err != nil {
		t.Error(err)
	}
	if e.Kind != KindELF {
		return
	}
	c, err := e.Cubin()
	if err != nil {
		t.Error(err)
		return
	}
	ours[sha256.Sum256(c.Data())]++
	if c.Arch != e.Arch() && e.Suffix != "f" {
		t.Errorf("#%d: the container says %s, the cubin %s", e.Number, e.Arch(), c.Arch)
	}
	for _, k := range c.Kernels() {
		if k.Size%int64(c.InstructionSize()) != 0 || k.Regs == 0 {
			t.Errorf("#%d: %s has %d bytes and %d registers", e.Number, k.Name, k.Size, k.Regs)
		}
	}
}

// compareExtracted counts the cubins that cuobjdump extracts. It gives up on some
// files: on sm_35, and on relocation sections whose sh_link is not the symbol table.
// Then it gets the cubins one by one.
func compareExtracted(t *testing.T, f *File, path string, ours map[[32]byte]int) {
	dir := t.TempDir()
	cmd := exec.Command(oracletest.Tool(t, "cuobjdump"), "-all", "-xelf", "all", path)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	gaveUp := err != nil && (strings.Contains(string(out), "Invalid ELF") || strings.Contains(string(out), "has been removed"))
	if err != nil && !gaveUp {
		t.Errorf("cuobjdump: %v: %s", err, out)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*.cubin"))
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(b)
		if ours[sum]--; ours[sum] < 0 {
			t.Errorf("cuobjdump extracts %s, which is not among ours", filepath.Base(name))
		}
	}
	if gaveUp {
		compareEach(t, f)
		return
	}
	for _, n := range ours {
		if n > 0 {
			t.Errorf("cubins that cuobjdump does not extract: %d files from cuobjdump", len(files))
			return
		}
	}
}

// compareEach compares each cubin with what cuobjdump extracts from a fatbin with that
// one alone, where it does.
func compareEach(t *testing.T, f *File) {
	equal, none := 0, 0
	for _, e := range f.Entries() {
		if e.Kind != KindELF {
			continue
		}
		thin, err := BuildFatbin([]*Entry{e})
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "thin.fatbin"), thin.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(oracletest.Tool(t, "cuobjdump"), "-xelf", "all", "thin.fatbin")
		cmd.Dir = dir
		_ = cmd.Run() // it fails where it extracts nothing
		files, _ := filepath.Glob(filepath.Join(dir, "*.cubin"))
		if len(files) == 0 {
			none++
			continue
		}
		want, err := os.ReadFile(files[0])
		if err != nil || !bytes.Equal(entryBytes(t, e), want) {
			t.Errorf("#%d is not what cuobjdump extracts, %v", e.Number, err)
		}
		equal++
	}
	t.Logf("one by one: %d cubins are cuobjdump's, %d it cannot read", equal, none)
	if equal <= none {
		t.Errorf("cuobjdump extracts %d of %d cubins", equal, equal+none)
	}
}
