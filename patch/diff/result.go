package diff

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cupatch/cupatch/elfx"
)

// ErrNothing says that there was no kernel to compare, so that nothing can be said.
var ErrNothing = errors.New("nothing was compared")

// Options say what is compared and what counts. The zero value compares everything and
// counts what changes the code.
type Options struct {
	// Count has the kinds of difference that make files different; 0 means those of the
	// level code.
	Count Kinds
	// Kernel and Entry select; nil takes all. Side is 0 for the first file.
	Kernel func(*elfx.Kernel) bool
	Entry  func(side int, e *elfx.Entry) bool
	// Jobs is how many entries are read at once; 0 means one per processor.
	Jobs int
	// Visit, if set, is called with each pair of kernels in the order of the first file,
	// and the result does not keep them: the way to compare large files in little
	// memory. The KernelDiff must not be used after Visit returns.
	Visit func(*KernelDiff) error
}

// DefaultCount has the kinds of difference of the level code.
func DefaultCount() Kinds {
	k, _ := ParseLevel("code")
	return k
}

// A Side is one of the two files as far as it was read.
type Side struct {
	Name         string `json:"name"`
	Kind         string `json:"kind"`
	Size         int64  `json:"size"`
	Cubins       int    `json:"cubins"`
	Kernels      int    `json:"kernels"`
	Instructions int    `json:"instructions"`
	Unknown      int    `json:"unknown"` // words that the instruction tables do not know
	Unread       int    `json:"unread"`  // entries that cannot be read
}

// A KernelRef names a kernel of one file.
type KernelRef struct {
	Arch         string `json:"arch"`
	Name         string `json:"name"`
	Entry        int    `json:"entry"` // number in the file
	Instructions int    `json:"instructions"`
}

// A Note is a difference outside the code of a kernel, in words.
type Note struct {
	Kind  Kinds
	Where string // the entries, such as #3 and #4; empty for the whole file or a bare cubin
	What  string // the section, or what else it is about
	Text  string
	// Always says that reports must not keep silent about it: something that was not
	// compared, such as PTX, differs.
	Always bool
}

// shown reports whether a report of r has the note.
func (n Note) shown(r *Result) bool { return n.Always || n.Kind&r.Count != 0 }

func (n Note) String() string {
	s := n.What + ": " + n.Text
	if n.Where != "" {
		s = n.Where + ": " + s
	}
	return s
}

// A KernelDiff is the result for a pair of kernels.
type KernelDiff struct {
	Arch       string
	NameA      string
	NameB      string
	EntryA     int // number in the file
	EntryB     int
	PairedBy   Pairing
	Similarity float64 // of kernels paired by similarity, 0 to 1
	// Instructions, without padding, and those of them that the tables do not know, by
	// side.
	Instructions [2]int
	Unknown      [2]int
	// Kinds are all kinds of difference found in the pair, those of the code among
	// them.
	Kinds     Kinds
	Resources []Change // with attributes
	Relocs    []Change
	Data      []Change // constant banks of the kernel, and what they refer to
	Loader    []Change // what else a loader sees
	*CodeDiff
}

// Name returns the kernel's name, or both names where they differ.
func (k *KernelDiff) Name() string { return pairName(k.NameA, k.NameB, nil) }

// pairName returns the name of a pair of kernels as demangle writes it, and both names
// where they differ then.
func pairName(a, b string, demangle func(string) string) string {
	if demangle != nil {
		a, b = demangle(a), demangle(b)
	}
	if a == b {
		return a
	}
	return a + " → " + b
}

// A Result is the result of comparing two files.
type Result struct {
	A, B      Side
	Count     Kinds // that make the files different
	Kinds     Kinds // that were found
	SameBytes bool  // the files are the same, byte for byte
	Compared  int   // pairs of kernels
	Classes   [numClasses]int
	Kernels   []*KernelDiff // empty with Options.Visit
	Rows      []Row         // of the kernels that differ, kept in any case
	OnlyA     []KernelRef
	OnlyB     []KernelRef
	Notes     []Note
	Errors    []error // entries and parts of the files that cannot be read
}

// A Row is a kernel in short, for tables.
type Row struct {
	Arch         string
	NameA, NameB string
	Class        Class
	Kinds        Kinds
	Instructions [2]int
	Registers    [2]int
	Changed      int
	Deleted      int
	Inserted     int
	Moved        int
	Local        [2]int // loads from and stores to local memory
	Modifiers    []ModifierChange
	Resources    []Change
	Data         []Change
	Loader       []Change
}

// Name returns the kernel's name as demangle writes it, or both names where they differ.
// demangle may be nil.
func (r *Row) Name(demangle func(string) string) string { return pairName(r.NameA, r.NameB, demangle) }

// Different reports whether a difference was found that counts.
func (r *Result) Different() bool { return r.Kinds&r.Count != 0 }

// Err returns what kept the comparison from being complete: what could not be read, or
// [ErrNothing].
func (r *Result) Err() error {
	if len(r.Errors) > 0 {
		return errors.Join(r.Errors...)
	}
	if r.Compared == 0 && !(r.SameBytes && r.Count&Wrapping != 0) {
		return fmt.Errorf("%s and %s: %w: no pair of kernels", r.A.Name, r.B.Name, ErrNothing)
	}
	return nil
}

// Verdict says in one sentence how the files compare, whatever counts.
func (r *Result) Verdict() string {
	if len(r.Errors) > 0 {
		return "not everything could be read; of what could: " + r.verdict()
	}
	return r.verdict()
}

func (r *Result) verdict() string {
	k := r.Kinds
	switch {
	case r.Compared == 0 && r.SameBytes:
		return "the files are identical, and hold no kernel that was compared"
	case r.Compared == 0:
		return "nothing was compared"
	case r.SameBytes:
		return "the files are identical"
	case k&^Wrapping == 0:
		return "the same cubins in another wrapping"
	}
	// From the gravest down.
	for _, v := range []struct {
		kinds Kinds
		text  string
	}{
		{Other, "code differs"}, {Modifiers, "only modifiers differ"},
		{Order, "the same instructions in another order"}, {Registers, "the same code with other registers"},
		{Control, "only scheduling differs"}, {Hidden, "only bits that the text does not show differ"},
	} {
		if k&v.kinds != 0 {
			return v.text + r.also(k&(Resources|Data|Names|Unpaired|Loader))
		}
	}
	return "the same code" + r.also(k&(Resources|Data|Names|Unpaired|Loader|Metadata))
}

// also lists kinds of difference beside the code.
func (r *Result) also(k Kinds) string {
	words := map[Kinds]string{
		Resources: "resources differ", Data: "data differ", Names: "names differ",
		Unpaired: "some kernels or cubins are in one file only", Loader: "what a loader sees differs", Metadata: "metadata differ",
	}
	var out []string
	for _, x := range []Kinds{Resources, Data, Names, Unpaired, Loader, Metadata} {
		if k&x != 0 {
			out = append(out, words[x])
		}
	}
	if out == nil {
		return ""
	}
	return "; " + strings.Join(out, ", ")
}
