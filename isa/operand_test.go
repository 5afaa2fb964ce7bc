package isa

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var registerName = regexp.MustCompile(`(?:^|[^.\w])((?:UR|R|UP|P|B)(?:[0-9]+|Z|T))\b`)

// printed returns the name of a register operand as text has it.
func printed(o Operand) string {
	if o.First >= 0 {
		return fmt.Sprintf("%s%d", o.File, o.First)
	}
	return o.File.String() + map[bool]string{true: "T", false: "Z"}[o.File == FileP || o.File == FileUP]
}

// TestOperandsAreText checks the registers that AppendOperands finds, and which printed
// operand each belongs to, against the text of random words of every class.
func TestOperandsAreText(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 3))
	var ops []Operand
	eachVariant(t, func(tab *Table, v *Variant) {
		for _, in := range randomWords(tab, v, rng, 4) {
			in = tab.Decode(GuardField.MustSet(in.Word, uint64(rng.IntN(7))))
			text := tab.Text(in, 0)
			guard, rest, _ := strings.Cut(text, " ")
			if strings.HasPrefix(guard, "@") {
				_, rest, _ = strings.Cut(rest, " ")
			} else {
				guard = ""
			}
			var want []string
			for _, m := range registerName.FindAllStringSubmatch(guard+" "+rest, -1) {
				want = append(want, m[1])
			}
			var got []string
			ops = in.AppendOperands(ops[:0])
			for _, o := range ops {
				if o.IsReg {
					got = append(got, printed(o))
				}
				if o.IsReg && strings.Count(text, printed(o)) == 1 && (o.Kind == OperandRegister) == o.inBrackets(text) {
					t.Errorf("%s: %s: %s is a %s", tab.Arch(), text, printed(o), o.Kind)
				}
			}
			// A register that a choice prints by its name alone is no field.
			want = slices.DeleteFunc(want, func(s string) bool { return s[len(s)-1] == 'Z' || s[len(s)-1] == 'T' })
			got = slices.DeleteFunc(got, func(s string) bool { return s[len(s)-1] == 'Z' || s[len(s)-1] == 'T' })
			if !slices.Equal(got, want) {
				t.Errorf("%s: %s (%s): registers %v", tab.Arch(), text, v.Class, got)
			}
		}
	})
}

// inBrackets reports whether every register in text with o's name stands in brackets.
func (o Operand) inBrackets(text string) bool {
	depth := 0
	name := printed(o)
	for i := range len(text) {
		switch text[i] {
		case '[':
			depth++
		case ']':
			depth--
		}
		if depth == 0 && strings.HasPrefix(text[i:], name) && !isWordByte(text[max(i-1, 0)]) && (i+len(name) == len(text) || !isWordByte(text[i+len(name)])) {
			return false
		}
	}
	return true
}

func TestAppendOperands(t *testing.T) {
	for _, tt := range []struct{ arch, text, want string }{
		{"sm_90", "@!P3 LDG.E.64 R4, desc[UR8][R16.64+0x10], !P1", "-1:register P3; 1:register R4; 2:address UR8; 2:address R16*2; 2:address 0x10; 3:register P1"},
		{"sm_90", "IADD3 R4, P0, R5, 0x10, RZ", "-1:register PT; 0:register R4; 1:register P0; 3:register R5; 4:number 0x10; 5:register RZ"},
		{"sm_90", "FADD R4, R5, c[0x2][0x10]", "-1:register PT; 0:register R4; 1:register R5; 2:constant 0x2; 2:constant 0x10"},
		{"sm_90", "BSSY B3, 0x200", "-1:register PT; 1:register B3; 2:target 0x1f0"},
	} {
		in := decodeText(t, tt.arch, tt.text, 0)
		var got []string
		for _, o := range in.AppendOperands(nil) {
			s := fmt.Sprintf("%d:%s ", o.Index, o.Kind)
			switch {
			case !o.IsReg:
				s += fmt.Sprintf("%#x", o.Value)
			case o.Count > 1:
				s += fmt.Sprintf("%s*%d", printed(o), o.Count)
			default:
				s += printed(o)
			}
			got = append(got, s)
		}
		if s := strings.Join(got, "; "); s != tt.want {
			t.Errorf("%s: %s", tt.text, s)
		}
	}
}

func BenchmarkOperands(b *testing.B) {
	tab := miniTable(b)
	words := benchWords(tab)
	var ops []Operand
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		ops = tab.Decode(words[i&4095]).AppendOperands(ops[:0])
	}
}

// What an instruction uses without printing it has no bits in common with what it prints:
// every field of the effects is found among the operands.
func TestAppendRegisters(t *testing.T) {
	rng := rand.New(rand.NewPCG(12, 3))
	var regs []Operand
	var runs []Access
	eachVariant(t, func(tab *Table, v *Variant) {
		for _, in := range randomWords(tab, v, rng, 4) {
			regs, runs = in.AppendRegisters(regs[:0]), in.Accesses(runs[:0])
			for _, a := range runs {
				found := slices.ContainsFunc(regs, func(o Operand) bool {
					return o.File == a.File && o.First <= a.First && a.First+a.Count <= o.First+o.Count
				})
				printed := slices.ContainsFunc(regs, func(o Operand) bool {
					bits := o.Field.Mask()
					return a.Bit >= 0 && a.File == o.File && !bits.And(Bits(a.Bit, a.Bit+1).Mask()).IsZero()
				})
				named := slices.ContainsFunc(regs, func(o Operand) bool {
					return o.File == a.File && o.First == a.First && o.Count >= a.Count && len(o.Field) > 0
				})
				if !found || printed && !named {
					t.Errorf("%s: %s (%s): %v is not among %v", tab.Arch(), tab.Text(in, 0), v.Class, a, regs)
				}
			}
		}
	})
}
