package elfx

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// mustRead returns a file of the test data.
func mustRead(tb testing.TB, name string) []byte {
	tb.Helper()
	data, err := os.ReadFile(filepath.Join("..", "testdata", filepath.FromSlash(name)))
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

// A madeSection is a section of an ELF file made by makeELF.
type madeSection struct {
	name  string
	flags uint64
	addr  uint64
	data  []byte
}

// makeELF returns a host ELF file with these sections, for tests that need no
// compiler.
func makeELF(typ uint16, secs ...madeSection) []byte {
	out := make([]byte, elfHeaderSize)
	copy(out, elfMagic)
	le.PutUint16(out[16:], typ)
	le.PutUint16(out[18:], 62)
	le.PutUint32(out[20:], 1)
	names := []byte{0}
	secs = append(secs, madeSection{name: ".shstrtab"})
	headers := make([]byte, sectHeaderSize)
	for i, s := range secs {
		for len(out)%16 != 0 {
			out = append(out, 0)
		}
		typ := uint32(shtProgbits)
		h := make([]byte, sectHeaderSize)
		le.PutUint32(h, uint32(len(names)))
		names = append(append(names, s.name...), 0)
		if i == len(secs)-1 {
			typ, s.data = shtStrtab, names
		}
		le.PutUint32(h[4:], typ)
		le.PutUint64(h[8:], s.flags)
		le.PutUint64(h[16:], s.addr)
		le.PutUint64(h[24:], uint64(len(out)))
		le.PutUint64(h[32:], uint64(len(s.data)))
		le.PutUint64(h[48:], 1)
		out = append(out, s.data...)
		headers = append(headers, h...)
	}
	le.PutUint64(out[40:], uint64(len(out)))
	le.PutUint16(out[52:], elfHeaderSize)
	le.PutUint16(out[58:], sectHeaderSize)
	le.PutUint16(out[60:], uint16(len(headers)/sectHeaderSize))
	le.PutUint16(out[62:], uint16(len(headers)/sectHeaderSize-1))
	return append(out, headers...)
}

// makeEntry returns a fatbin entry whose payload is stored.
func makeEntry(kind uint16, sm uint32, flags uint64, payload []byte) []byte {
	h := make([]byte, entryHeaderSize)
	le.PutUint16(h, kind)
	le.PutUint16(h[2:], 0x0101)
	le.PutUint32(h[4:], entryHeaderSize)
	le.PutUint64(h[offPayloadSize:], uint64(len(payload)))
	le.PutUint32(h[28:], sm)
	le.PutUint64(h[offFlags:], flags)
	return append(h, payload...)
}

// makeFatbin returns a container of entries.
func makeFatbin(entries []byte) []byte {
	h := le.AppendUint32(nil, fatbinMagic)
	h = le.AppendUint16(h, 1)
	h = le.AppendUint16(h, fatbinHeaderSize)
	return append(le.AppendUint64(h, uint64(len(entries))), entries...)
}

// hostFile is a library with fatbins in two sections, a cubin in its data, and the
// magic number of a fatbin in its code.
func hostFile(tb testing.TB) []byte {
	fat := mustRead(tb, "fatbin/lz4.fatbin")
	concat := mustRead(tb, "fatbin/concat.fatbin")
	cubin := mustRead(tb, "cubin/new/sm_80/cache.cubin")
	code := append([]byte("code "), fatbinMagicBytes...)
	code = append(code, " and more code that is no fatbin"...)
	empty := []byte{0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	return makeELF(etDyn,
		madeSection{".text", shfAlloc | shfExec, 0x1000, code},
		madeSection{".nv_fatbin", shfAlloc, 0x2000, append(append(append([]byte(nil), fat...), empty...), concat...)},
		madeSection{".data", shfAlloc, 0x100000, append(append([]byte("some data ....."), cubin...), "more data"...)},
		madeSection{".comment", 0, 0, fat},
	)
}

// archiveFile is an ar archive with two objects and a text file.
func archiveFile(tb testing.TB) []byte {
	obj := makeELF(etRel, madeSection{".nv_fatbin", shfAlloc, 0, mustRead(tb, "fatbin/lz4.fatbin")})
	long := "an_object_with_a_long_name.o/\n"
	out := append([]byte(nil), arMagic...)
	add := func(name string, data []byte) {
		out = append(out, fmt.Sprintf("%-16s%-12s%-6s%-6s%-8s%-10d`\n", name, "0", "0", "0", "644", len(data))...)
		out = append(out, data...)
		if len(data)%2 != 0 {
			out = append(out, '\n')
		}
	}
	add("/", []byte{0, 0, 0, 0})
	add("//", []byte(long))
	add("/0", obj)
	add("notes.txt/", []byte("no code"))
	add("b.o/", obj)
	return out
}
