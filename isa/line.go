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
	Nvidia     bool // the code is in NVIDIA's notation, after the text
	Word       Word // of a comment /* 0xLO 0xHI */ after the text
	HasWord    bool
	Text       string // the instruction, guard included
	TextPos    int    // where Text starts in the line
}

// ParseLine reads `TEXT`, `[B01----:R2:W0:Y:S04] TEXT`, or a line of a listing,
// `/*0070*/ [B01----:R2:W0:Y:S04] TEXT ; // comment`. A control code in NVIDIA's notation
// may stand after the text, before or after the semicolon. After the semicolon may be
// comments, /*…*/ and //…, and nothing else.
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
	body, tail, _ := strings.Cut(rest, ";")
	code, text, pos, err := SplitControl(body)
	if err != nil {
		return l, err
	}
	l.Text, l.TextPos = text, len(s)-len(rest)+pos
	l.Nvidia = code != nil && !strings.HasPrefix(strings.TrimLeft(body, " \t"), "[")
	tail, comment := cutComments(tail)
	if l.Word, l.HasWord, err = wordIn(comment); err != nil {
		return l, err
	}
	if tail != "" {
		if tail[0] != '&' && tail[0] != '?' {
			return l, fmt.Errorf("column %d: expected a comment after the semicolon, found %q", strings.LastIndex(s, tail)+1, tail)
		}
		if code != nil {
			return l, errTwoCodes
		}
		c, err := parseNvidia(tail)
		if err != nil {
			return l, err
		}
		code, l.Nvidia = &c, true
	}
	if code != nil {
		l.Control, l.HasControl = *code, true
	}
	return l, nil
}

var errTwoCodes = errors.New("a control code before the text and another after it")

// SplitControl takes a control code off an instruction's text, CuAssembler's off the
// front or NVIDIA's off the end; code is nil where there is none. pos is where text, which
// has no blanks at its ends, starts in s.
func SplitControl(s string) (code *Control, text string, pos int, err error) {
	text = strings.TrimLeft(s, " \t")
	if strings.HasPrefix(text, "[B") {
		end := strings.IndexByte(text, ']') + 1
		if end == 0 {
			end = len(text)
		}
		c, err := ParseControl(text[:end])
		if err != nil {
			return nil, "", 0, err
		}
		code, text = &c, strings.TrimLeft(text[end:], " \t")
	}
	pos = len(s) - len(text)
	text, suffix, found, err := cutNvidia(text)
	if err == nil && found && code != nil {
		err = errTwoCodes
	}
	if err != nil {
		return nil, "", 0, err
	}
	if found {
		code = &suffix
	}
	return code, strings.TrimRight(text, " \t\r"), pos, nil
}

// cutComments returns what is left of s without comments and the blanks around them, and
// the first comment /*…*/.
func cutComments(s string) (rest, comment string) {
	for {
		i := strings.Index(s, "/*")
		if j := strings.Index(s, "//"); i < 0 || j >= 0 && j < i {
			break
		}
		inside, after, _ := strings.Cut(s[i+2:], "*/")
		if comment == "" {
			comment = strings.TrimSpace(inside)
		}
		s = s[:i] + " " + after
	}
	s, _, _ = strings.Cut(s, "//")
	return strings.TrimSpace(s), comment
}

// wordIn reads the word of a comment, 0xLO 0xHI; other comments have none.
func wordIn(comment string) (w Word, ok bool, err error) {
	if !strings.HasPrefix(comment, "0x") || len(strings.Fields(comment)) < 2 {
		return w, false, nil
	}
	if w, _, err = ParseWord(comment); err != nil {
		return w, false, fmt.Errorf("the word after the text: %w", err)
	}
	return w, true, nil
}

// EncodeLine encodes l, the control code included; it takes the address from l. With
// like, a line without a control code keeps that of like. What it refuses, allow aside,
// is a [*RefusedError]; a word that is like is never refused.
func (t *Table) EncodeLine(l Line, like *Word, allow Allow) (Word, error) {
	over := like
	if like != nil && l.HasControl {
		w := l.Control.SetCode(*like)
		over = &w
	}
	w, err := t.EncodeAllow(l.Text, l.PC, over, allow)
	if err != nil {
		var e *SyntaxError
		if errors.As(err, &e) {
			e.Text, e.Pos = strings.Repeat(" ", l.TextPos)+e.Text, e.Pos+l.TextPos
		}
		return w, err
	}
	if l.HasControl && l.Control.Yield && ControlOf(w).Reuse != 0 && strings.Contains(l.Text, ".reuse") {
		return Word{}, ErrReuse
	}
	if w, err = t.setCode(w, l, like); err != nil {
		return w, err
	}
	if like != nil && w == *like || strings.HasPrefix(l.Text, ".") {
		return w, nil
	}
	if err := t.refuseSchedule(w, allow); err != nil {
		return w, err
	}
	return w, t.refuseAlign(w, like, allow)
}

// setCode puts the control code of l into w, which l's text gave; without one that of
// like or the default. A text may ask for another: nvdisasm prints IMAD in place of
// IMAD.MOV with the batch number 3.
func (t *Table) setCode(w Word, l Line, like *Word) (Word, error) {
	c := l.Control
	if like != nil && !l.HasControl {
		c = ControlOf(*like)
	}
	set := c.SetCode(w)
	if set == w || strings.HasPrefix(l.Text, ".") {
		if l.HasControl {
			w = set
		}
		return w, nil
	}
	if text := t.Text(t.Decode(set), l.PC); text != t.Text(t.Decode(w), l.PC) {
		problem := "with these operands it is written "
		if l.HasControl {
			problem = "with this control code it is written "
		}
		return Word{}, &SyntaxError{Text: strings.Repeat(" ", l.TextPos) + l.Text, Pos: l.TextPos, Problem: problem + text}
	}
	return set, nil
}

// refuseAlign refuses a word with an operand that is not aligned as in code of ptxas, and
// that like does not have.
func (t *Table) refuseAlign(w Word, like *Word, allow Allow) error {
	if allow["align"] {
		return nil
	}
	var old Inst
	if like != nil {
		old = t.Decode(*like)
	}
	if m := t.Decode(w).NewlyMisaligned(old); m != nil {
		return &RefusedError{"align", m.String()}
	}
	return nil
}

// refuseSchedule refuses a word whose control code its class does not have.
func (t *Table) refuseSchedule(w Word, allow Allow) error {
	in := t.Decode(w)
	if !in.BadSched || allow["schedule"] {
		return nil
	}
	c := ControlOf(w)
	if c.Legal() && !c.Yield && c.Reuse != 0 {
		has := in.Variant.reuseFlags()
		msg := fmt.Sprintf("%s of these operands has no reuse flags, and this has %s", in.Variant.Mnemonic(), reuseLetters(c.Reuse))
		if has != "" {
			msg = fmt.Sprintf("%s of these operands has the reuse flags %s, and this has %s", in.Variant.Mnemonic(), has, reuseLetters(c.Reuse))
		}
		return &RefusedError{"schedule", msg}
	}
	msg := fmt.Sprintf("%s has no control code %s; with Y go S00 to S15, with - go S01 to S11", in.Variant.Mnemonic(), c)
	if c.Legal() && c.Yield {
		msg = fmt.Sprintf("%s has no batch number %d with S%02d", in.Variant.Mnemonic(), c.Batch, c.Stall)
	}
	return &RefusedError{"schedule", msg}
}

// reuseFlags returns the reuse flags that a variant has, of abc: one for each source.
func (v *Variant) reuseFlags() string { return reuseLetters(uint8(v.Sched & 7)) }

// reuseLetters returns the letters of reuse flags, abc for bits 122 to 124.
func reuseLetters(bits uint8) string {
	var out []byte
	for i := range 3 {
		if bits>>i&1 != 0 {
			out = append(out, "abc"[i])
		}
	}
	return string(out)
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
