package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/cupatch/cupatch/elfx"
)

// A visit is called with each file that holds GPU code and the entries of it that the
// selector names; the latter are nil when there was none.
type visit func(f *elfx.File, selected map[*elfx.Entry]bool) error

// eachFile opens every argument, FILE or FILE#SELECTOR, - for standard input. A file
// that cannot be read is reported and the others go on; the status says so.
func (e *env) eachFile(args []string, opt *elfx.Options, fn visit) (status int, err error) {
	for _, arg := range args {
		path, sel := elfx.CutSelector(arg)
		one := func(name string, f *elfx.File, ferr error) error {
			if ferr != nil {
				e.report(ferr)
				status = worse(status, 2)
				return nil
			}
			var selected map[*elfx.Entry]bool
			if sel != "" {
				list, err := f.Select(sel)
				var none *elfx.NoEntryError
				if errors.As(err, &none) {
					e.report(err)
					status = worse(status, 1)
					return nil
				}
				if err != nil {
					return err
				}
				selected = asSet(list)
			}
			return fn(f, selected)
		}
		if path == "-" {
			err = e.openStdin(opt, one)
		} else {
			err = elfx.Walk(path, opt, one)
		}
		var stop *exitError
		if errors.As(err, &stop) {
			return status, err
		}
		if err != nil {
			e.report(err)
			status = worse(status, 2)
		}
	}
	return status, nil
}

// readStdin reads standard input, which has a limit unless it is a file: that has a size.
func (e *env) readStdin(limit int64) (data []byte, err error) {
	if f, ok := e.stdin.(*os.File); ok {
		if st, serr := f.Stat(); serr == nil && st.Mode().IsRegular() {
			limit = max(limit, st.Size()+1)
		}
	}
	if data, err = elfx.ReadStream(e.stdin, limit); err != nil {
		return nil, fmt.Errorf("standard input: %w", err)
	}
	return data, nil
}

// readFile reads a whole file, or standard input for -.
func (e *env) readFile(path string) ([]byte, error) {
	if path == "-" {
		return e.readStdin(0)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case st.IsDir():
		return nil, fmt.Errorf("%s: is a directory", path)
	case st.Mode()&fs.ModeDevice != 0 && path != os.DevNull:
		return nil, fmt.Errorf("%s: is a device", path)
	}
	data, err := elfx.ReadStream(f, 0)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return data, nil
}

func (e *env) openStdin(opt *elfx.Options, fn func(string, *elfx.File, error) error) error {
	data, err := e.readStdin(opt.MaxEntry)
	if err != nil {
		return err
	}
	return elfx.WalkData("-", data, opt, fn)
}

// openOne opens one file, FILE or FILE#SELECTOR.
func (e *env) openOne(arg string, opt *elfx.Options) (*elfx.File, []*elfx.Entry, error) {
	path, sel := elfx.CutSelector(arg)
	var f *elfx.File
	var err error
	if path == "-" {
		data, rerr := e.readStdin(0)
		if rerr != nil {
			return nil, nil, rerr
		}
		f, err = elfx.Open("-", data, opt)
	} else {
		f, err = elfx.OpenFile(path, opt)
	}
	if err != nil {
		return nil, nil, err
	}
	entries, err := f.Select(sel)
	var none *elfx.NoEntryError
	if errors.As(err, &none) {
		err = &exitError{code: 1, err: err}
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, entries, nil
}
