package liferange

import (
	"encoding/binary"
	"strconv"

	"github.com/cupatch/cupatch/isa"
)

// A layout is what differs between the ELF files of CUDA 13 and those before.
type layout struct {
	osabi, abi byte
	version    uint32
	flags      func(a isa.Arch) uint32 // e_flags
	accel      bool                    // `a` targets have a .nv.compat section
}

var (
	newLayout = layout{0x41, 8, 1, func(a isa.Arch) uint32 { return 0x06000004 | uint32(a.SM)<<8 }, true}
	oldLayout = layout{0x33, 7, 128, func(a isa.Arch) uint32 { return 0x00000500 | uint32(a.SM)<<16 | uint32(a.SM) }, false}
)

// compatAccel is the attribute of .nv.compat that says that code is for an `a` target.
var compatAccel = []byte{2, 9, 1, 0}

const (
	headerSize, sectionSize, symbolSize = 64, 64, 24
	emCUDA                              = 190
	registers                           = 128 // of each kernel, in the top byte of sh_info
)

// An elfWriter puts sections behind an ELF header.
type elfWriter struct {
	body    []byte // what follows the header
	headers []byte
	names   []byte
	count   int
}

func (e *elfWriter) section(name string, kind uint32, flags uint64, data []byte, link, info uint32, align, entry uint64) {
	for (headerSize+len(e.body))%int(align) != 0 {
		e.body = append(e.body, 0)
	}
	le := binary.LittleEndian
	h := e.headers
	h = le.AppendUint32(h, uint32(len(e.names)))
	h = le.AppendUint32(h, kind)
	h = le.AppendUint64(h, flags)
	h = le.AppendUint64(h, 0)
	h = le.AppendUint64(h, uint64(headerSize+len(e.body)))
	h = le.AppendUint64(h, uint64(len(data)))
	h = le.AppendUint32(h, link)
	h = le.AppendUint32(h, info)
	h = le.AppendUint64(h, align)
	e.headers = le.AppendUint64(h, entry)
	e.names = append(append(e.names, name...), 0)
	e.body = append(e.body, data...)
	e.count++
}

// kernelName returns the name of kernel i.
func kernelName(i int) string { return "k" + strconv.Itoa(i) }

// cubin returns an ELF file for a with a kernel of each of codes. It holds the least that
// nvdisasm needs to follow the flow of the code.
func cubin(a isa.Arch, l layout, codes [][]byte) []byte {
	le := binary.LittleEndian
	firstText := 3
	if l.accel && a.Suffix != "" {
		firstText++
	}
	strings := []byte{0}
	var locals, globals []byte
	symbol := func(to []byte, name string, info, other byte, section int, size int) []byte {
		to = le.AppendUint32(to, uint32(len(strings)))
		strings = append(append(strings, name...), 0)
		to = append(to, info, other)
		to = le.AppendUint16(to, uint16(section))
		to = le.AppendUint64(to, 0)
		return le.AppendUint64(to, uint64(size))
	}
	locals = make([]byte, symbolSize)
	for i, code := range codes {
		locals = symbol(locals, ".text."+kernelName(i), 3, 0, firstText+i, 0)        // STT_SECTION
		globals = symbol(globals, kernelName(i), 0x12, 0x10, firstText+i, len(code)) // a global function, an entry
	}
	first := uint32(len(locals) / symbolSize)
	e := elfWriter{headers: make([]byte, sectionSize), names: []byte{0}, count: 1}
	e.section(".strtab", 3, 0, strings, 0, 0, 1, 0)
	e.section(".symtab", 2, 0, append(locals, globals...), 1, first, 8, symbolSize)
	if firstText == 4 {
		e.section(".nv.compat", 0x70000086, 0, compatAccel, 0, 0, 4, 0)
	}
	for i, code := range codes {
		e.section(".text."+kernelName(i), 1, 6, code, 2, registers<<24|first+uint32(i), 128, 0)
	}
	e.section(".shstrtab", 3, 0, append(e.names, ".shstrtab\x00"...), 0, 0, 1, 0)
	for len(e.body)%8 != 0 {
		e.body = append(e.body, 0)
	}
	h := append([]byte("\x7fELF\x02\x01\x01"), l.osabi, l.abi, 0, 0, 0, 0, 0, 0, 0)
	h = le.AppendUint16(h, 2) // executable
	h = le.AppendUint16(h, emCUDA)
	h = le.AppendUint32(h, l.version)
	h = le.AppendUint64(h, 0)
	h = le.AppendUint64(h, 0)
	h = le.AppendUint64(h, uint64(headerSize+len(e.body)))
	h = le.AppendUint32(h, l.flags(a))
	for _, n := range []int{headerSize, 56, 0, sectionSize, e.count, e.count - 1} {
		h = le.AppendUint16(h, uint16(n))
	}
	return append(append(h, e.body...), e.headers...)
}
