package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/patch/code"
)

// A table that is written again changes its own file, and leaves what those say that are
// based on it, also by way of others.
func TestWriteTable(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"sm_80": "arch sm_80\nlist one = .A | .B | .C | .D\n\nclass a 0x0001\n  text AAA{72:73 one}\n\nclass b 0x0002\n  text BBB\n",
		"sm_86": "arch sm_86\nbase sm_80\n\nclass c 0x0003\n  text CCC{72:73 one}\n",
		"sm_89": "arch sm_89\nbase sm_86\ndrop b 0x0002\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name+".txt"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "sm_80.txt")
	read := func(name string) map[string]string {
		f, err := code.ReadTableFile(filepath.Join(dir, name+".txt"))
		if err != nil {
			t.Fatal(err)
		}
		classes := map[string]string{}
		for _, v := range f.Variants {
			classes[v.Class] = isa.FormatVariant(v)
		}
		return classes
	}
	before := [2]map[string]string{read("sm_86"), read("sm_89")}
	f, err := code.ReadTableFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f.Variants = f.Variants[1:] // no a
	if err := writeTable(path, f, nil); err != nil {
		t.Fatal(err)
	}
	if got := read("sm_80"); len(got) != 1 || got["b"] == "" {
		t.Errorf("sm_80 has %v", got)
	}
	for i, name := range []string{"sm_86", "sm_89"} {
		got := read(name)
		for class, want := range before[i] {
			if got[class] != want {
				t.Errorf("%s: %s became\n%s, was\n%s", name, class, got[class], want)
			}
		}
		if len(got) != len(before[i]) {
			t.Errorf("%s has %d classes, had %d", name, len(got), len(before[i]))
		}
	}
}
