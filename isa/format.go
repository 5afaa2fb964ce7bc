package isa

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// A TableFile is an instruction table as text says it.
//
//	arch sm_90a
//	nvdisasm 13.5.37
//	base sm_90
//	list evict = .EF | | .EL | .LU | .EU | .NA | .INVALID6 | .INVALID7
//	drop ldg__Ra32 0x0981
//	class ldg__sImmOffset 0x0381 76=0 reuse=a
//	  text LDG{72?.E}{84:86 evict} {16:23 R}, {#1}
//	  #1 72 24:31=255
//	    - 0 = [{24:31 R}+{40:63 shex}]
//	    0 1 = !illegal
//	    - - = [{40:63 hex}]
//	  hidden 92 101:104=3
//	  prefer 64:69=5
//
// A class line has the encoding class, the 13-bit opcode (bits 0–11 and 91), the other
// constant bits, the slots that may be reused (a, b, c), and guard=UP, guard=none or
// uniform where the guard or the batch numbers differ from the usual. In a text,
// {FIELD KIND} is an operand, {FIELD LIST} a choice by the field's value, {BIT?A:B} A
// where the bit is set and else B, {FIELD=N?A:B} A where the field is N, a power of two
// (pow2) or negative (neg), and {#N} the choice that the lines below #N make: one pattern
// of bits a line, the first that fits counts. !illegal stands for words that nvdisasm
// refuses, !silent for those it accepts and does not print. The hidden bits are those
// that neither text nor legality depends on, with the values that ptxas emits; prefer
// has the values of other bits where a text leaves a choice.
type TableFile struct {
	Arch Arch
	Tool string // version of the nvdisasm that the table was learned from
	// Base is the architecture whose variants the file changes; zero for none.
	Base     Arch
	Variants []*Variant // all variants, those of the base included
	// lists has the named lists that the file and its base define.
	lists map[string]*list
}

// A list is a named choice by one field's value. What it holds is there after load.
type list struct {
	text  string
	once  sync.Once
	err   error
	width int
	table []uint16
	alts  []Alt
}

// FormatTable returns the text of f. Where f.Base is set, base holds its table and
// the text says only what differs. The variants of f are brought into normal form.
func FormatTable(f, base *TableFile) ([]byte, error) {
	var w tableWriter
	w.label = func(p *Piece) string { return w.names[listText(p)] }
	known := map[string]*Variant{}
	if f.Base != (Arch{}) {
		if base == nil || base.Arch != f.Base {
			return nil, fmt.Errorf("the table of the base %s is missing", f.Base)
		}
		w.base = base.lists
		for _, v := range base.Variants {
			known[variantKey(v)] = v
		}
	}
	mine := map[string]bool{}
	for i, v := range f.Variants {
		if err := v.Check(); err != nil {
			return nil, fmt.Errorf("variant %d (%s): %w", i, v.Class, err)
		}
		v.Normalize()
		k := variantKey(v)
		if mine[k] {
			return nil, fmt.Errorf("a second variant %s", k)
		}
		mine[k] = true
	}
	vs := sortVariants(f.Variants)
	var drop []*Variant
	if f.Base != (Arch{}) {
		vs, drop = changed(vs, base.Variants, known, mine)
	}
	fmt.Fprintf(&w.out, "arch %s\n", f.Arch)
	if f.Tool != "" {
		fmt.Fprintf(&w.out, "nvdisasm %s\n", f.Tool)
	}
	if f.Base != (Arch{}) {
		fmt.Fprintf(&w.out, "base %s\n", f.Base)
	}
	w.nameLists(vs)
	w.writeLists()
	for _, v := range sortVariants(drop) {
		w.out.WriteString("\ndrop " + variantKey(v))
	}
	if len(drop) > 0 {
		w.out.WriteByte('\n')
	}
	for _, v := range vs {
		w.variant(v)
	}
	return w.out.Bytes(), nil
}

// variantKey returns what tells a variant of a table from all others: its class and
// constant bits.
func variantKey(v *Variant) string {
	b := append(make([]byte, 0, 128), cmp.Or(v.Class, "-")...)
	b = append(b, " 0x"...)
	for op, shift := v.Value.Opcode(), 12; shift >= 0; shift -= 4 {
		b = append(b, hexDigits[op>>shift&15])
	}
	for _, r := range maskRanges(v.Mask.AndNot(opcodeMask)) {
		b = append(append(b, ' '), Field{r}.String()...)
		b = append(append(b, '='), constText(r, v.Value)...)
	}
	return string(b)
}

func constText(r Range, w Word) string {
	x := r.get(w)
	if x < 10 {
		return strconv.FormatUint(x, 10)
	}
	return "0x" + strconv.FormatUint(x, 16)
}

// maskRanges returns the runs of set bits of m, none longer than 64 bits.
func maskRanges(m Word) []Range {
	var rs []Range
	for i := 0; i < 128; i++ {
		if m.Bit(i) == 0 {
			continue
		}
		if n := len(rs); n > 0 && int(rs[n-1].Lo)+int(rs[n-1].N) == i && rs[n-1].N < 64 {
			rs[n-1].N++
			continue
		}
		rs = append(rs, Range{uint8(i), 1})
	}
	return rs
}

// leadingName returns the letters, digits and underscores that s starts with.
func leadingName(s string) string {
	n := 0
	for n < len(s) && (s[n] == '_' || s[n] >= '0' && s[n] <= '9' || s[n] >= 'A' && s[n] <= 'Z' || s[n] >= 'a' && s[n] <= 'z') {
		n++
	}
	return s[:n]
}

// sortVariants returns vs sorted by mnemonic and opcode. The order within an opcode
// stays, since it may decide which variant a word has.
func sortVariants(vs []*Variant) []*Variant {
	name := map[int]string{}
	for _, v := range vs {
		op := v.Value.Opcode()
		if m := v.Mnemonic(); name[op] == "" || m < name[op] {
			name[op] = m
		}
	}
	vs = slices.Clone(vs)
	slices.SortStableFunc(vs, func(a, b *Variant) int {
		x, y := a.Value.Opcode(), b.Value.Opcode()
		return cmp.Or(cmp.Compare(name[x], name[y]), cmp.Compare(x, y))
	})
	return vs
}

// changed compares the sorted variants vs with those of a base: it returns the ones
// to write, and the base's ones that vs does not have. Where the order within an opcode
// differs, all variants of that opcode are dropped and written.
func changed(vs, base []*Variant, known map[string]*Variant, mine map[string]bool) (write, drop []*Variant) {
	merged := map[int][]string{} // by opcode, the keys in the order that reading gives
	for _, v := range base {
		if k := variantKey(v); mine[k] {
			merged[v.Value.Opcode()] = append(merged[v.Value.Opcode()], k)
		}
	}
	order := map[int][]string{}
	for _, v := range vs {
		op, k := v.Value.Opcode(), variantKey(v)
		order[op] = append(order[op], k)
		if known[k] == nil {
			merged[op] = append(merged[op], k)
		}
	}
	moved := func(v *Variant) bool {
		op := v.Value.Opcode()
		return !slices.Equal(merged[op], order[op])
	}
	for _, v := range vs {
		if old := known[variantKey(v)]; old == nil || moved(v) || !equalVariant(old, v) {
			write = append(write, v)
		}
	}
	for _, v := range base {
		if !mine[variantKey(v)] || moved(v) {
			drop = append(drop, v)
		}
	}
	return write, drop
}

// A tableWriter writes a table.
type tableWriter struct {
	out   bytes.Buffer
	base  map[string]*list
	label func(*Piece) string // what stands for a choice that isList
	names map[string]string   // names of lists by their text
	lists map[string]string   // texts of the lists to define, by name
}

// variant writes the lines of one variant.
func (w *tableWriter) variant(v *Variant) {
	w.out.WriteString("\nclass " + variantKey(v))
	if flags := v.reuseFlags(); flags != "" {
		w.out.WriteString(" reuse=" + flags)
	}
	if v.Sched&SchedUniform != 0 {
		w.out.WriteString(" uniform")
	}
	switch v.Guard {
	case GuardUP:
		w.out.WriteString(" guard=UP")
	case GuardNone:
		w.out.WriteString(" guard=none")
	}
	if v.Rank > 0 {
		fmt.Fprintf(&w.out, " rank=%d", v.Rank)
	}
	w.out.WriteString("\n" + w.template(v))
	w.defaults("  hidden", v.Ignored, v.Default)
	w.defaults("  prefer", v.Default.AndNot(v.Ignored), v.Default)
}

// defaults writes a line with the bits of mask and their values.
func (w *tableWriter) defaults(word string, mask, value Word) {
	if mask.IsZero() {
		return
	}
	w.out.WriteString(word)
	for _, r := range maskRanges(mask) {
		w.out.WriteString(" " + Field{r}.String())
		if r.get(value) != 0 {
			w.out.WriteString("=" + constText(r, value))
		}
	}
	w.out.WriteByte('\n')
}

// template returns the text line of v and the choices below it.
func (w *tableWriter) template(v *Variant) string {
	var blocks []*Piece
	var text, out strings.Builder
	for i := range v.Template {
		p := &v.Template[i]
		switch {
		case len(p.Tests) == 0:
			text.WriteString(altText(p.Alts[0], `\{}`))
		case isFlag(p):
			text.WriteString(flagText(p))
		case isList(p):
			fmt.Fprintf(&text, "{%s %s}", p.Tests[0].Field, w.label(p))
		default:
			blocks = append(blocks, p)
			fmt.Fprintf(&text, "{#%d}", len(blocks))
		}
	}
	out.WriteString("  text " + guardBlanks(text.String()) + "\n")
	for i, p := range blocks {
		writeBlock(&out, i+1, p)
	}
	return out.String()
}

// writeBlock writes the choice p as patterns.
func writeBlock(out *strings.Builder, n int, p *Piece) {
	fmt.Fprintf(out, "  #%d", n)
	for i := range p.Tests {
		out.WriteString(" " + p.Tests[i].String())
	}
	out.WriteByte('\n')
	for _, r := range cover(p.Table) {
		out.WriteString("   ")
		lo := uint(0)
		for i := range p.Tests {
			out.WriteByte(' ')
			n := p.Tests[i].width()
			for b := int(lo+n) - 1; b >= int(lo); b-- {
				out.WriteByte(r.digit(b))
			}
			lo += n
		}
		out.WriteString(" =")
		if s := guardBlanks(choiceText(p, r.entry, `\{}`)); s != "" {
			out.WriteString(" " + s)
		}
		out.WriteByte('\n')
	}
}

// String returns t as tables write it: `72`, `24:31=255`, `32:63=pow2`, `40:63=neg`.
func (t *Test) String() string {
	switch t.Kind {
	case TestEq:
		return t.Field.String() + "=" + formatConst(t.Arg)
	case TestPow2:
		return t.Field.String() + "=pow2"
	case TestNeg:
		return t.Field.String() + "=neg"
	}
	return t.Field.String()
}

// formatConst returns x in decimal where people read it so, else in hex.
func formatConst(x uint64) string {
	if x < 1024 {
		return strconv.FormatUint(x, 10)
	}
	return "0x" + strconv.FormatUint(x, 16)
}

// isFlag reports whether p is a choice by one yes or no.
func isFlag(p *Piece) bool { return len(p.Tests) == 1 && len(p.Table) == 2 }

func flagText(p *Piece) string {
	yes, no := choiceText(p, p.Table[1], `\{}:`), choiceText(p, p.Table[0], `\{}:`)
	s := "{" + p.Tests[0].String() + "?" + yes
	if no != "" {
		s += ":" + no
	}
	return s + "}"
}

// isList reports whether p chooses a literal by the value of one field.
func isList(p *Piece) bool {
	if len(p.Tests) != 1 || p.Tests[0].Kind != TestValue {
		return false
	}
	for _, a := range p.Alts {
		if len(a) > 1 || len(a) == 1 && a[0].Lit == "" {
			return false
		}
	}
	return true
}

// choiceText returns the text of what entry x of p's table names. A literal ! at its
// start is escaped: !illegal, !silent and !other are words of the format.
func choiceText(p *Piece, x uint16, special string) string {
	switch x {
	case PieceIllegal:
		return "!illegal"
	case PieceSilent:
		return "!silent"
	case PieceOther:
		return "!other"
	}
	s := altText(p.Alts[x], special)
	if strings.HasPrefix(s, "!") {
		return `\` + s
	}
	return s
}

// altText returns the text of a, the characters in special escaped.
func altText(a Alt, special string) string {
	var b strings.Builder
	for i := range a {
		if a[i].Lit != "" {
			for _, c := range []byte(a[i].Lit) {
				if strings.IndexByte(special, c) >= 0 {
					b.WriteByte('\\')
				}
				b.WriteByte(c)
			}
			continue
		}
		b.WriteString("{" + a[i].Slot.String() + "}")
	}
	return b.String()
}

// guardBlanks writes blanks at the start and end of s, which would be lost, as \s.
func guardBlanks(s string) string {
	t := strings.TrimLeft(s, " ")
	lead := len(s) - len(t)
	u := strings.TrimRight(t, " ")
	return strings.Repeat(`\s`, lead) + u + strings.Repeat(`\s`, len(t)-len(u))
}

var kindNames = [...]string{
	KindNone: "?", KindReg: "R", KindUReg: "UR", KindPred: "P", KindUPred: "UP", KindDec: "dec", KindHex: "hex",
	KindSHex: "shex", KindRel: "rel", KindF16: "f16", KindBF16: "bf16", KindF32: "f32", KindF64: "f64", KindLog2: "log2",
	KindF16Q: "f16q", KindBF16Q: "bf16q", KindF32Q: "f32q",
}

// String returns the name of k in tables, such as UR or shex.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "?"
}

// String returns s as tables write it: `24:31 R`, `64:66 P ~`, `40:53 shex <<2 +1`.
func (s *Slot) String() string {
	t := s.Field.String() + " " + s.Kind.String()
	switch {
	case s.Xor == 0:
	case s.Xor == ^uint64(0)>>(64-s.Field.Width()):
		t += " ~"
	default:
		t += " ^" + formatConst(s.Xor)
	}
	if s.Shift != 0 {
		t += " <<" + strconv.Itoa(int(s.Shift))
	}
	if s.Add != 0 {
		t += fmt.Sprintf(" %+d", s.Add)
	}
	return t
}
