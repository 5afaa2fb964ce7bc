package isa

import "sync"

// A pending is what stands below the first line of a class in a table of the program.
// It is read when the class is first needed, so that a short run of the program does
// not wait for a thousand classes.
type pending struct {
	once  sync.Once
	text  *tableText
	place [2]uint32 // in the text
	names string    // mnemonics, with blanks between them
}

// read completes v. The tables of the program are checked by tests, as ParseTable checks
// them, so that nothing can be wrong with them here; a class that is nevertheless damaged has no text.
func (p *pending) read(v *Variant) {
	p.once.Do(func() {
		if p.parse(v) != nil {
			v.Template = nil
		}
	})
}

func (p *pending) parse(v *Variant) error {
	lists, err := p.text.named()
	if err != nil {
		return err
	}
	text, err := p.text.read(p.place)
	if err != nil {
		return err
	}
	r, _ := readerPool.Get().(*tableReader)
	if r == nil {
		r = newTableReader(nil)
	}
	defer readerPool.Put(r)
	r.file.lists, r.v, r.blocks, r.block = lists, v, r.blocks[:0], nil
	for r.next(&text) {
		if err := r.parseIndented(r.cur[2:]); err != nil {
			return err
		}
	}
	return r.endClass()
}

// readerPool has readers of single classes: what they know of fields is worth keeping.
var readerPool sync.Pool

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
