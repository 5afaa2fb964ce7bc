package patchtest

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
)

// Library returns a shared library with a fatbin in it: the least ELF file that holds
// one, for tests that need no compiler.
func Library(fatbin []byte) []byte {
	const names = "\x00.nv_fatbin\x00.shstrtab\x00"
	var h elf.Header64
	size := uint64(binary.Size(h))
	at := (size + uint64(len(names)) + 15) &^ 15
	end := (at + uint64(len(fatbin)) + 15) &^ 15
	h = elf.Header64{
		Ident: [16]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:  uint16(elf.ET_DYN), Machine: uint16(elf.EM_X86_64), Version: uint32(elf.EV_CURRENT),
		Shoff: end, Ehsize: uint16(size), Shentsize: uint16(binary.Size(elf.Section64{})), Shnum: 3, Shstrndx: 2,
	}
	var b bytes.Buffer
	put := func(v any) { _ = binary.Write(&b, binary.LittleEndian, v) }
	put(h)
	b.WriteString(names)
	b.Write(make([]byte, at-uint64(b.Len())))
	b.Write(fatbin)
	b.Write(make([]byte, end-uint64(b.Len())))
	put([]elf.Section64{
		{},
		{Name: 1, Type: uint32(elf.SHT_PROGBITS), Flags: uint64(elf.SHF_ALLOC), Off: at, Size: uint64(len(fatbin)), Addralign: 8},
		{Name: 12, Type: uint32(elf.SHT_STRTAB), Off: size, Size: uint64(len(names)), Addralign: 1},
	})
	return b.Bytes()
}
