package patch

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/patch/edit"
	"github.com/cupatch/cupatch/patch/internal/patchtest"
)

// TestVerifyEveryByte patches a file of every kind, flips bytes of the result one at a
// time, and wants each to be found where it is. Without CUPATCH_LONG every so many bytes
// are flipped.
func TestVerifyEveryByte(t *testing.T) {
	flips := 150
	if os.Getenv("CUPATCH_LONG") != "" {
		flips = 1 << 30
	}
	read := func(name string) []byte {
		b, err := os.ReadFile(patchtest.Path("testdata/" + name))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for name, data := range map[string][]byte{
		"bare": read("cubin/new/sm_90/proof.cubin"), "old": read("cubin/old/sm_90/control.cubin"),
		"stored.fatbin": read("fatbin/stored.fatbin"), "lz4.fatbin": read("fatbin/lz4.fatbin"), "zstd.fatbin": read("fatbin/zstd.fatbin"),
		"concat.fatbin": read("fatbin/concat.fatbin"), "library": patchtest.Library(read("fatbin/stored.fatbin")),
		"packed library": patchtest.Library(read("fatbin/lz4.fatbin")),
	} {
		f, err := OpenBytes(name, data)
		if err != nil {
			t.Fatal(err)
		}
		plan := planText(t, f, "LDG!.EF => .EF")
		c, err := Rewrite(f.File, plan.Edits, elfx.RewriteOptions{})
		if err != nil {
			t.Logf("%s: not written: %v", name, err)
			continue
		}
		out, err := c.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		if list := verified(t, f.File, out, plan.Edits); len(list) > 0 {
			t.Fatalf("%s: %v", name, list)
		}
		if list := verified(t, f.File, out, nil); len(list) == 0 {
			t.Fatalf("%s: the edits are no difference", name)
		}
		for at := 0; at < len(out); at += 1 + len(out)/flips {
			bad := bytes.Clone(out)
			bad[at] ^= 1 << (at % 8)
			list := verified(t, f.File, bad, plan.Edits)
			if len(list) == 0 && !repacked(t, out, bad, at) {
				t.Errorf("%s: byte %#x flipped: no difference", name, at)
			}
			if provedAnyway(c, bad) && !repacked(t, out, bad, at) {
				t.Errorf("%s: byte %#x flipped: written", name, at)
			}
		}
	}
}

// provedAnyway reports whether a file passes for a content.
func provedAnyway(c *Content, bad []byte) bool {
	g, err := elfx.Open("bad", bad, nil)
	return err == nil && c.proof.prove(g) == nil
}

// TestEveryProof flips bytes of what entries hold in what is pruned, recompressed, restored
// and replaced: none of it would be written.
func TestEveryProof(t *testing.T) {
	for _, name := range []string{"stored", "lz4", "zstd", "concat"} {
		f, err := Open(patchtest.Path("testdata/fatbin/" + name + ".fatbin"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		first := f.Entries()[0]
		data, err := f.Entries()[1].Data()
		if err != nil {
			t.Fatal(err)
		}
		pruned, _, err1 := Prune(f.File, func(e *elfx.Entry) bool { return e != first })
		stored, err2 := Recompress(f.File, elfx.Stored, 0)
		packed, err3 := Recompress(f.File, elfx.LZ4, 1)
		replaced, _, err4 := Replace(f.File, f.Entries()[1], data, elfx.RewriteOptions{})
		plan := planText(t, f, "LDG!.EF => .EF")
		patched, err5 := Rewrite(f.File, plan.Edits, elfx.RewriteOptions{})
		if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
			t.Fatal(err)
		}
		now, err := elfx.Open(f.Name, patched.out.Bytes(), nil)
		if err != nil {
			t.Fatal(err)
		}
		back := Edits{}
		for n, list := range plan.Edits {
			back[n] = edit.Inverted(list)
		}
		restored, err := Restore(now, patched.Undo(), back)
		if err != nil {
			t.Fatal(err)
		}
		for what, c := range map[string]*Content{"pruned": pruned, "stored": stored, "packed": packed, "replaced": replaced, "restored": restored} {
			good, err := c.Bytes()
			if err != nil {
				t.Errorf("%s %s: %v", name, what, err)
				continue
			}
			g, err := elfx.Open(name, good, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range g.Entries() {
				if e.Parent != nil {
					continue
				}
				for at := e.PayloadOffset; at < e.PayloadOffset+e.StoredSize; at += 1 + e.StoredSize/20 {
					bad := bytes.Clone(good)
					bad[at] ^= 1 << (at % 8)
					if provedAnyway(c, bad) && !repacked(t, good, bad, int(at)) {
						t.Errorf("%s %s: byte %#x flipped: written", name, what, at)
					}
				}
			}
		}
	}
}

// verified returns the differences as text; a file that cannot be read is one.
func verified(t *testing.T, f *elfx.File, now []byte, edits Edits) []string {
	t.Helper()
	g, err := elfx.Open("now", now, nil)
	if err != nil {
		return []string{err.Error()}
	}
	list, err := Differences(f, g, edits)
	if err != nil {
		return []string{err.Error()}
	}
	var out []string
	for _, d := range list {
		out = append(out, d.String())
	}
	return out
}

// repacked reports whether a flipped byte makes another compressed form of the same
// content.
func repacked(t *testing.T, out, bad []byte, at int) bool {
	t.Helper()
	x, err := elfx.Open("out", out, nil)
	if err != nil {
		t.Fatal(err)
	}
	y, err := elfx.Open("bad", bad, nil)
	if err != nil {
		return false
	}
	for i, e := range x.Entries() {
		if e.Compression == elfx.Stored || int64(at) < e.PayloadOffset || int64(at) >= e.PayloadOffset+e.StoredSize {
			continue
		}
		p, err1 := e.Data()
		q, err2 := y.Entries()[i].Data()
		return err1 == nil && err2 == nil && bytes.Equal(p, q)
	}
	return false
}

// TestVerifyPlaces names what is flipped.
func TestVerifyPlaces(t *testing.T) {
	fatbin, err := os.ReadFile(patchtest.Path("testdata/fatbin/lz4.fatbin"))
	if err != nil {
		t.Fatal(err)
	}
	data := patchtest.Library(fatbin)
	f, err := elfx.Open("old", data, nil)
	if err != nil {
		t.Fatal(err)
	}
	e := f.Entries()[0]
	obfuscated := bytes.Clone(data)
	obfuscated[e.Offset+40+2] |= 1 // LTO IR that nobody can decode
	obfuscated[e.Offset] = 8
	for _, test := range []struct {
		what string
		data []byte
		at   int64
		want string
	}{
		{"the host's header", data, 6 * 8, "bytes 0x30 to 0x31 of the file, outside its entries"},
		{"the last byte", data, int64(len(data) - 1), fmt.Sprintf("bytes %#x to %#x of the file, outside its entries", len(data)-1, len(data))},
		{"an entry's header", data, e.Offset + 50, fmt.Sprintf("entry 1: bytes %#x to %#x of the file, in its header", e.Offset+50, e.Offset+51)},
		{"what cannot be decoded", obfuscated, e.PayloadOffset + 9, fmt.Sprintf("entry 1: bytes %#x to %#x of the file, in its stored form", e.PayloadOffset+9, e.PayloadOffset+10)},
	} {
		old, err := elfx.Open("old", test.data, nil)
		if err != nil {
			t.Fatal(err)
		}
		bad := bytes.Clone(test.data)
		bad[test.at] ^= 0x10
		if list := verified(t, old, bad, nil); len(list) != 1 || list[0] != test.want {
			t.Errorf("%s: %q, want %q", test.what, list, test.want)
		}
	}
}

// TestVerifyWrapping compares the same cubins in a larger file.
func TestVerifyWrapping(t *testing.T) {
	data, err := os.ReadFile(patchtest.Path("testdata/cubin/new/sm_90/proof.cubin"))
	if err != nil {
		t.Fatal(err)
	}
	f, err := elfx.Open("old", data, nil)
	if err != nil {
		t.Fatal(err)
	}
	fatbin, err := os.ReadFile(patchtest.Path("testdata/fatbin/zstd.fatbin"))
	if err != nil {
		t.Fatal(err)
	}
	g, err := elfx.Open("old", fatbin, nil)
	if err != nil {
		t.Fatal(err)
	}
	if list := verified(t, f, append(bytes.Clone(data), 0), nil); len(list) == 0 {
		t.Error("a byte more is no difference")
	}
	larger := append(bytes.Clone(fatbin), make([]byte, 8)...)
	if list := verified(t, g, larger, nil); len(list) != 1 || !strings.HasPrefix(list[0], "the same cubins in other wrapping: the file has ") {
		t.Errorf("%q", list)
	}
}
