package isa

import "strings"

// A known is what is known of a word: the bits of mask are as in value.
type known struct{ mask, value Word }

// and adds the bits of mask, as in value; it reports whether they agree with k.
func (k known) and(mask, value Word) (known, bool) {
	if !k.value.Xor(value).And(k.mask).And(mask).IsZero() {
		return k, false
	}
	return known{k.mask.Or(mask), k.value.Or(value)}, true
}

// in returns base with the known bits put in.
func (k known) in(base Word) Word { return base.AndNot(k.mask).Or(k.value) }

// maxPieces is the greatest number of pieces of a variant.
const maxPieces = 256

// A matcher reads a text as one of a variant: it looks for a word of the variant that
// prints it, starting from base.
//
// It goes through the pieces in order. Each alternative whose text fits is tried, and
// for each the patterns of bits that choose it, those of base first. Where what follows
// fails because of the text, other patterns cannot help; where bits disagree, they can.
type matcher struct {
	t      *Table
	text   string
	pc     uint64
	base   Word
	loose  bool // blanks and numbers may be written in another way
	how    spelling
	budget int // steps left before giving up

	c        *candidate
	form     *encodeForm
	chosen   [maxPieces]uint16 // the alternative of each piece
	conflict bool              // bits disagreed since this was last cleared
	result   Word

	trace bool // find out where and why it fails
	failure
}

// try looks for a word of the variant c. pos is where the text goes on after the
// guard, which fixed the bits of k.
func (m *matcher) try(c *candidate, pos int, k known) bool {
	m.c, m.form = c, c.encodeForm()
	k, ok := k.and(c.mask, c.value)
	return ok && m.pieces(0, pos, k)
}

// pieces matches the pieces from the i-th on with the text from pos on.
func (m *matcher) pieces(i, pos int, k known) bool {
	if m.budget--; m.budget < 0 {
		return false
	}
	if i == len(m.form.pieces) {
		if strings.TrimLeft(m.text[min(pos, len(m.text)):], " ") != "" {
			m.fail(pos, "the end of the instruction")
			return false
		}
		return m.finish(k)
	}
	p := &m.form.pieces[i]
	first := at(m.text, pos)
	for j := range p.alts {
		a := &p.alts[j]
		if a.first != 0 && a.first != first && !m.loose && !m.trace {
			continue
		}
		pos, k, ok := m.alt(a, pos, k)
		if !ok {
			continue
		}
		m.chosen[i] = a.id
		if len(p.Tests) == 0 {
			return m.pieces(i+1, pos, k)
		}
		if m.choose(p, a, i, pos, k) {
			return true
		}
	}
	return false
}

// choose tries the patterns of bits that choose a, and matches what follows.
func (m *matcher) choose(p *encodePiece, a *encodeAlt, i, pos int, k known) bool {
	outer := m.conflict
	m.conflict = false
	defer func() { m.conflict = m.conflict || outer }()
	w := k.in(m.base)
	if p.Table[p.index.value(w)] == a.id {
		if m.pieces(i+1, pos, known{k.mask.Or(p.pins), k.value.Or(w.And(p.pins))}) {
			return true
		}
		if !m.conflict {
			return false
		}
	}
	for _, c := range a.cubes {
		next, ok := k.and(c.mask, c.value)
		if !ok {
			m.conflict = true
			continue
		}
		m.chosen[i] = a.id
		if m.pieces(i+1, pos, next) {
			return true
		}
		if !m.conflict {
			return false
		}
	}
	return false
}

// alt matches the text of a at pos. It returns the place after it and the bits that
// are known then.
func (m *matcher) alt(a *encodeAlt, pos int, k known) (int, known, bool) {
	for i := range a.Alt {
		e := &a.Alt[i]
		if e.Lit != "" {
			if pos = m.literal(e.Lit, pos); pos < 0 {
				return 0, k, false
			}
			continue
		}
		s := &e.Slot
		if m.loose {
			pos = m.skipBlanks(pos)
		}
		x, end := s.parse(m.text, pos, m.pc, s.Field.Get(m.base), m.how)
		if end < 0 {
			if m.trace {
				m.failSlot(s, pos)
			}
			return 0, k, false
		}
		var ok bool
		if k, ok = k.and(a.masks[i], s.Field.MustSet(Word{}, x)); !ok {
			m.conflict = true
			m.fail(pos, "something else, since these bits have another value already")
			return 0, k, false
		}
		pos = end
	}
	return pos, k, true
}

// literal matches lit at pos and returns the place after it, or -1.
func (m *matcher) literal(lit string, pos int) int {
	if strings.HasPrefix(m.text[min(pos, len(m.text)):], lit) {
		return pos + len(lit)
	}
	start := pos
	for i := 0; i < len(lit); i++ {
		if m.loose {
			before := pos
			if next := m.skipBlanks(pos); next == pos || lit[i] == ' ' || !joins(at(m.text, pos-1)) || !joins(at(m.text, next)) {
				pos = next
			}
			switch {
			case lit[i] == ' ':
				if pos == before && pos > 0 && joins(at(m.text, pos-1)) && joins(at(m.text, pos)) {
					return m.failLit(start, lit)
				}
				continue
			case lit[i] == ']':
				pos = m.skipZeroOffset(pos)
			case lit[i] == '+' && i == len(lit)-1 && at(m.text, pos) == '-':
				return pos // [R2-0x10] for [R2+-0x10]
			}
		}
		if at(m.text, pos) != lit[i] {
			return m.failLit(start, lit)
		}
		pos++
	}
	return pos
}

// joins reports whether c may stand within a name, so that a blank beside it counts.
func joins(c byte) bool { return c == '.' || isWordByte(c) }

// skipBlanks returns the place of the next byte of the text that is no blank.
func (m *matcher) skipBlanks(pos int) int {
	for pos < len(m.text) && m.text[pos] == ' ' {
		pos++
	}
	return pos
}

// skipZeroOffset returns the place after an offset of 0 and before its bracket, which is
// not printed: [R2.64+0x0].
func (m *matcher) skipZeroOffset(pos int) int {
	for _, zero := range [...]string{"+0x0", "+-0x0", "-0x0", "+0"} {
		if at(m.text, pos-1) != '[' && strings.HasPrefix(m.text[min(pos, len(m.text)):], zero) {
			if end := m.skipBlanks(pos + len(zero)); at(m.text, end) == ']' {
				return end
			}
		}
	}
	return pos
}

// finish fills in what is not known from base and checks that the word is of the
// variant and makes the same choices.
func (m *matcher) finish(k known) bool {
	w := k.in(m.base)
	for range 4 {
		i := m.wrong(w)
		if i >= 0 {
			m.failSpelling(w)
		} else {
			m.result = w
			if m.t.find(w) == m.c {
				return true
			}
			break
		}
		var ok bool
		if w, ok = m.form.pieces[i].mend(w, k.mask, m.chosen[i]); !ok {
			break
		}
	}
	m.conflict = true
	return false
}

// wrong returns the first piece for which w makes another choice, or -1.
func (m *matcher) wrong(w Word) int {
	for i := range m.form.pieces {
		p := &m.form.pieces[i]
		if len(p.Tests) > 0 && p.Table[p.index.value(w)] != m.chosen[i] {
			return i
		}
	}
	return -1
}

// mend changes a field that a test looks at and no text shows, such as a register that
// must not be RZ, so that w chooses the alternative want. Bits of mask stay.
func (p *encodePiece) mend(w, mask Word, want uint16) (Word, bool) {
	for i := range p.Tests {
		t := &p.Tests[i]
		f := t.Field.Mask().AndNot(mask)
		if t.Kind == TestValue || f.IsZero() {
			continue
		}
		top := uint64(1) << (t.Field.Width() - 1)
		for _, x := range [...]uint64{t.Arg, 0, 1, 2, top} {
			v := w.AndNot(f).Or(t.Field.MustSet(Word{}, x).And(f))
			if p.Table[p.index.value(v)] == want {
				return v, true
			}
		}
	}
	return w, false
}
