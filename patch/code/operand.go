package code

import (
	"strconv"
	"strings"

	"github.com/cupatch/cupatch/patch/internal/ascii"
)

// An Operand is an operand as nvdisasm prints it.
type Operand string

// Plain returns the operand without the reuse flag, which is a field of its own.
func (o Operand) Plain() string {
	return strings.ReplaceAll(string(o), ".reuse", "")
}

// Value returns what a condition sees: of an operand in the files R and UR the bare
// Register, without sign, absolute value and selector; of an address its base
// Register; of anything else the text.
func (o Operand) Value() string {
	if lo, hi, ok := o.register(); ok {
		return string(o)[lo:hi]
	}
	return o.Plain()
}

// register returns where the operand's register stands: that of a plain register
// operand, or the base register of an address.
func (o Operand) register() (lo, hi int, ok bool) {
	s := string(o)
	if at := o.Address(); at >= 0 {
		lo = at
	} else {
		for lo < len(s) && strings.IndexByte("-~|+", s[lo]) >= 0 {
			lo++
		}
	}
	hi = lo
	for hi < len(s) && ascii.Name(s[hi]) {
		hi++
	}
	return lo, hi, IsRegister(s[lo:hi])
}

// Address returns where the inside of an address operand starts, `[R2.64+0x10]` or
// `desc[UR4][R2.64]`, or -1. Constant banks, c[0x0][0x160], are no addresses.
func (o Operand) Address() int {
	s := string(o)
	if !strings.HasSuffix(s, "]") || !strings.HasPrefix(s, "[") && !strings.HasPrefix(s, "desc[") && !strings.HasPrefix(s, "gdesc[") {
		return -1
	}
	return strings.LastIndexByte(s, '[') + 1
}

// offset returns the constant offset of an address and where it stands: the text
// from its sign to the closing bracket, empty where none is printed.
func (o Operand) offset() (lo, hi int, v int64, ok bool) {
	at := o.Address()
	if at < 0 {
		return 0, 0, 0, false
	}
	s := string(o)
	hi = len(s) - 1
	lo = hi
	if i := strings.LastIndexAny(s[at:hi], "+-"); i >= 0 {
		lo = at + i
		if i > 0 && s[lo-1] == '+' {
			lo-- // R2+-0x10
		}
	} else if strings.HasPrefix(s[at:], "0x") || strings.HasPrefix(s[at:], "-0x") {
		lo = at
	}
	num := strings.TrimPrefix(s[lo:hi], "+")
	n, err := strconv.ParseInt(num, 0, 64)
	if err != nil {
		return hi, hi, 0, true
	}
	return lo, hi, n, true
}

// Integer returns the operand's value as a number where it is a whole one.
func (o Operand) Integer() (int64, bool) {
	if _, _, v, ok := o.offset(); ok {
		return v, true
	}
	return ParseInteger(o.Plain())
}

// Float returns the operand's value as a floating-point number.
func (o Operand) Float() (float64, bool) {
	if v, ok := o.Integer(); ok {
		return float64(v), true
	}
	s := strings.TrimSpace(o.Plain())
	if !strings.ContainsAny(s, "0123456789") || strings.ContainsAny(s, "RP[") {
		return 0, false
	}
	v, err := strconv.ParseFloat(s, 64)
	return v, err == nil
}

// ParseInteger reads a whole number, decimal or hexadecimal, with a sign.
func ParseInteger(s string) (int64, bool) {
	if v, err := strconv.ParseInt(s, 0, 64); err == nil {
		return v, true
	}
	v, err := strconv.ParseUint(s, 0, 64)
	return int64(v), err == nil
}

// WithRegister returns the operand with its register replaced, all else kept.
func (o Operand) WithRegister(r string) (string, bool) {
	lo, hi, ok := o.register()
	if !ok {
		return "", false
	}
	return string(o)[:lo] + r + string(o)[hi:], true
}

// WithOffset returns an address with its constant offset replaced.
func (o Operand) WithOffset(v int64) (string, bool) {
	lo, hi, _, ok := o.offset()
	if !ok {
		return "", false
	}
	s := string(o)
	inside := strings.TrimSuffix(s[o.Address():lo], "+")
	num := "0x" + strconv.FormatInt(v, 16)
	if v < 0 {
		num = "-0x" + strconv.FormatUint(uint64(-v), 16)
	}
	switch {
	case inside == "":
	case v == 0:
		num = ""
	default:
		num = "+" + num
	}
	return s[:o.Address()] + inside + num + s[hi:], true
}

// IsRegister tells a bare register name of the files R and UR.
func IsRegister(s string) bool {
	t, ok := strings.CutPrefix(s, "UR")
	if !ok {
		t, ok = strings.CutPrefix(s, "R")
	}
	if !ok || t == "" {
		return false
	}
	if t == "Z" {
		return true
	}
	for i := range len(t) {
		if !ascii.Digit(t[i]) {
			return false
		}
	}
	return len(t) <= 3
}
