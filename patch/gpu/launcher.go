package gpu

import (
	"bytes"
	_ "embed"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
)

// The launcher is an ELF program of two pages. The first one is readable and executable:
//
//	0x000  ELF header, 64 bytes
//	0x040  program headers, 56 bytes each
//	0x1c0  path of the dynamic linker
//	0x200  strings: the libraries and functions it needs
//	0x280  symbols, 24 bytes each, the first one empty
//	0x300  relocations, 24 bytes each
//	0x400  code: launcher.txt
//
// The second one is readable and writable:
//
//	0x1000 addresses of the functions, filled in by the dynamic linker
//	0x1020 dynamic section
//
// Its symbols carry no versions, so that the C library gives it the oldest, and one
// program runs with old and new C libraries. It has no symbol hash table, since it
// defines nothing.
const (
	elfInterp  = 0x1c0
	elfStrings = 0x200
	elfSymbols = 0x280
	elfRelocs  = 0x300
	elfCode    = 0x400
	elfGot     = 0x1000
	elfDynamic = 0x1020
)

// launcherSource is the code with its assembly text.
//
//go:embed launcher.txt
var launcherSource string

// launcherImports are the functions in the order of the table at elfGot.
var launcherImports = [...]string{"__libc_start_main", "dlopen", "dlsym", "dlerror"}

// dynamicLinker loads the libraries of a program.
const dynamicLinker = "/lib64/ld-linux-x86-64.so.2"

// launcherNeeded are the libraries that have them; dlopen moved from libdl.so.2 to
// libc.so.6 in version 2.34 of the GNU C library, which keeps an empty libdl.so.2.
var launcherNeeded = [...]string{"libc.so.6", "libdl.so.2"}

// launcherCode reads the machine code out of launcherSource.
func launcherCode() ([]byte, error) {
	var code []byte
	for line := range strings.Lines(launcherSource) {
		digits, _, _ := strings.Cut(line, "\t")
		if strings.HasPrefix(line, "#") || strings.TrimSpace(digits) == "" {
			continue
		}
		b, err := hex.DecodeString(digits)
		if err != nil {
			return nil, fmt.Errorf("launcher code: %w", err)
		}
		code = append(code, b...)
	}
	return code, nil
}

// launcherProgram returns the launcher as an ELF file.
func launcherProgram() ([]byte, error) {
	code, err := launcherCode()
	if err != nil {
		return nil, err
	}
	b := make([]byte, elfDynamic)
	copy(b[elfInterp:], dynamicLinker+"\x00")
	strs := []byte{0}
	str := func(s string) uint32 {
		n := len(strs)
		strs = append(append(strs, s...), 0)
		return uint32(n)
	}
	var dyn []byte
	tag := func(tag, value uint64) {
		dyn = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(dyn, tag), value)
	}
	for _, lib := range launcherNeeded {
		tag(1, uint64(str(lib))) // DT_NEEDED
	}
	for i, name := range launcherImports {
		sym := b[elfSymbols+24*(i+1):]
		binary.LittleEndian.PutUint32(sym, str(name))
		sym[4] = 1<<4 | 2 // STB_GLOBAL, STT_FUNC
		rel := b[elfRelocs+24*i:]
		binary.LittleEndian.PutUint64(rel, uint64(elfGot+8*i))
		binary.LittleEndian.PutUint64(rel[8:], uint64(i+1)<<32|6) // R_X86_64_GLOB_DAT
	}
	tag(5, elfStrings) // DT_STRTAB
	tag(10, uint64(len(strs)))
	tag(6, elfSymbols) // DT_SYMTAB
	tag(11, 24)
	tag(7, elfRelocs) // DT_RELA
	tag(8, 24*uint64(len(launcherImports)))
	tag(9, 24)
	tag(24, 0) // DT_BIND_NOW
	tag(0, 0)
	copy(b[elfStrings:], strs)
	copy(b[elfCode:], code)
	if elfStrings+len(strs) > elfSymbols || elfCode+len(code) > elfGot {
		return nil, fmt.Errorf("launcher: %d bytes of names and %d of code are too many", len(strs), len(code))
	}
	return launcherHeaders(append(b, dyn...), uint64(len(dyn)), uint64(elfCode+len(code))), nil
}

// launcherHeaders writes the ELF header and the program headers; the dynamic section has
// dyn bytes and the first page ends at text.
func launcherHeaders(b []byte, dyn, text uint64) []byte {
	type header struct {
		Type, Flags                             uint32
		Off, Vaddr, Paddr, Filesz, Memsz, Align uint64
	}
	segment := func(typ, flags uint32, off, size, align uint64) header {
		return header{typ, flags, off, off, off, size, size, align}
	}
	const r, w, x = 4, 2, 1
	headers := []header{
		segment(6, r, 64, 6*56, 8), // PT_PHDR: tells the dynamic linker where it was loaded
		segment(3, r, elfInterp, uint64(len(dynamicLinker)+1), 1),
		segment(1, r|x, 0, text, 0x1000),
		segment(1, r|w, elfGot, elfDynamic-elfGot+dyn, 0x1000),
		segment(2, r|w, elfDynamic, dyn, 8),
		segment(0x6474e551, r|w, 0, 0, 16), // PT_GNU_STACK: not executable
	}
	var h bytes.Buffer
	h.WriteString("\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00")
	for _, field := range []any{
		uint16(3), uint16(62), uint32(1), // ET_DYN, EM_X86_64
		uint64(elfCode), uint64(64), uint64(0), uint32(0), // entry, program headers, no sections
		uint16(64), uint16(56), uint16(len(headers)), uint16(64), uint16(0), uint16(0),
		headers,
	} {
		// Fixed-size values into memory: it cannot fail.
		_ = binary.Write(&h, binary.LittleEndian, field)
	}
	copy(b, h.Bytes())
	return b
}
