package patch

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/patch/internal/patchtest"
	"github.com/cupatch/cupatch/patch/rule"
)

// planText plans one rule for a file.
func planText(tb testing.TB, f *File, text string) *Plan {
	tb.Helper()
	r, err := rule.Parse("", 1, text)
	if err != nil {
		tb.Fatal(err)
	}
	p, err := f.Plan([]*rule.Rule{r}, rule.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// TestPlaces sees that edits say where their words are without being told: the word at
// the offset in the file is the old one, and a compressed cubin has no such offset.
func TestPlaces(t *testing.T) {
	read := func(name string) []byte {
		b, err := os.ReadFile(patchtest.Path("testdata/" + name))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	stored := read("fatbin/stored.fatbin")
	for _, test := range []struct {
		name   string
		data   []byte
		first  int64 // offset of the first edit in the file
		labels bool
	}{
		{"bare", read("cubin/new/sm_90/loads.cubin"), 0, false},
		{"stored.fatbin", stored, 5152, true},
		{"library", patchtest.Library(stored), 5152 + 96, true},
		{"zstd.fatbin", read("fatbin/zstd.fatbin"), -1, true},
		{"lz4.fatbin", read("fatbin/lz4.fatbin"), -1, true},
	} {
		f, err := OpenBytes(test.name, test.data)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for number, edits := range planText(t, f, "LDG!.EF => .EF").Edits {
			for i, e := range edits {
				n++
				label := ""
				if test.labels {
					label = strconv.Itoa(number)
				}
				if e.Entry != label {
					t.Errorf("%s: %v: entry %q, want %q", test.name, e, e.Entry, label)
				}
				if number == 1 && i == 0 && test.first > 0 && e.FileOffset != test.first {
					t.Errorf("%s: %v at %d, want %d", test.name, e, e.FileOffset, test.first)
				}
				if test.first < 0 && e.FileOffset != -1 || test.first >= 0 && isa.LoadWord(test.data[e.FileOffset:]) != e.Old {
					t.Errorf("%s: %v is not at %d", test.name, e, e.FileOffset)
				}
			}
		}
		if n < 3 {
			t.Errorf("%s: %d edits", test.name, n)
		}
	}
}

// TestPlanWrite writes plans back into every kind of container: the output holds the new
// words, and undoing them gives the old cubins.
func TestPlanWrite(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"cubin/new/sm_90/loads.cubin", "fatbin/stored.fatbin", "fatbin/lz4.fatbin", "fatbin/zstd.fatbin", "fatbin/concat.fatbin", "fatbin/default.fatbin"} {
		f, err := Open(patchtest.Path("testdata/" + name))
		if err != nil {
			t.Fatal(err)
		}
		plan := planText(t, f, "LDG!.EF => .EF")
		out := filepath.Join(dir, filepath.Base(name))
		hash, err := plan.WriteFile(out, WriteOption{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		st, err := os.Stat(out)
		if err != nil || st.Size() != hash.Size {
			t.Errorf("%s: %v, %d bytes", name, err, hash.Size)
		}
		g, err := Open(out)
		if err != nil {
			t.Fatal(err)
		}
		if again := planText(t, g, "LDG => .EF"); again.Summary.Changed != 0 || again.Summary.Same < plan.Summary.Changed {
			t.Errorf("%s: patched again: %+v", name, again.Summary)
		}
		for i, e := range f.Entries() {
			if e.Kind != elfx.KindELF {
				continue
			}
			old, err1 := e.Data()
			now, err2 := g.Entries()[i].Data()
			if err := errors.Join(err1, err2); err != nil {
				t.Fatal(err)
			}
			back := bytes.Clone(now)
			for _, x := range plan.Edits[e.Number] {
				x.Old.Store(back[x.Offset:])
			}
			if !bytes.Equal(back, old) || bytes.Equal(old, now) != (len(plan.Edits[e.Number]) == 0) {
				t.Errorf("%s: entry %d is not the old one with its edits", name, e.Number)
			}
		}
		f.Close()
		g.Close()
	}
}

// TestPlanErrors sees that a file without anything to patch, and a rule whose instruction
// no architecture has, are errors.
func TestPlanErrors(t *testing.T) {
	f, err := Open(patchtest.LoadsCubin)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := rule.Parse("", 1, "LDGX => .EF")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Plan([]*rule.Rule{r}, rule.Options{}); err == nil || !strings.Contains(err.Error(), "LDGX") {
		t.Errorf("got %v", err)
	}
}
