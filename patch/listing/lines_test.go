package listing_test

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/patch/code"
	"github.com/cupatch/cupatch/patch/listing"
	"github.com/cupatch/cupatch/scripts/nv/corpustest"
	"github.com/cupatch/cupatch/scripts/nv/oracle"
	"github.com/cupatch/cupatch/scripts/nv/oracletest"
)

const root = "../.."

// lineFlags are the flags of nvdisasm for lines.
var lineFlags = []string{"-g", "-gi", "-gp"}

// lineNotes returns the comments about lines in our listings of a cubin, as the lines of
// testdata/lines.txt have them, in the order of the sections.
func lineNotes(t *testing.T, path, flag string) []string {
	t.Helper()
	f, err := elfx.OpenFile(filepath.Join(root, path), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	target, err := code.Open(f.Entries()[0])
	if err != nil {
		t.Fatal(err)
	}
	return notesOf(t, path, target, flag)
}

// notesOf is lineNotes of a cubin that is open.
func notesOf(t *testing.T, path string, target *code.Target, flag string) []string {
	t.Helper()
	kind := elfx.SourceLines
	if flag == "-gp" {
		kind = elfx.PTXLines
	}
	table, err := target.Cubin.Lines(kind)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for i := range target.Cubin.Kernels() {
		k := &target.Cubin.Kernels()[i]
		notes := listing.Notes{Lines: table.Rows(k), Inline: flag == "-gi"}
		text := listing.Style{}.AppendNoted(nil, target.Table, target.Kernel(k), notes, nil)
		var above []string
		for _, line := range strings.Split(string(text), "\n") {
			if note, ok := strings.CutPrefix(line, "//## "); ok {
				above = append(above, note)
			} else if above != nil {
				pc := strings.TrimLeft(line[len("/*"):strings.Index(line, "*/")], "0")
				if pc == "" {
					pc = "0"
				}
				section := target.Cubin.Sections()[k.Index].Name
				out = append(out, fmt.Sprintf("%s\t%s\t%s\t%s\t%s", path, flag, section, pc, strings.Join(above, "|")))
				above = nil
			}
		}
	}
	return out
}

// TestLines compares the source lines in listings with those that nvdisasm prints.
func TestLines(t *testing.T) {
	f, err := os.Open("testdata/lines.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	want := map[string][]string{} // by cubin and flag
	var keys []string
	n := 0
	for sc := bufio.NewScanner(f); sc.Scan(); {
		if strings.HasPrefix(sc.Text(), "#") {
			continue
		}
		cols := strings.Split(sc.Text(), "\t")
		key := cols[0] + "\t" + cols[1]
		if want[key] == nil {
			keys = append(keys, key)
		}
		want[key] = append(want[key], sc.Text())
		n++
	}
	if n < 1000 {
		t.Fatalf("only %d cases", n)
	}
	for _, key := range keys {
		path, flag, _ := strings.Cut(key, "\t")
		compareNotes(t, lineNotes(t, path, flag), want[key])
	}
}

// compareNotes compares two lists of notes, which may have the sections in another order.
func compareNotes(t *testing.T, got, want []string) {
	t.Helper()
	known := map[string]bool{}
	for _, w := range want {
		known[w] = true
	}
	for _, g := range got {
		if !known[g] {
			t.Errorf("%s: nvdisasm does not say that", g)
		}
		delete(known, g)
	}
	for _, w := range want {
		if known[w] {
			t.Errorf("missing: %s", w)
		}
	}
}

// TestLinesAgainstNvdisasm does the same with the tool, for every cubin of testdata.
func TestLinesAgainstNvdisasm(t *testing.T) {
	if os.Getenv("CUPATCH_LONG") == "" {
		t.Skip("a long test: set CUPATCH_LONG=1")
	}
	paths, err := filepath.Glob(root + "/testdata/cubin/*/*/*.cubin")
	if err != nil || len(paths) < 100 {
		t.Fatalf("%d cubins: %v", len(paths), err)
	}
	for _, path := range paths {
		arch := filepath.Base(filepath.Dir(path))
		tool := oracle.Current("nvdisasm", arch)
		oracletest.Tool(t, tool)
		name := strings.TrimPrefix(filepath.ToSlash(path), root+"/")
		for _, flag := range lineFlags {
			notes, err := oracle.LineNotes(tool, flag, path)
			if err != nil {
				t.Errorf("%v", err)
				continue
			}
			var want []string
			for _, n := range notes {
				want = append(want, note(name, flag, n))
			}
			compareNotes(t, lineNotes(t, name, flag), want)
		}
	}
}

func note(path, flag string, n oracle.LineNote) string {
	return fmt.Sprintf("%s\t%s\t%s\t%x\t%s", path, flag, n.Section, n.PC, strings.Join(n.Lines, "|"))
}

// TestLinesOfCorpus does the same for the cubins of the corpus that have line information.
func TestLinesOfCorpus(t *testing.T) {
	cubins, notes := 0, 0
	corpustest.Each(t, func(x corpustest.Cubin) {
		target, err := code.Open(x.Entry)
		if err != nil || target.Table == nil {
			return
		}
		if c := target.Cubin; c.Section(".debug_line") == nil && c.Section(".nv_debug_line_sass") == nil {
			return
		}
		cubins++
		for _, flag := range lineFlags {
			list, err := oracle.LineNotes(x.Tool, flag, x.Path)
			if err != nil {
				t.Logf("%s: %v", target.File, err)
				continue
			}
			name := fmt.Sprintf("%s#%s", target.File, target.Entry)
			var want []string
			for _, n := range list {
				want = append(want, note(name, flag, n))
			}
			compareNotes(t, notesOf(t, name, target, flag), want)
			notes += len(want)
		}
	})
	t.Logf("%d cubins with line information, %d notes", cubins, notes)
}
