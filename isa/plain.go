package isa

import "strings"

// PlainRegister returns the field and the register file of operand name of v, if in every
// word of v the operand of that name is one register of the files R and UR, or an address
// with that base and nothing else: nothing before it can be left out, no predicate changes
// what counts as written, and the field holds the number as it is, all ones for RZ.
func (t *Table) PlainRegister(v *Variant, name string) (f Field, file RegFile, ok bool) {
	var tested Word // the bits that decide which alternatives print
	for i := range v.Template {
		p := &v.Template[i]
		for _, x := range p.Tests {
			tested = tested.Or(x.Field.Mask())
		}
		for _, a := range p.Alts {
			if !a.plain(len(p.Alts) > 1) {
				return nil, 0, false
			}
		}
	}
	for _, o := range t.Operands(v) {
		if o.Name != name || len(o.Fields) != 1 {
			continue
		}
		f = o.Fields[0]
		switch text := registerPart(o.Text); {
		case startsWith(text, "{R}"):
			file = FileR
		case startsWith(text, "{UR}"):
			file = FileUR
		default:
			return nil, 0, false
		}
		return f, file, f.Width() <= 8 && v.holdsPlainly(f) && tested.And(f.Mask()).IsZero()
	}
	return nil, 0, false
}

// plain reports whether a prints no predicate and, where it is one of several, neither a
// comma nor a bracket.
func (a Alt) plain(choice bool) bool {
	for _, e := range a {
		if choice && strings.ContainsAny(e.Lit, ",[") {
			return false
		}
		if e.Lit == "" && (e.Slot.Kind == KindPred || e.Slot.Kind == KindUPred) {
			return false
		}
	}
	return true
}

// registerPart returns an operand's text from where its register is to stand: after
// signs, or after the bracket of an address.
func registerPart(text string) string {
	if i := strings.LastIndexByte(text, '['); strings.HasSuffix(text, "]") &&
		(strings.HasPrefix(text, "[") || strings.HasPrefix(text, "desc[") || strings.HasPrefix(text, "gdesc[")) {
		return text[i+1:]
	}
	return strings.TrimLeft(text, "-~|+")
}

// startsWith reports whether s starts with a field that ends where the name ends.
func startsWith(s, field string) bool {
	rest, ok := strings.CutPrefix(s, field)
	return ok && (rest == "" || !isWordByte(rest[0]))
}

// holdsPlainly reports whether every slot of v that reads f prints the value as it is.
func (v *Variant) holdsPlainly(f Field) bool {
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

// HidesOperand reports whether in's text leaves out an operand whose value it does not
// tell either: a field that another form of the text prints, and on which nothing in this
// form depends. On sm_80 to sm_89 that is the register with the memory descriptor. A
// predicate that prints only when it is not PT is not hidden: its absence tells its value.
func (in Inst) HidesOperand() bool {
	if in.Variant == nil {
		return false
	}
	var told, left Word
	for i := range in.Variant.Template {
		p := &in.Variant.Template[i]
		for _, t := range p.Tests {
			told = told.Or(t.Field.Mask())
		}
		chosen := p.chosen(in.Word)
		for k, a := range p.Alts {
			for _, e := range a {
				switch {
				case e.Lit != "":
				case k == chosen:
					told = told.Or(e.Slot.Field.Mask())
				default:
					left = left.Or(e.Slot.Field.Mask())
				}
			}
		}
	}
	return !left.AndNot(told).IsZero()
}

// chosen returns the alternative of p that prints in w, or -1.
func (p *Piece) chosen(w Word) int {
	if len(p.Tests) == 0 {
		return 0
	}
	index := indexGather(p)
	if x := p.Table[index.value(w)]; int(x) < len(p.Alts) {
		return int(x)
	}
	return -1
}

// Modifiers returns the words that may stand between the dots of the opcode in texts of v.
func (v *Variant) Modifiers() []string {
	var out []string
	for i := range opcodePieces(v) {
		for _, a := range v.Template[i].Alts {
			words, _ := opcodeWords(a)
			out = append(out, words...)
		}
	}
	return out
}
