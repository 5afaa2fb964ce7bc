package isa

import (
	"strings"
	"sync"
)

// A pending is what stands below the first line of a class in a table of the program.
// It is read when the class is first needed, so that a short run of the program does
// not wait for a thousand classes.
type pending struct {
	once  sync.Once
	text  string
	line  int
	lists map[string]*list
}

// read completes v. The tables of the program are checked by tests, so that nothing
// can be wrong with them here; a class that is nevertheless damaged has no text.
func (p *pending) read(v *Variant) {
	p.once.Do(func() {
		r := newTableReader(nil)
		r.file.lists, r.line, r.v = p.lists, p.line, v
		for text := p.text; r.next(&text); {
			if r.parseIndented(r.cur[2:]) != nil {
				break
			}
		}
		if r.finish() != nil {
			v.Template = nil
		}
	})
}

// postpone takes the lines below a class line off text and keeps them for later.
func (r *tableReader) postpone(text *string) {
	n := strings.Index(*text, "\nclass ") + 1
	if n == 0 {
		n = len(*text)
	}
	p := &pending{text: (*text)[:n], line: r.line, lists: r.file.lists}
	r.line += strings.Count(p.text, "\n")
	*text = (*text)[n:]
	r.file.pending[r.v] = p
	r.own = append(r.own, r.v)
	r.v = nil
}

// load reads l's text.
func (l *list) load() error {
	l.once.Do(func() {
		var p *Piece
		if p, l.err = parseList(l.text); l.err == nil {
			l.table, l.alts = p.Table, p.Alts
			for 1<<l.width < len(l.table) {
				l.width++
			}
		}
	})
	return l.err
}

// parseLazy is ParseTable for the tables of the program: classes and lists are read
// when they are needed.
func parseLazy(text string, base func(Arch) (*TableFile, error)) (*TableFile, error) {
	r := newTableReader(base)
	r.file.pending = map[*Variant]*pending{}
	return r.parse(text)
}
