package patch

import (
	"strconv"
	"strings"
)

// An operandText is an operand as nvdisasm prints it.
type operandText string

// plain returns the operand without the reuse flag, which is a field of its own.
func (o operandText) plain() string {
	return strings.ReplaceAll(string(o), ".reuse", "")
}

// value returns what a condition sees: of an operand in the files R and UR the bare
// register, without sign, absolute value and selector; of an address its base
// register; of anything else the text.
func (o operandText) value() string {
	if lo, hi, ok := o.register(); ok {
		return string(o)[lo:hi]
	}
	return o.plain()
}

// register returns where the operand's register stands: that of a plain register
// operand, or the base register of an address.
func (o operandText) register() (lo, hi int, ok bool) {
	s := string(o)
	if at := o.address(); at >= 0 {
		lo = at
	} else {
		for lo < len(s) && strings.IndexByte("-~|+", s[lo]) >= 0 {
			lo++
		}
	}
	hi = lo
	for hi < len(s) && isNameByte(s[hi]) {
		hi++
	}
	return lo, hi, isRegister(s[lo:hi])
}

// address returns where the inside of an address operand starts, `[R2.64+0x10]` or
// `desc[UR4][R2.64]`, or -1. Constant banks, c[0x0][0x160], are no addresses.
func (o operandText) address() int {
	s := string(o)
	if !strings.HasSuffix(s, "]") || !strings.HasPrefix(s, "[") && !strings.HasPrefix(s, "desc[") && !strings.HasPrefix(s, "gdesc[") {
		return -1
	}
	return strings.LastIndexByte(s, '[') + 1
}

// offset returns the constant offset of an address and where it stands: the text
// from its sign to the closing bracket, empty where none is printed.
func (o operandText) offset() (lo, hi int, v int64, ok bool) {
	at := o.address()
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

// integer returns the operand's value as a number where it is a whole one.
func (o operandText) integer() (int64, bool) {
	if _, _, v, ok := o.offset(); ok {
		return v, true
	}
	return parseInteger(o.plain())
}

// float returns the operand's value as a floating-point number.
func (o operandText) float() (float64, bool) {
	if v, ok := o.integer(); ok {
		return float64(v), true
	}
	s := strings.TrimSpace(o.plain())
	if !strings.ContainsAny(s, "0123456789") || strings.ContainsAny(s, "RP[") {
		return 0, false
	}
	v, err := strconv.ParseFloat(s, 64)
	return v, err == nil
}

// parseInteger reads a whole number, decimal or hexadecimal, with a sign.
func parseInteger(s string) (int64, bool) {
	if v, err := strconv.ParseInt(s, 0, 64); err == nil {
		return v, true
	}
	v, err := strconv.ParseUint(s, 0, 64)
	return int64(v), err == nil
}

// withRegister returns the operand with its register replaced, all else kept.
func (o operandText) withRegister(r string) (string, bool) {
	lo, hi, ok := o.register()
	if !ok {
		return "", false
	}
	return string(o)[:lo] + r + string(o)[hi:], true
}

// withOffset returns an address with its constant offset replaced.
func (o operandText) withOffset(v int64) (string, bool) {
	lo, hi, _, ok := o.offset()
	if !ok {
		return "", false
	}
	s := string(o)
	inside := strings.TrimSuffix(s[o.address():lo], "+")
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
	return s[:o.address()] + inside + num + s[hi:], true
}
