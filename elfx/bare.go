package elfx

import (
	"bytes"
	"debug/elf"
)

// FileCubin is a bare cubin.
const FileCubin FileKind = "cubin"

func init() {
	register(&format{magic: []string{elf.ELFMAG}, is: isCubin, open: (*File).readCubin, relink: relinkCubin})
}

// readCubin takes the file as one cubin.
func (f *File) readCubin() {
	f.Kind = FileCubin
	r := f.region("", 0, f.Size, 0)
	r.Dedicated = true
	f.addCubin(r, f.Offset, f.Size)
}

// relinkCubin returns the new cubin, which is all of the file.
func relinkCubin(f *File, r *rebuild) (*Output, error) {
	return r.payloads[f.Regions[0].Containers[0].Entries[0]].body, nil
}

// isCubin reports whether an ELF header of a cubin starts b.
func isCubin(b []byte) bool {
	return len(b) >= elfHeaderSize && bytes.HasPrefix(b, elfMagic) && le.Uint16(b[18:]) == emCUDA
}

// addCubin adds a cubin that stands by itself as a container with one entry.
func (f *File) addCubin(r *Region, off, size int64) {
	b := f.root().data[off : off+size]
	c := &Container{Kind: ContainerCubin, Region: r, Offset: off, Size: size}
	e := &Entry{
		File: f, Container: c, Kind: KindELF, Offset: off, PayloadOffset: off, PayloadSize: size, StoredSize: size, Size: size,
		Flags: Flag64Bit, Major: 1, Minor: int(b[8]),
	}
	flags := le.Uint32(b[48:])
	if b[8] >= 8 {
		e.SM = int(flags >> 8 & 0xff)
	} else {
		e.SM = int(flags & 0xff)
	}
	if cub, err := ParseCubin(b); err == nil {
		e.Suffix = cub.Suffix
		if f.root() == f && size == f.Size { // one cubin, and it will be asked for
			e.cubin = cub
		}
	}
	c.Entries = []*Entry{e}
	r.Containers = append(r.Containers, c)
}
