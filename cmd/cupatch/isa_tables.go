package main

import (
	"os"
	"path/filepath"

	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/patch/code"
)

// folderTables returns the tables in a folder.
func folderTables(dir string) ([]*isa.Table, error) {
	names, err := filepath.Glob(filepath.Join(dir, "sm_*.txt"))
	if err != nil {
		return nil, err
	}
	var out []*isa.Table
	for _, name := range names {
		t, err := code.ReadTable(name)
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}

// writeTable writes the table f, which says the difference to base, to path. Tables in the
// same folder that are based on it are written again, so that they say what they said.
func writeTable(path string, f, base *isa.TableFile) error {
	w := tableWriter{dir: filepath.Dir(path), files: map[isa.Arch]*isa.TableFile{}, done: map[isa.Arch]*isa.TableFile{}}
	names, err := filepath.Glob(filepath.Join(w.dir, "sm_*.txt"))
	if err != nil {
		return err
	}
	for _, name := range names {
		old, err := code.ReadTableFile(name)
		if err != nil {
			return err
		}
		w.files[old.Arch] = old
	}
	if err := w.write(path, f, base); err != nil {
		return err
	}
	for _, old := range w.files {
		if w.follows(old, f.Arch) {
			if err := w.rewrite(old); err != nil {
				return err
			}
		}
	}
	return nil
}

// A tableWriter writes tables whose base has changed.
type tableWriter struct {
	dir   string
	files map[isa.Arch]*isa.TableFile // as they were
	done  map[isa.Arch]*isa.TableFile // as they are written
}

// follows reports whether f is based on a, perhaps by way of others.
func (w *tableWriter) follows(f *isa.TableFile, a isa.Arch) bool {
	for f.Arch != a && f.Base != (isa.Arch{}) && w.files[f.Base] != nil {
		if f = w.files[f.Base]; f.Arch == a {
			return true
		}
	}
	return false
}

// rewrite writes f, and its base before it.
func (w *tableWriter) rewrite(f *isa.TableFile) error {
	if w.done[f.Arch] != nil {
		return nil
	}
	if err := w.rewrite(w.files[f.Base]); err != nil {
		return err
	}
	return w.write(filepath.Join(w.dir, f.Arch.String()+".txt"), f, w.done[f.Base])
}

func (w *tableWriter) write(path string, f, base *isa.TableFile) error {
	text, err := isa.FormatTable(f, base)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, text, 0o644); err != nil {
		return err
	}
	w.done[f.Arch], err = isa.ParseTable(string(text), func(isa.Arch) (*isa.TableFile, error) { return base, nil })
	return err
}
