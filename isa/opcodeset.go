package isa

import (
	"slices"
)

// An OpcodeSet is a set of opcodes, a cheap test to make before decoding.
type OpcodeSet struct{ bits [numOpcodes / 64]uint64 }

// Has reports whether the opcode of w, bits 0–11 and 91, is in s.
func (s *OpcodeSet) Has(w Word) bool {
	op := w.Opcode()
	return s.bits[op/64]>>(op%64)&1 != 0
}

// Add puts the opcode of w into s.
func (s *OpcodeSet) Add(w Word) {
	op := w.Opcode()
	s.bits[op/64] |= 1 << (op % 64)
}

// MayMatch returns the opcodes of the variants that have a mnemonic, such as LDG, for
// which pred is true. A word whose opcode is not in the set has no such mnemonic.
func (t *Table) MayMatch(pred func(mnemonic string) bool) *OpcodeSet {
	var s OpcodeSet
	for i := range t.cands {
		c := &t.cands[i]
		if !s.Has(c.value) && slices.ContainsFunc(c.mnemonics(), pred) {
			s.Add(c.value)
		}
	}
	return &s
}

// WithOpcodes returns the variants whose opcode is in s, in the order of Variants. They
// must not be changed.
func (t *Table) WithOpcodes(s *OpcodeSet) []*Variant {
	var out []*Variant
	for i, v := range t.variants {
		if s.Has(v.Value) {
			t.byVariant[i].complete()
			out = append(out, v)
		}
	}
	return out
}

// Mnemonics returns the instruction names that t knows, sorted.
func (t *Table) Mnemonics() []string {
	var out []string
	for i := range t.cands {
		out = append(out, t.cands[i].mnemonics()...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Mnemonics returns the instruction names that the texts of v start with, mostly
// one, sorted.
func (v *Variant) Mnemonics() []string {
	names := map[string]bool{}
	openNames(v.Template, "", names)
	out := make([]string, 0, len(names))
	for name := range names {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// openNames adds to names those that the text of the pieces ps can start with, after
// the part that is already read.
func openNames(ps []Piece, read string, names map[string]bool) {
	if len(ps) == 0 || len(names) > maxMnemonics {
		if read != "" {
			names[read] = true
		}
		return
	}
	for _, a := range ps[0].Alts {
		switch {
		case len(a) == 0:
			openNames(ps[1:], read, names)
		case a[0].Lit == "":
			names[read] = true
		default:
			name := leadingName(a[0].Lit)
			if name == a[0].Lit && len(a) == 1 {
				openNames(ps[1:], read+name, names)
			} else if read+name != "" {
				names[read+name] = true
			}
		}
	}
}

// maxMnemonics bounds the names of one variant.
const maxMnemonics = 64

// Mnemonic returns the instruction name that v's text starts with, LDG. A variant has one
// name; one without text has none.
func (v *Variant) Mnemonic() string {
	read := ""
	for i := range v.Template {
		p := &v.Template[i]
		if len(p.Alts) == 0 {
			return "" // no word of v has text
		}
		if len(p.Alts[0]) == 0 {
			continue
		}
		a := p.Alts[0]
		name := leadingName(a[0].Lit)
		if read += name; name != a[0].Lit || len(a) > 1 {
			break
		}
	}
	return read
}
