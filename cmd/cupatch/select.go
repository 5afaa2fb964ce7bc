package main

import (
	"fmt"
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
		if err == nil && e.IsFor(sm, suffix) {
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

// asSet returns entries as a set.
func asSet(entries []*elfx.Entry) map[*elfx.Entry]bool {
	out := make(map[*elfx.Entry]bool, len(entries))
	for _, e := range entries {
		out[e] = true
	}
	return out
}
