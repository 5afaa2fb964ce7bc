package elfx

// A Header has the fields of a cubin's file header (System V ABI, chapter 4) that say
// neither where its tables are nor how long.
type Header struct {
	Ident        [16]byte // e_ident
	Type         uint16
	Version      uint32
	Entry        uint64
	Flags        uint32
	Size         uint16 // e_ehsize
	SegmentSize  uint16 // e_phentsize
	SectionNames uint32 // e_shstrndx after extended numbering: an index into Sections
}

// Header returns the file header.
func (c *Cubin) Header() Header {
	b := c.data
	h := Header{
		Ident: [16]byte(b), Type: c.Type, Version: c.Version, Entry: le.Uint64(b[24:]), Flags: c.Flags,
		Size: le.Uint16(b[52:]), SegmentSize: le.Uint16(b[54:]), SectionNames: uint32(le.Uint16(b[62:])),
	}
	if h.SectionNames == shnXindex && len(c.sections) > 0 {
		h.SectionNames = c.sections[0].Link
	}
	return h
}

// A Segment is an entry of the program header table: what a loader copies to the device.
type Segment struct {
	Type, Flags        uint32
	Offset             uint64 // in the cubin
	VirtAddr, PhysAddr uint64
	FileSize, MemSize  uint64 // in bytes
	Align              uint64
}

// Segments returns the program header table.
func (c *Cubin) Segments() []Segment {
	h, err := parseELFHeader(c.data)
	if err != nil {
		return nil // ParseCubin has passed it
	}
	out := make([]Segment, h.Phnum)
	for i := range out {
		b := c.data[h.Phoff+uint64(i)*progHeaderSize:]
		out[i] = Segment{
			Type: le.Uint32(b), Flags: le.Uint32(b[4:]), Offset: le.Uint64(b[8:]), VirtAddr: le.Uint64(b[16:]), PhysAddr: le.Uint64(b[24:]),
			FileSize: le.Uint64(b[32:]), MemSize: le.Uint64(b[40:]), Align: le.Uint64(b[48:]),
		}
	}
	return out
}
