package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/patch/diff"
)

// A diffTree is an argument: one file, or the files with GPU code of a folder or wheel,
// by their names in it.
type diffTree struct {
	arg, path, selector string
	plain               bool // one file that is no folder
	names               []string
	paths               map[string]string
}

// tree finds out what an argument holds.
func (r *diffRun) tree(arg string, opt *elfx.Options) (*diffTree, error) {
	t := &diffTree{arg: arg, paths: map[string]string{}}
	t.path, t.selector = elfx.CutSelector(arg)
	if t.path == "-" {
		t.plain = true
		return t, nil
	}
	st, err := os.Stat(t.path)
	if err == nil && !st.IsDir() && !isZip(t.path) {
		t.plain = true
		return t, nil
	}
	if err != nil && !strings.Contains(t.path, elfx.MemberSeparator) {
		return nil, err
	}
	err = elfx.Walk(t.path, opt, func(name string, f *elfx.File, err error) error {
		if err != nil {
			r.report(err)
			r.status = worse(r.status, 2)
			return nil
		}
		rel := strings.TrimPrefix(strings.TrimPrefix(name, t.path), elfx.MemberSeparator)
		rel = strings.TrimPrefix(filepath.ToSlash(rel), "/")
		t.names, t.paths[rel] = append(t.names, rel), name
		return nil
	})
	if err == nil && len(t.names) == 0 {
		err = fmt.Errorf("%s: %w", t.path, elfx.ErrNoCode)
	}
	return t, err
}

// isZip reports whether the file starts like a zip file.
func isZip(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	var head [4]byte
	_, err = f.ReadAt(head[:], 0)
	return err == nil && string(head[:]) == "PK\x03\x04"
}

// trees compares two arguments: two files, or the files of two folders that have the
// same name.
func (r *diffRun) trees(a, b string, opt *elfx.Options) error {
	x, err := r.tree(a, opt)
	if err != nil {
		return err
	}
	y, err := r.tree(b, opt)
	if err != nil {
		return err
	}
	used := &pathSet{}
	for _, t := range []*diffTree{x, y} {
		used.reads(inputFile, t.path)
		for _, name := range t.paths {
			used.reads(inputFile, name)
		}
	}
	used.writes("--html", r.html)
	if err := used.check(); err != nil {
		return err
	}
	if x.single() && y.single() {
		return r.pair(x.only(), y.only(), opt)
	}
	if x.plain || y.plain {
		return r.usagef("%s is one file and %s several", pick(x.plain, a, b), pick(x.plain, b, a))
	}
	if r.html != "" {
		return r.usagef("--html is for two files")
	}
	r.folder = true
	for _, rel := range x.names {
		if y.paths[rel] == "" {
			r.alone(rel, a)
			continue
		}
		if !r.json && !r.quiet {
			fmt.Fprintf(r.stdout, "==> %s\n", rel)
		}
		if err := r.pair(x.member(rel), y.member(rel), opt); err != nil {
			var stop *exitError
			if errors.As(err, &stop) {
				return err
			}
			r.report(err)
			r.status = worse(r.status, 2)
		}
	}
	for _, rel := range y.names {
		if x.paths[rel] == "" {
			r.alone(rel, b)
		}
	}
	if r.pairs == 0 {
		return &exitError{code: 2, err: fmt.Errorf("%s and %s: %w: no two files of the same name have kernels in common", a, b, diff.ErrNothing)}
	}
	return nil
}

func pick(first bool, a, b string) string {
	if first {
		return a
	}
	return b
}

// alone reports a file that only one of the folders has.
func (r *diffRun) alone(rel, tree string) {
	if !r.json && !r.quiet {
		fmt.Fprintf(r.stdout, "==> %s: only in %s\n", rel, tree)
	} else {
		r.notef("%s: only in %s", rel, tree)
	}
	if r.opt.Count&diff.Unpaired != 0 {
		r.status = worse(r.status, 1)
	}
}

// single reports whether t is one file, by itself or in a folder.
func (t *diffTree) single() bool { return t.plain || len(t.names) == 1 }

// only returns the argument that opens the one file of t.
func (t *diffTree) only() string {
	if len(t.names) == 1 {
		return t.member(t.names[0])
	}
	return t.arg
}

func (t *diffTree) member(rel string) string {
	return elfx.JoinSelector(t.paths[rel], t.selector)
}

// pair compares two files. The second is opened while the first is.
func (r *diffRun) pair(a, b string, opt *elfx.Options) error {
	return r.open(a, opt, func(x *diffSide) error {
		return r.open(b, opt, func(y *diffSide) error { return r.compare(x, y) })
	})
}

// open opens one file for fn.
func (r *diffRun) open(arg string, opt *elfx.Options, fn func(*diffSide) error) error {
	path, selector := elfx.CutSelector(arg)
	one := func(_ string, f *elfx.File, err error) error {
		if err != nil {
			return err
		}
		s := &diffSide{file: f}
		if selector != "" {
			list, err := f.Select(selector)
			if err != nil {
				return &exitError{code: 2, err: err}
			}
			s.selected = map[*elfx.Entry]bool{}
			for _, e := range list {
				s.selected[e] = true
			}
		}
		return fn(s)
	}
	if path == "-" {
		return r.openStdin(opt, one)
	}
	return elfx.Walk(path, opt, one)
}
