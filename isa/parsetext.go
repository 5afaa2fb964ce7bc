package isa

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// parseText reads the text of a class: literals and things in braces.
func (r *tableReader) parseText(s string) error {
	v := r.v
	plain := r.plain[:0]
	flush := func() {
		if len(plain) > 0 {
			v.Template = append(v.Template, Piece{Alts: []Alt{slices.Clone(plain)}})
			plain = plain[:0]
		}
	}
	defer func() { r.plain = plain[:0] }()
	v.Template = make([]Piece, 0, 1+2*strings.Count(s, "{"))
	for s != "" {
		if s[0] != '{' {
			var lit string
			var err error
			if lit, s, err = literal(s, "{}"); err != nil {
				return err
			}
			plain = append(plain, Elem{Lit: lit})
			continue
		}
		body, rest, err := braces(s)
		if err != nil {
			return err
		}
		s = rest
		n := strings.IndexAny(body, " ?=#")
		switch {
		case n < 0:
			return fmt.Errorf("{%s} is neither an operand nor a choice", body)
		case body[n] == '#':
			flush()
			v.Template = append(v.Template, Piece{})
			r.blocks = append(r.blocks, len(v.Template)-1)
			if body != "#"+strconv.Itoa(len(r.blocks)) {
				return fmt.Errorf("{%s} should be {#%d}", body, len(r.blocks))
			}
		case body[n] == ' ':
			slot, l, err := r.operand(body, n)
			if err != nil {
				return err
			}
			if l == nil {
				plain = append(plain, Elem{Slot: slot})
				break
			}
			flush()
			v.Template = append(v.Template, *l.piece(slot.Field))
		default:
			flush()
			p, err := r.flag(body)
			if err != nil {
				return err
			}
			v.Template = append(v.Template, p)
		}
	}
	flush()
	return nil
}

// braces returns what the braces that start s hold, and what follows them.
func braces(s string) (body, rest string, err error) {
	depth := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return s[1:i], s[i+1:], nil
			}
		}
	}
	return "", "", errors.New("a { without its }")
}

// literal returns the text that s starts with up to one of the characters in stop,
// without backslashes, and the rest.
func literal(s, stop string) (lit, rest string, err error) {
	n := 0
	for n < len(s) && s[n] != '\\' && strings.IndexByte(stop, s[n]) < 0 {
		n++
	}
	if n == len(s) || s[n] != '\\' {
		if n == 0 {
			return "", "", fmt.Errorf("%q without anything after it", s[:1])
		}
		return s[:n], s[n:], nil
	}
	b := []byte(s[:n])
	for n < len(s) && strings.IndexByte(stop, s[n]) < 0 {
		c := s[n]
		if c == '\\' {
			if n++; n == len(s) {
				return "", "", errors.New("a backslash at the end")
			}
			if c = s[n]; c == 's' {
				c = ' '
			}
		}
		b = append(b, c)
		n++
	}
	return string(b), s[n:], nil
}

// operand reads `FIELD KIND [~|^XOR] [<<SHIFT] [+ADD]` or `FIELD LIST`, n being the
// place of the first blank.
func (r *tableReader) operand(s string, n int) (Slot, *list, error) {
	f, err := r.field(s[:n])
	if err != nil {
		return Slot{}, nil, err
	}
	slot := Slot{Field: f}
	name, rest, _ := strings.Cut(s[n+1:], " ")
	var ok bool
	if slot.Kind, ok = kindOf(name); !ok {
		l := r.file.lists[name]
		if l == nil || l.load() != nil || l.width != f.Width() || rest != "" {
			return slot, nil, fmt.Errorf("%q is neither a kind of operand nor a list for %d bits", name, f.Width())
		}
		return slot, l, nil
	}
	for rest != "" {
		var item string
		item, rest, _ = strings.Cut(rest, " ")
		switch {
		case item == "~":
			slot.Xor = ^uint64(0) >> (64 - f.Width())
		case strings.HasPrefix(item, "^"):
			slot.Xor, err = strconv.ParseUint(item[1:], 0, 64)
		case strings.HasPrefix(item, "<<"):
			var sh uint64
			sh, err = strconv.ParseUint(item[2:], 10, 6)
			slot.Shift = uint8(sh)
		default:
			slot.Add, err = strconv.ParseInt(item, 10, 64)
		}
		if err != nil {
			return slot, nil, fmt.Errorf("{%s}: %q is none of ~, ^XOR, <<SHIFT, +ADD", s, item)
		}
	}
	return slot, nil, nil
}

// flag reads `TEST?A[:B]`, a choice by one yes or no.
func (r *tableReader) flag(s string) (Piece, error) {
	test, choices, _ := strings.Cut(s, "?")
	t, err := r.test(test)
	if err != nil {
		return Piece{}, err
	}
	if t.width() != 1 {
		return Piece{}, fmt.Errorf("{%s} tests more than one bit", s)
	}
	p := Piece{Tests: []Test{t}, Table: make([]uint16, 2)}
	yes, no := choices, ""
	depth := 0
scan:
	for i := 0; i < len(choices); i++ {
		switch choices[i] {
		case '\\':
			i++
		case '{':
			depth++
		case '}':
			depth--
		case ':':
			if depth == 0 {
				yes, no = choices[:i], choices[i+1:]
				break scan
			}
		}
	}
	// Alternatives stand in the order in which the table names them.
	for i, c := range []string{no, yes} {
		if err := r.choice(&p, i, c, "{}"); err != nil {
			return p, err
		}
	}
	return p, nil
}

// choice makes entry i of p's table name the alternative that s describes.
func (r *tableReader) choice(p *Piece, i int, s, stop string) error {
	x, err := r.alternative(p, s, stop)
	p.Table[i] = x
	return err
}

// alternative reads `!illegal`, `!silent`, `!other` or a text and returns its number in p,
// where it is added if it is new. r.seen has the texts of p's alternatives.
func (r *tableReader) alternative(p *Piece, s, stop string) (uint16, error) {
	switch s {
	case "!illegal":
		return PieceIllegal, nil
	case "!silent":
		return PieceSilent, nil
	case "!other":
		return PieceOther, nil
	}
	if len(p.Alts) == 0 {
		clear(r.seen)
	}
	if x, ok := r.seen[s]; ok {
		return x, nil
	}
	a, err := r.alt(s, stop)
	if err != nil {
		return 0, err
	}
	x := uint16(len(p.Alts))
	p.Alts = append(p.Alts, a)
	r.seen[s] = x
	return x, nil
}

// alt reads literals and operands.
func (r *tableReader) alt(s, stop string) (Alt, error) {
	var a Alt
	for s != "" {
		if s[0] != '{' || stop == "" {
			lit, rest, err := literal(s, stop)
			if err != nil {
				return nil, err
			}
			a = append(a, Elem{Lit: lit})
			s = rest
			continue
		}
		body, rest, err := braces(s)
		if err != nil {
			return nil, err
		}
		n := strings.IndexByte(body, ' ')
		if n <= 0 {
			return nil, fmt.Errorf("{%s} is no operand", body)
		}
		slot, l, err := r.operand(body, n)
		if err == nil && l != nil {
			err = fmt.Errorf("{%s}: a choice within a choice", body)
		}
		if err != nil {
			return nil, err
		}
		a = append(a, Elem{Slot: slot})
		s = rest
	}
	return a, nil
}

// test reads what Test.String writes.
func (r *tableReader) test(s string) (Test, error) {
	name, arg, has := strings.Cut(s, "=")
	f, err := r.field(name)
	if err != nil {
		return Test{}, err
	}
	t := Test{Field: f}
	switch {
	case !has:
	case arg == "pow2":
		t.Kind = TestPow2
	case arg == "neg":
		t.Kind = TestNeg
	default:
		t.Kind = TestEq
		if t.Arg, err = strconv.ParseUint(arg, 0, 64); err != nil {
			return t, fmt.Errorf("%q: the value is no number, pow2 or neg", s)
		}
	}
	return t, nil
}

// parseBlock reads the tests of a choice, `N TEST…`.
func (r *tableReader) parseBlock(s string) error {
	num, rest, _ := strings.Cut(s, " ")
	n, err := strconv.Atoi(num)
	if err != nil || n < 1 || n > len(r.blocks) {
		return fmt.Errorf("the text has no {#%s}", num)
	}
	p := &r.v.Template[r.blocks[n-1]]
	if p.Tests != nil || rest == "" {
		return fmt.Errorf("#%d has no tests or is there a second time", n)
	}
	width := uint(0)
	for rest != "" {
		var item string
		item, rest, _ = strings.Cut(rest, " ")
		t, err := r.test(item)
		if err != nil {
			return err
		}
		p.Tests = append(p.Tests, t)
		if width += t.width(); width > maxTests {
			return fmt.Errorf("#%d tests more than %d bits", n, maxTests)
		}
	}
	if r.entries += 1 << width; r.entries > maxEntries {
		return errors.New("the tables have too many entries")
	}
	p.Table = make([]uint16, 1<<width)
	for i := range p.Table {
		p.Table[i] = entryUnset
	}
	r.block, r.unset = p, len(p.Table)
	return nil
}

// maxEntries is the greatest number of entries that the choices of one table may
// have together.
const maxEntries = 1 << 24

// entryUnset marks entries of a table that no pattern has set yet.
const entryUnset uint16 = 0xfffc

// parsePattern reads `BITS… = TEXT`, a group of bits for each test.
func (r *tableReader) parsePattern(s string) error {
	p := r.block
	pattern, text, ok := strings.Cut(s, " =")
	if !ok {
		return errors.New("a pattern is written `BITS = TEXT`")
	}
	var c cube
	lo := uint(0)
	for i := range p.Tests {
		var group string
		group, pattern, _ = strings.Cut(pattern, " ")
		n := p.Tests[i].width()
		if len(group) != int(n) {
			return fmt.Errorf("%q should be %d bits for %s", group, n, &p.Tests[i])
		}
		for k := range group {
			bit := uint32(1) << (lo + n - 1 - uint(k))
			switch group[k] {
			case '1':
				c.value |= bit
			case '-':
				c.free |= bit
			case '0':
			default:
				return fmt.Errorf("%q: a bit is 0, 1 or -", group)
			}
		}
		lo += n
	}
	if pattern != "" {
		return fmt.Errorf("%q: there is no test for these bits", pattern)
	}
	x, err := r.alternative(p, strings.TrimPrefix(text, " "), "{}")
	if err != nil {
		return err
	}
	c.each(func(i uint32) bool {
		if p.Table[i] == entryUnset {
			p.Table[i] = x
			r.unset--
		}
		return true
	})
	return nil
}

// parseList reads `A | B*3 | …` as the table and the alternatives of a piece.
func parseList(s string) (*Piece, error) {
	var p Piece
	r := tableReader{seen: map[string]uint16{}}
	for _, e := range strings.Split(s, " | ") {
		e = strings.TrimSpace(e)
		e, count, _ := cutUnescaped(e)
		switch e {
		case "-":
			e = ""
		case `\-`:
			e = "-"
		}
		x, err := r.alternative(&p, e, "")
		if err != nil {
			return nil, err
		}
		n := 1
		if count != "" {
			if n, err = strconv.Atoi(count); err != nil || n < 1 {
				return nil, fmt.Errorf("%q is no number of times", count)
			}
		}
		if len(p.Table)+n > 1<<maxTests {
			return nil, errors.New("too many entries")
		}
		for range n {
			p.Table = append(p.Table, x)
		}
	}
	if n := len(p.Table); n&(n-1) != 0 {
		return nil, fmt.Errorf("%d entries, which is no power of two", n)
	}
	return &p, nil
}

// cutUnescaped cuts s at the last * that no backslash escapes.
func cutUnescaped(s string) (before, after string, found bool) {
	i := strings.LastIndexByte(s, '*')
	if i < 0 || (i-len(strings.TrimRight(s[:i], `\`)))%2 != 0 {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}
