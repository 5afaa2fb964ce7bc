package elfx

import (
	"debug/elf"
	"fmt"
	"math"
	"slices"
	"sort"
)

// relativeReloc has the relocation type that adds the load address, by machine
// (psABI of each).
var relativeReloc = map[uint16]uint32{
	uint16(elf.EM_X86_64):  uint32(elf.R_X86_64_RELATIVE),
	uint16(elf.EM_AARCH64): uint32(elf.R_AARCH64_RELATIVE),
	uint16(elf.EM_PPC64):   uint32(elf.R_PPC64_RELATIVE),
	uint16(elf.EM_RISCV):   uint32(elf.R_RISCV_RELATIVE),
}

// Host sections and record sizes of the pointers to fatbins.
const (
	wrapperSection = ".nvFatBinSegment"
	wrapperMagic   = 0x466243B1
	wrapperSize    = 24
	minPage        = 1 << 12
)

// A hostELF is a host program or library in the course of growing.
//
// The sections that do not fit any more move to a segment at the end of the file;
// everything else stays where it is. The segment needs a program header. A spare one
// is used if there is one (see spareHeader). If not, the table, longer by one, moves
// into the space that the first of the sections leaves, which is mapped already:
//
//	before  header  phdrs   .text …  .nv_fatbin          .data …  sections
//	after   header  phdrs   .text …  zeros               .data …  sections  .nv_fatbin
//	or      header  (old)   .text …  phdrs, then zeros   .data …  sections  .nv_fatbin
type hostELF struct {
	f      *File
	h      *elfHeader
	progs  []prog
	secs   []Section
	splice *splicer
	moved  []*movedSection
	done   map[int64]bool // offsets of data words that have been changed
	gaveUp uint32         // type of the program header that was given up, or 0
}

// A prog is a program header.
type prog struct {
	Type, Flags                                uint32
	Off, Vaddr, Paddr, Filesz, Memsz, AlignVal uint64
}

func (p *prog) encode() []byte {
	b := le.AppendUint32(nil, p.Type)
	b = le.AppendUint32(b, p.Flags)
	for _, v := range []uint64{p.Off, p.Vaddr, p.Paddr, p.Filesz, p.Memsz, p.AlignVal} {
		b = le.AppendUint64(b, v)
	}
	return b
}

// A movedSection is a section on its way to a new place.
type movedSection struct {
	region  *Region
	sec     *Section
	body    *Output
	remap   remap
	newOff  int64
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

// relinkHost moves the regions that have to grow.
func relinkHost(f *File, r *rebuild) (*Output, error) {
	g, err := f.newHostELF()
	if err != nil {
		return nil, err
	}
	own := g.ownSegment()
	for _, reg := range f.Regions {
		sec := g.sectionOf(reg)
		inOwn := own >= 0 && sec != nil && g.inSegment(sec, own)
		if !r.regions[reg] && !inOwn {
			continue
		}
		if sec == nil || !reg.Dedicated || sec.Size != uint64(reg.Size) {
			return nil, fmt.Errorf("%s, and section %q cannot move: it does not hold fatbins only: %w", r.rep.Why[0], reg.Name, ErrGrow)
		}
		m := &movedSection{region: reg, sec: sec}
		m.body, m.remap = f.rebuildRegion(reg, r)
		g.moved = append(g.moved, m)
	}
	for _, p := range r.list {
		if !g.isMoved(p.entry.Container.Region) {
			p.splice(g.splice)
		}
	}
	end, err := g.place(own)
	if err != nil {
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
	return g.finish(end, r.rep)
}

func (g *hostELF) isMoved(r *Region) bool {
	for _, m := range g.moved {
		if m.region == r {
			return true
		}
	}
	return false
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
	g := &hostELF{f: f, h: h, secs: secs, splice: &splicer{src: f.data}}
	for i := range uint64(h.Phnum) {
		b := f.data[h.Phoff+i*progHeaderSize:]
		g.progs = append(g.progs, prog{
			Type: le.Uint32(b), Flags: le.Uint32(b[4:]), Off: le.Uint64(b[8:]), Vaddr: le.Uint64(b[16:]),
			Paddr: le.Uint64(b[24:]), Filesz: le.Uint64(b[32:]), Memsz: le.Uint64(b[40:]), AlignVal: le.Uint64(b[48:]),
		})
	}
	return g, nil
}

func (g *hostELF) sectionOf(r *Region) *Section {
	for i := range g.secs {
		if s := &g.secs[i]; s.HasData() && s.Flags&shfAlloc != 0 && s.Offset == r.Offset && s.Name == r.Name {
			return s
		}
	}
	return nil
}

func (g *hostELF) inSegment(s *Section, i int) bool {
	p := &g.progs[i]
	return uint64(s.Offset) >= p.Off && uint64(s.end()) <= p.Off+p.Filesz
}

// ownSegment returns the index of a segment that an earlier growth made: the last
// thing in the file and in memory, with fatbin sections and nothing else. -1 if there
// is none. It can be written anew without another program header.
func (g *hostELF) ownSegment() int {
	last := g.lastLoad()
	if last < 0 {
		return -1
	}
	p := &g.progs[last]
	if p.Off+p.Filesz != uint64(g.f.Size) || p.Filesz != p.Memsz || p.Flags != 4 {
		return -1
	}
	for i := range g.progs {
		if q := &g.progs[i]; i != last && q.Filesz > 0 && q.Off < p.Off+p.Filesz && p.Off < q.Off+q.Filesz {
			return -1
		}
	}
	if g.h.Shoff+uint64(g.h.Shnum)*sectHeaderSize > p.Off || g.h.Phoff >= p.Off {
		return -1
	}
	found := false
	for i := range g.secs {
		s := &g.secs[i]
		if !s.HasData() || uint64(s.end()) <= p.Off {
			continue
		}
		if !fatbinSections[s.Name] || !g.inSegment(s, last) {
			return -1
		}
		found = true
	}
	if !found {
		return -1
	}
	return last
}

// lastLoad returns the index of the loadable segment with the highest address.
func (g *hostELF) lastLoad() int {
	last := -1
	for i := range g.progs {
		if g.progs[i].Type == ptLoad && (last < 0 || g.progs[i].Vaddr > g.progs[last].Vaddr) {
			last = i
		}
	}
	return last
}

// place decides where the moved sections go and writes the program headers. It
// returns how much of the old file stays in front of them.
func (g *hostELF) place(own int) (end int64, err error) {
	if own >= 0 {
		p := &g.progs[own]
		size := g.layOut(int64(p.Off), p.Vaddr)
		p.Filesz, p.Memsz = size, size
		g.splice.put(int64(g.h.Phoff)+int64(own)*progHeaderSize, p.encode())
		for _, m := range g.moved {
			if m.sec.Offset < int64(p.Off) {
				g.splice.zero(m.sec.Offset, int64(m.sec.Size))
			}
		}
		return int64(p.Off), nil
	}
	last := g.lastLoad()
	if last < 0 {
		return 0, fmt.Errorf("no loadable segment: %w", ErrGrow)
	}
	align, top := uint64(minPage), uint64(0)
	for i := range g.progs {
		if p := &g.progs[i]; p.Type == ptLoad {
			align, top = max(align, p.AlignVal), max(top, p.Vaddr+p.Memsz)
		}
	}
	if align&(align-1) != 0 || align > 1<<30 || top > math.MaxInt64/2 {
		return 0, fmt.Errorf("absurd program headers: %w", ErrGrow)
	}
	end = alignUp(g.f.Size, minPage)
	vaddr := alignUp(top, align) + uint64(end)%align
	size := g.layOut(end, vaddr)
	seg := prog{Type: ptLoad, Flags: 4, Off: uint64(end), Vaddr: vaddr, Paddr: vaddr, Filesz: size, Memsz: size, AlignVal: align}
	spare := g.spareHeader()
	if spare < 0 {
		g.progs = slices.Insert(g.progs, last+1, seg)
		return end, g.movePrograms()
	}
	g.gaveUp = g.progs[spare].Type
	g.progs = slices.Insert(g.progs, last+1, seg)
	if spare > last {
		spare++
	}
	g.progs = slices.Delete(g.progs, spare, spare+1)
	g.splice.put(int64(g.h.Phoff), g.programTable())
	for _, m := range g.moved {
		g.splice.zero(m.sec.Offset, int64(m.sec.Size))
	}
	return end, nil
}

// programTable returns the program headers as the file has them.
func (g *hostELF) programTable() []byte {
	var table []byte
	for i := range g.progs {
		table = append(table, g.progs[i].encode()...)
	}
	return table
}

// spareHeader returns the index of a program header that the file can do without, or
// -1: an unused one; the property segment of x86, where the loader finds the same note
// by way of a note segment; or a note segment without such properties, which holds the
// build id for debuggers. The table then stays where it is, and tools that write the
// file anew, such as strip, keep it in order.
func (g *hostELF) spareHeader() int {
	null, property, note := -1, -1, -1
	for i := range g.progs {
		switch p := &g.progs[i]; p.Type {
		case ptNull:
			null = i
		case ptGNUProperty:
			if g.h.Machine == emX86 && g.hasNote(p) {
				property = i
			}
		case ptNote:
			if !g.hasProperties(p) {
				note = i
			}
		}
	}
	for _, i := range []int{null, property} {
		if i >= 0 {
			return i
		}
	}
	return note
}

// hasNote reports whether a note segment covers p.
func (g *hostELF) hasNote(p *prog) bool {
	for i := range g.progs {
		if q := &g.progs[i]; q.Type == ptNote && q.Off <= p.Off && p.Off+p.Filesz <= q.Off+q.Filesz {
			return true
		}
	}
	return false
}

// hasProperties reports whether a section of GNU properties lies in the segment.
func (g *hostELF) hasProperties(p *prog) bool {
	for i := range g.secs {
		s := &g.secs[i]
		if s.Name == ".note.gnu.property" && s.HasData() && uint64(s.Offset) < p.Off+p.Filesz && p.Off < uint64(s.end()) {
			return true
		}
	}
	return false
}

// layOut gives each moved section its place from off and addr on, and returns the
// size of them all.
func (g *hostELF) layOut(off int64, addr uint64) uint64 {
	pos := int64(0)
	for _, m := range g.moved {
		if a := int64(m.sec.Align); a > 1 && a <= minPage && a&(a-1) == 0 {
			pos = alignUp(pos, a)
		}
		m.newOff, m.newAddr = off+pos, addr+uint64(pos)
		pos += m.body.size
	}
	return uint64(pos)
}

// movePrograms writes the program header table, one entry longer than before, into
// the space of the first moved section that has room and is mapped.
func (g *hostELF) movePrograms() error {
	need := int64(len(g.progs)) * progHeaderSize
	if len(g.progs) >= 0xffff {
		return fmt.Errorf("too many program headers: %w", ErrGrow)
	}
	for _, m := range g.moved {
		off := alignUp(m.sec.Offset, 8)
		addr := m.sec.Addr + uint64(off-m.sec.Offset)
		if off+need > m.sec.end() || !g.mapped(off, addr, need) {
			continue
		}
		for i := range g.progs {
			if p := &g.progs[i]; p.Type == ptPhdr {
				p.Off, p.Vaddr, p.Paddr, p.Filesz, p.Memsz = uint64(off), addr, addr, uint64(need), uint64(need)
			}
		}
		g.splice.put64(32, uint64(off))
		g.splice.put16(56, uint16(len(g.progs)))
		g.splice.zero(m.sec.Offset, off-m.sec.Offset)
		g.splice.put(off, g.programTable())
		g.splice.zero(off+need, m.sec.end()-off-need)
		g.zeroOthers(m)
		return nil
	}
	return fmt.Errorf("no room for the longer program header table: %w", ErrGrow)
}

// zeroOthers clears the old places of the moved sections but one.
func (g *hostELF) zeroOthers(but *movedSection) {
	for _, m := range g.moved {
		if m != but {
			g.splice.zero(m.sec.Offset, int64(m.sec.Size))
		}
	}
}

// mapped reports whether a loadable segment maps the bytes at that address.
func (g *hostELF) mapped(off int64, addr uint64, size int64) bool {
	for i := range g.progs {
		p := &g.progs[i]
		if p.Type == ptLoad && uint64(off) >= p.Off && uint64(off+size) <= p.Off+p.Filesz && addr-p.Vaddr == uint64(off)-p.Off {
			return true
		}
	}
	return false
}

// finish writes section headers and puts the file together.
func (g *hostELF) finish(end int64, rep *RewriteReport) (*Output, error) {
	sort.Slice(g.moved, func(i, j int) bool { return g.moved[i].newOff < g.moved[j].newOff })
	for _, m := range g.moved {
		at := int64(g.h.Shoff) + int64(m.sec.Index)*sectHeaderSize
		g.splice.put64(at+16, m.newAddr)
		g.splice.put64(at+24, uint64(m.newOff))
		g.splice.put64(at+32, uint64(m.body.size))
	}
	keep := min(end, g.f.Size)
	out, err := g.splice.output(keep)
	if err != nil {
		return nil, err
	}
	out.zeros(end - keep)
	for _, m := range g.moved {
		out.zeros(m.newOff - out.size)
		out.append(m.body)
		where := fmt.Sprintf("moved from 0x%x to 0x%x", m.sec.Offset, m.newOff)
		if m.newOff == m.sec.Offset {
			where = fmt.Sprintf("grew at 0x%x", m.newOff)
		}
		rep.Why = append(rep.Why, fmt.Sprintf("section %s %s, %d bytes instead of %d", m.sec.Name, where, m.body.size, m.sec.Size))
	}
	if g.gaveUp == ptNote {
		rep.Why = append(rep.Why, "the note segment (build id) gave its program header to the new segment")
	}
	return out, nil
}
