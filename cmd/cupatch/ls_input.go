package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/cupatch/cupatch/elfx"
	"github.com/spf13/pflag"
)

// A narrowing is what the options -a, -k and --max-entry say about which entries a
// command looks at.
type narrowing struct {
	arches   []string
	kernels  []string
	maxEntry string
	miss     misses
}

func (n *narrowing) flags(fs *pflag.FlagSet) {
	fs.StringSliceVarP(&n.arches, "arch", "a", nil, "")
	fs.StringArrayVarP(&n.kernels, "kernel", "k", nil, "")
	fs.StringVar(&n.maxEntry, "max-entry", "", "")
}

// options turns the limits into options for opening files.
func (n *narrowing) options() (*elfx.Options, error) {
	opt := &elfx.Options{}
	if n.maxEntry != "" {
		size, err := parseSize(n.maxEntry)
		if err != nil {
			return nil, usagef("--max-entry: %v", err)
		}
		opt.MaxEntry = size
	}
	for _, a := range n.arches {
		if _, _, _, err := elfx.ParseArch(a); err != nil {
			return nil, usagef("-a: %v", err)
		}
	}
	return opt, nil
}

// String returns the options as they were given.
func (n *narrowing) String() string {
	var out []string
	for _, a := range n.arches {
		out = append(out, "-a "+a)
	}
	for _, k := range n.kernels {
		out = append(out, "-k "+k)
	}
	return strings.Join(out, " ")
}

// parseSize reads a number of bytes with an optional suffix K, M or G (powers of 1024).
func parseSize(s string) (int64, error) {
	num, shift := s, 0
	if i := strings.IndexByte("KMG", s[len(s)-1]&^0x20); i >= 0 {
		num, shift = s[:len(s)-1], 10*(i+1)
	}
	v, err := strconv.ParseInt(num, 10, 64)
	if err != nil || v <= 0 || v > 1<<62>>shift {
		return 0, fmt.Errorf("size %q: want a number of bytes such as 500M", s)
	}
	return v << shift, nil
}

// archWanted reports whether -a lets the entry through.
func (n *narrowing) archWanted(e *elfx.Entry) bool {
	if len(n.arches) == 0 {
		return true
	}
	for _, a := range n.arches {
		sm, suffix, _, err := elfx.ParseArch(a)
		if err == nil && sm == e.SM && suffix == e.Suffix {
			return true
		}
	}
	return false
}

// kernelWanted reports whether -k lets the kernel through.
func (n *narrowing) kernelWanted(k *elfx.Kernel) bool {
	if len(n.kernels) == 0 {
		return true
	}
	for _, g := range n.kernels {
		if k.Matches(g) {
			return true
		}
	}
	return false
}

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
