package isa

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// An Allow holds the names of what encoding does in spite of knowing better: round, a
// number that its field cannot hold is rounded; schedule, a control code that the class
// does not have; align, registers and offsets that are not aligned as in ptxas code.
type Allow map[string]bool

// allowNames are the names that an Allow may have.
var allowNames = []string{"round", "schedule", "align"}

// ParseAllow reads names separated by commas.
func ParseAllow(s string) (Allow, error) {
	a := Allow{}
	for name := range strings.SplitSeq(s, ",") {
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		if !slices.Contains(allowNames, name) {
			return nil, fmt.Errorf("unknown --allow name %q; want %s", name, strings.Join(allowNames, ", "))
		}
		a[name] = true
	}
	return a, nil
}

// A RefusedError says why a word is not written, unless that is allowed by its name.
type RefusedError struct {
	Name string // as in an Allow
	Msg  string
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("refused: %s (--allow %s permits it)", e.Msg, e.Name)
}

// ErrReuse says that an instruction that yields cannot have the reuse flags of its text.
var ErrReuse = errors.New("a reuse flag does not go with Y: bits 122–124 are the batch number of an instruction that yields")

// maxSteps bounds the work for one text and variant.
const maxSteps = 20000

// Encode returns the word whose text at the address pc is text, as AppendText prints
// it, without a control code.
//
// With like, the word is made from that one: its variant is tried first, and what the
// text does not determine stays as it is, the control code included. Without, the
// bits that the text hides are those that ptxas emits, and the control code is
// [DefaultControl]. Blanks may be missing or more where they separate nothing, and a
// float may be rounded or written as its bits, 0x….
//
// An error is a [*SyntaxError] with the place that does not fit.
func (t *Table) Encode(text string, pc uint64, like *Word) (Word, error) {
	return t.EncodeAllow(text, pc, like, nil)
}

// EncodeAllow is Encode, but with what allow names.
func (t *Table) EncodeAllow(text string, pc uint64, like *Word, allow Allow) (Word, error) {
	if strings.IndexByte(text, '\t') >= 0 {
		text = strings.ReplaceAll(text, "\t", " ")
	}
	if w, ok := parseRawWord(text); ok {
		return w, nil
	}
	if like != nil {
		// What a word prints is always that word, even where several print the same.
		var buf [256]byte
		if in := t.Decode(*like); string(t.AppendText(buf[:0], in, pc)) == text {
			return *like, nil
		}
	}
	m := matcher{t: t, text: text, pc: pc}
	found := m.encode(like)
	if !found {
		m.loosen(allow)
		found = m.encode(like)
	}
	switch {
	case !found:
		return Word{}, t.explain(text, pc, like, allow)
	case like != nil && YieldField.Get(m.result) != YieldField.Get(*like):
		return Word{}, ErrReuse
	}
	return m.result, nil
}

// parseRawWord reads `.word 0xLO, 0xHI` and its like.
func parseRawWord(text string) (w Word, ok bool) {
	if text == "" || text[0] != '.' {
		return w, false
	}
	for _, name := range []string{".word ", ".illegal ", ".silent "} {
		rest, found := strings.CutPrefix(text, name)
		if !found {
			continue
		}
		lo, neg1, n := scanHex(rest, 0, true)
		if n < 0 || n > len(rest) || neg1 {
			return w, false
		}
		rest = strings.TrimLeft(strings.TrimPrefix(rest[n:], ","), " ")
		hi, neg2, n := scanHex(rest, 0, true)
		if n < 0 || neg2 || strings.TrimSpace(rest[min(n, len(rest)):]) != "" {
			return w, false
		}
		return Word{lo, hi}, true
	}
	return w, false
}

// loosen lets texts pass that are written in another way than nvdisasm's.
func (m *matcher) loosen(allow Allow) {
	m.loose, m.how = true, loosely
	if allow["round"] {
		m.how = rounded
	}
}

// encode tries the variants that have the text's mnemonic.
func (m *matcher) encode(like *Word) bool {
	g, start := parseGuard(m.text)
	if start < 0 {
		return false
	}
	var first *candidate
	if like != nil {
		first = m.t.find(*like)
	}
	if first != nil && m.attempt(first, g, start, like) {
		return true
	}
	for _, c := range m.t.named(leadingName(m.text[start:])) {
		if c != first && m.attempt(c, g, start, like) {
			return true
		}
	}
	return false
}

// attempt tries one variant.
func (m *matcher) attempt(c *candidate, g guardText, start int, like *Word) bool {
	c.complete()
	if !g.fits(c.v.Guard) {
		return false
	}
	switch {
	case like == nil:
		m.base = DefaultControl.Set(c.v.Default)
	case m.t.find(*like) == c:
		m.base = *like
	default:
		m.base = c.v.Default.AndNot(controlMask).Or(like.And(controlMask))
	}
	m.budget = maxSteps
	k := known{guardMask, Word{Lo: uint64(g.bits) << 12}}
	if c.v.Guard == GuardNone {
		k = known{}
		if like == nil {
			m.base.Lo |= 7 << 12
		}
	}
	return m.try(c, start, k)
}

// A guardText is a guard as text says it.
type guardText struct {
	bits    uint8 // bits 12–15
	uniform bool
	present bool
}

func (g guardText) fits(kind Guard) bool {
	return !g.present || kind != GuardNone && g.uniform == (kind == GuardUP)
}

// parseGuard reads the guard that text starts with, and returns where the
// instruction starts, -1 for a guard that is none.
func parseGuard(text string) (guardText, int) {
	g := guardText{bits: 7}
	if at(text, 0) != '@' {
		return g, 0
	}
	pos := 1
	g.present = true
	not := at(text, pos) == '!'
	if not {
		pos++
	}
	if g.uniform = at(text, pos) == 'U'; g.uniform {
		pos++
	}
	c := at(text, pos+1)
	switch {
	case at(text, pos) != 'P' || at(text, pos+2) != ' ':
		return g, -1
	case c >= '0' && c <= '6':
		g.bits = c - '0'
	case c != 'T':
		return g, -1
	}
	if not {
		g.bits |= 8
	}
	for pos += 3; pos < len(text) && text[pos] == ' '; pos++ {
	}
	return g, min(pos, len(text))
}
