package isa

import (
	"slices"
	"strconv"
	"strings"
)

// A Group is a modifier group of a variant: a field whose values print as a
// modifier, of which one is chosen.
type Group struct {
	Name    string // unique within the variant: `evict`, `size`, or `mod84` where no name is known
	Field   Field
	Values  []GroupValue // by the field's value
	Operand int          // -1 for a modifier of the opcode, else the operand it is at
	Default int          // the value that prints nothing, or -1
}

// A GroupValue is one value of a group.
type GroupValue struct {
	Text  string // `EF`, `STRONG.GPU`; empty for what prints nothing
	Legal bool   // false for INVALIDn and ???n and for what nvdisasm refuses
}

// Text returns the text of g's value in w, "-" where it prints nothing; ok is false for a
// value that is not one of g's.
func (g *Group) Text(w Word) (text string, ok bool) {
	raw := g.Field.Get(w)
	if raw >= uint64(len(g.Values)) {
		return "", false
	}
	if text = g.Values[raw].Text; text == "" {
		text = "-"
	}
	return text, true
}

// Groups returns the modifier groups of v, which must not be changed.
func (t *Table) Groups(v *Variant) []*Group {
	if gs, ok := t.groups.Load(v); ok {
		return gs.([]*Group)
	}
	gs, _ := t.groups.LoadOrStore(v, findGroups(v, t.Operands(v)))
	return gs.([]*Group)
}

// findGroups makes a group of each choice between literals that the values of fields
// alone decide.
func findGroups(v *Variant, operands []OperandInfo) []*Group {
	var gs []*Group
	operand, depth := -1, 0
	for i := range v.Template {
		p := &v.Template[i]
		if g := newGroup(p); g != nil && !g.joins(gs) {
			g.Operand = operand
			gs = append(gs, g)
		}
		for _, e := range p.richest() {
			for _, c := range e.Lit {
				switch {
				case operand < 0:
					if c == ' ' {
						operand = 0
					}
				case strings.ContainsRune("[{(", c):
					depth++
				case strings.ContainsRune("]})", c):
					depth--
				case c == ',' && depth == 0:
					operand++
				}
			}
		}
	}
	nameGroups(gs, operands)
	for _, g := range gs {
		for i := range v.Template {
			g.refuse(&v.Template[i])
		}
	}
	return gs
}

// refuse marks the values of g that p refuses whatever else is in the word.
func (g *Group) refuse(p *Piece) {
	var bits []int // by the bit of p's index: the bit of g's value, or -1
	mine := g.Field.Bits()
	shared := false
	for _, t := range p.Tests {
		if t.Kind != TestValue {
			bits = append(bits, -1)
			continue
		}
		for _, b := range t.Field.Bits() {
			k := slices.Index(mine, b)
			bits = append(bits, k)
			shared = shared || k >= 0
		}
	}
	if !shared {
		return
	}
	allowed := map[int]bool{}
	known := 0
	for i, x := range p.Table {
		if x == PieceIllegal || x == PieceOther {
			continue
		}
		value := 0
		for j, k := range bits {
			if k >= 0 {
				value |= i >> j & 1 << k
				known |= 1 << k
			}
		}
		allowed[value] = true
	}
	for v := range g.Values {
		g.Values[v].Legal = g.Values[v].Legal && allowed[v&known]
	}
}

// joins reports whether g adds no group to gs: a second bar is of the same group as
// the first, and values that are only refused, or have no meaning, are marked in the group
// of the same field.
func (g *Group) joins(gs []*Group) bool {
	empty := !slices.ContainsFunc(g.Values, func(v GroupValue) bool { return v.Legal && v.Text != "" })
	for _, h := range gs {
		if !slices.Equal(g.Field, h.Field) {
			continue
		}
		if g.flag() == "|" && h.flag() == "|" {
			return true
		}
		for i := range h.Values {
			h.Values[i].Legal = h.Values[i].Legal && (!empty || g.Values[i].Legal)
		}
	}
	return empty
}

// newGroup returns the group that p is, or nil.
func newGroup(p *Piece) *Group {
	g := &Group{Default: -1}
	for _, t := range p.Tests {
		if t.Kind != TestValue || !t.Field.Mask().And(controlMask).IsZero() {
			return nil
		}
		g.Field = append(g.Field, t.Field...)
	}
	if len(p.Tests) == 0 || checkField(g.Field) != nil || g.Field.Width() > maxGroupBits {
		return nil
	}
	for i, x := range p.Table {
		v := GroupValue{}
		if int(x) < len(p.Alts) {
			a := p.Alts[x]
			if len(a) > 1 || len(a) == 1 && a[0].Lit == "" {
				return nil
			}
			if len(a) == 1 {
				v.Text = strings.Trim(a[0].Lit, " .,")
			}
			v.Legal = !isInvalid(v.Text)
			if v.Text == "" && g.Default < 0 {
				g.Default = i
			}
		}
		g.Values = append(g.Values, v)
	}
	return g
}

// maxGroupBits is the greatest width of a modifier group.
const maxGroupBits = 12

// isInvalid reports whether a modifier's text says that the value has no meaning.
func isInvalid(text string) bool {
	return strings.Contains(text, "???") || strings.Contains(text, "INVALID")
}

// operandFlags are the names of modifiers of operands by what they print.
var operandFlags = map[string]string{"-": "neg", "|": "abs", "!": "not", "~": "inv"}

// nameGroups gives the groups of one variant their names.
func nameGroups(gs []*Group, operands []OperandInfo) {
	seen := map[string]int{}
	for _, g := range gs {
		name := groupName(g)
		if name == "" {
			name = "mod" + strconv.Itoa(int(g.Field[0].Lo))
		}
		if g.Operand >= 0 && g.Operand < len(operands) {
			if flag := operandFlags[g.flag()]; flag != "" {
				name = flag
			}
			name = operands[g.Operand].Name + "." + name
		}
		seen[name]++
		if n := seen[name]; n > 1 {
			name += strconv.Itoa(n)
		}
		g.Name = name
	}
}

// flag returns the text of a group with one value beside the default, or "".
func (g *Group) flag() string {
	if len(g.Values) == 2 && g.Default >= 0 {
		return g.Values[1-g.Default].Text
	}
	return ""
}

// groupName returns the known name of a group with g's values, of a flag its own
// text in small letters, or "".
func groupName(g *Group) string {
	var texts []string
	for _, v := range g.Values {
		if v.Legal && v.Text != "" && !slices.Contains(texts, v.Text) {
			texts = append(texts, v.Text)
		}
	}
	if len(texts) == 0 {
		return ""
	}
	// One letter alone says too little: U of BRA is not the U of CCTL's caches.
	if name := knownName(texts); len(texts) > 1 || name != "" && len(texts[0]) > 1 {
		return name
	}
	name := leadingName(strings.ToLower(texts[0]))
	if name != "" && name[0] >= '0' && name[0] <= '9' {
		return "" // rules take it for a number
	}
	return name
}
