package elfx

import (
	"bytes"
	"debug/pe"
)

// Offsets of the PE format (Microsoft's "PE Format", sections COFF file header and
// section table).
const (
	peOffsetField    = 0x3c
	coffHeaderSize   = 20
	coffSectionSize  = 40
	peSignatureBytes = 4
)

// FilePE is a Windows program or library.
const FilePE FileKind = "PE"

func init() {
	register(&format{
		magic: []string{"MZ"}, is: isPE, open: (*File).readPE, readOnly: "PE files are read only",
	})
}

// isPE reports whether b is a DOS stub followed by a PE signature.
func isPE(b []byte) bool {
	if len(b) < peOffsetField+4 {
		return false
	}
	at := uint64(le.Uint32(b[peOffsetField:]))
	return at+peSignatureBytes+coffHeaderSize <= uint64(len(b)) && bytes.Equal(b[at:at+4], []byte("PE\x00\x00"))
}

// readPE searches the sections of a Windows program or library. PE files are read
// only: nothing here changes one.
func (f *File) readPE() {
	f.Kind = FilePE
	b := f.bytes()
	coff := uint64(le.Uint32(b[peOffsetField:])) + peSignatureBytes
	n := uint64(le.Uint16(b[coff+2:]))
	table := coff + coffHeaderSize + uint64(le.Uint16(b[coff+16:]))
	if err := checkRange("section table", int64(coff)+2, b, table, n*coffSectionSize); err != nil {
		f.Err = err
		f.scanAll()
		return
	}
	var last int64
	for i := range n {
		s := b[table+i*coffSectionSize:]
		name := string(bytes.TrimRight(s[:8], "\x00"))
		virtual, addr := le.Uint32(s[8:]), le.Uint32(s[12:])
		size, off := uint64(le.Uint32(s[16:])), uint64(le.Uint32(s[20:]))
		if size == 0 || le.Uint32(s[36:])&pe.IMAGE_SCN_CNT_UNINITIALIZED_DATA != 0 {
			continue
		}
		if err := checkRange("section "+name, int64(table+i*coffSectionSize)+16, b, off, size); err != nil {
			if f.Err == nil {
				f.Err = err
			}
			if off >= uint64(len(b)) {
				continue
			}
			size = uint64(len(b)) - off
		}
		if int64(off) < last {
			continue
		}
		last = int64(off + size)
		// What lies after the virtual size only fills the file's alignment.
		if v := uint64(virtual); v != 0 && v < size && isZero(b[off+v:off+size]) {
			size = v
		}
		f.searchSection(name, int64(off), int64(size), uint64(addr))
	}
}
