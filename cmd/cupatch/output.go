package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/patch"
	"github.com/spf13/pflag"
)

// A destination is where changed files go.
type destination struct {
	out     string
	inPlace bool
	backup  string
	noGrow  bool
}

func (d *destination) flags(fs *pflag.FlagSet) {
	fs.StringVarP(&d.out, "output", "o", "", "")
	fs.BoolVarP(&d.inPlace, "in-place", "i", false, "")
	fs.StringVar(&d.backup, "backup", "", "")
	fs.BoolVar(&d.noGrow, "no-grow", false, "")
}

// check sees that the options name one destination.
func (d *destination) check(e *env, dryRun bool) error {
	n := 0
	for _, b := range []bool{d.out != "", d.inPlace, dryRun} {
		if b {
			n++
		}
	}
	switch {
	case n == 0:
		return e.usagef("where does the result go? -o OUT, -i, or -n to only look")
	case n > 1:
		return e.usagef("-o, -i and -n do not go together")
	case d.backup != "" && !d.inPlace:
		return e.usagef("--backup goes with -i")
	case strings.ContainsRune(d.backup, os.PathSeparator):
		return e.usagef("--backup %s: want a suffix, not a path", d.backup)
	}
	return nil
}

// paths returns the output path of each input. Several inputs, or a folder, need a
// folder; names in it are those of the inputs.
func (d *destination) paths(inputs []string) ([]string, error) {
	out := make([]string, len(inputs))
	if d.inPlace {
		for i, name := range inputs {
			if name == "-" {
				return nil, usagef("standard input cannot be changed in place")
			}
			out[i] = name
		}
		return out, nil
	}
	st, err := os.Stat(d.out)
	isDir := err == nil && st.IsDir() || strings.HasSuffix(d.out, string(os.PathSeparator))
	if len(inputs) == 1 && !isDir {
		out[0] = d.out
		return out, d.notInput(inputs[0], d.out)
	}
	if d.out == "-" || err == nil && !st.IsDir() {
		return nil, usagef("-o %s: several files need a folder", d.out)
	}
	base := commonDir(inputs)
	taken := map[string]string{}
	for i, name := range inputs {
		if name == "-" {
			return nil, usagef("-o %s: standard input has no name in a folder", d.out)
		}
		rel, err := filepath.Rel(base, name)
		if err != nil || strings.HasPrefix(rel, "..") {
			rel = filepath.Base(name)
		}
		out[i] = filepath.Join(d.out, rel)
		if other, ok := taken[out[i]]; ok && other != name {
			return nil, usagef("%s and %s would both become %s", other, name, out[i])
		}
		taken[out[i]] = name
		if err := d.notInput(name, out[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// commonDir returns the deepest folder that all paths are in.
func commonDir(paths []string) string {
	dir := filepath.Dir(paths[0])
	for _, p := range paths[1:] {
		for dir != "." && dir != string(os.PathSeparator) && !strings.HasPrefix(filepath.Clean(p), dir+string(os.PathSeparator)) {
			dir = filepath.Dir(dir)
		}
	}
	return dir
}

// notInput refuses to write over an input: that needs -i.
func (d *destination) notInput(in, out string) error {
	a, err1 := os.Stat(in)
	b, err2 := os.Stat(out)
	if in != "-" && out != "-" && err1 == nil && err2 == nil && os.SameFile(a, b) {
		return &exitError{code: 2, err: fmt.Errorf("%s is the input", out), hint: "-i changes a file in place"}
	}
	return nil
}

// A change is the new content of some cubins of a file, by entry number.
type change struct {
	input string
	data  []byte // of standard input
	edits map[int][]patch.Edit
}

// write makes the output of one file and proves that it is the input with exactly
// the edits. It returns the identity of the output.
func (d *destination) write(e *env, c *change, out string) (*patch.ReportHash, error) {
	f, err := c.open()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	changes, err := changedEntries(f, c.edits)
	if err != nil {
		return nil, err
	}
	content, rep, err := f.Rewrite(changes, elfx.RewriteOptions{NoGrow: d.noGrow})
	if err != nil {
		return nil, err
	}
	for _, why := range rep.Why {
		e.notef("%s: %s", f.Name, why)
	}
	after := content.Bytes()
	if err := checkOutput(f, after, c.edits); err != nil {
		return nil, fmt.Errorf("%s: the new content is wrong, nothing is written: %w", f.Name, err)
	}
	return patch.HashOf(after), d.store(e, f, after, out)
}

// changedEntries returns the data of the entries that edits change, by entry number.
func changedEntries(f *elfx.File, edits map[int][]patch.Edit) (map[*elfx.Entry][]byte, error) {
	changes := map[*elfx.Entry][]byte{}
	for _, x := range f.Entries() {
		if len(edits[x.Number]) == 0 {
			continue
		}
		data, err := x.Data()
		if err != nil {
			return nil, err
		}
		data = append([]byte(nil), data...)
		if err := patch.Apply(data, edits[x.Number]); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		changes[x] = data
	}
	return changes, nil
}

// open opens the input again.
func (c *change) open() (*elfx.File, error) {
	if c.data != nil {
		return elfx.Open("-", c.data, nil)
	}
	return elfx.OpenFile(c.input, nil)
}

// store writes content to out and reads it back.
func (d *destination) store(e *env, f *elfx.File, content []byte, out string) error {
	if out == "-" {
		_, err := e.stdout.Write(content)
		return err
	}
	opt := patch.WriteOption{Warn: func(s string) { e.warnf("%s", s) }}
	if st, err := os.Stat(f.Name); err == nil && f.Name != "-" {
		opt.Mode = st.Mode()
	}
	if dir := filepath.Dir(out); !d.inPlace {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if d.backup != "" {
		if err := backupFile(e, f, out+d.backup, opt); err != nil {
			return err
		}
	}
	err := patch.WriteFile(out, opt, func(w io.Writer) error { _, err := w.Write(content); return err })
	if err != nil {
		return err
	}
	return readBack(out, content)
}

// backupFile keeps the old content; an existing backup is not overwritten.
func backupFile(e *env, f *elfx.File, path string, opt patch.WriteOption) error {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return &exitError{code: 2, err: fmt.Errorf("%s exists already", path), hint: "remove it, or choose another --backup"}
	}
	return patch.WriteFile(path, opt, func(w io.Writer) error { _, err := w.Write(f.Data()); return err })
}

// readBack compares a file with what was written to it.
func readBack(path string, want []byte) error {
	st, err := os.Stat(path)
	if err != nil || !st.Mode().IsRegular() {
		return err
	}
	got, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if string(got) != string(want) {
		return fmt.Errorf("%s: what was read back is not what was written", path)
	}
	return nil
}

// checkOutput proves that content is f with exactly the edits: every cubin and every
// other entry is compared, and where nothing moved every byte.
func checkOutput(f *elfx.File, content []byte, edits map[int][]patch.Edit) error {
	g, err := elfx.Open(f.Name, content, nil)
	if err != nil {
		return err
	}
	if len(g.Entries()) != len(f.Entries()) {
		return fmt.Errorf("%d entries instead of %d", len(g.Entries()), len(f.Entries()))
	}
	stored := true
	for i, a := range f.Entries() {
		b := g.Entries()[i]
		stored = stored && (a.Stored() || len(edits[a.Number]) == 0)
		if a.Err != nil || a.Kind == elfx.KindConcat || a.Obfuscated() {
			continue
		}
		old, err := a.Data()
		if errors.Is(err, elfx.ErrUnsupported) {
			continue
		}
		if err != nil {
			return err
		}
		now, err := b.Data()
		if err != nil {
			return err
		}
		if err := patch.CheckApplied(old, now, edits[a.Number]); err != nil {
			return fmt.Errorf("entry %d: %w", a.Number, err)
		}
	}
	if !stored || len(content) != len(f.Data()) {
		return nil
	}
	var all []patch.Edit
	for _, list := range edits {
		for _, x := range list {
			x.Offset = uint64(x.FileOffset)
			all = append(all, x)
		}
	}
	return patch.CheckApplied(f.Data(), content, all)
}
