// Packtables brings the instruction tables into the form that isa.FormatTable writes,
// and packs them for the program. It runs in the folder of package isa:
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
	done map[isa.Arch]*isa.TableFile
}

// format reads the table of a, writes it back if its text changes, and returns it. Its
// base comes first, since the table may use the base's lists.
func (f *formatter) format(a isa.Arch) (*isa.TableFile, error) {
	if t := f.done[a]; t != nil {
		return t, nil
	}
	name := filepath.Join(f.dir, a.String()+".txt")
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var base *isa.TableFile
	t, err := isa.ParseTable(string(text), func(b isa.Arch) (*isa.TableFile, error) {
		base, err = f.format(b)
		return base, err
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	proper, err := isa.FormatTable(t, base)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if !bytes.Equal(text, proper) {
		if err := os.WriteFile(name, proper, 0o644); err != nil {
			return nil, err
		}
		if t, err = isa.ParseTable(string(proper), func(isa.Arch) (*isa.TableFile, error) { return base, nil }); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	f.done[a] = t
	return t, nil
}

// formatAll formats every table in dir.
func formatAll(dir string) error {
	names, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil {
		return err
	}
	f := formatter{dir, map[isa.Arch]*isa.TableFile{}}
	for _, name := range names {
		a, err := isa.ParseArch(strings.TrimSuffix(filepath.Base(name), ".txt"))
		if err != nil {
			return err
		}
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
	files, err := pack.Tables(src)
	if err != nil {
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
