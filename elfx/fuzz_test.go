package elfx

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// seeds adds the smaller files of the test data to a fuzz corpus.
func seeds(f *testing.F, patterns ...string) {
	f.Helper()
	for _, p := range patterns {
		names, err := filepath.Glob(filepath.Join("..", "testdata", p))
		if err != nil || len(names) == 0 {
			f.Fatalf("no test data fits %s: %v", p, err)
		}
		for _, n := range names {
			data, err := os.ReadFile(n)
			if err != nil {
				f.Fatal(err)
			}
			if len(data) < 16<<10 {
				f.Add(data)
			}
		}
	}
}

// allocated runs fn and returns the bytes that it allocated.
func allocated(fn func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	fn()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

// FuzzParseCubin checks that any bytes give a cubin whose parts lie inside them, or an
// error and no cubin, and that the memory used is a small multiple of the input.
func FuzzParseCubin(f *testing.F) {
	seeds(f, "cubin/new/sm_80/*.cubin", "cubin/old/sm_90/*.cubin", "cubin/new/sm_120/cache80.cubin")
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<16 {
			return
		}
		before := bytes.Clone(data)
		n := allocated(func() { useCubin(t, data) })
		if limit := int64(100*len(data) + 1<<20); n > limit {
			t.Errorf("%d bytes allocated for an input of %d", n, len(data))
		}
		if !bytes.Equal(before, data) {
			t.Error("the input was changed")
		}
	})
}

func useCubin(t *testing.T, data []byte) {
	c, err := ParseCubin(data)
	if err != nil {
		if c != nil {
			t.Error("a cubin beside an error")
		}
		return
	}
	for _, a := range c.Info() {
		_, _ = a.Name(), a.String()
	}
	end := int64(len(data))
	for i := range c.Kernels() {
		k := &c.Kernels()[i]
		if k.Size > 0 && k.Offset < elfHeaderSize || k.Offset+k.Size > end || int64(len(k.Data())) != k.Size {
			t.Errorf("kernel %q at 0x%x, size 0x%x in 0x%x bytes", k.Name, k.Offset, k.Size, end)
		}
		k.Demangled()
		k.Functions()
		k.ParamList()
		k.InfoOffsets()
		for _, r := range k.Relocs() {
			_ = r.Symbol
		}
	}
}

// FuzzOpen checks containers: every region is accounted for to the byte, entries lie
// inside the file, and decoding is bounded by Options.MaxEntry.
func FuzzOpen(f *testing.F) {
	seeds(f, "fatbin/*.fatbin", "cubin/new/sm_80/cache.cubin")
	f.Add(hostFile(f))
	f.Add(archiveFile(f))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<16 {
			return
		}
		n := allocated(func() { useFile(t, data) })
		// Each entry may decompress to MaxEntry; reading each twice is what useFile does.
		if limit := int64(200*len(data)+4<<20) + 2*int64(len(data)/entryHeaderSize+1)<<20; n > limit {
			t.Errorf("%d bytes allocated for an input of %d", n, len(data))
		}
	})
}

func useFile(t *testing.T, data []byte) {
	file, err := Open("fuzz", data, &Options{MaxEntry: 1 << 18})
	if err != nil {
		if file != nil {
			t.Error("a file beside an error")
		}
		return
	}
	for m := range file.All() {
		for _, r := range m.Regions {
			a := r.Account()
			if a.Total() != r.Size || a.Headers < 0 || a.Payload < 0 || a.Padding < 0 || a.Damaged < 0 || a.Other < 0 {
				t.Errorf("region %q of %d bytes: %+v adds up to %d", r.Name, r.Size, a, a.Total())
			}
			for _, c := range r.Containers {
				c.Choose(89)
			}
		}
	}
	changes := make(map[*Entry][]byte)
	for _, e := range file.Entries() {
		d, err := e.Data()
		if err != nil {
			continue
		}
		if int64(len(d)) != e.Size || e.Size > 1<<18 && e.Compression != Stored {
			t.Errorf("entry #%d: %d bytes, declared %d", e.Number, len(d), e.Size)
		}
		if off := e.FileOffset(0); off >= 0 && (off+e.Size > int64(len(data)) || !bytes.Equal(data[off:off+e.Size], d)) {
			t.Errorf("entry #%d is not at 0x%x", e.Number, off)
		}
		if e.Kind == KindELF {
			if c, err := e.Cubin(); err == nil {
				_ = c.Kernels()
			}
		}
		if len(changes) < 2 && e.Stored() && e.Size > 0 {
			changes[e] = flip(d)
		}
	}
	useRewrite(t, file, data, changes)
}

func flip(d []byte) []byte {
	d = bytes.Clone(d)
	d[len(d)/2] ^= 0x55
	return d
}

// useRewrite changes stored entries in place: exactly those bytes may differ.
func useRewrite(t *testing.T, file *File, data []byte, changes map[*Entry][]byte) {
	if len(changes) == 0 {
		return
	}
	out, _, err := file.Rewrite(changes, RewriteOptions{NoGrow: true})
	if err != nil {
		return
	}
	b := out.Bytes()
	if len(b) != len(data) {
		t.Fatalf("%d bytes written, %d read", len(b), len(data))
	}
	differ := 0
	for i := range b {
		if b[i] != data[i] {
			differ++
		}
	}
	if differ > len(changes) {
		t.Errorf("%d bytes differ, %d were changed", differ, len(changes))
	}
}
