package main

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"

	"github.com/cupatch/cupatch/patch"
	"github.com/spf13/pflag"
)

// A destination is where changed files go.
type destination struct {
	out     string
	inPlace bool
	backup  string
	noGrow  bool
	folder  bool // out is a folder, made if need be

	keepOriginal bool
	originals    *bufio.Writer // of the file that keeps the way back, if it is kept
}

func (d *destination) flags(fs *pflag.FlagSet) {
	outFlag(fs, &d.out, "output", "o")
	fs.BoolVarP(&d.inPlace, "in-place", "i", false, "")
	fs.StringVar(&d.backup, "backup", "", "")
	fs.BoolVar(&d.noGrow, "no-grow", false, "")
}

// check sees that the options name one destination.
func (d *destination) check(e *env, dryRun bool) error {
	if err := e.notEmpty("output", "backup", "report"); err != nil {
		return err
	}
	n := 0
	for _, b := range []bool{d.out != "", d.inPlace, dryRun} {
		if b {
			n++
		}
	}
	switch {
	case n == 0:
		if e.flagSet.Lookup("dry-run") == nil {
			return e.usagef("where does the result go? -o OUT or -i")
		}
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

// prepare returns the output path of each input, and finds out before anything is written
// whether the outputs can be: whether they or what is written beside them would overwrite
// something that the command needs, whether there are backups already, and whether files
// can be put there. used has the other paths of the command.
func (d *destination) prepare(used *pathSet, inputs []string) ([]string, error) {
	outs, err := d.paths(inputs)
	if err != nil {
		return nil, err
	}
	for i, name := range inputs {
		if d.inPlace {
			used.changes(inputFile, name)
		} else {
			used.reads(inputFile, name)
			used.writes("-o", outs[i])
		}
		if d.backup != "" {
			used.writes("--backup", name+d.backup)
		}
	}
	if err := used.check(); err != nil {
		return nil, err
	}
	for _, out := range outs {
		if d.backup != "" {
			if err := noBackup(out, out+d.backup); err != nil {
				return nil, err
			}
		}
	}
	for _, out := range outs {
		if d.folder {
			if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
				return nil, err
			}
		}
		if out != "-" {
			if err := patch.CanWrite(out); err != nil {
				return nil, err
			}
		}
	}
	return outs, nil
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
		return out, nil
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
		if other, ok := taken[out[i]]; ok {
			if other == name {
				return nil, usagef("%s is given twice", name)
			}
			return nil, usagef("%s and %s would both become %s", other, name, out[i])
		}
		taken[out[i]] = name
	}
	d.folder = true
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
