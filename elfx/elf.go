package elfx

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"math"
	"sort"
	"strings"
)

// Sizes of the records of a 64-bit ELF file (System V ABI, chapters 4 and 5).
const (
	elfHeaderSize  = 64
	sectHeaderSize = 64
	progHeaderSize = 56
	symbolSize     = elf.Sym64Size
	relSize        = 16
	relaSize       = 24
)

// The constants of package debug/elf as the numbers that files hold.
const (
	etRel  = uint16(elf.ET_REL)
	etExec = uint16(elf.ET_EXEC)
	etDyn  = uint16(elf.ET_DYN)

	emX86  = uint16(elf.EM_X86_64)
	emCUDA = 190 // not in debug/elf

	shtNull        = uint32(elf.SHT_NULL)
	shtProgbits    = uint32(elf.SHT_PROGBITS)
	shtSymtab      = uint32(elf.SHT_SYMTAB)
	shtStrtab      = uint32(elf.SHT_STRTAB)
	shtRela        = uint32(elf.SHT_RELA)
	shtNobits      = uint32(elf.SHT_NOBITS)
	shtRel         = uint32(elf.SHT_REL)
	shtDynsym      = uint32(elf.SHT_DYNSYM)
	shtSymtabShndx = uint32(elf.SHT_SYMTAB_SHNDX)
	shtRelr        = 19 // not in debug/elf

	shfAlloc      = uint64(elf.SHF_ALLOC)
	shfExec       = uint64(elf.SHF_EXECINSTR)
	shfCompressed = uint64(elf.SHF_COMPRESSED)
	shfMercury    = 0x10000000 // cubins only

	shnXindex = uint32(elf.SHN_XINDEX)

	ptNull        = uint32(elf.PT_NULL)
	ptLoad        = uint32(elf.PT_LOAD)
	ptInterp      = uint32(elf.PT_INTERP)
	ptNote        = uint32(elf.PT_NOTE)
	ptPhdr        = uint32(elf.PT_PHDR)
	ptGNUProperty = uint32(elf.PT_GNU_PROPERTY)

	sttFunc = uint8(elf.STT_FUNC)
)

// elfMagic starts a 64-bit little-endian file.
var elfMagic = append([]byte(elf.ELFMAG), byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT))

// maxName bounds the length of a section or symbol name. The longest seen in the
// wild has 2,858 bytes.
const maxName = 1 << 15

// An elfHeader is the file header of a 64-bit little-endian ELF file.
type elfHeader struct {
	OSABI, ABIVersion   uint8
	Type, Machine       uint16
	Version             uint32
	Entry, Phoff, Shoff uint64
	Flags               uint32
	Phentsize           uint16
	Phnum               uint32 // after extended numbering
	Shentsize           uint16
	Shnum, Shstrndx     uint32 // after extended numbering
}

// A Section is an entry of the section header table.
type Section struct {
	Index     int
	Name      string
	Type      uint32
	Flags     uint64
	Addr      uint64
	Offset    int64 // in the ELF file
	Size      uint64
	Link      uint32
	Info      uint32
	Align     uint64
	EntrySize uint64
	nameOff   uint32
}

// HasData reports whether the section occupies bytes of the file. Besides NOBITS,
// four types of cubins declare memory only: global, local, shared and reserved shared.
func (s *Section) HasData() bool { return s.Size > 0 && inFile(s.Type) }

func inFile(typ uint32) bool {
	switch typ {
	case shtNull, shtNobits, shtCudaGlobal, shtCudaLocal, shtCudaShared, shtCudaReserved:
		return false
	}
	return true
}

// end is the offset after the section's data. Only after checking.
func (s *Section) end() int64 { return s.Offset + int64(s.Size) }

var le = binary.LittleEndian

// parseELFHeader reads the file header and, for the extended counts, the first
// section header.
func parseELFHeader(data []byte) (*elfHeader, error) {
	if len(data) < elfHeaderSize {
		return nil, formatErrorf("ELF header", 0, "truncated: %d of %d bytes", len(data), elfHeaderSize)
	}
	if !bytes.HasPrefix(data, elfMagic) {
		return nil, formatErrorf("ELF header", 0, "not a 64-bit little-endian ELF file: % x", data[:7])
	}
	h := &elfHeader{
		OSABI: data[7], ABIVersion: data[8],
		Type: le.Uint16(data[16:]), Machine: le.Uint16(data[18:]), Version: le.Uint32(data[20:]),
		Entry: le.Uint64(data[24:]), Phoff: le.Uint64(data[32:]), Shoff: le.Uint64(data[40:]),
		Flags:     le.Uint32(data[48:]),
		Phentsize: le.Uint16(data[54:]), Phnum: uint32(le.Uint16(data[56:])),
		Shentsize: le.Uint16(data[58:]), Shnum: uint32(le.Uint16(data[60:])), Shstrndx: uint32(le.Uint16(data[62:])),
	}
	if h.Shoff == 0 {
		h.Shnum, h.Shstrndx = 0, 0
		return h, h.checkPrograms(data)
	}
	if h.Shentsize != sectHeaderSize {
		return nil, formatErrorf("ELF header", 58, "section headers of %d bytes, want %d", h.Shentsize, sectHeaderSize)
	}
	if err := checkRange("section header table", 40, data, h.Shoff, sectHeaderSize); err != nil {
		return nil, err
	}
	first := data[h.Shoff:]
	if h.Shnum == 0 {
		n := le.Uint64(first[32:])
		if n > math.MaxInt32 {
			return nil, formatErrorf("section header table", int64(h.Shoff)+32, "%d sections", n)
		}
		h.Shnum = uint32(n)
	}
	if h.Shstrndx == shnXindex {
		h.Shstrndx = le.Uint32(first[40:])
	}
	if h.Phnum == 0xffff {
		h.Phnum = le.Uint32(first[44:])
	}
	if err := checkRange("section header table", 40, data, h.Shoff, uint64(h.Shnum)*sectHeaderSize); err != nil {
		return nil, err
	}
	return h, h.checkPrograms(data)
}

func (h *elfHeader) checkPrograms(data []byte) error {
	if h.Phnum == 0 {
		return nil
	}
	if h.Phentsize != progHeaderSize {
		return formatErrorf("ELF header", 54, "program headers of %d bytes, want %d", h.Phentsize, progHeaderSize)
	}
	return checkRange("program header table", 32, data, h.Phoff, uint64(h.Phnum)*progHeaderSize)
}

// checkRange reports data that ends before off+size. at is where off was read.
func checkRange(what string, at int64, data []byte, off, size uint64) error {
	end := off + size
	if end < off || off > math.MaxInt64 || end > math.MaxInt64 {
		return formatErrorf(what, at, "offset 0x%x and size 0x%x are absurd", off, size)
	}
	if end > uint64(len(data)) {
		return formatErrorf(what, at, "needs bytes 0x%x to 0x%x, the file ends at 0x%x: truncated by %d bytes",
			off, end, len(data), end-uint64(len(data)))
	}
	return nil
}

// parseSections reads the section header table with its names and checks that every
// section lies inside the file.
func parseSections(data []byte, h *elfHeader) ([]Section, error) {
	secs := make([]Section, h.Shnum)
	for i := range secs {
		at := int64(h.Shoff) + int64(i)*sectHeaderSize
		b := data[at : at+sectHeaderSize]
		off := le.Uint64(b[24:])
		s := Section{
			Index: i, nameOff: le.Uint32(b), Type: le.Uint32(b[4:]), Flags: le.Uint64(b[8:]), Addr: le.Uint64(b[16:]),
			Offset: int64(off), Size: le.Uint64(b[32:]), Link: le.Uint32(b[40:]), Info: le.Uint32(b[44:]),
			Align: le.Uint64(b[48:]), EntrySize: le.Uint64(b[56:]),
		}
		if inFile(s.Type) {
			if checkRange("", at+24, data, off, s.Size) != nil { // there the label is made, and only there
				return nil, checkRange(sectionLabel(i), at+24, data, off, s.Size)
			}
		}
		secs[i] = s
	}
	if h.Shnum == 0 {
		return secs, nil
	}
	if h.Shstrndx >= h.Shnum {
		return nil, formatErrorf("ELF header", 62, "string table is section %d of %d", h.Shstrndx, h.Shnum)
	}
	if h.Shstrndx == 0 {
		return secs, nil
	}
	names, err := newStrtab(data, &secs[h.Shstrndx])
	if err != nil {
		return nil, err
	}
	for i := range secs {
		if secs[i].Name, err = names.at(secs[i].nameOff); err != nil {
			return nil, formatErrorf(sectionLabel(i), int64(h.Shoff)+int64(i)*sectHeaderSize, "name: %v", err)
		}
	}
	return secs, nil
}

func sectionLabel(i int) string { return "section " + itoa(i) }

// checkOverlap refuses sections that share bytes of the file, or that reach into the
// file header. A reader that hands out slices would otherwise show, and a patch
// would change, the same bytes twice. Mercury sections do share constants with their
// SASS counterparts, and are not read here.
func checkOverlap(secs []Section, headerEnd int64) error {
	order := make([]int, 0, len(secs))
	for i := range secs {
		if s := &secs[i]; s.HasData() && (s.Flags&shfMercury == 0 || isRead(s)) {
			order = append(order, i)
		}
	}
	sort.Slice(order, func(a, b int) bool { return secs[order[a]].Offset < secs[order[b]].Offset })
	end, last := headerEnd, -1
	for _, i := range order {
		s := &secs[i]
		if s.Offset < end {
			prev := "the ELF header"
			if last >= 0 {
				prev = quoteName(secs[last].Name, last)
			}
			return formatErrorf(quoteName(s.Name, i), s.Offset, "overlaps %s, which ends at 0x%x", prev, end)
		}
		end, last = s.end(), i
	}
	return nil
}

// isRead reports whether this package looks into a section of a cubin.
func isRead(s *Section) bool {
	switch s.Type {
	case shtSymtab, shtStrtab, shtRela, shtRel, shtSymtabShndx:
		return true
	}
	return isText(s) || isInfo(s)
}

func quoteName(name string, i int) string {
	if name == "" {
		return sectionLabel(i)
	}
	if len(name) > 200 {
		name = name[:200] + "…"
	}
	return "section " + name
}

// A strtab is a string table. Its names share one string, so that many names cost
// no more than the table.
type strtab struct {
	s string
}

func newStrtab(data []byte, s *Section) (*strtab, error) {
	if s.Type != shtStrtab {
		return nil, formatErrorf(quoteName(s.Name, s.Index), s.Offset, "type %d is not a string table", s.Type)
	}
	return &strtab{string(data[s.Offset:s.end()])}, nil
}

// at returns the name at an offset.
func (t *strtab) at(off uint32) (string, error) {
	if off == 0 && len(t.s) == 0 {
		return "", nil
	}
	if uint64(off) >= uint64(len(t.s)) {
		return "", formatErrorf("string table", int64(off), "the table has %d bytes", len(t.s))
	}
	rest := t.s[off:]
	if len(rest) > maxName {
		rest = rest[:maxName]
	}
	if i := strings.IndexByte(rest, 0); i >= 0 {
		return rest[:i], nil
	}
	return "", formatErrorf("string table", int64(off), "name without an end")
}
