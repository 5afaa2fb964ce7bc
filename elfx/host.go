package elfx

import (
	"bytes"
	"debug/elf"
	"sort"
	"strings"
)

// fatbinSections are the names of sections that hold fatbins and nothing else.
var fatbinSections = map[string]bool{
	".nv_fatbin": true, "__nv_relfatbin": true, // ELF
	".nv_fatb": true, "__nv_rel": true, // PE, where names have eight characters
}

// offloadingSection is where clang's new offloading driver keeps the device images of an
// object for its linker wrapper; it is not allocated (LLVM, "Offloading Design &
// Internals": cubins or fatbins inside a binary format of its own).
const offloadingSection = ".llvm.offloading"

// The kinds of host ELF file.
const (
	FileObject     FileKind = "ELF object"        // relocatable
	FileExecutable FileKind = "ELF executable"    // fixed or position independent program
	FileShared     FileKind = "ELF shared object" // library
)

func init() {
	register(&format{
		magic: []string{elf.ELFMAG}, is: func(b []byte) bool { return bytes.HasPrefix(b, elfMagic) && !isCubin(b) },
		open: (*File).readHostELF, relink: relinkHost,
	})
}

// readHostELF searches every allocated section of a host program, library or object, and
// the one of clang's that is not.
func (f *File) readHostELF() {
	b := f.bytes()
	f.Kind = hostKind(b)
	h, err := parseELFHeader(b)
	if err != nil {
		f.Err = err
		f.scanAll()
		return
	}
	if f.Kind == FileShared && hasInterp(b, h) {
		f.Kind = FileExecutable
	}
	secs, err := parseSections(b, h)
	if err != nil {
		f.Err = err
		f.scanAll()
		return
	}
	if len(secs) == 0 {
		f.scanSegments(b, h)
		return
	}
	sort.SliceStable(secs, func(i, j int) bool { return secs[i].Offset < secs[j].Offset })
	var last int64
	for i := range secs {
		s := &secs[i]
		if s.Flags&shfAlloc == 0 && s.Name != offloadingSection || !s.HasData() || s.Flags&shfCompressed != 0 {
			continue
		}
		// Sections of a sound file do not overlap; no byte is searched twice in any.
		start := max(s.Offset, last)
		if start >= s.end() {
			continue
		}
		last = s.end()
		f.searchSection(s.Name, start, s.end()-start, s.Addr+uint64(start-s.Offset))
	}
}

// hostKind goes by the type in the header, which also a damaged file may have.
func hostKind(b []byte) FileKind {
	if len(b) < 18 {
		return FileUnknown
	}
	switch le.Uint16(b[16:]) {
	case etRel:
		return FileObject
	case etExec:
		return FileExecutable
	case etDyn:
		return FileShared
	}
	return FileUnknown
}

// hasInterp reports whether a file names a dynamic linker, as programs do.
func hasInterp(b []byte, h *elfHeader) bool {
	for i := range uint64(h.Phnum) {
		if le.Uint32(b[h.Phoff+i*progHeaderSize:]) == ptInterp {
			return true
		}
	}
	return false
}

// searchSection scans a section and keeps it as a region if it holds anything.
func (f *File) searchSection(name string, off, size int64, addr uint64) {
	r := f.region(name, off, size, addr)
	r.Dedicated = fatbinSections[strings.TrimSuffix(name, "\x00")]
	f.scan(r)
	if len(r.Containers) == 0 && !r.Dedicated {
		f.Regions = f.Regions[:len(f.Regions)-1]
	}
}

// scanSegments searches the loadable segments of a file without section headers.
func (f *File) scanSegments(b []byte, h *elfHeader) {
	var last uint64
	for i := range uint64(h.Phnum) {
		p := b[h.Phoff+i*progHeaderSize:]
		off, addr, size := le.Uint64(p[8:]), le.Uint64(p[16:]), le.Uint64(p[32:])
		if le.Uint32(p) != ptLoad || size == 0 || off < last {
			continue
		}
		if err := checkRange("program header "+itoa(int(i)), int64(h.Phoff+i*progHeaderSize)+8, b, off, size); err != nil {
			f.Err = err
			f.scanAll()
			return
		}
		last = off + size
		f.searchSection("", int64(off), int64(size), addr)
	}
}
