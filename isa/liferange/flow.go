package liferange

import (
	"slices"

	"github.com/cupatch/cupatch/isa"
)

// kernelLength is how many words stand in one kernel.
const kernelLength = 100

// A known is a word with its variant.
type known struct {
	w isa.Word
	v *isa.Variant
}

// askWords asks about words, those of classes that are straight many in a kernel, the
// others each in one of its own. A class that turns out to end the flow is straight no
// longer, and what stood behind it is asked again.
func askWords(o *Oracle, words []known, straight map[string]bool) ([]Answer, error) {
	out := make([]Answer, len(words))
	todo := make([]int, len(words))
	for i := range todo {
		todo[i] = i
	}
	for range probes {
		kernels, of := pack(words, todo, straight)
		answers, err := o.Ask(kernels)
		if err != nil {
			return nil, err
		}
		todo = nil
		for k, is := range of {
			shown := len(is)
			for shown > 0 && !answers[k][shown-1].OK && answers[k][shown-1].Complaint == "" {
				shown--
			}
			for n, i := range is {
				out[i] = answers[k][n]
			}
			if shown > 0 && shown < len(is) {
				if shown < len(is)-1 {
					straight[words[is[shown-1]].v.Class] = false
				}
				todo = append(todo, is[shown:]...)
			}
		}
		if len(todo) == 0 {
			break
		}
	}
	return out, nil
}

// pack puts the words with the numbers todo into kernels, and returns their numbers too.
func pack(words []known, todo []int, straight map[string]bool) (kernels [][]isa.Word, of [][]int) {
	var many []int
	for _, i := range todo {
		if k := words[i]; straight[k.v.Class] {
			many = append(many, i)
		} else {
			kernels, of = append(kernels, []isa.Word{alone(k.v, k.w), wide}), append(of, []int{i})
		}
	}
	for part := range slices.Chunk(many, kernelLength) {
		ws := make([]isa.Word, len(part))
		for n, i := range part {
			ws[n] = words[i].w
		}
		kernels, of = append(kernels, ws), append(of, part)
	}
	return kernels, of
}

// probes is how often a class is tried with another word, where nvdisasm prints nothing
// for one.
const probes = 5

// probeFlow finds out which classes let the word behind them run, and so may stand with
// others in one kernel. Variants whose base nvdisasm accepts without printing it get
// another one.
func probeFlow(o *Oracle, classes []*class) error {
	var silent []*variant
	for try := range probes {
		var kernels [][]isa.Word
		var of []*class
		var vs []*variant
		for _, c := range classes {
			for _, v := range c.variants {
				switch {
				case try > 0 && !slices.Contains(silent, v):
				case v.v.Mnemonic() == "JMP":
					// nvdisasm follows them only where a relocation leads.
					c.note, c.done, c.formOnly = "not asked: a jump to an absolute address", true, true
				case v.ok:
					kernels, of, vs = append(kernels, []isa.Word{alone(v.v, v.base), probe}), append(of, c), append(vs, v)
				}
			}
		}
		answers, err := o.Ask(kernels)
		if err != nil {
			return err
		}
		if try == 0 {
			for _, c := range of {
				c.straight = true
			}
		}
		silent = nil
		for i, a := range answers {
			c := of[i]
			if !a[1].OK || a[1].Effects != probeEffects || hasTarget(vs[i].v) {
				c.straight = false
			}
			switch {
			case a[0].OK:
			case a[0].Complaint != "":
				c.note, c.done, c.formOnly = "no answer: "+a[0].Complaint, true, true
			default:
				vs[i].generator = newGenerator(vs[i].table, vs[i].v, vs[i].rand)
				silent = append(silent, vs[i])
			}
		}
		if len(silent) == 0 {
			break
		}
	}
	return nil
}

// hasTarget reports whether v prints an address relative to its own.
func hasTarget(v *isa.Variant) bool { return !targets(v).IsZero() }

// targets returns the bits of v that hold a number that may be an address of code: those
// printed relative to the instruction, and wide ones.
func targets(v *isa.Variant) isa.Word {
	var m isa.Word
	for i := range v.Template {
		for _, alt := range v.Template[i].Alts {
			for _, e := range alt {
				if e.Lit == "" && e.Slot.Kind == isa.KindRel {
					m = m.Or(e.Slot.Field.Mask())
				}
			}
		}
	}
	return m
}

// wideNumbers returns the bits of v's numbers of more than 32 bits, absolute addresses.
func wideNumbers(v *isa.Variant) isa.Word {
	var m isa.Word
	for i := range v.Template {
		for _, alt := range v.Template[i].Alts {
			for _, e := range alt {
				if k := e.Slot.Kind; e.Lit == "" && (k == isa.KindHex || k == isa.KindSHex) && e.Slot.Field.Width() > 32 {
					m = m.Or(e.Slot.Field.Mask())
				}
			}
		}
	}
	return m
}

// alone returns w with its target made the next instruction, or the kernel's first.
func alone(v *isa.Variant, w isa.Word) isa.Word { return w.AndNot(targets(v).Or(wideNumbers(v))) }
