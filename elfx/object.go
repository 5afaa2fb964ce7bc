package elfx

import "fmt"

// relinkObject puts a relocatable object together whose fatbin sections are rebuilt; it may
// be a member of an archive. What comes after a section moves with its end, by a multiple
// of every alignment.
func relinkObject(f *File, r *rebuild) (*Output, error) {
	data := f.bytes()
	h, err := parseELFHeader(data)
	if err != nil {
		return nil, err
	}
	secs, err := parseSections(data, h)
	if err != nil {
		return nil, err
	}
	if h.Phnum > 0 || h.Shnum == 0 {
		return nil, fmt.Errorf("%s: an object with program headers or without sections: %w", f.Name, ErrGrow)
	}
	o := &objectELF{f: f, data: data, secs: secs, splice: &splicer{src: data, base: f.Offset}, moved: make(map[int]*movedSection)}
	unit := int64(8)
	for i := range secs {
		if a := secs[i].Align; a > uint64(unit) && a <= maxPage && a&(a-1) == 0 {
			unit = int64(a)
		}
	}
	for _, reg := range f.Regions {
		if r.regions[reg] && reg.Name == offloadingSection {
			return nil, fmt.Errorf("%s: %s in section %s, whose own headers say the size: %w", f.Name, r.why(), reg.Name, ErrGrow)
		}
		o.rebuild(reg, r, unit)
	}
	for _, p := range r.list {
		if c := p.entry.Container; c.Region.File == f && !r.regions[c.Region] {
			p.splice(o.splice)
		}
	}
	if err := o.redirect(); err != nil {
		return nil, err
	}
	for i := range secs {
		at := int64(h.Shoff) + int64(i)*sectHeaderSize
		if off := o.splice.shift(min(secs[i].Offset, f.Size)); off != secs[i].Offset && secs[i].Offset <= f.Size {
			o.splice.put64(at+24, uint64(off))
		}
		if m := o.moved[i]; m != nil {
			o.splice.put64(at+32, uint64(m.body.size))
			r.rep.Why = append(r.rep.Why, fmt.Sprintf("section %s has %d bytes instead of %d", m.sec.Name, m.body.size, m.sec.Size))
		}
	}
	if off := o.splice.shift(int64(h.Shoff)); off != int64(h.Shoff) {
		o.splice.put64(40, uint64(off))
	}
	return o.splice.output(f.Size)
}

// An objectELF is a relocatable object whose fatbin sections change their sizes.
type objectELF struct {
	f      *File
	data   []byte
	secs   []Section
	splice *splicer
	moved  map[int]*movedSection // by index
}

// rebuild makes the new content of a region that changes its size.
func (o *objectELF) rebuild(reg *Region, r *rebuild, unit int64) {
	if !r.regions[reg] {
		return
	}
	for i := range o.secs {
		s := &o.secs[i]
		if !s.HasData() || s.Offset+o.f.Offset != reg.Offset || s.Name != reg.Name {
			continue
		}
		m := &movedSection{region: reg, sec: s}
		m.body, m.remap = o.f.rebuildRegion(reg, r)
		o.moved[i] = m
		place := &Output{}
		place.append(m.body)
		place.zeros((s.end() - s.Offset - m.body.size) & (unit - 1))
		o.splice.swap(s.Offset, s.end(), place)
		return
	}
}

// redirect lets symbols and relocations follow what they point to.
func (o *objectELF) redirect() error {
	for i := range o.secs {
		s := &o.secs[i]
		if !s.HasData() {
			continue
		}
		switch s.Type {
		case shtSymtab:
			o.symbols(s)
		case shtRela:
			o.relocs(s)
		case shtRel:
			return fmt.Errorf("%s: section %s: relocations without addends: %w", o.f.Name, s.Name, ErrGrow)
		}
	}
	return nil
}

// symbol returns the section that a symbol is in, if that is written anew, and its value.
func (o *objectELF) symbol(table *Section, n uint64) (*movedSection, int64) {
	at := table.Offset + int64(n)*symbolSize
	if n > table.Size/symbolSize || at+symbolSize > table.end() {
		return nil, 0
	}
	b := o.data[at:]
	return o.moved[int(le.Uint16(b[6:]))], int64(le.Uint64(b[8:]))
}

// symbols changes the values and sizes of symbols.
func (o *objectELF) symbols(s *Section) {
	for n := range s.Size / symbolSize {
		m, value := o.symbol(s, n)
		if m == nil {
			continue
		}
		at := s.Offset + int64(n)*symbolSize
		size := int64(le.Uint64(o.data[at+16:]))
		now := m.remap.at(value)
		if now != value {
			o.splice.put64(at+8, uint64(now))
		}
		if end := m.remap.at(value + size); size > 0 && end-now != size {
			o.splice.put64(at+16, uint64(end-now))
		}
	}
}

// relocs changes addends: what a relocation points to is its symbol's value and the addend.
func (o *objectELF) relocs(s *Section) {
	if int(s.Link) >= len(o.secs) {
		return
	}
	for at := s.Offset; at+relaSize <= s.end(); at += relaSize {
		b := o.data[at : at+relaSize]
		m, value := o.symbol(&o.secs[s.Link], le.Uint64(b[8:])>>32)
		if m == nil {
			continue
		}
		addend := int64(le.Uint64(b[16:]))
		if now := m.remap.at(value+addend) - m.remap.at(value); now != addend {
			o.splice.put64(at+16, uint64(now))
		}
	}
}
