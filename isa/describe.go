package isa

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A Description is a variant as people read it: which bits mean what.
type Description struct {
	Class    string `json:"class"`
	Mnemonic string `json:"mnemonic"`
	Opcode   int    `json:"opcode"` // 13 bits: 0–11 and, on top, 91
	Guard    string `json:"guard"`  // P, UP or none
	Reuse    string `json:"reuse"`  // the reuse flags that it has, of abc
	Uniform  bool   `json:"uniform,omitempty"`
	// Text is the text as tables write it, with the names of groups.
	Text     string             `json:"text"`
	Choices  []string           `json:"choices,omitempty"`
	Bits     []BitRow           `json:"bits"`
	Groups   []GroupDescription `json:"groups,omitempty"`
	Operands []OperandRow       `json:"operands,omitempty"`
	Hidden   []HiddenRow        `json:"hidden,omitempty"`
}

// A BitRow is a run of bits with one meaning.
type BitRow struct {
	Lo    int    `json:"lo"`
	Hi    int    `json:"hi"`
	Value string `json:"value,omitempty"` // of constant bits, in binary, the highest first
	Means string `json:"means"`
}

// A GroupDescription is a modifier group and its values.
type GroupDescription struct {
	Name    string   `json:"name"`
	Field   string   `json:"bits"`
	Operand int      `json:"operand"` // -1: of the opcode
	Default int      `json:"default"` // -1: each value prints something
	Values  []string `json:"values"`  // by the field's value; "" prints nothing
	Illegal []int    `json:"illegal,omitempty"`
}

// An OperandRow is an operand: its name in rules and how it prints.
type OperandRow struct {
	Name   string   `json:"name"`
	Text   string   `json:"text"`
	Fields []string `json:"bits"`
}

// A HiddenRow is a run of bits that no text shows, and what ptxas emits there.
type HiddenRow struct {
	Field   string `json:"bits"`
	Default uint64 `json:"default"`
}

// Describe returns what t knows of v.
func (t *Table) Describe(v *Variant) *Description {
	d := &Description{Class: v.Class, Mnemonic: v.Mnemonic(), Opcode: v.Value.Opcode(), Uniform: v.Sched&SchedUniform != 0,
		Reuse: v.reuseFlags(), Guard: [...]string{GuardP: "P", GuardUP: "UP", GuardNone: "none"}[v.Guard]}
	groups := t.Groups(v)
	w := tableWriter{label: func(p *Piece) string {
		for _, g := range groups {
			if slices.Equal(g.Field, p.Tests[0].Field) && newGroup(p) != nil {
				return g.Name
			}
		}
		return listText(p)
	}}
	lines := strings.Split(strings.TrimRight(w.template(v), "\n"), "\n")
	d.Text = strings.TrimPrefix(lines[0], "  text ")
	d.Choices = lines[1:]
	for _, g := range groups {
		gd := GroupDescription{Name: g.Name, Field: g.Field.String(), Operand: g.Operand, Default: g.Default}
		for i, x := range g.Values {
			gd.Values = append(gd.Values, x.Text)
			if !x.Legal {
				gd.Illegal = append(gd.Illegal, i)
			}
		}
		d.Groups = append(d.Groups, gd)
	}
	for _, o := range t.Operands(v) {
		row := OperandRow{Name: o.Name, Text: o.Text}
		for _, f := range o.Fields {
			row.Fields = append(row.Fields, f.String())
		}
		d.Operands = append(d.Operands, row)
	}
	for _, r := range maskRanges(v.Ignored) {
		d.Hidden = append(d.Hidden, HiddenRow{Field{r}.String(), r.get(v.Default)})
	}
	d.Bits = t.bitRows(v)
	return d
}

// bitRows says of all 128 bits what they mean.
func (t *Table) bitRows(v *Variant) []BitRow {
	var means [128][]string
	add := func(f Field, what string) {
		m := f.Mask()
		for b := range means {
			if m.Bit(b) != 0 && !slices.Contains(means[b], what) {
				means[b] = append(means[b], what)
			}
		}
	}
	add(GuardField, "guard predicate")
	add(GuardNot, "guard negated")
	add(StallField, "stall")
	add(YieldField, "yield when 0")
	add(WBarField, "write scoreboard (W), 7 none")
	add(RBarField, "read scoreboard (R), 7 none")
	add(WaitField, "wait mask")
	add(ReuseField, "reuse flags, or batch when yield")
	for _, o := range t.Operands(v) {
		for i, f := range o.Fields {
			what := o.Name
			if len(o.Fields) > 1 {
				what += ", field " + strconv.Itoa(i+1)
			}
			add(f, what)
		}
	}
	for _, g := range t.Groups(v) {
		add(g.Field, g.Name)
	}
	n := 0
	for i := range v.Template {
		p := &v.Template[i]
		if len(p.Tests) == 0 || isFlag(p) || isList(p) {
			continue
		}
		n++
		for _, x := range p.Tests {
			if x.Kind == TestValue && x.Field.Mask().And(controlMask).IsZero() {
				add(x.Field, "choice #"+strconv.Itoa(n))
			}
		}
	}
	return joinRows(v, &means)
}

// joinRows makes rows of neighboring bits that mean the same.
func joinRows(v *Variant, means *[128][]string) []BitRow {
	var rows []BitRow
	for b := range means {
		what, value := strings.Join(means[b], "; "), ""
		switch {
		case v.Mask.Bit(b) != 0:
			value = strconv.Itoa(int(v.Value.Bit(b)))
			what = "constant"
			if b < 12 || b == 91 {
				what = "opcode"
			}
		case what == "" && v.Ignored.Bit(b) != 0:
			what = "ignored"
		case what == "":
			what = "unused"
		}
		if n := len(rows); n > 0 && rows[n-1].Means == what {
			rows[n-1].Hi, rows[n-1].Value = b, value+rows[n-1].Value
			continue
		}
		rows = append(rows, BitRow{b, b, value, what})
	}
	return rows
}

// String returns r's bits, `24:31` or `72`.
func (r BitRow) String() string {
	if r.Lo == r.Hi {
		return strconv.Itoa(r.Lo)
	}
	return fmt.Sprintf("%d:%d", r.Lo, r.Hi)
}
