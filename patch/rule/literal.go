package rule

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/cupatch/cupatch/isa"
)

// A literal that a field can never equal is an error: what can never be true is a
// mistake, and must not match nothing without a word.

// A numberRange is what a numeric field can be.
type numberRange struct {
	least, most int64
	step        int64   // 0: any number
	oneOf       []int64 // nil: any in between
}

// widths are the sizes that loads, stores and atomics have, in bits.
var widths = []int64{8, 16, 32, 64, 96, 128, 256}

// rangeOf returns what a numeric field of the rule can be; ok is false for one that can
// be any number.
func (c *exprCompiler) rangeOf(f *fieldRef) (r numberRange, ok bool) {
	switch {
	case f.kind == fieldBits:
		return numberRange{most: 1<<f.bits.Width() - 1}, true
	case f.def == nil:
		return r, false
	case f.def.of == ofRun:
		it := &c.rule.items[f.item]
		most := int64(it.max)
		if it.max < 0 {
			most = math.MaxInt64
		}
		if f.name == "i" {
			return numberRange{most: max(most-1, 0)}, true
		}
		return numberRange{least: int64(max(it.min, 1)), most: most}, true
	case f.def.can == nil:
		return r, false
	}
	return *f.def.can, true
}

// checkNumber refuses a comparison of a numeric field with a constant that never holds,
// and for equality one with a number that the field never is.
func (c *exprCompiler) checkNumber(op string, x, y *compiledExpr) error {
	if y.field != nil {
		x, y, op = y, x, mirrored[op]
	}
	if x.field == nil || !y.lit || y.typ > typeFloat || x.typ != typeInt {
		return nil
	}
	r, ok := c.rangeOf(x.field)
	v, known := y.asFloat()(nil)
	if !ok || !known {
		return nil
	}
	name, least, most := x.field.name, float64(r.least), float64(r.most)
	never := false
	switch op {
	case "==", "!=":
		never = v < least || v > most || v != math.Trunc(v)
		switch {
		case r.step > 0 && !never && int64(v)%r.step != 0:
			return c.errorf(y.pos, "%s is never %#x: addresses are multiples of %d", name, int64(v), r.step)
		case r.oneOf != nil && (never || !slices.Contains(r.oneOf, int64(v))):
			return c.errorf(y.pos, "%s is never %v; it is one of %s", name, v, strings.Trim(fmt.Sprint(r.oneOf), "[]"))
		}
		op = ""
	case "<":
		never = v <= least
	case "<=":
		never = v < least
	case ">":
		never = v >= most
	case ">=":
		never = v > most
	}
	if !never {
		return nil
	}
	what := strings.TrimSpace(op + " " + strconv.FormatFloat(v, 'f', -1, 64))
	if r.most == math.MaxInt64 {
		return c.errorf(y.pos, "%s is never %s; it starts at %d", name, what, r.least)
	}
	return c.errorf(y.pos, "%s is never %s; it goes from %d to %d", name, what, r.least, r.most)
}

// mirrored are the comparisons with their sides exchanged.
var mirrored = map[string]string{"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}

// checkTextOp refuses a test that no value of a modifier group or of yield passes.
func (c *exprCompiler) checkTextOp(x *compiledExpr, op, want string, pos int, test func(string) bool) error {
	if x.field == nil {
		return nil
	}
	var values []string
	switch x.field.kind {
	case fieldYield:
		values = []string{"Y", "-"}
	case fieldGroup:
		values = []string{"-"}
		for _, g := range x.field.scope.groups[x.field.name] {
			for _, v := range g.Values {
				values = append(values, v.Text)
			}
		}
	default:
		return nil
	}
	if slices.ContainsFunc(values, test) {
		return nil
	}
	if x.field.kind == fieldGroup {
		values = x.field.scope.values(x.field.name)
	}
	return c.errorf(pos, "no value of %s %s %q; %s: %s", x.field.name, op, want, x.field.name, strings.Join(values, " "))
}

var (
	smallRegister  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^u?[rp]([0-9]+|z|t)$`) })
	numberedName   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(U?[RP])([0-9]+)$`) })
	selectRegister = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^U?R([0-9]+|Z)\.`) })
)

// checkOperand refuses a text that no operand of the name can be.
func (c *exprCompiler) checkOperand(f *fieldRef, s string, pos int) error {
	if smallRegister().MatchString(s) {
		return c.errorf(pos, "%s is never %q: registers are written in capitals, %q", f.name, s, strings.ToUpper(s))
	}
	if m := numberedName().FindStringSubmatch(s); m != nil {
		file := map[string]isa.RegFile{"R": isa.FileR, "UR": isa.FileUR, "P": isa.FileP, "UP": isa.FileUP}[m[1]]
		last := c.names.table.Arch().LastRegister(file)
		zero := map[bool]string{true: "T", false: "Z"}[last == 6]
		if n, err := strconv.Atoi(m[2]); err != nil || n > last {
			return c.errorf(pos, "%s is never %q; there are %s0 to %s%d and %s%s", f.name, s, m[1], m[1], last, m[1], zero)
		}
	}
	if selectRegister().MatchString(s) && f.scope.onlyAddress(f.name) {
		return c.errorf(pos, "%s is an address and never %q", f.name, s).
			hint("compare its base register, %q, or all of it, such as \"desc[UR4][R2.64+0x10]\"", s[:strings.IndexByte(s, '.')])
	}
	return nil
}

// TargetArch reads an architecture that a rule or a recipe names. One that was never made
// is a mistake, and would keep a rule from applying without a word; what comes after the
// last one that has a table may be right.
func TargetArch(s string) (isa.Arch, error) {
	a, err := isa.ParseArch(s)
	if err != nil {
		return a, err
	}
	var list []string
	last := 0
	for _, x := range isa.Arches() {
		if x.SM == a.SM {
			return a, nil
		}
		if x.SM != last {
			list = append(list, fmt.Sprintf("sm_%d", x.SM))
		}
		last = x.SM
	}
	if a.SM < last {
		return a, fmt.Errorf("%s is no architecture that a rule can be for; there are %s", a, strings.Join(list, " "))
	}
	return a, nil
}
