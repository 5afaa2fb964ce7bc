package elfx

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand"
	"strings"
	"testing"
)

// noise returns the cubin with some of its code replaced by random bytes, which no
// compressor makes small.
func noise(t testing.TB, data []byte, words int, seed int64) []byte {
	t.Helper()
	rng := rand.New(rand.NewSource(seed))
	out := bytes.Clone(data)
	for _, k := range parse(t, data).Kernels() {
		for range words {
			at := k.Offset + 16*rng.Int63n(k.Size/16)
			rng.Read(out[at : at+16])
		}
	}
	return out
}

// rewrite changes entries and opens the result. Every other entry must be as before.
func rewrite(t testing.TB, f *File, changes map[*Entry][]byte) (*File, *RewriteReport) {
	t.Helper()
	out, rep, err := f.Rewrite(changes, RewriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var buf bytes.Buffer
	if n, err := out.WriteTo(&buf); err != nil || n != out.Size() || !bytes.Equal(buf.Bytes(), out.Bytes()) {
		t.Fatalf("WriteTo: %d bytes of %d, %v", n, out.Size(), err)
	}
	checkUndo(t, f, out)
	g := mustOpen(t, f.Name, buf.Bytes())
	if len(g.Entries()) != len(f.Entries()) {
		t.Fatalf("%d entries, %d before", len(g.Entries()), len(f.Entries()))
	}
	for i, e := range f.Entries() {
		if e.Kind == KindConcat {
			continue
		}
		want, ok := changes[e]
		if !ok {
			var err error
			if want, err = e.Data(); err != nil {
				t.Fatal(err)
			}
		}
		got, err := g.Entries()[i].Data()
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("entry #%d: %d bytes, want %d; %v", e.Number, len(got), len(want), err)
		}
	}
	for m := range g.All() {
		for _, r := range m.Regions {
			if a := r.Account(); a.Total() != r.Size || a.Damaged != 0 || r.Dedicated && a.Other != 0 {
				t.Errorf("section %q of %d bytes: %+v", r.Name, r.Size, a)
			}
		}
	}
	return g, rep
}

// checkUndo goes there and back by way of JSON.
func checkUndo(t testing.TB, f *File, out *Output) {
	t.Helper()
	var buf bytes.Buffer
	if err := f.Undo(out).Write(&buf); err != nil {
		t.Fatal(err)
	}
	size := buf.Len()
	u, err := ReadUndo(json.NewDecoder(&buf))
	if err != nil {
		t.Fatal(err)
	}
	now := out.Bytes()
	old, err := u.Apply(now)
	if err != nil || !bytes.Equal(old.Bytes(), f.Data()) {
		t.Fatalf("undone: not the %d bytes of the file; %v", f.Size, err)
	}
	if lost := int(f.Size-kept(out)) * 4 / 3; size > lost+100*len(u.Steps)+400 {
		t.Errorf("the way back takes %d bytes, %d are lost", size, lost)
	}
	now[len(now)/2] ^= 1
	if _, err := u.Apply(now); err == nil {
		t.Error("another file was accepted")
	}
}

// kept is the number of bytes of the file that the output has as well.
func kept(out *Output) (n int64) {
	for _, s := range out.kept() {
		n += s.size
	}
	return n
}

func entryBytes(t testing.TB, e *Entry) []byte {
	t.Helper()
	b, err := e.Data()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Stored entries change in place and nothing else does.
func TestRewriteStored(t *testing.T) {
	for _, data := range [][]byte{
		mustRead(t, "fatbin/stored.fatbin"), mustRead(t, "cubin/new/sm_80/gemm.cubin"), hostFile(t),
	} {
		f := mustOpen(t, "f", data)
		for _, e := range f.Entries() {
			if !e.Stored() || e.Kind != KindELF {
				continue
			}
			now := noise(t, entryBytes(t, e), 3, 1)
			g, rep := rewrite(t, f, map[*Entry][]byte{e: now})
			if rep.Changes[0].How != InPlace || rep.NewSize != rep.OldSize || len(rep.Why) != 0 {
				t.Errorf("#%d: %+v", e.Number, rep)
			}
			want := bytes.Clone(data)
			copy(want[e.FileOffset(0):], now)
			if !bytes.Equal(g.Data(), want) {
				t.Errorf("#%d: more changed than the entry", e.Number)
			}
		}
	}
}

// A change that still fits keeps the size of the file and the place of everything.
func TestRewriteRecompressed(t *testing.T) {
	for _, file := range []string{"lz4", "pair_lz4", "debug"} {
		f := mustOpen(t, file, mustRead(t, "fatbin/"+file+".fatbin"))
		e := f.Entries()[0]
		now := bytes.Clone(entryBytes(t, e))
		now[parse(t, now).Kernels()[0].Offset+5] ^= 1
		g, rep := rewrite(t, f, map[*Entry][]byte{e: now})
		if rep.Changes[0].How != Recompressed || rep.NewSize != rep.OldSize {
			t.Errorf("%s: %s, %d bytes instead of %d", file, rep.Changes[0].How, rep.NewSize, rep.OldSize)
		}
		end := e.PayloadOffset + e.PayloadSize
		if !bytes.Equal(g.Data()[:e.Offset], f.Data()[:e.Offset]) || !bytes.Equal(g.Data()[end:], f.Data()[end:]) {
			t.Errorf("%s: bytes outside the entry changed", file)
		}
		if x := g.Entries()[0]; x.StoredSize != rep.Changes[0].New || x.Size != int64(len(now)) {
			t.Errorf("%s: header says %d of %d bytes", file, x.StoredSize, x.Size)
		}
	}
}

// What does not fit makes a .fatbin grow; a grown one can grow again.
func TestRewriteGrowsFatbin(t *testing.T) {
	for _, file := range []string{"lz4", "zstd", "zstd_size", "concat", "relocatable"} {
		f := mustOpen(t, file, mustRead(t, "fatbin/"+file+".fatbin"))
		for round := range 2 {
			changes := map[*Entry][]byte{}
			for _, e := range f.Entries() {
				if e.Kind == KindELF {
					changes[e] = noise(t, entryBytes(t, e), 30, int64(round))
				}
			}
			_, _, err := f.Rewrite(changes, RewriteOptions{NoGrow: true})
			if !errors.Is(err, ErrGrow) || !strings.Contains(err.Error(), "its place has") {
				t.Errorf("%s: growth that is not allowed: %v", file, err)
			}
			g, rep := rewrite(t, f, changes)
			if rep.NewSize <= rep.OldSize || rep.Changes[0].How != Moved || len(rep.Why) == 0 {
				t.Errorf("%s: %+v", file, rep)
			}
			f = g
		}
	}
}

func TestRewriteConcatPart(t *testing.T) {
	f := mustOpen(t, "concat", mustRead(t, "fatbin/concat.fatbin"))
	e := f.Entries()[2]
	now := bytes.Clone(entryBytes(t, e))
	now[parse(t, now).Kernels()[0].Offset] ^= 1
	rewrite(t, f, map[*Entry][]byte{e: now})
	_, _, err := f.Rewrite(map[*Entry][]byte{e: now[:100]}, RewriteOptions{})
	if !errors.Is(err, ErrUnsupported) {
		t.Errorf("another size inside a concatenation: %v", err)
	}
}

// Objects and archives grow in place: what comes after the fatbin moves.
func TestRewriteObject(t *testing.T) {
	obj := makeELF(etRel, madeSection{".nv_fatbin", shfAlloc, 0, mustRead(t, "fatbin/lz4.fatbin")}, madeSection{".data", shfAlloc, 0, []byte("data")})
	for name, data := range map[string][]byte{"a.o": obj, "lib.a": archiveFile(t)} {
		f := mustOpen(t, name, data)
		e := f.Entries()[len(f.Entries())-4]
		small := bytes.Clone(entryBytes(t, e))
		small[parse(t, small).Kernels()[0].Offset+5] ^= 1
		rewrite(t, f, map[*Entry][]byte{e: small})
		g, rep := rewrite(t, f, map[*Entry][]byte{e: noise(t, small, 50, 1)})
		if rep.NewSize <= rep.OldSize || g.Damage() != nil {
			t.Errorf("%s: %d bytes, before %d; %v", name, rep.NewSize, rep.OldSize, g.Damage())
		}
		if name == "a.o" {
			if got := hostSections(t, g.Data())[".data"]; string(got) != "data" {
				t.Errorf("the data after the fatbin is %q", got)
			}
		}
	}
}

func TestRewriteForeignEntry(t *testing.T) {
	a, b := mustOpen(t, "a", mustRead(t, "fatbin/lz4.fatbin")), mustOpen(t, "b", mustRead(t, "fatbin/lz4.fatbin"))
	if _, _, err := a.Rewrite(map[*Entry][]byte{b.Entries()[0]: nil}, RewriteOptions{}); err == nil {
		t.Error("an entry of another file was accepted")
	}
}

func TestBuildFatbin(t *testing.T) {
	var chosen []*Entry
	var want [][]byte
	for _, data := range [][]byte{mustRead(t, "fatbin/lz4.fatbin"), mustRead(t, "fatbin/concat.fatbin"), mustRead(t, "cubin/new/sm_90a/tensor90a.cubin")} {
		f := mustOpen(t, "f", data)
		for _, e := range f.Entries() {
			if e.SM == 90 && e.Kind == KindELF {
				chosen = append(chosen, e)
				want = append(want, entryBytes(t, e))
			}
		}
	}
	out, err := BuildFatbin(chosen)
	if err != nil {
		t.Fatal(err)
	}
	g := mustOpen(t, "thin", out.Bytes())
	checkAccounts(t, g)
	if len(g.Entries()) != len(chosen) || len(g.Regions[0].Containers) != 3 {
		t.Fatalf("%d entries in %d containers, want %d in 3", len(g.Entries()), len(g.Regions[0].Containers), len(chosen))
	}
	for i, e := range g.Entries() {
		got := entryBytes(t, e)
		if !bytes.HasPrefix(got, want[i]) || !isZero(got[len(want[i]):]) || e.Arch() != chosen[i].Arch() {
			t.Errorf("#%d: %s, %d bytes; want %s, %d", e.Number, e.Arch(), len(got), chosen[i].Arch(), len(want[i]))
		}
	}
}

// addChanged keeps the blocks that are the same, and refers to nothing of the new data.
func TestAddChanged(t *testing.T) {
	const off = 100
	src := make([]byte, 20<<10)
	rand.New(rand.NewSource(1)).Read(src)
	old := src[off : off+10<<10]
	for _, tt := range []struct {
		size    int
		changed []int
		pieces  int
	}{
		{10 << 10, nil, 1}, {10 << 10, []int{5000}, 3}, {10 << 10, []int{0, 10<<10 - 1}, 3}, {4 << 10, nil, 1},
		{10 << 10, []int{5000, 5050, 5100}, 3}, {10 << 10, []int{5000, 6000}, 5},
		{10<<10 + 1, nil, 2}, {15 << 10, []int{4096}, 4}, {1, nil, 1}, {0, nil, 0},
	} {
		data := append(bytes.Clone(old), make([]byte, 5<<10)...)[:tt.size]
		for _, i := range tt.changed {
			data[i] ^= 1
		}
		want := bytes.Clone(data)
		out := &Output{}
		out.addChanged(src, off, off+10<<10, data)
		clear(data)
		if got := out.Bytes(); !bytes.Equal(got, want) || len(out.pieces) != tt.pieces {
			t.Errorf("size %d, changed %v: %d bytes in %d pieces, want %d in %d", tt.size, tt.changed, len(got), len(out.pieces), len(want), tt.pieces)
		}
	}
}
