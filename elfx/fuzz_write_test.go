package elfx

import (
	"archive/zip"
	"bytes"
	"errors"
	"testing"
)

// fuzzWriteLimit bounds the inputs of the targets in this file, in bytes.
const fuzzWriteLimit = 1 << 16

// FuzzPrune checks files from which entries are removed: what is left is read again and is
// what was kept, and the way back leads to the old file.
func FuzzPrune(f *testing.F) {
	seeds(f, "fatbin/*.fatbin")
	f.Add(hostFile(f))
	f.Add(archiveFile(f))
	f.Add(makeProgram(f, byRela, true).data)
	f.Add(makeELF(etRel, madeSection{".nv_fatbin", shfAlloc, 0, mustRead(f, "fatbin/lz4.fatbin")}))
	f.Fuzz(func(t *testing.T, data []byte) {
		file := fuzzOpen(data)
		if file == nil {
			return
		}
		keep := func(e *Entry) bool { return e.Number%2 == 0 }
		out, _, err := file.Prune(keep)
		if err != nil {
			return
		}
		checkUndo(t, file, out)
		left, err := Open("pruned", out.Bytes(), &Options{MaxEntry: 1 << 18})
		if errors.Is(err, ErrNoCode) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := left.Damage(); err != nil {
			t.Errorf("what is left is damaged: %v", err)
		}
		sameEntries(t, left.Entries(), prunedEntries(file, keep))
	})
}

// prunedEntries returns what Prune leaves of a file.
func prunedEntries(f *File, keep func(*Entry) bool) (out []*Entry) {
	parts := map[*Entry]bool{}
	for _, e := range f.Entries() {
		if e.Parent != nil && keep(e) {
			parts[e.Parent] = true
		}
	}
	for _, e := range f.Entries() {
		top := e
		if e.Parent != nil {
			top = e.Parent
		}
		if parts[top] || top.Container.Kind == ContainerCubin || top.Kind != KindConcat && keep(top) {
			out = append(out, e)
		}
	}
	return out
}

// sameEntries compares the contents of entries that could be read before. Others can
// become readable: without a bomb before it, an entry is within the limits.
func sameEntries(t *testing.T, got, want []*Entry) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d entries, want %d", len(got), len(want))
	}
	for i := range want {
		a, erra := got[i].Data()
		b, errb := want[i].Data()
		if errb == nil && (erra != nil || !bytes.Equal(bytes.TrimRight(a, "\x00"), bytes.TrimRight(b, "\x00"))) {
			t.Errorf("entry %d: %d bytes, %v; before %d bytes, %v", i+1, len(a), erra, len(b), errb)
		}
	}
}

// fuzzOpen opens an input of the right size, or returns nil.
func fuzzOpen(data []byte) *File {
	if len(data) > fuzzWriteLimit {
		return nil
	}
	file, err := Open("fuzz", data, &Options{MaxEntry: 1 << 18})
	if err != nil {
		return nil
	}
	return file
}

// FuzzRecompress checks files whose entries are all compressed in another way: each has the
// same content after it.
func FuzzRecompress(f *testing.F) {
	seeds(f, "fatbin/*.fatbin")
	f.Add(archiveFile(f))
	f.Fuzz(func(t *testing.T, data []byte) {
		file := fuzzOpen(data)
		if file == nil {
			return
		}
		for _, how := range []Compression{Stored, LZ4, Zstd} {
			out, _, err := file.Recompress(how, 1)
			if err != nil {
				continue
			}
			checkUndo(t, file, out)
			now, err := Open("again", out.Bytes(), &Options{MaxEntry: 1 << 18})
			if err != nil {
				t.Fatal(err)
			}
			sameEntries(t, now.Entries(), file.Entries())
		}
	})
}

// FuzzWalkZip checks zip files: any bytes give members or errors, within the limits.
func FuzzWalkZip(f *testing.F) {
	var made bytes.Buffer
	z := zip.NewWriter(&made)
	for _, m := range []struct {
		name string
		data []byte
	}{{"a.fatbin", mustRead(f, "fatbin/lz4.fatbin")}, {"b/c.cubin", mustRead(f, "cubin/new/sm_80/cache.cubin")}, {"d", nil}} {
		w, err := z.Create(m.name)
		if err != nil {
			f.Fatal(err)
		}
		if _, err := w.Write(m.data); err != nil {
			f.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		f.Fatal(err)
	}
	f.Add(made.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > fuzzWriteLimit {
			return
		}
		err := WalkData("fuzz", data, &Options{MaxEntry: 1 << 18}, func(name string, file *File, err error) error {
			if (file == nil) == (err == nil) {
				t.Errorf("%s: file %v and error %v", name, file, err)
			}
			if file != nil {
				for _, e := range file.Entries() {
					_, _ = e.Data()
				}
			}
			return nil
		})
		_ = err // either is fine
	})
}
