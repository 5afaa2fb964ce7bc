package elfx

import (
	"strconv"
	"strings"
)

// Section types of cubins (processor specific range of the ELF format).
const (
	shtCudaInfo       = 0x70000000
	shtCudaGlobal     = 0x70000007
	shtCudaLocal      = 0x70000009
	shtCudaShared     = 0x7000000a
	shtCudaReserved   = 0x70000015
	shtCudaCompatInfo = 0x70000086
)

// A Layout is one of the two ways a cubin's ELF header is filled in.
type Layout uint8

// The layouts. ABI version 8 is written by 12.8 and 12.9 for sm_100 and later, and
// by 13.0 and later for every architecture.
const (
	LayoutOld Layout = iota // ABI version 7: SM in bits 0–7 of e_flags, toolkit in e_version
	LayoutNew               // ABI version 8: SM in bits 8–15 of e_flags, toolkit in a note
)

func (l Layout) String() string {
	if l == LayoutNew {
		return "new"
	}
	return "old"
}

// Bits of e_flags. Measured on 6,400 cubins of CUDA 11.0 to 13.5.
const (
	oldFlagAccel = 0x800 // sm_90a of the old layout
	newFlagAccel = 0x08  // 12.8 and 12.9; later ones say it in .nv.compat
	compatAccel  = 9     // attribute of .nv.compat: 1 for an `a` target
)

// A Cubin is an ELF file with GPU code. It refers to the bytes it was parsed from
// and never changes them; a Cubin may be used by several goroutines at once.
type Cubin struct {
	Arch      string // the real architecture, such as sm_90a
	SM        int    // its number: 90
	Suffix    string // its suffix: "", "a". `f` is not recorded in a cubin
	VirtualSM int    // the virtual architecture that the code was compiled from, 0 if not told
	Toolkit   string // version of the toolkit, such as 12.4, "" if not told
	Layout    Layout
	OSABI     uint8
	ABI       uint8  // e_ident[8], the ABI version: 7 or 8
	Type      uint16 // e_type: 1 relocatable, 2 executable
	Version   uint32 // e_version
	Flags     uint32 // e_flags

	data     []byte
	sections []Section
	symbols  []Symbol
	kernels  []Kernel
}

// ParseCubin reads the headers, symbols and attributes of a cubin. The error is a
// *[FormatError]. The Cubin keeps data; it does not copy it.
func ParseCubin(data []byte) (*Cubin, error) {
	h, err := parseELFHeader(data)
	if err != nil {
		return nil, err
	}
	if h.Machine != emCUDA {
		return nil, formatErrorf("ELF header", 18, "machine %d is not CUDA (%d)", h.Machine, emCUDA)
	}
	c := &Cubin{
		OSABI: h.OSABI, ABI: h.ABIVersion, Type: h.Type, Version: h.Version, Flags: h.Flags, data: data,
	}
	if c.sections, err = parseSections(data, h); err != nil {
		return nil, err
	}
	if err := checkOverlap(c.sections, elfHeaderSize); err != nil {
		return nil, err
	}
	if err := c.parseSymbols(); err != nil {
		return nil, err
	}
	if err := c.checkInfo(); err != nil {
		return nil, err
	}
	c.identify()
	if err := c.parseKernels(); err != nil {
		return nil, err
	}
	return c, nil
}

// identify reads architecture and toolkit from the header, .nv.compat and the note.
func (c *Cubin) identify() {
	if c.ABI >= 8 {
		c.Layout = LayoutNew
		c.SM = int(c.Flags >> 8 & 0xff)
		accel := c.Flags&newFlagAccel != 0
		if s := c.Section(".nv.compat"); s != nil {
			for _, a := range c.attrs(s) {
				accel = accel || a.ID == compatAccel && a.Value&0xff == 1
			}
		}
		if accel {
			c.Suffix = "a"
		}
		c.VirtualSM, c.Toolkit = c.noteInfo()
	} else {
		c.SM, c.VirtualSM = int(c.Flags&0xff), int(c.Flags>>16&0xff)
		if c.Flags&oldFlagAccel != 0 && c.SM >= 90 {
			c.Suffix = "a"
		}
		if c.Version > 1 {
			c.Toolkit = toolkitVersion(c.Version)
		}
	}
	c.Arch = "sm_" + strconv.Itoa(c.SM) + c.Suffix
}

// toolkitVersion writes 124 as 12.4.
func toolkitVersion(v uint32) string {
	if v == 0 || v > 9999 {
		return ""
	}
	return strconv.Itoa(int(v/10)) + "." + strconv.Itoa(int(v%10))
}

// noteInfo reads the notes of the new layout. The description of .note.nv.cuinfo is
// u16 2, u16 virtual SM, u32 toolkit; that of its predecessor .note.nv.cuver, written
// by 12.8 and 12.9, u16 1, u16 virtual SM. Those have the toolkit in the first word of
// .note.nv.tkinfo.
func (c *Cubin) noteInfo() (virtual int, toolkit string) {
	if b := c.note(".note.nv.cuinfo"); len(b) >= 8 {
		return int(le.Uint16(b[2:])), toolkitVersion(le.Uint32(b[4:]))
	}
	if b := c.note(".note.nv.tkinfo"); len(b) >= 4 {
		toolkit = toolkitVersion(le.Uint32(b))
	}
	if b := c.note(".note.nv.cuver"); len(b) >= 4 {
		virtual = int(le.Uint16(b[2:]))
	}
	return virtual, toolkit
}

// note returns the description of the first note of a section: name size, description
// size, type, name, description, each padded to four bytes.
func (c *Cubin) note(section string) []byte {
	s := c.Section(section)
	if s == nil || !s.HasData() || s.Size < 12 {
		return nil
	}
	b := c.SectionData(s)
	name, desc := uint64(le.Uint32(b)), uint64(le.Uint32(b[4:]))
	start := 12 + alignUp(name, 4)
	if start+desc > uint64(len(b)) {
		return nil
	}
	return b[start : start+desc]
}

// Data returns the bytes that the cubin was parsed from.
func (c *Cubin) Data() []byte { return c.data }

// Sections returns the section header table. The caller must not change it.
func (c *Cubin) Sections() []Section { return c.sections }

// Section returns the first section of that name, or nil.
func (c *Cubin) Section(name string) *Section {
	for i := range c.sections {
		if c.sections[i].Name == name {
			return &c.sections[i]
		}
	}
	return nil
}

// SectionData returns the bytes of a section, a slice of Data.
func (c *Cubin) SectionData(s *Section) []byte {
	if !s.HasData() {
		return nil
	}
	return c.data[s.Offset:s.end():s.end()]
}

// HasMercury reports whether the cubin carries "capsule Mercury" code beside its
// SASS: another form of the same kernels, from which a driver can make code for
// another member of the family. A change of .text does not reach it.
func (c *Cubin) HasMercury() bool {
	for i := range c.sections {
		if strings.HasPrefix(c.sections[i].Name, ".nv.capmerc.text") {
			return true
		}
	}
	return false
}

// A Symbol is an entry of the symbol table.
type Symbol struct {
	Name    string
	Value   uint64
	Size    uint64
	Section uint32 // index, after extended numbering; 0xfff1 is absolute
	Info    uint8
	Other   uint8
}

// stoCudaEntry marks the symbol of a kernel that can be launched.
const stoCudaEntry = 0x10

// Func reports whether the symbol names a function.
func (s *Symbol) Func() bool { return s.Info&0xf == sttFunc }

// Symbols returns the symbol table. The caller must not change it.
func (c *Cubin) Symbols() []Symbol { return c.symbols }

// parseSymbols reads the first symbol table of the file.
func (c *Cubin) parseSymbols() error {
	var sym, ext *Section
	for i := range c.sections {
		if c.sections[i].Type == shtSymtab && sym == nil {
			sym = &c.sections[i]
		}
	}
	if sym == nil || sym.Size == 0 {
		return nil
	}
	label := quoteName(sym.Name, sym.Index)
	if sym.EntrySize != symbolSize || sym.Size%symbolSize != 0 {
		return formatErrorf(label, sym.Offset, "size 0x%x in entries of 0x%x", sym.Size, sym.EntrySize)
	}
	if uint64(sym.Link) >= uint64(len(c.sections)) {
		return formatErrorf(label, sym.Offset, "string table is section %d of %d", sym.Link, len(c.sections))
	}
	names, err := newStrtab(c.data, &c.sections[sym.Link])
	if err != nil {
		return err
	}
	for i := range c.sections {
		if c.sections[i].Type == shtSymtabShndx && int(c.sections[i].Link) == sym.Index {
			ext = &c.sections[i]
		}
	}
	c.symbols = make([]Symbol, sym.Size/symbolSize)
	for i := range c.symbols {
		at := sym.Offset + int64(i)*symbolSize
		b := c.data[at : at+symbolSize]
		s := &c.symbols[i]
		*s = Symbol{Info: b[4], Other: b[5], Section: uint32(le.Uint16(b[6:])), Value: le.Uint64(b[8:]), Size: le.Uint64(b[16:])}
		if s.Name, err = names.at(le.Uint32(b)); err != nil {
			return formatErrorf(label, at, "symbol %d: name: %v", i, err)
		}
		if s.Section == shnXindex {
			if ext == nil || uint64(i)*4+4 > ext.Size {
				return formatErrorf(label, at, "symbol %d: no extended section index", i)
			}
			s.Section = le.Uint32(c.data[ext.Offset+int64(i)*4:])
		}
	}
	return nil
}
