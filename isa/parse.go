package isa

import (
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
)

// A TableError is a mistake in the text of a table.
type TableError struct {
	Line int // the first line is 1
	Err  error
}

func (e *TableError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

// Unwrap returns the mistake without its place.
func (e *TableError) Unwrap() error { return e.Err }

// ParseTable reads what FormatTable writes. For a text that names a base, base is
// called with its architecture and returns its table. Errors in the text are
// [*TableError].
func ParseTable(text string, base func(Arch) (*TableFile, error)) (*TableFile, error) {
	return newTableReader(base).parse(text)
}

func newTableReader(base func(Arch) (*TableFile, error)) *tableReader {
	return &tableReader{file: &TableFile{lists: map[string]*list{}}, base: base, fields: map[string]Field{}, keys: map[string]bool{},
		seen: map[string]uint16{}}
}

// parse reads a table.
func (r *tableReader) parse(text string) (*TableFile, error) {
	for r.next(&text) {
		if err := r.parseLine(); err != nil {
			return nil, &TableError{r.line, err}
		}
	}
	if err := r.finish(); err != nil {
		return nil, &TableError{r.line, err}
	}
	if r.file.Arch == (Arch{}) {
		return nil, &TableError{r.line, errors.New("no arch line")}
	}
	r.merge()
	return r.file, nil
}

// A tableReader holds the state of ParseTable.
type tableReader struct {
	file   *TableFile
	base   func(Arch) (*TableFile, error)
	lazy   bool // lists are read when they are needed
	line   int
	cur    string // the current line
	fields map[string]Field

	listName, listBody string // the list whose lines are being read

	v      *Variant // the variant whose lines are being read
	blocks []int    // pieces of v that lines below it describe
	block  *Piece   // the one whose patterns are being read
	unset  int      // entries of its table that no pattern covered yet
	seen   map[string]uint16
	plain  Alt // memory for parseText

	baseFile *TableFile
	dropped  map[string]bool
	own      []*Variant
	keys     map[string]bool // of own
	entries  int             // of all tables so far
}

// next takes the next line that is neither empty nor a comment.
func (r *tableReader) next(text *string) bool {
	for *text != "" {
		r.cur, *text, _ = strings.Cut(*text, "\n")
		r.line++
		if r.cur != "" && r.cur[0] != '#' {
			return true
		}
	}
	return false
}

// parseLine reads one line: an indented one belongs to what stands above it.
func (r *tableReader) parseLine() error {
	if strings.HasPrefix(r.cur, "  ") {
		return r.parseIndented(r.cur[2:])
	}
	if err := r.finish(); err != nil {
		return err
	}
	word, rest, _ := strings.Cut(r.cur, " ")
	switch word {
	case "class":
		return r.parseClass(rest)
	case "list":
		name, body, ok := strings.Cut(rest, " =")
		if _, isKind := kindOf(name); !ok || isKind || name != leadingName(name) || name == "" {
			return errors.New("a list is written `list NAME = A | B | …`, the name no kind of operand")
		}
		r.listName, r.listBody = name, body
		return nil
	case "drop":
		return r.parseDrop(rest)
	case "arch":
		return setArch(&r.file.Arch, rest)
	case "nvdisasm":
		r.file.Tool = rest
		return nil
	case "base":
		return r.parseBase(rest)
	}
	return fmt.Errorf("%q is none of arch, nvdisasm, base, list, drop, class", word)
}

func setArch(a *Arch, s string) (err error) {
	if *a != (Arch{}) {
		return errors.New("a second time")
	}
	*a, err = ParseArch(s)
	return err
}

func (r *tableReader) parseBase(s string) error {
	if err := setArch(&r.file.Base, s); err != nil {
		return err
	}
	if len(r.own) > 0 || len(r.file.lists) > 0 {
		return errors.New("base comes after what it would change")
	}
	if r.base == nil {
		return fmt.Errorf("no table for the base %s", r.file.Base)
	}
	f, err := r.base(r.file.Base)
	if err != nil {
		return fmt.Errorf("base %s: %w", r.file.Base, err)
	}
	r.baseFile, r.file.lists = f, maps.Clone(f.lists)
	r.dropped = map[string]bool{}
	for _, v := range f.Variants {
		r.dropped[variantKey(v)] = false
	}
	return nil
}

func (r *tableReader) parseDrop(key string) error {
	if gone, ok := r.dropped[key]; !ok || gone {
		return fmt.Errorf("the base has no class %s", key)
	}
	r.dropped[key] = true
	return nil
}

// parseIndented reads a line that belongs to a list or class.
func (r *tableReader) parseIndented(s string) error {
	switch {
	case r.listName != "":
		r.listBody += s
		return nil
	case r.v == nil:
		return errors.New("an indented line that belongs to nothing")
	case strings.HasPrefix(s, "  "):
		if r.block == nil {
			return errors.New("a pattern without its #N line")
		}
		return r.parsePattern(s[2:])
	case strings.HasPrefix(s, "text "):
		if r.v.Template != nil {
			return errors.New("a second text")
		}
		return r.parseText(s[len("text "):])
	case strings.HasPrefix(s, "#"):
		if err := r.endBlock(); err != nil {
			return err
		}
		return r.parseBlock(s[1:])
	case strings.HasPrefix(s, "hidden "):
		return r.parseHidden(s[len("hidden "):], &r.v.Ignored)
	case strings.HasPrefix(s, "prefer "):
		return r.parseHidden(s[len("prefer "):], new(Word))
	}
	return errors.New("a line of a class starts with text, #N, hidden or prefer")
}

// finish ends the list or class whose lines were being read.
func (r *tableReader) finish() error {
	if r.listName != "" {
		l := &list{text: r.listBody}
		if !r.lazy {
			if err := l.load(); err != nil {
				return fmt.Errorf("list %s: %w", r.listName, err)
			}
		}
		r.file.lists[r.listName] = l
		r.listName = ""
	}
	if r.v == nil {
		return nil
	}
	v := r.v
	if err := r.endClass(); err != nil {
		return err
	}
	if err := v.Check(); err != nil {
		return fmt.Errorf("class %s: %w", v.Class, err)
	}
	k := variantKey(v)
	if r.keys[k] {
		return fmt.Errorf("a second class %s", k)
	}
	r.keys[k] = true
	r.own = append(r.own, v)
	return nil
}

// endClass ends the class whose lines were being read.
func (r *tableReader) endClass() error {
	if err := r.endBlock(); err != nil {
		return err
	}
	v := r.v
	r.v = nil
	for n, i := range r.blocks {
		if v.Template[i].Tests == nil {
			return fmt.Errorf("class %s: {#%d} is not described", v.Class, n+1)
		}
	}
	return nil
}

// endBlock checks that the patterns of a choice say all.
func (r *tableReader) endBlock() error {
	b := r.block
	r.block = nil
	if b == nil {
		return nil
	}
	if r.unset > 0 {
		return fmt.Errorf("the patterns leave %d of %d cases open", r.unset, len(b.Table))
	}
	*b = normalPiece(*b)
	return nil
}

// merge puts the variants read in their places: those that replace one of the base
// in its place, the others at the end.
func (r *tableReader) merge() {
	if r.baseFile == nil {
		r.file.Variants = r.own
		return
	}
	mine := map[string]*Variant{}
	for _, v := range r.own {
		mine[variantKey(v)] = v
	}
	for _, v := range r.baseFile.Variants {
		k := variantKey(v)
		if r.dropped[k] {
			continue
		}
		if own := mine[k]; own != nil {
			v = own
			delete(mine, k)
		}
		r.file.Variants = append(r.file.Variants, v)
	}
	for _, v := range r.own {
		if mine[variantKey(v)] == v {
			r.file.Variants = append(r.file.Variants, v)
		}
	}
}

// parseClass reads `CLASS 0xOPCODE BITS=VALUE… [reuse=abc] [uniform] [guard=…]`.
func (r *tableReader) parseClass(s string) error {
	v := &Variant{Mask: opcodeMask}
	class, s, _ := strings.Cut(s, " ")
	if class != "-" {
		v.Class = class
	}
	op, s, _ := strings.Cut(s, " ")
	n, err := strconv.ParseUint(op, 0, 13)
	if err != nil {
		return fmt.Errorf("opcode %q is no number of 13 bits", op)
	}
	v.Value = Word{Lo: n & 0xfff, Hi: n >> 12 << 27}
	for s != "" {
		var item string
		item, s, _ = strings.Cut(s, " ")
		name, value, has := strings.Cut(item, "=")
		switch {
		case name == "uniform" && !has:
			v.Sched |= SchedUniform
		case name == "reuse":
			for _, c := range value {
				i := strings.IndexRune("abc", c)
				if i < 0 {
					return fmt.Errorf("%q: the slots are a, b and c", item)
				}
				v.Sched |= 1 << i
			}
		case name == "rank":
			n, err := strconv.ParseUint(value, 10, 8)
			if err != nil {
				return fmt.Errorf("%q: a rank is 0 to 255", item)
			}
			v.Rank = uint8(n)
		case item == "guard=UP":
			v.Guard = GuardUP
		case item == "guard=none":
			v.Guard = GuardNone
		default:
			if err := r.setBits(item, &v.Mask, &v.Value); err != nil {
				return err
			}
		}
	}
	r.v, r.blocks = v, nil
	return nil
}

// setBits reads `BITS[=VALUE]`, adds the bits to mask and their value to value.
func (r *tableReader) setBits(item string, mask, value *Word) error {
	name, num, has := strings.Cut(item, "=")
	f, err := r.field(name)
	if err != nil {
		return err
	}
	x := uint64(0)
	if has {
		if x, err = strconv.ParseUint(num, 0, 64); err != nil {
			return fmt.Errorf("%q: the value is no number", item)
		}
	}
	w, err := f.Set(Word{}, x)
	if err != nil {
		return err
	}
	*mask, *value = mask.Or(f.Mask()), value.Or(w)
	return nil
}

// field reads a field; equal texts share one field.
func (r *tableReader) field(s string) (Field, error) {
	f, ok := r.fields[s]
	if !ok {
		var err error
		if f, err = ParseField(s); err != nil {
			return nil, err
		}
		r.fields[s] = f
	}
	return f, nil
}

// parseHidden reads bits and their default values; it adds the bits to mask.
func (r *tableReader) parseHidden(s string, mask *Word) error {
	for s != "" {
		var item string
		item, s, _ = strings.Cut(s, " ")
		if err := r.setBits(item, mask, &r.v.Default); err != nil {
			return err
		}
	}
	return nil
}
