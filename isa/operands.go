package isa

import (
	"slices"
	"strconv"
	"strings"
)

// An OperandInfo says what is known of an operand of a variant.
type OperandInfo struct {
	Name   string // `dst`, `src1`, `imm`, …; see [Table.Operands]
	Kind   Kind   // of the operand's last field, KindNone if it has none
	Fields []Field
	Text   string // as it prints, a placeholder for each field: `desc[{UR}][{R}.64+{shex}]`
}

// Operands returns the operands of v in printed order, as they stand when all that v
// can print is printed; [Table.Split] says which a word prints.
//
// What is written comes first and is called dst, dst2, …; sources are src1, src2, …
// by position, except that a number is called imm (imm2, …) and a branch's target
// target. A destination predicate beside a destination register is dst2.
//
// What it returns must not be changed.
func (t *Table) Operands(v *Variant) []OperandInfo {
	if ops, ok := t.operands.Load(v); ok {
		return ops.([]OperandInfo)
	}
	ops, _ := t.operands.LoadOrStore(v, namedOperands(v))
	return ops.([]OperandInfo)
}

// namedOperands returns the operands of v with their names.
func namedOperands(v *Variant) []OperandInfo {
	ops := fullOperands(v)
	texts := make([]string, len(ops))
	for i := range ops {
		texts[i] = sampleOperand(ops[i])
	}
	for i, name := range nameOperands(nil, v.Mnemonic(), texts) {
		ops[i].Name = name
	}
	return ops
}

// fullOperands returns the operands of v in its longest form: of each choice the
// alternative with the most fields counts, of those the longest.
func fullOperands(v *Variant) []OperandInfo {
	var ops []OperandInfo
	var cur OperandInfo
	depth, started := 0, false
	end := func() {
		cur.Text = strings.TrimSpace(cur.Text)
		if cur.Text != "" {
			ops = append(ops, cur)
		}
		cur = OperandInfo{}
	}
	for i := range v.Template {
		for _, e := range v.Template[i].richest() {
			if e.Lit == "" {
				if started {
					cur.Kind = e.Slot.Kind
					cur.Fields = append(cur.Fields, e.Slot.Field)
					cur.Text += "{" + e.Slot.Kind.String() + "}"
				}
				continue
			}
			for _, c := range e.Lit {
				switch {
				case !started:
					started = c == ' '
					continue
				case c == ',' && depth == 0:
					end()
					continue
				case strings.ContainsRune("[{(", c):
					depth++
				case strings.ContainsRune("]})", c):
					depth--
				}
				cur.Text += string(c)
			}
		}
	}
	end()
	return ops
}

// richest returns the alternative of p with the most operands, of those the longest.
func (p *Piece) richest() Alt {
	var best Alt
	score := -1
	for _, a := range p.Alts {
		n := 0
		for _, e := range a {
			n += len(e.Lit)
			if e.Lit == "" {
				n += 1000
			}
		}
		if n > score {
			best, score = a, n
		}
	}
	return best
}

// sampleOperand returns an operand as it may print.
func sampleOperand(o OperandInfo) string {
	r := strings.NewReplacer("{R}", "R0", "{UR}", "UR0", "{P}", "P0", "{UP}", "UP0", "{dec}", "1", "{hex}", "0x1",
		"{shex}", "0x1", "{rel}", "0x1", "{f16}", "1", "{bf16}", "1", "{f32}", "1", "{f64}", "1", "{log2}", "0x1")
	return r.Replace(o.Text)
}

// nameOperands returns the names of the printed operands ops of an instruction, in the
// memory of names.
func nameOperands(names []string, mnemonic string, ops []string) []string {
	names = slices.Grow(names, len(ops))[:len(ops)]
	clear(names)
	known := factsOf(mnemonic)
	outs := known.outputs(ops)
	dst := numberedName{stem: "dst"}
	imm := numberedName{stem: "imm"}
	// The register that is written comes first even where a predicate stands before it.
	first := 0
	for i := range outs {
		if isRegisterText(ops[i]) {
			first = i
			break
		}
	}
	if outs > 0 {
		names[first] = dst.next()
	}
	src := 0
	for i := range ops {
		switch {
		case i < outs:
			if i != first {
				names[i] = dst.next()
			}
			continue
		case isNumber(ops[i]):
			names[i] = imm.next()
			if known.target && imm.n == 1 {
				names[i] = "target"
			}
		}
		if src++; names[i] == "" {
			names[i] = sourceName(src)
		}
	}
	return names
}

// sourceNames are the names of the first sources.
var sourceNames = [...]string{"src1", "src2", "src3", "src4", "src5", "src6", "src7", "src8"}

// sourceName returns the name of source n, counted from 1.
func sourceName(n int) string {
	if n <= len(sourceNames) {
		return sourceNames[n-1]
	}
	return "src" + strconv.Itoa(n)
}

// A numberedName counts names: dst, dst2, dst3.
type numberedName struct {
	stem string
	n    int
}

func (c *numberedName) next() string {
	if c.n++; c.n == 1 {
		return c.stem
	}
	return c.stem + strconv.Itoa(c.n)
}

// isNumber reports whether an operand is an immediate number.
func isNumber(s string) bool {
	for s != "" && (s[0] == '+' || s[0] == '-') {
		s = s[1:]
	}
	return s != "" && (s[0] >= '0' && s[0] <= '9' || strings.HasPrefix(s, "INF") || strings.HasPrefix(s, "QNAN") ||
		strings.HasPrefix(s, "SNAN"))
}

// isRegisterText reports whether an operand is a register of the files R and UR.
func isRegisterText(s string) bool {
	s = strings.TrimPrefix(s, "U")
	return strings.HasPrefix(s, "R") && len(s) > 1 && (s[1] == 'Z' || s[1] >= '0' && s[1] <= '9')
}

// isPredicateText reports whether an operand is a predicate that is not negated.
func isPredicateText(s string) bool {
	s = strings.TrimPrefix(s, "U")
	return strings.HasPrefix(s, "P") && len(s) == 2 && (s[1] == 'T' || s[1] >= '0' && s[1] <= '6')
}

// outputs returns how many of the printed operands, counted from the first, are
// written: a register and the predicates around it, or what else stands first if it is
// neither an address nor a number.
func (f *facts) outputs(ops []string) int {
	if f.noOutput || len(ops) == 0 {
		return 0
	}
	limit, reg := f.predicates, false
	if f.onlyPredicates {
		limit, reg = 2, true
	}
	n, preds := 0, 0
	for n < len(ops) {
		switch {
		case isRegisterText(ops[n]) && !reg:
			reg = true
		case isPredicateText(ops[n]) && preds < limit:
			preds++
		default:
			if n == 0 && !isNumber(ops[0]) && !strings.Contains(ops[0], "[") {
				return 1
			}
			return n
		}
		n++
	}
	return n
}
