package elfx

import (
	"fmt"
	"math"
	"slices"
	"sort"
)

// minPage is the smallest unit that systems map, maxPage the largest that is common.
const (
	minPage = 1 << 12
	maxPage = 1 << 16
)

// Host sections and record sizes of the pointers to fatbins.
const (
	wrapperSection = ".nvFatBinSegment"
	wrapperMagic   = 0x466243B1
	wrapperSize    = 24
)

// worthMoving is the part of a file that has to be free for its table of program headers
// to move, which strip does not survive.
const worthMoving = 20

// A hostELF is a host program or library whose fatbin sections change their sizes.
// Nothing else changes its address.
//
// A section that became smaller stays where it is; one that became larger moves to a
// segment at the end of the file. What that leaves free is cut out of the file, as far
// as whole pages go, so that the segment around it becomes two:
//
//	before   header  phdrs   .text … [.nv_fatbin        ] .eh_frame …  .data …
//	smaller  header  phdrs   .text … [.nv_fatbin] | .eh_frame …  .data …
//	larger   header  phdrs   .text … | .eh_frame …  .data …  [.nv_fatbin           ]
//
// Each segment needs a program header. Spare ones are used as far as there are any (see
// spareHeaders). If they are too few, the table moves into the space that is left free.
type hostELF struct {
	f          *File
	h          *elfHeader
	old        []prog // the program headers of the file
	progs      []prog // and those to be written, with the offsets of the old file
	secs       []Section
	splice     *splicer
	moved      []*movedSection
	own        int            // index of the segment that an earlier growth made, or -1
	done       map[int64]bool // offsets of data words that have been changed
	gaveUp     uint32         // type of the last program header that was given up, or 0
	tableMoved bool           // the program headers are in the place of a group
	tail       *Output        // what goes to the end of the file
	cut        int64          // bytes that were cut out
	shrink     bool           // the file is to become as small as can be
}

// A movedSection is a section that is written anew.
type movedSection struct {
	region  *Region
	sec     *Section
	body    *Output
	remap   remap
	atEnd   bool  // of the file
	newOff  int64 // of the new file if it goes to the end; else as if nothing were cut out
	newAddr uint64
	refs    int // pointers to it that were found
}

// addr maps an address inside the old section to the new one.
func (m *movedSection) addr(old uint64) (uint64, bool) {
	if old < m.sec.Addr || old >= m.sec.Addr+m.sec.Size {
		return 0, false
	}
	return m.newAddr + uint64(m.remap.at(int64(old-m.sec.Addr))), true
}

// shifts reports whether one of the section's containers with entries has a new address.
func (m *movedSection) shifts() bool {
	for _, c := range m.region.Containers {
		old := m.sec.Addr + uint64(c.Offset-m.region.Offset)
		if now, _ := m.addr(old); now != old && len(c.Entries) > 0 {
			return true
		}
	}
	return false
}

// A group is a run of sections that are written anew and that lie one after the other.
type group struct {
	secs    []*movedSection
	end     int64    // of its place in the old file
	size    int64    // of its new content
	large   bool     // which does not fit its place
	table   int64    // room for program headers after it, then where they are
	headers []byte   // what is there
	cut     [2]int64 // what is cut out of the old file
	body    *Output  // what its place becomes, up to the cut
}

func (g *group) start() int64 { return g.secs[0].sec.Offset }

// relinkHost puts a program or library together whose fatbin sections are rebuilt.
func relinkHost(f *File, r *rebuild) (*Output, error) {
	if f.Kind == FileObject {
		return relinkObject(f, r)
	}
	g, err := f.newHostELF()
	if err != nil {
		return nil, err
	}
	g.shrink = r.shrink
	if err := g.rebuildSections(r); err != nil {
		return nil, err
	}
	groups := g.groups()
	if err := g.place(groups); err != nil {
		return nil, err
	}
	if err := g.redirect(); err != nil {
		return nil, err
	}
	for i := range r.rep.Changes {
		if g.isMoved(r.rep.Changes[i].Entry.Container.Region) {
			r.rep.Changes[i].How = Moved
		}
	}
	return g.finish(r.rep)
}

// newHostELF reads the headers of the file again.
func (f *File) newHostELF() (*hostELF, error) {
	h, err := parseELFHeader(f.data)
	if err != nil {
		return nil, err
	}
	secs, err := parseSections(f.data, h)
	if err != nil {
		return nil, err
	}
	if len(secs) == 0 || h.Phnum == 0 {
		return nil, fmt.Errorf("no section or program headers, the fatbins cannot move: %w", ErrGrow)
	}
	if _, ok := relativeReloc[h.Machine]; !ok {
		return nil, fmt.Errorf("programs of ELF machine %d cannot grow: %w", h.Machine, ErrGrow)
	}
	g := &hostELF{f: f, h: h, secs: secs, splice: &splicer{src: f.data}, done: make(map[int64]bool)}
	for i := range uint64(h.Phnum) {
		g.old = append(g.old, decodeProg(f.data[h.Phoff+i*progHeaderSize:]))
	}
	g.progs = slices.Clone(g.old)
	g.own = g.ownSegment()
	return g, nil
}

// rebuildSections makes the new content of the sections that change their size, and of
// those that share a segment of our own with one.
func (g *hostELF) rebuildSections(r *rebuild) error {
	for _, reg := range g.f.Regions {
		sec := g.sectionOf(reg)
		inOwn := g.own >= 0 && sec != nil && g.inSegment(sec, g.own)
		if !r.regions[reg] && !inOwn {
			continue
		}
		if sec == nil || !reg.Dedicated || sec.Size != uint64(reg.Size) {
			return fmt.Errorf("%s, and section %q cannot move: it does not hold fatbins only: %w", r.why(), reg.Name, ErrGrow)
		}
		m := &movedSection{region: reg, sec: sec, newOff: sec.Offset, newAddr: sec.Addr}
		m.body, m.remap = g.f.rebuildRegion(reg, r)
		g.moved = append(g.moved, m)
	}
	for _, p := range r.list {
		if !g.isMoved(p.entry.Container.Region) {
			p.splice(g.splice)
		}
	}
	sort.Slice(g.moved, func(i, j int) bool { return g.moved[i].sec.Offset < g.moved[j].sec.Offset })
	return nil
}

func (g *hostELF) isMoved(r *Region) bool {
	for _, m := range g.moved {
		if m.region == r {
			return true
		}
	}
	return false
}

func (g *hostELF) sectionOf(r *Region) *Section {
	for i := range g.secs {
		s := &g.secs[i]
		if s.HasData() && s.Flags&shfAlloc != 0 && s.Offset == r.Offset && s.Name == r.Name {
			return s
		}
	}
	return nil
}

// groups lays out the sections that are not in a segment of our own: those that fit
// the place that they have together, one after the other, keep it.
func (g *hostELF) groups() []*group {
	var out []*group
	for _, m := range g.moved {
		if g.own >= 0 && g.inSegment(m.sec, g.own) {
			continue
		}
		if n := len(out); n > 0 {
			last := out[n-1]
			gap := m.sec.Offset - last.end
			if gap >= 0 && gap < minPage && isZero(g.f.data[last.end:m.sec.Offset]) && !g.between(last.end, m.sec.Offset) &&
				m.sec.Addr-last.secs[0].sec.Addr == uint64(m.sec.Offset-last.start()) {
				last.secs, last.end = append(last.secs, m), m.sec.end()
				continue
			}
		}
		out = append(out, &group{secs: []*movedSection{m}, end: m.sec.end()})
	}
	for _, x := range out {
		x.size = layOut(x.secs, x.start(), x.secs[0].sec.Addr)
		x.large = x.size > x.end-x.start()
	}
	return out
}

// between reports whether another section lies between two offsets.
func (g *hostELF) between(from, to int64) bool {
	for i := range g.secs {
		if s := &g.secs[i]; s.HasData() && s.Offset < to && from < s.end() {
			return true
		}
	}
	return false
}

// layOut gives each section its place from off and addr on, and returns the size of
// them all.
func layOut(secs []*movedSection, off int64, addr uint64) int64 {
	pos := int64(0)
	for _, m := range secs {
		if a := int64(m.sec.Align); a > 1 && a <= minPage && a&(a-1) == 0 {
			pos = alignUp(off+pos, a) - off
		}
		m.newOff, m.newAddr = off+pos, addr+uint64(pos)
		pos += m.body.size
	}
	return pos
}

// content returns the bytes of sections that have been laid out from off on.
func content(secs []*movedSection, off int64) *Output {
	out := &Output{}
	for _, m := range secs {
		out.zeros(m.newOff - off - out.size)
		out.append(m.body)
	}
	return out
}

// place decides where everything goes and makes the program headers.
func (g *hostELF) place(groups []*group) error {
	var last []*movedSection // at the end of the file
	for _, m := range g.moved {
		if g.own >= 0 && g.inSegment(m.sec, g.own) {
			last = append(last, m)
		}
	}
	for _, x := range groups {
		if x.large {
			last = append(last, x.secs...)
			x.secs, x.size = x.secs[:1:1], 0
		}
	}
	add := 0
	if len(last) > 0 && g.own < 0 {
		add = 1
	}
	need, free := add, int64(0)
	for _, x := range groups {
		if g.findCut(x); x.cut[1] > x.cut[0] {
			need += g.headersFor(x)
			free += x.cut[1] - x.cut[0]
		}
	}
	spare := len(g.spareHeaders())
	pays := add > spare || g.shrink || free > g.f.Size/worthMoving
	if need > spare && !(pays && g.moveTable(groups, int64(len(g.old)+need))) {
		if add > spare {
			return fmt.Errorf("no room for the longer program header table: %w", ErrGrow)
		}
		for _, x := range groups { // nothing can be cut out
			x.cut = [2]int64{}
		}
	}
	for _, x := range groups {
		g.cutOut(x)
	}
	if err := g.placeLast(last); err != nil {
		return err
	}
	return g.writeTable(groups)
}

// findCut decides which pages of a group's place are cut out.
func (g *hostELF) findCut(x *group) {
	unit := g.unit()
	from, to := alignUp(x.start()+x.size+x.table, unit), x.end&^(unit-1)
	x.cut = [2]int64{}
	if to <= from {
		return
	}
	// One segment has it all, and no other header speaks of a part of it.
	loads := 0
	for i := range g.old {
		p := &g.old[i]
		if p.Filesz == 0 || int64(p.Off+p.Filesz) <= from || int64(p.Off) >= to {
			continue
		}
		if p.Type != ptLoad || int64(p.Off) > from || int64(p.Off+p.Filesz) < to {
			return
		}
		loads++
	}
	if loads == 1 && !g.headersIn(from, to) {
		x.cut = [2]int64{from, to}
	}
}

// headersIn reports whether header tables lie between two offsets.
func (g *hostELF) headersIn(from, to int64) bool {
	in := func(off, size uint64) bool { return int64(off) < to && from < int64(off+size) }
	return in(g.h.Phoff, uint64(g.h.Phnum)*progHeaderSize) || in(g.h.Shoff, uint64(g.h.Shnum)*sectHeaderSize)
}

// unit is what addresses and offsets in the file have in common after a cut: a page.
func (g *hostELF) unit() int64 {
	if g.h.Machine == emX86 {
		return minPage
	}
	unit := uint64(minPage)
	for i := range g.old {
		if p := &g.old[i]; p.Type == ptLoad {
			unit = max(unit, min(p.AlignVal, maxPage))
		}
	}
	return int64(unit)
}

// headersFor returns how many more program headers the cut of a group needs.
func (g *hostELF) headersFor(x *group) int {
	n := -1
	p := &g.old[g.loadAt(x.cut[0])]
	if int64(p.Off) < x.cut[0] {
		n++
	}
	if int64(p.Off+p.Filesz) > x.cut[1] || p.Memsz > p.Filesz {
		n++
	}
	return max(n, 0)
}

// loadAt returns the index of the segment that has the byte at an offset of the old file.
func (g *hostELF) loadAt(off int64) int {
	return slices.IndexFunc(g.old, func(p prog) bool {
		return p.Type == ptLoad && int64(p.Off) <= off && off < int64(p.Off+p.Filesz)
	})
}

// moveTable looks for room for a table of program headers in what a group leaves free.
func (g *hostELF) moveTable(groups []*group, headers int64) bool {
	if headers >= 0xffff {
		return false
	}
	for _, x := range groups {
		free := x.end - x.start() - x.size
		if need := headers*progHeaderSize + 7; free >= need && g.loadAt(x.start()) >= 0 {
			x.table = need
			g.findCut(x)
			return true
		}
	}
	return false
}

// cutOut writes the new content of a group's place and takes the cut out of its segment.
func (g *hostELF) cutOut(x *group) {
	x.body = &Output{}
	if x.size > 0 {
		x.body = content(x.secs, x.start())
	}
	if x.table > 0 {
		x.headers = make([]byte, x.table-7)
		x.body.zeros(alignUp(x.start()+x.body.size, 8) - x.start() - x.body.size)
		x.table = x.start() + x.body.size
		x.body.add(x.headers)
	}
	if x.cut[1] <= x.cut[0] {
		x.body.zeros(x.end - x.start() - x.body.size)
		g.splice.swap(x.start(), x.end, x.body)
		return
	}
	x.body.zeros(x.cut[0] - x.start() - x.body.size)
	g.splice.swap(x.start(), x.cut[1], x.body)
	g.splice.zero(x.cut[1], x.end-x.cut[1])
	g.cut += x.cut[1] - x.cut[0]
	i := slices.IndexFunc(g.progs, func(p prog) bool {
		return p.Type == ptLoad && int64(p.Off) <= x.cut[0] && x.cut[1] <= int64(p.Off+p.Filesz)
	})
	p := g.progs[i]
	first, second := p, p
	size := uint64(x.cut[0]) - p.Off
	first.Filesz, first.Memsz = size, size
	skip := uint64(x.cut[1]) - p.Off
	second.Off, second.Vaddr, second.Paddr = p.Off+skip, p.Vaddr+skip, p.Paddr+skip
	second.Filesz, second.Memsz = p.Filesz-skip, p.Memsz-skip
	var parts []prog
	for _, q := range []prog{first, second} {
		if q.Memsz > 0 {
			parts = append(parts, q)
		}
	}
	g.progs = slices.Replace(g.progs, i, i+1, parts...)
}

// placeLast puts sections at the end of the file: into the segment that an earlier
// growth made, or a new one.
func (g *hostELF) placeLast(secs []*movedSection) error {
	if len(secs) == 0 {
		return nil
	}
	for _, m := range secs {
		m.atEnd = true
	}
	if g.own >= 0 {
		p := &g.old[g.own]
		g.splice.swap(int64(p.Off), g.f.Size, &Output{})
		i := slices.Index(g.progs, *p)
		off := g.splice.shift(int64(p.Off))
		size := layOut(secs, off, p.Vaddr)
		g.progs[i].Filesz, g.progs[i].Memsz = uint64(size), uint64(size)
		g.tail = content(secs, off)
		return nil
	}
	align, top := uint64(minPage), uint64(0)
	for i := range g.old {
		if p := &g.old[i]; p.Type == ptLoad {
			align, top = max(align, p.AlignVal), max(top, p.Vaddr+p.Memsz)
		}
	}
	if align&(align-1) != 0 || align > 1<<30 || top == 0 || top > math.MaxInt64/2 {
		return fmt.Errorf("absurd program headers: %w", ErrGrow)
	}
	size := g.splice.shift(g.f.Size)
	off := alignUp(size, minPage)
	vaddr := alignUp(top, align) + uint64(off)%align
	n := uint64(layOut(secs, off, vaddr))
	g.tail = &Output{}
	g.tail.zeros(off - size)
	g.tail.append(content(secs, off))
	// Its offset is that of the new file already: see writeTable.
	seg := prog{Type: ptLoad, Flags: 4, Off: uint64(off), Vaddr: vaddr, Paddr: vaddr, Filesz: n, Memsz: n, AlignVal: align, placed: true}
	g.progs = slices.Insert(g.progs, lastLoad(g.progs)+1, seg)
	return nil
}
