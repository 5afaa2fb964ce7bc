package isa_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/isa/internal/cases"
)

// TestClasses decodes, prints and encodes one word of every encoding class of every table;
// the texts are nvdisasm's, see internal/classcases.
func TestClasses(t *testing.T) {
	for _, a := range isa.Arches() {
		t.Run(a.String(), func(t *testing.T) {
			table, err := isa.Load(a)
			if err != nil {
				t.Fatal(err)
			}
			left := map[cases.Key]bool{}
			for _, v := range table.Variants() {
				left[cases.KeyOf(v.Value, v.Class)] = true
			}
			cs, err := cases.Read(filepath.Join("testdata", "classes"), a, left)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range cs {
				delete(left, cases.KeyOf(c.Word, c.Class))
				checkCase(t, table, c)
			}
			for k := range left {
				t.Errorf("class %s of opcode %#x has no case", k.Class, k.Opcode)
			}
		})
	}
}

func checkCase(t *testing.T, table *isa.Table, c cases.Case) {
	t.Helper()
	in := table.Decode(c.Word)
	if in.Variant == nil || in.Variant.Class != c.Class || in.BadSched {
		t.Errorf("%v: no legal word of %s", c.Word, c.Class)
		return
	}
	if c.Text == cases.Silent {
		if in.Status != isa.StatusSilent {
			t.Errorf("%v: of %s, should print nothing", c.Word, c.Class)
		}
		return
	}
	if text := table.Text(in, 0); text != c.Text {
		t.Errorf("%v: got %q, nvdisasm says %q", c.Word, text, c.Text)
	}
	if back, err := table.Encode(c.Text, 0, &c.Word); err != nil || back != c.Word {
		t.Errorf("%q of %s is encoded as %v, %v; want %v", c.Text, c.Class, back, err, c.Word)
	}
	bare, err := table.Encode(c.Text, 0, nil)
	if err != nil {
		t.Errorf("%q of %s: %v", c.Text, c.Class, err)
	} else if text := table.Text(table.Decode(bare), 0); text != c.Text {
		t.Errorf("%q of %s, encoded from its text alone, prints as %q", c.Text, c.Class, text)
	}
}

// TestWords decodes words that a table once had wrong; the texts are nvdisasm's.
func TestWords(t *testing.T) {
	cs, err := cases.ReadWords(filepath.Join("testdata", "words.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cs {
		table, err := isa.Load(c.Arch)
		if err != nil {
			t.Fatal(err)
		}
		in := table.Decode(c.Word)
		text := strings.Join(strings.Fields(table.Text(in, 0)), " ")
		switch {
		case in.Status == isa.StatusUnknown || in.Status == isa.StatusIllegal || in.BadSched:
			text = cases.Refused
		case in.Status == isa.StatusSilent:
			text = cases.Silent
		}
		if want := strings.Join(strings.Fields(c.Text), " "); text != want {
			t.Errorf("%s %v: got %q, nvdisasm says %q", c.Arch, c.Word, text, want)
		}
	}
}
