package elfx

import (
	"debug/elf"
	"fmt"
	"slices"
)

// relativeReloc has the relocation type that adds the load address, by machine
// (psABI of each).
var relativeReloc = map[uint16]uint32{
	uint16(elf.EM_X86_64):  uint32(elf.R_X86_64_RELATIVE),
	uint16(elf.EM_AARCH64): uint32(elf.R_AARCH64_RELATIVE),
	uint16(elf.EM_PPC64):   uint32(elf.R_PPC64_RELATIVE),
	uint16(elf.EM_RISCV):   uint32(elf.R_RISCV_RELATIVE),
}

// A prog is a program header.
type prog struct {
	Type, Flags                                uint32
	Off, Vaddr, Paddr, Filesz, Memsz, AlignVal uint64
	placed                                     bool // Off is an offset in the new file
}

func decodeProg(b []byte) prog {
	return prog{
		Type: le.Uint32(b), Flags: le.Uint32(b[4:]), Off: le.Uint64(b[8:]), Vaddr: le.Uint64(b[16:]),
		Paddr: le.Uint64(b[24:]), Filesz: le.Uint64(b[32:]), Memsz: le.Uint64(b[40:]), AlignVal: le.Uint64(b[48:]),
	}
}

func (p *prog) encode() []byte {
	b := le.AppendUint32(nil, p.Type)
	b = le.AppendUint32(b, p.Flags)
	for _, v := range []uint64{p.Off, p.Vaddr, p.Paddr, p.Filesz, p.Memsz, p.AlignVal} {
		b = le.AppendUint64(b, v)
	}
	return b
}

func (g *hostELF) inSegment(s *Section, i int) bool {
	p := &g.old[i]
	return uint64(s.Offset) >= p.Off && uint64(s.end()) <= p.Off+p.Filesz
}

// ownSegment returns the index of a segment that an earlier growth made: the last
// thing in the file and in memory, with fatbin sections and nothing else. -1 if there
// is none. It can be written anew without another program header.
func (g *hostELF) ownSegment() int {
	last := lastLoad(g.old)
	if last < 0 {
		return -1
	}
	p := &g.old[last]
	if p.Off+p.Filesz != uint64(g.f.Size) || p.Filesz != p.Memsz || p.Flags != 4 {
		return -1
	}
	for i := range g.old {
		if q := &g.old[i]; i != last && q.Filesz > 0 && q.Off < p.Off+p.Filesz && p.Off < q.Off+q.Filesz {
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

// lastLoad returns the index of the loadable segment with the highest address, or -1.
func lastLoad(progs []prog) int {
	last := -1
	for i := range progs {
		if progs[i].Type == ptLoad && (last < 0 || progs[i].Vaddr > progs[last].Vaddr) {
			last = i
		}
	}
	return last
}

// spareHeaders returns the program headers that the file can do without, the best first:
// unused ones; the property segment of x86, where the loader finds the same note by way of
// a note segment; and the note segments without such properties, which hold the build id
// for debuggers. With their help the table can stay where it is, and tools that write the
// file anew, such as strip, keep it in order.
func (g *hostELF) spareHeaders() []prog {
	var null, property, note []prog
	for i := range g.old {
		switch p := &g.old[i]; p.Type {
		case ptNull:
			null = append(null, *p)
		case ptGNUProperty:
			if g.h.Machine == emX86 && g.hasNote(p) {
				property = append(property, *p)
			}
		case ptNote:
			if !g.hasProperties(p) {
				note = append(note, *p)
			}
		}
	}
	return slices.Concat(null, property, note)
}

// hasNote reports whether a note segment covers p.
func (g *hostELF) hasNote(p *prog) bool {
	for i := range g.old {
		if q := &g.old[i]; q.Type == ptNote && q.Off <= p.Off && p.Off+p.Filesz <= q.Off+q.Filesz {
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

// writeTable writes the program headers: in their place, for which spare ones are given up,
// or into the space that a group has for them.
func (g *hostELF) writeTable(groups []*group) error {
	var home *group
	for _, x := range groups {
		if x.table > 0 {
			home = x
		}
	}
	if home == nil {
		if err := g.giveUp(len(g.progs) - len(g.old)); err != nil {
			return err
		}
	}
	size := uint64(len(g.progs)) * progHeaderSize
	for i := range g.progs {
		p := &g.progs[i]
		if p.Type == ptPhdr {
			p.Filesz, p.Memsz = size, size
			if home != nil {
				old := &g.old[g.loadAt(home.start())]
				p.Off = uint64(home.table)
				p.Vaddr = old.Vaddr + p.Off - old.Off
				p.Paddr = p.Vaddr
			}
		}
		if !p.placed && p.Off <= uint64(g.f.Size) {
			p.Off = uint64(g.splice.shift(int64(p.Off)))
		}
		if p.Type == ptLoad && p.AlignVal > 0 && (p.Vaddr-p.Off)%p.AlignVal != 0 {
			p.AlignVal = uint64(g.unit())
		}
	}
	var table []byte
	for i := range g.progs {
		table = append(table, g.progs[i].encode()...)
	}
	if len(g.progs) != len(g.old) {
		g.splice.put16(56, uint16(len(g.progs)))
	}
	at := int64(g.h.Phoff)
	if home == nil {
		g.splice.put(at, table)
		at = g.splice.shift(at)
	} else {
		copy(home.headers, table)
		g.tableMoved = true
		at = g.splice.shift(home.table)
	}
	if at != int64(g.h.Phoff) {
		g.splice.put64(32, uint64(at))
	}
	return nil
}

// giveUp drops n program headers that the file can do without.
func (g *hostELF) giveUp(n int) error {
	for _, p := range g.spareHeaders() {
		if n <= 0 {
			return nil
		}
		i := slices.Index(g.progs, p)
		g.progs = slices.Delete(g.progs, i, i+1)
		g.gaveUp = p.Type
		n--
	}
	if n > 0 {
		return fmt.Errorf("no room for the longer program header table: %w", ErrGrow)
	}
	return nil
}

// finish writes section headers and puts the file together.
func (g *hostELF) finish(rep *RewriteReport) (*Output, error) {
	byIndex := make(map[int]*movedSection)
	for _, m := range g.moved {
		byIndex[m.sec.Index] = m
	}
	for i := range g.secs {
		s := &g.secs[i]
		at := int64(g.h.Shoff) + int64(i)*sectHeaderSize
		m := byIndex[i]
		if m == nil {
			if off := g.splice.shift(min(s.Offset, g.f.Size)); off != s.Offset && s.Offset <= g.f.Size {
				g.splice.put64(at+24, uint64(off))
			}
			continue
		}
		where := fmt.Sprintf("moved from 0x%x to", m.sec.Offset)
		if m.newAddr == m.sec.Addr {
			where = "written anew at"
		}
		off := m.newOff
		if !m.atEnd {
			off = g.splice.shift(off)
		}
		g.splice.put64(at+16, m.newAddr)
		g.splice.put64(at+24, uint64(off))
		g.splice.put64(at+32, uint64(m.body.size))
		rep.Why = append(rep.Why, fmt.Sprintf("section %s %s 0x%x, %d bytes instead of %d", m.sec.Name, where, off, m.body.size, m.sec.Size))
	}
	if off := g.splice.shift(int64(g.h.Shoff)); off != int64(g.h.Shoff) {
		g.splice.put64(40, uint64(off))
	}
	out, err := g.splice.output(g.f.Size)
	if err != nil {
		return nil, err
	}
	if g.tail != nil {
		out.append(g.tail)
	}
	if g.cut > 0 {
		rep.Why = append(rep.Why, fmt.Sprintf("%d bytes that are free are cut out of the file", g.cut))
	}
	if g.tableMoved {
		rep.Why = append(rep.Why, "the program header table moved: strip the file before this, not after")
	}
	if g.gaveUp == ptNote {
		rep.Why = append(rep.Why, "the note segment (build id) gave its program header to the new segment")
	}
	return out, nil
}
