package diff

import (
	"fmt"
	"slices"
	"strings"
)

// classText says what a class means.
var classText = [numClasses]string{
	Identical:     "the same bytes",
	SameCode:      "the same instructions at other addresses, or other padding",
	HiddenOnly:    "the same text and control codes, but bits that the text does not show differ",
	ControlOnly:   "only control codes differ",
	RegistersOnly: "the same after renaming registers",
	ModifiersOnly: "the same opcodes and operands, other modifiers",
	CodeDiffers:   "other instructions",
}

// maxReasons is how many kernels Explain lists for one reason.
const maxReasons = 20

// Explain returns, line by line, why the two files differ at all, whether it counts or
// not. demangle gives the names that are shown; nil shows them as they are.
func (r *Result) Explain(demangle func(string) string) []string {
	if r.SameBytes {
		return []string{"the files are the same, byte for byte"}
	}
	var out []string
	for c := CodeDiffers; c > Identical; c-- {
		if n := r.Classes[c]; n > 0 {
			out = append(out, fmt.Sprintf("code: %d of %s: %s", n, plural(r.Compared, "kernel"), classText[c]))
		}
	}
	if n := r.Classes[Identical]; n > 0 && n == r.Compared {
		if n == 1 {
			out = append(out, "code: the kernel has the same bytes")
		} else {
			out = append(out, fmt.Sprintf("code: all %d kernels have the same bytes", n))
		}
	}
	for _, k := range []Kinds{Names, Resources, Data, Loader} {
		out = append(out, r.rowReasons(k, demangle)...)
	}
	if len(r.OnlyA)+len(r.OnlyB) > 0 {
		out = append(out, fmt.Sprintf("unpaired: %s only in the first file, %d only in the second", plural(len(r.OnlyA), "kernel"), len(r.OnlyB)))
	}
	notes := slices.Clone(r.Notes)
	slices.SortStableFunc(notes, func(x, y Note) int { return int(x.Kind) - int(y.Kind) })
	for _, n := range notes {
		out = append(out, fmt.Sprintf("%s: %s", n.Kind, n))
	}
	for _, err := range r.Errors {
		out = append(out, fmt.Sprintf("not compared: %v", err))
	}
	return out
}

// rowReasons lists the kernels that differ in k, and in what.
func (r *Result) rowReasons(k Kinds, demangle func(string) string) []string {
	var out []string
	n := 0
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.Kinds&k == 0 {
			continue
		}
		if n++; n > maxReasons {
			continue
		}
		line := fmt.Sprintf("%s: %s %s", k, row.Arch, row.Name(demangle))
		switch k {
		case Resources:
			line += ": " + changesText(row.Resources)
		case Data:
			line += ": " + changesText(row.Data)
		case Loader:
			line += ": " + changesText(row.Loader)
		}
		out = append(out, line)
	}
	if n > maxReasons {
		out = append(out, fmt.Sprintf("%s: %d more kernels", k, n-maxReasons))
	}
	return out
}

func changesText(list []Change) string {
	var out []string
	for _, c := range list {
		out = append(out, c.String())
	}
	return strings.Join(out, ", ")
}
