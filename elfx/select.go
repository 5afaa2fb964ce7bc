package elfx

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cupatch/cupatch/internal/arch"
)

// ParseArch reads an architecture as people write it: sm_90a, 90a, SM90a, sm90 or
// compute_90, with the suffix a, f or none. virtual says that it was compute_.
func ParseArch(s string) (sm int, suffix string, virtual bool, err error) { return arch.Parse(s) }

// Select returns the entries that a selector names: a list, separated by commas, of
// numbers (12), ranges of numbers (3-9), architectures (sm_90a for cubins, compute_90
// for PTX) and kinds (elf, ptx, lto-ir). An empty selector names them all. Something
// in the list that names nothing is a [NoEntryError], which says what there is.
func (f *File) Select(selector string) ([]*Entry, error) {
	if selector == "" {
		return f.entries, nil
	}
	want := make(map[*Entry]bool)
	for _, part := range strings.Split(selector, ",") {
		match, err := parseSelector(strings.TrimSpace(part))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		found := false
		for _, e := range f.entries {
			if match(e) {
				want[e], found = true, true
			}
		}
		if !found {
			return nil, &NoEntryError{File: f.Name, Selector: part, Entries: len(f.entries), Targets: f.Targets()}
		}
	}
	var out []*Entry
	for _, e := range f.entries {
		if want[e] {
			out = append(out, e)
		}
	}
	return out, nil
}

// Targets returns the different architectures of the entries, in order.
func (f *File) Targets() []string {
	var sorted []*Entry
	seen := make(map[string]bool)
	for _, e := range f.entries {
		if t := e.Target(); t != "" && !seen[t] {
			seen[t] = true
			sorted = append(sorted, e)
		}
	}
	slices.SortStableFunc(sorted, func(a, b *Entry) int {
		if a.SM != b.SM {
			return a.SM - b.SM
		}
		return strings.Compare(a.Target(), b.Target())
	})
	out := make([]string, len(sorted))
	for i, e := range sorted {
		out[i] = e.Target()
	}
	return out
}

// parseSelector turns one part of a selector into a predicate.
func parseSelector(part string) (func(*Entry) bool, error) {
	if lo, hi, ok := strings.Cut(part, "-"); ok {
		a, err1 := strconv.Atoi(lo)
		b, err2 := strconv.Atoi(hi)
		if err1 == nil && err2 == nil && 0 < a && a <= b {
			return func(e *Entry) bool { return a <= e.Number && e.Number <= b }, nil
		}
	}
	if n, err := strconv.Atoi(part); err == nil {
		return func(e *Entry) bool { return e.Number == n }, nil
	}
	for k, name := range kindNames {
		if part == name {
			return func(e *Entry) bool { return e.Kind == Kind(k) }, nil
		}
	}
	sm, suffix, virtual, err := ParseArch(part)
	if err != nil {
		return nil, fmt.Errorf("entry selector %q: want a number, a range such as 3-9, an architecture or a kind", part)
	}
	return func(e *Entry) bool {
		isVirtual := e.Kind == KindPTX || e.Kind == KindLTOIR
		return e.IsFor(sm, suffix) && isVirtual == virtual && e.Kind != KindConcat
	}, nil
}
