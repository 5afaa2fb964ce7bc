package isa

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/cupatch/cupatch/isa/internal/pack"
)

// TestPackedTables checks that the packed tables are those in isa/tables.
func TestPackedTables(t *testing.T) {
	files, err := pack.Effects("tables")
	if err != nil {
		t.Fatal(err)
	}
	texts, err := pack.Texts("tables")
	if err != nil {
		t.Fatal(err)
	}
	index, err := IndexTables(texts)
	if err != nil {
		t.Fatal(err)
	}
	files["index"] = index
	old, err := os.ReadDir("tables/packed")
	if err != nil {
		t.Fatal(err)
	}
	if len(old) != len(files) {
		t.Errorf("%d packed files, want %d: run go generate ./isa", len(old), len(files))
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join("tables", "packed", name))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is out of date: run go generate ./isa (%v)", name, err)
		}
	}
}

// TestTableTexts checks that every table is in the form in which FormatTable writes
// it.
func TestTableTexts(t *testing.T) {
	files := map[Arch]*TableFile{}
	load := func(a Arch) *TableFile {
		if files[a] == nil {
			f, err := LoadFile(a)
			if err != nil {
				t.Fatal(err)
			}
			files[a] = f
		}
		return files[a]
	}
	for _, a := range Arches() {
		f := load(a)
		var base *TableFile
		if f.Base != (Arch{}) {
			base = load(f.Base)
		}
		got, err := FormatTable(f, base)
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(filepath.Join("tables", a.String()+".txt"))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s.txt is not in the form that FormatTable writes (%v)", a, err)
		}
	}
}

func TestLoadUnknown(t *testing.T) {
	_, err := Load(Arch{SM: 35})
	var unknown *UnknownArchError
	if !errors.As(err, &unknown) || unknown.Arch.SM != 35 || len(unknown.Known) != len(Arches()) {
		t.Errorf("got %v", err)
	}
}

// TestEncodeFirst checks that a class of which nothing has been read yet encodes a text as
// it does later.
func TestEncodeFirst(t *testing.T) {
	whole, err := Load(Arch{90, "a"})
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	n := 0
	for i, v := range whole.Variants() {
		if i%2 != 0 || v.Default.IsZero() {
			continue
		}
		for _, in := range randomWords(whole, v, rng, 1) {
			store, err := newTableStore(tableIndex, programText)
			if err != nil {
				t.Fatal(err)
			}
			fresh, err := store.load(whole.arch)
			if err != nil {
				t.Fatal(err)
			}
			text := whole.Text(in, 0)
			want, wantErr := whole.Encode(text, 0, nil)
			if got, err := fresh.Encode(text, 0, nil); got != want || (err == nil) != (wantErr == nil) {
				t.Errorf("%s: %v (%v), later %v (%v)", text, got, err, want, wantErr)
			}
			n++
		}
	}
	if n < 20 {
		t.Errorf("only %d classes were asked", n)
	}
}
