package isa

import (
	"bytes"
	"errors"
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
	for _, a := range Arches() {
		f, err := LoadFile(a)
		if err != nil {
			t.Fatal(err)
		}
		var base *TableFile
		if f.Base != (Arch{}) {
			if base, err = LoadFile(f.Base); err != nil {
				t.Fatal(err)
			}
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
