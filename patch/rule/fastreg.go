package rule

import (
	"strconv"
	"strings"

	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/patch/code"
)

// Most operands in conditions are plain registers of instructions that always print
// the same number of operands. Those are read from their bits; printing and splitting
// the text would take far longer.

// plainRegister returns the field and the file of operand name of v, if it is always a
// register and always has that name: nothing before it can be left out, and no predicate
// that may be negated changes what counts as written.
func plainRegister(t *isa.Table, v *isa.Variant, name string) (registerField, bool) {
	for i := range v.Template {
		p := &v.Template[i]
		for _, a := range p.Alts {
			for _, e := range a {
				if len(p.Alts) > 1 && strings.ContainsAny(e.Lit, ",[") {
					return registerField{}, false
				}
				if k := e.Slot.Kind; e.Lit == "" && (k == isa.KindPred || k == isa.KindUPred) {
					return registerField{}, false
				}
			}
		}
	}
	for _, o := range t.Operands(v) {
		if o.Name != name || len(o.Fields) != 1 {
			continue
		}
		file := map[isa.Kind]string{isa.KindReg: "R", isa.KindUReg: "UR"}[o.Kind]
		lo, hi, _ := code.Operand(strings.NewReplacer("{R}", "R0", "{UR}", "UR0").Replace(o.Text)).Register()
		if file == "" || hi-lo != len(file)+1 || !plainSlot(v, o.Fields[0]) || o.Fields[0].Width() > 8 ||
			!testBits(v).And(o.Fields[0].Mask()).IsZero() {
			return registerField{}, false
		}
		return registerField{o.Fields[0], registerNames[file]}, true
	}
	return registerField{}, false
}

// testBits returns the bits that decide which alternatives of v print.
func testBits(v *isa.Variant) isa.Word {
	var m isa.Word
	for i := range v.Template {
		for _, t := range v.Template[i].Tests {
			m = m.Or(t.Field.Mask())
		}
	}
	return m
}

// plainSlot reports whether every slot of v that reads a field prints the value as it
// is.
func plainSlot(v *isa.Variant, f isa.Field) bool {
	for i := range v.Template {
		for _, a := range v.Template[i].Alts {
			for _, e := range a {
				if e.Lit == "" && e.Slot.Field.String() == f.String() && (e.Slot.Xor != 0 || e.Slot.Shift != 0 || e.Slot.Add != 0) {
					return false
				}
			}
		}
	}
	return true
}

// A registerField is the bits of a register operand, and the names of its file.
type registerField struct {
	field isa.Field
	names *[256]string
}

// registerNames has R0 to R255 and UR0 to UR255.
var registerNames = func() map[string]*[256]string {
	m := map[string]*[256]string{}
	for _, file := range []string{"R", "UR"} {
		m[file] = new([256]string)
		for i := range m[file] {
			m[file][i] = file + strconv.Itoa(i)
		}
	}
	return m
}()

// value returns the register that w names, as a condition sees it.
func (r registerField) value(w isa.Word) string {
	n := r.field.Get(w)
	if n == 1<<r.field.Width()-1 {
		return strings.TrimRight(r.names[0], "0") + "Z"
	}
	return r.names[n]
}

// fastRegisters returns the plain registers that a name means in some variants.
func fastRegisters(t *isa.Table, vs []*isa.Variant, name string) map[*isa.Variant]registerField {
	m := map[*isa.Variant]registerField{}
	for _, v := range vs {
		if r, ok := plainRegister(t, v, name); ok {
			m[v] = r
		}
	}
	return m
}
