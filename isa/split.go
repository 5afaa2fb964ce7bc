package isa

import "strings"

// Parts is an instruction's text taken apart.
type Parts struct {
	Guard    string   // `@P0`, `@!UP1`, or empty
	Mnemonic string   // `LDG`
	Mods     []string // `E`, `EF`, `CONSTANT`, `CTA`: what stands between the dots
	Operands []string // `R4`, `desc[UR4][R2.64+0x10]`
	Names    []string // of the operands: `dst`, `src1`, …; see [Table.Operands]
}

// Split returns the parts of the text of in at the address pc; all are empty for a
// word that has no text.
func (t *Table) Split(in Inst, pc uint64) Parts {
	if in.Status != StatusKnown || in.Variant == nil {
		return Parts{}
	}
	return splitText(t.Text(in, pc))
}

func splitText(text string) Parts {
	p := Parts{Mods: []string{}, Names: []string{}}
	p.SetText(text)
	return p
}

// SetText makes p the parts of a text that a table wrote, as [Table.Split] returns them,
// in the memory of the lists that p has. It is for callers that split many texts.
func (p *Parts) SetText(text string) {
	p.Guard, p.Mods, p.Operands = "", p.Mods[:0], p.Operands[:0]
	if strings.HasPrefix(text, "@") {
		p.Guard, text, _ = strings.Cut(text, " ")
	}
	opcode, rest, _ := strings.Cut(text, " ")
	mnemonic, mods, more := strings.Cut(opcode, ".")
	for p.Mnemonic = mnemonic; more; {
		mnemonic, mods, more = strings.Cut(mods, ".")
		p.Mods = append(p.Mods, mnemonic)
	}
	var buf [16][2]int
	for _, s := range operandSpans(buf[:0], rest) {
		p.Operands = append(p.Operands, rest[s[0]:s[1]])
	}
	p.Names = nameOperands(p.Names[:0], p.Mnemonic, p.Operands)
}

// operandSpans appends to spans where the operands stand in s, which follows the opcode
// and its blank: between the commas that no bracket or brace encloses, blanks cut off.
func operandSpans(spans [][2]int, s string) [][2]int {
	depth, start := 0, 0
	add := func(end int) {
		lo, hi := start, end
		for lo < hi && s[lo] == ' ' {
			lo++
		}
		for lo < hi && s[hi-1] == ' ' {
			hi--
		}
		if lo < hi {
			spans = append(spans, [2]int{lo, hi})
		}
		start = end + 1
	}
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '[', '{', '(':
			depth++
		case ']', '}', ')':
			depth--
		case ',':
			if depth == 0 {
				add(i)
			}
		}
	}
	add(len(s))
	return spans
}

// WithOperand returns in's word with printed operand n, as Split counts them,
// replaced by text. Everything that the text does not say stays as it is.
func (t *Table) WithOperand(in Inst, n int, text string, pc uint64) (Word, error) {
	old := t.Text(in, pc)
	start := 0
	if strings.HasPrefix(old, "@") {
		start = strings.IndexByte(old, ' ') + 1
	}
	if i := strings.IndexByte(old[start:], ' '); in.Status == StatusKnown && i >= 0 {
		start += i + 1
		if spans := operandSpans(nil, old[start:]); n >= 0 && n < len(spans) {
			lo, hi := start+spans[n][0], start+spans[n][1]
			w, err := t.Encode(old[:lo]+text+old[hi:], pc, &in.Word)
			if e, ok := err.(*SyntaxError); ok {
				e.Text, e.Pos = text, min(max(e.Pos-lo, 0), len(text))
			}
			return w, err
		}
	}
	return in.Word, &SyntaxError{Text: old, Expected: "an instruction with such an operand"}
}
