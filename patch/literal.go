package patch

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/cupatch/cupatch/isa"
)

// A literal that a field can never equal is an error: what can never be true is a
// mistake, and must not match nothing without a word.

// checkNumber refuses a comparison for equality of a numeric field with a literal that
// the field's bits cannot hold.
func (c *exprCompiler) checkNumber(x, y *compiledExpr) error {
	if y.field != nil {
		x, y = y, x
	}
	if x.field == nil || !y.lit || y.typ != typeInt {
		return nil
	}
	v, _ := y.num(nil)
	f := x.field
	most := int64(-1)
	switch f.kind {
	case fieldStall:
		most = 15
	case fieldBar, fieldBatch:
		most = 7
	case fieldWait:
		most = 63
	case fieldBits:
		most = 1<<f.bits.Width() - 1
	case fieldPC:
		if v < 0 || v%16 != 0 {
			return c.errorf(y.pos, "pc is never %#x: addresses are multiples of 16", v)
		}
	}
	if most >= 0 && (v < 0 || v > most) {
		return c.errorf(y.pos, "%s is never %d; it goes from 0 to %d", f.name, v, most)
	}
	return nil
}

var (
	smallRegister  = regexp.MustCompile(`^u?[rp]([0-9]+|z|t)$`)
	numberedName   = regexp.MustCompile(`^(U?[RP])([0-9]+)$`)
	selectRegister = regexp.MustCompile(`^U?R([0-9]+|Z)\.`)
)

// checkOperand refuses a text that no operand of the name can be.
func (c *exprCompiler) checkOperand(f *fieldRef, s string, pos int) error {
	if smallRegister.MatchString(s) {
		return c.errorf(pos, "%s is never %q: registers are written in capitals, %q", f.name, s, strings.ToUpper(s))
	}
	if m := numberedName.FindStringSubmatch(s); m != nil {
		last := map[string]int{"R": 254, "UR": 62, "P": 6, "UP": 6}[m[1]]
		if m[1] == "UR" && c.names.table.Arch().SM >= 100 {
			last = 254
		}
		zero := map[bool]string{true: "T", false: "Z"}[last == 6]
		if n, err := strconv.Atoi(m[2]); err != nil || n > last {
			return c.errorf(pos, "%s is never %q; there are %s0 to %s%d and %s%s", f.name, s, m[1], m[1], last, m[1], zero)
		}
	}
	if selectRegister.MatchString(s) && f.scope.onlyAddress(f.name) {
		return c.errorf(pos, "%s is an address and never %q", f.name, s).
			hint("compare its base register, %q, or all of it, such as \"desc[UR4][R2.64+0x10]\"", s[:strings.IndexByte(s, '.')])
	}
	return nil
}

// madeArchs are the SM numbers up to lastArch with instructions of 128 bits, those that
// nvdisasm 12.8 and 13.5 know. What comes later is not known yet, and may be right.
var madeArchs = []int{70, 72, 75, 80, 86, 87, 88, 89, 90, 100, 101, 103, 107, 110, 120, 121}

const lastArch = 121

// parseArch reads an architecture that a rule or a recipe names. One that was never made
// is a mistake, and would keep a rule from applying without a word.
func parseArch(s string) (isa.Arch, error) {
	a, err := isa.ParseArch(s)
	if err != nil {
		return a, err
	}
	if a.SM <= lastArch && !slices.Contains(madeArchs, a.SM) {
		var list []string
		for _, sm := range madeArchs {
			list = append(list, fmt.Sprintf("sm_%d", sm))
		}
		return a, fmt.Errorf("%s is no architecture that a rule can be for; there are %s", a, strings.Join(list, " "))
	}
	return a, nil
}
