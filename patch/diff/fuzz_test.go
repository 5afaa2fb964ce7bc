package diff

import (
	"bytes"
	"io/fs"
	"math/rand"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/scripts/nv/oracle"
	"github.com/cupatch/cupatch/scripts/nv/oracletest"
)

// FuzzFiles compares a cubin with a damaged one, both ways.
func FuzzFiles(f *testing.F) {
	for _, name := range []string{"sm_90/pair.cubin", "sm_90/calls_rel.cubin", "sm_75/control.cubin"} {
		f.Add(readCubin(f, pairs+name), readCubin(f, pairs+"sm_90/pair_O1.cubin"))
	}
	f.Fuzz(bothWays)
}

// bothWays compares what may be cubins in both directions.
func bothWays(t *testing.T, p, q []byte) {
	x, err1 := elfx.Open("x", p, &elfx.Options{MaxEntry: 1 << 24})
	y, err2 := elfx.Open("y", q, &elfx.Options{MaxEntry: 1 << 24})
	if err1 != nil || err2 != nil {
		return
	}
	r, err := Files(x, y, Options{Jobs: 1})
	if err != nil {
		t.Fatal(err)
	}
	_ = r.String()
	_ = r.Explain(nil)
	back, err := Files(y, x, Options{Jobs: 1})
	if err != nil {
		t.Fatal(err)
	}
	if r.Classes != back.Classes || r.Kinds&^Wrapping != back.Kinds&^Wrapping {
		t.Errorf("%v %s one way, %v %s the other", r.Classes, r.Kinds, back.Classes, back.Kinds)
	}
}

// TestRandomDamage compares cubins with copies in which bytes are changed at random.
func TestRandomDamage(t *testing.T) {
	seed := rand.Int63()
	r := rand.New(rand.NewSource(seed))
	for _, name := range []string{"sm_90/pair.cubin", "sm_90/calls_rel.cubin", "sm_75/control.cubin", "sm_90/control.cubin"} {
		p := readCubin(t, pairs+name)
		for range 50 {
			q := slices.Clone(p)
			for range 1 + r.Intn(30) {
				q[r.Intn(len(q))] = byte(r.Intn(256))
			}
			if bothWays(t, p, q); t.Failed() {
				t.Fatalf("%s, seed %d", name, seed)
			}
		}
	}
}

// TestCorpus compares every cubin of the public corpus with itself, and at random with
// another, both ways.
func TestCorpus(t *testing.T) {
	oracletest.Long(t)
	var last *elfx.File
	n := 0
	err := filepath.WalkDir(filepath.Join(oracle.CacheDir(), "cubins"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".cubin") || d.IsDir() {
			return err
		}
		f, err := elfx.OpenFile(path, nil)
		if err != nil {
			return err
		}
		n++
		r, err := Files(f, f, Options{})
		if err != nil || r.Kinds != 0 || r.Classes[Identical] != r.Compared {
			t.Errorf("%s: %v", path, r)
		}
		if last != nil && rand.Intn(8) == 0 {
			x, _ := Files(last, f, Options{})
			y, _ := Files(f, last, Options{})
			if x.Classes != y.Classes || x.Kinds != y.Kinds {
				t.Errorf("%s and %s: %s one way, %s the other", last.Name, path, x.CountsLine(), y.CountsLine())
			}
		}
		if last != nil {
			last.Close()
		}
		last = f
		return nil
	})
	if err != nil || n == 0 {
		t.Skip("no corpus: scripts/corpus makes it", err)
	}
}

// The name of a section that is not that of its kernel's symbol says the same both ways.
func TestDamagedName(t *testing.T) {
	p := readCubin(t, pairs+"sm_90/calls_rel.cubin")
	at := bytes.Index(p, []byte(".text.thrice"))
	if at < 0 {
		t.Fatal("no section .text.thrice")
	}
	q := slices.Clone(p)
	q[at+len(".text.t")] = 'z'
	bothWays(t, p, q)
}
