package learn

import (
	"slices"

	"github.com/cupatch/cupatch/isa"
)

// An alias is a modifier that operands choose: IMAD with RZ for a factor prints as
// IMAD.MOV. Where the instruction yields and has batch number 3, nvdisasm prints none.

// aliasOff is the test for that control code.
var aliasOff = isa.Test{Field: fieldOf([]int{109, 122, 123, 124}), Kind: isa.TestEq, Arg: 3 << 1}

// isAlias reports whether p has no operands, and operands choose what it prints.
func isAlias(p *isa.Piece) bool {
	for _, a := range p.Alts {
		if slices.ContainsFunc(a, func(e isa.Elem) bool { return e.Lit == "" }) {
			return false
		}
	}
	return hasText(p) && slices.ContainsFunc(p.Tests, func(t isa.Test) bool { return t.Kind != isa.TestValue })
}

// hasAliases reports whether the first pieces of v have aliases.
func hasAliases(v *isa.Variant) bool {
	return slices.ContainsFunc(v.Template[:min(len(v.Template), 3)], func(p isa.Piece) bool { return isAlias(&p) })
}

// aliasesOff returns v with aliases that the control code turns off: with it, its pieces
// print what they print where no operand is special.
func aliasesOff(v *isa.Variant) *isa.Variant {
	off := *v
	off.Template = slices.Clone(v.Template)
	for k := range off.Template[:min(len(v.Template), 3)] {
		p := &off.Template[k]
		if !isAlias(p) {
			continue
		}
		keep, shift := 0, 0 // the index bits that are no tests of operands
		for _, t := range p.Tests {
			n := 1
			if t.Kind == isa.TestValue {
				n = t.Field.Width()
				keep |= (1<<n - 1) << shift
			}
			shift += n
		}
		n := len(p.Table)
		p.Tests = append(slices.Clone(p.Tests), aliasOff)
		p.Table = append(slices.Clone(p.Table), p.Table...)
		for i := range n {
			p.Table[n+i] = p.Table[i&keep]
		}
	}
	simplify(&off)
	return &off
}

// unaliased returns ws with the control code that turns aliases off.
func unaliased(ws []isa.Word) []isa.Word {
	out := make([]isa.Word, len(ws))
	for i, w := range ws {
		out[i] = aliasOff.Field.MustSet(schedField.MustSet(w, 1+uint64(i%15)), aliasOff.Arg)
	}
	return out
}

// aliasTests is the number of words from which it is told that v has aliases to turn off.
const aliasTests = 200

// withAliasOff returns v, or v with aliases that the control code turns off, where nvdisasm
// says so.
func (c *class) withAliasOff(v *isa.Variant) *isa.Variant {
	if !hasAliases(v) || c.relative {
		return v
	}
	t := isa.NewTable(c.o.Arch, []*isa.Variant{v})
	ws := unaliased(Sample(t, v, aliasTests))
	for i, a := range c.o.Ask(ws) {
		if _, miss := compare(t, ws[i], a); miss && a.OK {
			return aliasesOff(v)
		}
	}
	return v
}
