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

	pe32Plus            = 0x20b // magic number of an optional header with 64-bit addresses
	peDirectories       = 96    // offset of the data directories in the optional header
	pe32PlusDirectories = 112
)

// FilePE is a Windows program or library.
const FilePE FileKind = "PE"

func init() {
	register(&format{
		magic: []string{"MZ"}, is: isPE, open: (*File).readPE,
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

// isSignedPE reports whether a file has an Authenticode signature: an entry of the data
// directories, in the optional header at opt, that is not empty.
func isSignedPE(b []byte, opt uint64) bool {
	if opt+2 > uint64(len(b)) {
		return false
	}
	dirs := opt + peDirectories
	if le.Uint16(b[opt:]) == pe32Plus {
		dirs = opt + pe32PlusDirectories
	}
	count, security := dirs-4, dirs+8*pe.IMAGE_DIRECTORY_ENTRY_SECURITY
	return security+8 <= uint64(len(b)) && le.Uint32(b[count:]) > pe.IMAGE_DIRECTORY_ENTRY_SECURITY && le.Uint32(b[security+4:]) != 0
}

// readPE searches the sections of a Windows program or library. Entries of such a file are
// changed in their places; it does not grow or shrink. The checksum in its header stays
// as it is: Windows looks at that of drivers and of its own libraries only.
func (f *File) readPE() {
	f.Kind = FilePE
	b := f.bytes()
	coff := uint64(le.Uint32(b[peOffsetField:])) + peSignatureBytes
	if isSignedPE(b, coff+coffHeaderSize) {
		f.readOnly = "a signed PE file is read only, a change would break its signature"
	}
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
