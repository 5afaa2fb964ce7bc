package main

import (
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

// A pathUse is a path of the command line and what it is there for.
type pathUse struct {
	what, path string
	input      bool // read; else written
	changed    bool // an input that is changed in place
}

func (u *pathUse) String() string { return u.what + " " + u.path }

// A pathSet has every path that a command reads and writes. What it writes may neither
// be what it reads nor what it writes under another option.
type pathSet struct{ list []pathUse }

// reads adds a path that is read.
func (p *pathSet) reads(what, path string) { p.add(pathUse{what: what, path: path, input: true}) }

// writes adds a path that is written.
func (p *pathSet) writes(what, path string) { p.add(pathUse{what: what, path: path}) }

// changes adds a file that is changed in place.
func (p *pathSet) changes(what, path string) {
	p.add(pathUse{what: what, path: path, input: true, changed: true})
}

func (p *pathSet) add(u pathUse) {
	if u.path != "" && u.path != "-" {
		p.list = append(p.list, u)
	}
}

// check refuses that a file is written which has another use.
func (p *pathSet) check() error {
	byPath, alike := map[string]*pathUse{}, map[string][]knownUse{}
	for i := range p.list {
		u := &p.list[i]
		path, st := realPath(u.path, u.input)
		if st != nil && !st.Mode().IsRegular() {
			continue // a device, a pipe or a folder
		}
		if other := byPath[path]; other == nil {
			byPath[path] = u
		} else if !u.harmless(other) {
			return conflict(other, u)
		}
		if st == nil {
			continue
		}
		// Two names of one file, which are the same in size and time. Each can be changed
		// in place: the other keeps the old content.
		key := fmt.Sprint(st.Size(), st.ModTime().UnixNano())
		for _, k := range alike[key] {
			if os.SameFile(st, k.info) && !u.harmless(k.use) && !(u.changed && k.use.changed) {
				return conflict(k.use, u)
			}
		}
		alike[key] = append(alike[key], knownUse{u, st})
	}
	return nil
}

// A knownUse is a use of a file that exists.
type knownUse struct {
	use  *pathUse
	info fs.FileInfo
}

// harmless reports whether two uses of one file go together.
func (u *pathUse) harmless(o *pathUse) bool { return u.input && o.input && !u.changed && !o.changed }

// conflict says which two uses of a path do not go together.
func conflict(a, b *pathUse) error {
	switch {
	case a.changed && b.changed:
		if a.path == b.path {
			return usagef("%s is given twice", a.path)
		}
		return usagef("%s and %s are one file", a.path, b.path)
	case !a.input && !b.input:
		return usagef("%s and %s are one file", a, b)
	case b.input:
		a, b = b, a
	}
	x := usagef("%s would overwrite the %s", b, a)
	if b.what == "-o" && a.what == inputFile {
		x.hint = "-i changes a file in place"
	}
	return x
}

// inputFile is what a FILE of the command line is called.
const inputFile = "input"

// outFlag defines an option that names a file to write, - for standard output.
func outFlag(fs *pflag.FlagSet, p *string, name, short string) {
	fs.VarP((*outPath)(p), name, short, "")
}

// An outPath is the value of an option that names a file to write, - for standard
// output. The names that the system gives standard output mean the same: opened, they
// would be another file with a position of its own.
type outPath string

func (p *outPath) String() string { return string(*p) }

func (p *outPath) Type() string { return "string" }

func (p *outPath) Set(s string) error {
	switch s {
	case "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1":
		s = "-"
	}
	*p = outPath(s)
	return nil
}

// realPath returns a path with symbolic links followed, also where there is nothing yet,
// and what is there. Of a member of a zip file that is read it is the zip file's.
func realPath(path string, input bool) (string, fs.FileInfo) {
	st, err := os.Stat(path)
	if base, _, ok := strings.Cut(path, elfx.MemberSeparator); ok && input && err != nil {
		path = base
		st, err = os.Stat(path)
	}
	if abs, aerr := filepath.Abs(path); aerr == nil {
		path = abs
	}
	if err == nil {
		if p, err := filepath.EvalSymlinks(path); err == nil {
			path = p
		}
		return path, st
	}
	if to, err := os.Readlink(path); err == nil { // to something that does not exist
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(path), to)
		}
		path = to
	}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		path = filepath.Join(dir, filepath.Base(path))
	}
	return path, nil
}

// realName is the path alone.
func realName(path string, input bool) string {
	path, _ = realPath(path, input)
	return path
}

// notEmpty refuses options that were given the empty string for a path or suffix: it is
// what a variable without a value makes of them.
func (e *env) notEmpty(names ...string) error {
	for _, name := range names {
		if f := e.flagSet.Lookup(name); f != nil && f.Changed && f.Value.String() == "" {
			return e.usagef("--%s is empty", name)
		}
	}
	return nil
}

// writeBytes writes a whole file.
func writeBytes(path string, data []byte) error {
	return patch.WriteFile(path, patch.WriteOption{}, func(w io.Writer) error { _, err := w.Write(data); return err })
}
