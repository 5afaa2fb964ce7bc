package rule

import (
	"github.com/cupatch/cupatch/isa"
)

// Most operands in conditions are plain registers of instructions that always print
// the same number of operands. Those are read from their bits; printing and splitting
// the text would take far longer.

// A registerField is the bits of a register operand, and the names of its file.
type registerField struct {
	field isa.Field
	names *[256]string
	zero  string
}

// value returns the register that w names, as a condition sees it.
func (r registerField) value(w isa.Word) string {
	n := r.field.Get(w)
	if n == 1<<r.field.Width()-1 {
		return r.zero
	}
	return r.names[n]
}

// fastRegisters returns the plain registers that a name means in some variants.
func fastRegisters(t *isa.Table, vs []*isa.Variant, name string) map[*isa.Variant]registerField {
	m := map[*isa.Variant]registerField{}
	for _, v := range vs {
		if f, file, ok := t.PlainRegister(v, name); ok {
			m[v] = registerField{f, file.Names(), file.String() + "Z"}
		}
	}
	return m
}
