package elfx

import (
	"bytes"
	"errors"
	"testing"
)

// sectionExclude is SHF_EXCLUDE, which debug/elf does not have.
const sectionExclude = 0x80000000

// makeOffloading returns the content of a .llvm.offloading section with one image: the
// header of an OffloadBinary of version 1, its entry, its strings, and the image.
func makeOffloading(image []byte, kind uint16) []byte {
	const header, entry, texts = 32, 40, 64
	out := []byte{0x10, 0xff, 0x10, 0xad}
	out = le.AppendUint32(out, 1)
	out = le.AppendUint64(out, uint64(header+entry+texts+len(image)))
	out = le.AppendUint64(out, header)
	out = le.AppendUint64(out, entry)
	out = le.AppendUint16(out, kind) // 4 cubin, 5 fatbin
	out = le.AppendUint16(out, 1)    // CUDA
	out = le.AppendUint32(out, 0)
	out = le.AppendUint64(out, header+entry)
	out = le.AppendUint64(out, 1)
	out = le.AppendUint64(out, header+entry+texts)
	out = le.AppendUint64(out, uint64(len(image)))
	text := make([]byte, texts)
	copy(text[16:], "arch\x00sm_80\x00")
	return append(append(out, text...), image...)
}

// Objects made by clang's new driver keep device code in a section that is not allocated.
func TestOffloadingSection(t *testing.T) {
	cubin := mustRead(t, "cubin/new/sm_80/cache.cubin")
	for name, tt := range map[string]struct {
		image []byte
		kind  uint16
		n     int
	}{
		"cubin":  {cubin, 4, 1},
		"fatbin": {mustRead(t, "fatbin/stored.fatbin"), 5, len(mustOpen(t, "x", mustRead(t, "fatbin/stored.fatbin")).Entries())},
	} {
		data := makeELF(etRel,
			madeSection{".text", shfAlloc | shfExec, 0, []byte("code")},
			madeSection{offloadingSection, sectionExclude, 0, makeOffloading(tt.image, tt.kind)},
			madeSection{".comment", 0, 0, cubin})
		f := mustOpen(t, "a.o", data)
		if len(f.Entries()) != tt.n || f.Regions[0].Name != offloadingSection {
			t.Fatalf("%s: %d entries, want %d: %+v", name, len(f.Entries()), tt.n, f.Regions)
		}
		e := f.Entries()[0]
		old := entryBytes(t, e)
		if tt.kind == 4 && !bytes.Equal(old, cubin) {
			t.Errorf("%s: %d bytes, want the %d of the cubin", name, len(old), len(cubin))
		}
		out, _, err := f.Rewrite(map[*Entry][]byte{e: flip(old)}, RewriteOptions{})
		if err != nil {
			t.Fatal(name, err)
		}
		if b := out.Bytes(); len(b) != len(data) || bytes.Equal(b, data) {
			t.Errorf("%s: %d bytes of %d", name, len(b), len(data))
		}
	}
}

// The headers of clang's format are not rewritten, so nothing in it changes its size.
func TestOffloadingSectionKeepsItsSize(t *testing.T) {
	f := mustOpen(t, "a.o", makeELF(etRel, madeSection{offloadingSection, sectionExclude, 0, makeOffloading(mustRead(t, "fatbin/zstd.fatbin"), 5)}))
	_, _, err := f.Prune(func(e *Entry) bool { return false })
	if !errors.Is(err, ErrGrow) {
		t.Errorf("pruned: %v", err)
	}
}
