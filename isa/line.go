package isa

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// A Line is an instruction as people write it: in a listing, or alone.
type Line struct {
	PC         uint64
	HasPC      bool
	Control    Control // DefaultControl where the line has none
	HasControl bool
	Text       string // the instruction, guard included
	TextPos    int    // where Text starts in the line
}

// ParseLine reads `TEXT`, `[B01----:R2:W0:Y:S04] TEXT`, or a line of a listing,
// `/*0070*/ [B01----:R2:W0:Y:S04] TEXT ;`. A control code in NVIDIA's notation may
// stand behind the text. What follows a semicolon is a comment.
func ParseLine(s string) (Line, error) {
	l := Line{Control: DefaultControl}
	rest := strings.TrimLeft(s, " \t")
	if strings.HasPrefix(rest, "/*") {
		num, after, ok := strings.Cut(rest[2:], "*/")
		pc, err := strconv.ParseUint(strings.TrimPrefix(strings.TrimSpace(num), "0x"), 16, 64)
		if !ok || err != nil {
			return l, fmt.Errorf("column %d: expected an address like /*0070*/", len(s)-len(rest)+1)
		}
		l.PC, l.HasPC = pc, true
		rest = strings.TrimLeft(after, " \t")
	}
	if strings.HasPrefix(rest, "[B") {
		end := strings.IndexByte(rest, ']') + 1
		if end == 0 {
			end = len(rest)
		}
		c, err := ParseControl(rest[:end])
		if err != nil {
			return l, err
		}
		l.Control, l.HasControl = c, true
		rest = strings.TrimLeft(rest[end:], " \t")
	}
	l.TextPos = len(s) - len(rest)
	rest, _, _ = strings.Cut(rest, ";")
	if i := nvidiaControl(rest); i >= 0 {
		if l.HasControl {
			return l, errors.New("a control code before the text and one behind it")
		}
		c, err := parseNvidia(rest[i:])
		if err != nil {
			return l, err
		}
		l.Control, l.HasControl = c, true
		rest = rest[:i]
	}
	l.Text = strings.TrimRight(rest, " \t\r")
	return l, nil
}

// nvidiaControl returns where a control code in NVIDIA's notation starts, or -1.
func nvidiaControl(s string) int {
	first := -1
	for _, start := range []string{" &req=", " &rd=", " &wr=", " ?WAIT", " ?trans", " ?sched"} {
		if i := strings.Index(s, start); i >= 0 && (first < 0 || i < first) {
			first = i
		}
	}
	return first
}

// EncodeLine encodes l, the control code included; it takes the address from l. With
// like, a line without a control code keeps that of like.
func (t *Table) EncodeLine(l Line, like *Word) (Word, error) {
	w, err := t.Encode(l.Text, l.PC, like)
	if err != nil {
		var e *SyntaxError
		if errors.As(err, &e) {
			e.Text, e.Pos = strings.Repeat(" ", l.TextPos)+e.Text, e.Pos+l.TextPos
		}
		return w, err
	}
	if !l.HasControl {
		return w, nil
	}
	v := l.Control.SetCode(w)
	if ControlOf(v).Yield != ControlOf(w).Yield {
		// Bits 122–124 change their meaning: reuse flags or a batch number.
		v.Hi &^= reuseMask
		if t.Text(t.Decode(v), l.PC) != t.Text(t.Decode(w), l.PC) {
			return Word{}, fmt.Errorf("a reuse flag does not go with %s: only an instruction that does not yield has them", l.Control)
		}
	}
	return v, nil
}

// ParseWord reads the two halves of a word, low half first, as cuobjdump prints
// them: hexadecimal, with or without 0x, separated by blanks or a comma. It also returns
// what follows.
func ParseWord(s string) (w Word, rest string, err error) {
	var lo, hi string
	lo, rest = cutHex(s)
	hi, rest = cutHex(rest)
	if w.Lo, err = ParseHex(lo); err != nil {
		return w, rest, fmt.Errorf("low half: %w", err)
	}
	if w.Hi, err = ParseHex(hi); err != nil {
		return w, rest, fmt.Errorf("high half: %w", err)
	}
	return w, rest, nil
}

// cutHex cuts the first item of s, up to a blank or comma.
func cutHex(s string) (item, rest string) {
	s = strings.TrimLeft(s, " ,")
	n := strings.IndexAny(s, " ,\t")
	if n < 0 {
		n = len(s)
	}
	return s[:n], s[n:]
}

// ParseHex reads a hexadecimal number of up to 64 bits, with or without 0x.
func ParseHex(s string) (uint64, error) {
	x := uint64(0)
	digits := strings.TrimPrefix(s, "0x")
	for i := 0; i < len(digits); i++ {
		d := strings.IndexByte(hexDigits, digits[i]|0x20)
		if d < 0 || x>>60 != 0 {
			return 0, fmt.Errorf("%q is no hexadecimal number of 64 bits", s)
		}
		x = x<<4 | uint64(d)
	}
	if digits == "" {
		return 0, errors.New("a hexadecimal number is missing")
	}
	return x, nil
}
