package isa_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cupatch/cupatch/isa"
)

// TestMistakes encodes what people write by mistake: it is refused for the right reason,
// or means what was written.
func TestMistakes(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("testdata", "mistakes.txt"))
	if err != nil {
		t.Fatal(err)
	}
	rows, tables := 0, map[string]*isa.Table{}
	for line := range strings.Lines(string(data)) {
		line = strings.TrimRight(line, "\n")
		if line == "" || line[0] == '#' {
			continue
		}
		f := strings.SplitN(line, " | ", 3)
		if len(f) != 3 || len(f[2]) < 3 {
			t.Fatalf("%q: want ARCH | TEXT | EXPECTED", line)
		}
		table := tables[f[0]]
		if table == nil {
			arch, err := isa.ParseArch(f[0])
			if err != nil {
				t.Fatal(err)
			}
			if table, err = isa.Load(arch); err != nil {
				t.Fatal(err)
			}
			tables[f[0]] = table
		}
		rows++
		got := encodeMistake(table, strings.ReplaceAll(f[1], `\t`, "\t"))
		if !sameOutcome(got, f[2]) {
			t.Errorf("%s: %s\ngot  %s\nwant %s", f[0], f[1], got, f[2])
		}
	}
	if rows < 500 || len(tables) < 6 {
		t.Errorf("%d rows for %d architectures; some are missing", rows, len(tables))
	}
}

// encodeMistake returns "= " and what the word of line decodes to, or "! " and the error.
func encodeMistake(table *isa.Table, line string) string {
	l, err := isa.ParseLine(line)
	if err != nil {
		return "! " + err.Error()
	}
	w, err := table.EncodeLine(l, nil, nil)
	if err != nil {
		return "! " + err.Error()
	}
	return "= " + table.Text(table.Decode(w), l.PC)
}

// sameOutcome reports whether got is a word with the text wanted, or an error with its
// parts in order.
func sameOutcome(got, want string) bool {
	if got[0] != want[0] || want[0] == '=' {
		return got == want
	}
	for part := range strings.SplitSeq(want[2:], " ... ") {
		_, rest, found := strings.Cut(got, part)
		if !found {
			return false
		}
		got = rest
	}
	return true
}
