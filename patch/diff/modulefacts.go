package diff

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/cupatch/cupatch/elfx"
)

// facts returns what the cubin says that belongs to no kernel. rename gives the names of
// its kernels; nil leaves them.
func (m *Module) facts(rename func(i int32) string) []fact {
	f := &factList{m: m, places: true, rename: rename}
	f.ofCubin()
	return f.list
}

// ofCubin adds what the cubin says that belongs to no kernel.
func (f *factList) ofCubin() {
	m := f.m
	m.parts.Do(m.split)
	f.file()
	f.segments()
	for i := range m.Cubin.Sections() {
		if s := &m.Cubin.Sections()[i]; m.owner[i] < 0 && !isDebug(s) {
			f.header(s)
			f.ofModule(s)
		}
	}
	for i := range m.Cubin.Symbols() {
		if m.kernelOf(uint32(i)) < 0 {
			f.symbol(uint32(i))
		}
	}
	for _, a := range m.common {
		f.attribute(".nv.info", a)
	}
}

// What the file header's facts are grouped under.
const fileHeader = "ELF header"

// file adds the file header. The version of the old layout is that of the toolkit.
func (f *factList) file() {
	c := f.m.Cubin
	h := c.Header()
	flags := fmt.Sprintf("%#x", h.Flags)
	if c.Layout == elfx.LayoutNew { // the upper byte is the number of a section
		note := "none"
		if n := h.Flags >> 24; n != 0 {
			note = f.sectionName(n)
		}
		flags = fmt.Sprintf("%#x, note %s", h.Flags&0xffffff, note)
	} else {
		h.Version = 0
	}
	f.add(Loader, fileHeader, "e_ident", "% x", h.Ident)
	f.add(Loader, fileHeader, "e_type", "%d", h.Type)
	f.add(Loader, fileHeader, "e_version", "%d", h.Version)
	f.add(Loader, fileHeader, "e_flags", "%s", flags)
	f.add(Loader, fileHeader, "", "entry point %#x, %d bytes, program headers of %d bytes, names of sections in %s",
		h.Entry, h.Size, h.SegmentSize, f.sectionName(h.SectionNames))
}

// segments adds the program headers. Where one lies in the file is said by the sections
// in it.
func (f *factList) segments() {
	c := f.m.Cubin
	table := binary.LittleEndian.Uint64(c.Data()[32:])
	for i, s := range c.Segments() {
		var in []string
		first, last := s.Offset+s.FileSize, s.Offset
		for j := range c.Sections() {
			x := &c.Sections()[j]
			if start, end := uint64(x.Offset), uint64(x.Offset)+x.Size; x.HasData() && start >= s.Offset && end <= s.Offset+s.FileSize {
				in = append(in, f.sectionName(uint32(j)))
				first, last = min(first, start), max(last, end)
			}
		}
		slices.Sort(in)
		holds := strings.Join(in, " ")
		switch {
		case len(in) > 0:
			holds += fmt.Sprintf(", %d bytes before and %d after them", first-s.Offset, s.Offset+s.FileSize-last)
		case s.FileSize == 0:
			holds = "nothing of the file"
		case s.Offset == table:
			holds = fmt.Sprintf("the program headers, %d bytes", s.FileSize)
		default:
			holds = fmt.Sprintf("%d bytes at %#x", s.FileSize, s.Offset)
		}
		f.add(Loader, "program header", fmt.Sprint(i), "type %#x, flags %#x, addresses %#x and %#x, alignment %#x, memory %+d bytes, holds %s",
			s.Type, s.Flags, s.VirtAddr, s.PhysAddr, s.Align, int64(s.MemSize-s.FileSize), holds)
	}
}

// ofModule adds what a section holds that belongs to no kernel.
func (f *factList) ofModule(s *elfx.Section) {
	switch {
	case s.Type == shtSymtab && s == f.m.symbolTable(), s.Type == shtStrtab: // symbols and names are compared by what they say
	case s.Type == shtNull && s.Index == 0: // its size may be the number of sections
		if s.Size != uint64(len(f.m.Cubin.Sections())) {
			f.add(Loader, f.role(s), "", "offset %#x, size %#x", s.Offset, s.Size)
		}
	case s.Type == shtRela || s.Type == shtRel:
		f.relocations(s)
	case s.Name == ".nv.info":
	case s.Name == ".nv.callgraph" && s.HasData():
		f.callgraph(s)
	case s.Name == ".note.nv.cuinfo" && s.HasData():
		f.note(s)
	case isData(s):
		f.contents(Data, s)
	default:
		f.contents(Loader, s)
	}
}

// symbolTable returns the symbol table that the symbols are from.
func (m *Module) symbolTable() *elfx.Section {
	for i := range m.Cubin.Sections() {
		if s := &m.Cubin.Sections()[i]; s.Type == shtSymtab {
			return s
		}
	}
	return nil
}

// callgraph adds the pairs of functions of .nv.callgraph. Numbers that are no symbols
// stand for callers and callees that are not known.
func (f *factList) callgraph(s *elfx.Section) {
	data := f.m.Cubin.SectionData(s)
	name := func(n uint32) string {
		if int(n) < len(f.m.Cubin.Symbols()) && n != 0 {
			return f.symbolName(n)
		}
		return fmt.Sprintf("%#x", n)
	}
	for ; len(data) >= 8; data = data[8:] {
		f.add(Loader, s.Name, "", "%s calls %s", name(binary.LittleEndian.Uint32(data)), name(binary.LittleEndian.Uint32(data[4:])))
	}
	if len(data) > 0 {
		f.add(Loader, s.Name, "rest", "% x", data)
	}
}

// note adds .note.nv.cuinfo without the version of the toolkit, the last word of its
// description.
func (f *factList) note(s *elfx.Section) {
	data := slices.Clone(f.m.Cubin.SectionData(s))
	if len(data) >= 12 {
		name := uint64(binary.LittleEndian.Uint32(data))
		if at := 12 + (name+3)&^3 + 4; at+4 <= uint64(len(data)) {
			clear(data[at : at+4])
		}
	}
	f.of(Loader, s.Name, "", s, fmt.Appendf(nil, "% x", data))
}
