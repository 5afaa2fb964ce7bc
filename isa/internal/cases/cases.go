// Package cases reads and writes the test cases of the instruction tables: one word of
// each encoding class, with the text that nvdisasm prints for it.
//
// A file has a line for each case: the word in hexadecimal, low half first, the class,
// and the text, `.silent` where nvdisasm prints none. A line `base sm_80` says that the cases
// of that architecture hold too, but for classes that have a case in the file, and for
// those that the architecture does not have.
package cases

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cupatch/cupatch/isa"
)

// Silent is the text of a case that nvdisasm accepts without printing anything.
const Silent = ".silent"

// A Case is a word of a class, and its text.
type Case struct {
	Word  isa.Word
	Class string
	Text  string
}

// A Key names a class: bits 0–11 of its words, bit 91 as bit 12, and its name.
type Key struct {
	Opcode int
	Class  string
}

// KeyOf returns the key of a word of a class.
func KeyOf(w isa.Word, class string) Key {
	return Key{w.Opcode(), class}
}

// Read returns the cases of a in the folder dir, those of its bases included where keep
// has their class; a nil keep has all.
func Read(dir string, a isa.Arch, keep map[Key]bool) ([]Case, error) {
	name := filepath.Join(dir, a.String()+".txt")
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var own, inherited []Case
	have := map[Key]bool{}
	for i, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		base, isBase := strings.CutPrefix(line, "base ")
		var c Case
		var err error
		if isBase {
			inherited, err = readBase(dir, base)
		} else if c, err = parse(line); err == nil {
			have[KeyOf(c.Word, c.Class)] = true
			own = append(own, c)
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, i+1, err)
		}
	}
	inherited = slices.DeleteFunc(inherited, func(c Case) bool {
		k := KeyOf(c.Word, c.Class)
		return have[k] || keep != nil && !keep[k]
	})
	return append(inherited, own...), nil
}

func readBase(dir, name string) ([]Case, error) {
	a, err := isa.ParseArch(name)
	if err != nil {
		return nil, err
	}
	return Read(dir, a, nil)
}

func parse(line string) (Case, error) {
	w, rest, err := isa.ParseWord(line)
	if err != nil {
		return Case{}, err
	}
	class, text, _ := strings.Cut(strings.TrimSpace(rest), " ")
	if class == "" || text == "" {
		return Case{}, errors.New("a case is a word, a class and a text")
	}
	return Case{w, class, text}, nil
}

// Write writes the cases of a; base is the architecture whose cases hold too, zero for
// none.
func Write(dir string, a, base isa.Arch, cs []Case) error {
	var b strings.Builder
	if base != (isa.Arch{}) {
		fmt.Fprintf(&b, "base %s\n", base)
	}
	for _, c := range cs {
		fmt.Fprintf(&b, "%v %s %s\n", c.Word, c.Class, c.Text)
	}
	return os.WriteFile(filepath.Join(dir, a.String()+".txt"), []byte(b.String()), 0o644)
}

// Refused is the text of a word that nvdisasm refuses.
const Refused = ".refused"

// A WordCase is a word of an architecture, and its text at address 0.
type WordCase struct {
	Arch isa.Arch
	Word isa.Word
	Text string
}

// ReadWords reads a file of words: a line for each, with the architecture, the word and the
// text, which may be missing.
func ReadWords(name string) ([]WordCase, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var out []WordCase
	for i, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		arch, rest, _ := strings.Cut(line, " ")
		a, err := isa.ParseArch(arch)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, i+1, err)
		}
		w, text, err := isa.ParseWord(rest)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, i+1, err)
		}
		out = append(out, WordCase{a, w, strings.TrimSpace(text)})
	}
	return out, nil
}

// WriteWords writes a file of words.
func WriteWords(name string, cs []WordCase) error {
	var b strings.Builder
	for _, c := range cs {
		fmt.Fprintf(&b, "%s %v %s\n", c.Arch, c.Word, c.Text)
	}
	return os.WriteFile(name, []byte(b.String()), 0o644)
}
