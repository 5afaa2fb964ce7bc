// Packtables brings the instruction tables into the form that isa.FormatTable writes,
// and makes what the program carries beside them: an index of them, and the effects, packed. It runs in the folder of package isa:
//
//	go generate ./isa
package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/isa/internal/pack"
)

func main() {
	if err := run("tables", filepath.Join("tables", "packed")); err != nil {
		fmt.Fprintln(os.Stderr, "packtables:", err)
		os.Exit(1)
	}
}

// A formatter brings the tables of a folder into their proper form.
type formatter struct {
	dir  string
	old  map[isa.Arch]*isa.TableFile // as they stand in the folder
	text map[isa.Arch][]byte
	done map[isa.Arch]*isa.TableFile // in their proper form
}

// read returns the table of a as it stands in the folder.
func (f *formatter) read(a isa.Arch) (*isa.TableFile, error) {
	if t := f.old[a]; t != nil {
		return t, nil
	}
	name := filepath.Join(f.dir, a.String()+".txt")
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	t, err := isa.ParseTable(string(text), f.read)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	f.old[a], f.text[a] = t, text
	return t, nil
}

// format writes the table of a, which has been read, if its text changes, and returns it.
// Its base comes first, since the table may use the base's lists.
func (f *formatter) format(a isa.Arch) (*isa.TableFile, error) {
	if t := f.done[a]; t != nil {
		return t, nil
	}
	t := f.old[a]
	var base *isa.TableFile
	if t.Base != (isa.Arch{}) {
		var err error
		if base, err = f.format(t.Base); err != nil {
			return nil, err
		}
	}
	proper, err := isa.FormatTable(t, base)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a, err)
	}
	if !bytes.Equal(f.text[a], proper) {
		if err := os.WriteFile(filepath.Join(f.dir, a.String()+".txt"), proper, 0o644); err != nil {
			return nil, err
		}
	}
	t, err = isa.ParseTable(string(proper), func(isa.Arch) (*isa.TableFile, error) { return base, nil })
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a, err)
	}
	f.done[a] = t
	return t, nil
}

// formatAll formats every table in dir. All are read before any is written: the names of
// lists may change.
func formatAll(dir string) error {
	names, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil {
		return err
	}
	f := formatter{dir, map[isa.Arch]*isa.TableFile{}, map[isa.Arch][]byte{}, map[isa.Arch]*isa.TableFile{}}
	var archs []isa.Arch
	for _, name := range names {
		a, err := isa.ParseArch(strings.TrimSuffix(filepath.Base(name), ".txt"))
		if err != nil {
			return err
		}
		if _, err := f.read(a); err != nil {
			return err
		}
		archs = append(archs, a)
	}
	for _, a := range archs {
		if _, err := f.format(a); err != nil {
			return err
		}
	}
	return nil
}

// run packs the tables in src into dst, and removes what lies there no longer needed.
func run(src, dst string) error {
	if err := formatAll(src); err != nil {
		return err
	}
	files, err := pack.Effects(src)
	if err != nil {
		return err
	}
	texts, err := pack.Texts(src)
	if err != nil {
		return err
	}
	if files[pack.Index], err = isa.IndexTables(texts); err != nil {
		return err
	}
	old, err := os.ReadDir(dst)
	if err != nil {
		return err
	}
	for _, e := range old {
		if files[e.Name()] == nil {
			if err := os.Remove(filepath.Join(dst, e.Name())); err != nil {
				return err
			}
		}
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dst, name), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}
