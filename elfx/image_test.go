package elfx

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cupatch/cupatch/scripts/nv/oracletest"
)

// TestNewFatbinEqualsFatbinary compares with NVIDIA's tool on every cubin and PTX file of
// the test data, uncompressed, byte for byte.
func TestNewFatbinEqualsFatbinary(t *testing.T) {
	tool := oracletest.Tool(t, "fatbinary")
	var images []Image
	args := []string{"-64", "--compress-mode=none"}
	for _, pattern := range []string{"cubin/*/*/cache.cubin", "cubin/new/sm_*a/*.cubin", "cubin/new/*/calls_rel.cubin", "ptx/*.ptx"} {
		files, err := filepath.Glob(filepath.Join("..", "testdata", filepath.FromSlash(pattern)))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no files, %v", pattern, err)
		}
		for _, path := range files {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			kind, m := "elf", Image{Name: path, Data: data}
			if strings.HasSuffix(path, ".ptx") {
				kind = "ptx"
			}
			alone, err := NewFatbin([]Image{m}, Packing{})
			if err != nil {
				t.Fatal(err)
			}
			arch := strings.TrimPrefix(mustOpen(t, path, alone).Entries()[0].Arch(), "sm_")
			images = append(images, m)
			args = append(args, "--image3=kind="+kind+",sm="+arch+",file="+path)
		}
	}
	family := Image{Name: "f", Data: mustRead(t, "cubin/new/sm_100/cache.cubin"), Target: Target{100, "f"}}
	images = append(images, family)
	args = append(args, "--image3=kind=elf,sm=100f,file="+filepath.Join("..", "testdata", "cubin", "new", "sm_100", "cache.cubin"))
	out := filepath.Join(t.TempDir(), "out.fatbin")
	if msg, err := exec.Command(tool, append(args, "--create="+out)...).CombinedOutput(); err != nil {
		t.Fatalf("fatbinary: %v: %s", err, msg)
	}
	want, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	got, err := NewFatbin(images, Packing{})
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(got, want) {
		return
	}
	a, b := mustOpen(t, "ours", got).Entries(), mustOpen(t, "theirs", want).Entries()
	for i := range min(len(a), len(b)) {
		x, y := got[a[i].Offset:a[i].PayloadOffset+a[i].PayloadSize], want[b[i].Offset:b[i].PayloadOffset+b[i].PayloadSize]
		if !bytes.Equal(x, y) {
			t.Errorf("%s:\n%q\nwant\n%q", images[i].Name, x[:min(len(x), 200)], y[:min(len(y), 200)])
		}
	}
	t.Errorf("%d entries and %d bytes, want %d and %d", len(a), len(got), len(b), len(want))
}

// What is compressed gives the same images, and drivers find what they need in the headers.
func TestNewFatbinCompressed(t *testing.T) {
	images := []Image{
		{Name: "a", Data: mustRead(t, "cubin/new/sm_90/gemm.cubin")}, {Name: "b", Data: mustRead(t, "cubin/old/sm_80/cache.cubin")},
		{Name: "c", Data: mustRead(t, "ptx/cache.ptx")},
	}
	plain, err := NewFatbin(images, Packing{})
	if err != nil {
		t.Fatal(err)
	}
	old := mustOpen(t, "plain", plain).Entries()
	for _, how := range []Compression{Zstd, LZ4} {
		for _, cubins := range []bool{true, false} {
			b, err := NewFatbin(images, Packing{how, cubins})
			if err != nil {
				t.Fatal(err)
			}
			for i, e := range mustOpen(t, "packed", b).Entries() {
				if packed := e.Compression == how; packed != (cubins || e.Kind == KindPTX) {
					t.Errorf("%s, cubins %v: entry #%d is %s", how, cubins, e.Number, e.Compression)
				}
				if !bytes.Equal(bytes.TrimRight(entryBytes(t, e), "\x00"), bytes.TrimRight(entryBytes(t, old[i]), "\x00")) || e.Arch() != old[i].Arch() {
					t.Errorf("%s, cubins %v: entry #%d is another one", how, cubins, e.Number)
				}
			}
		}
	}
}

func TestNewFatbinRefuses(t *testing.T) {
	cubin := mustRead(t, "cubin/new/sm_80/cache.cubin")
	for want, m := range map[string]Image{
		"not for sm_90":  {Data: cubin, Target: Target{90, ""}},
		"neither":        {Data: []byte("text")},
		"truncated":      {Data: cubin[:200]},
		"neither a cubi": {Data: []byte(".version 7.4\n")},
	} {
		if _, err := NewFatbin([]Image{m}, Packing{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if _, err := NewFatbin([]Image{{Data: cubin[:200]}}, Packing{}); !errors.Is(err, ErrFormat) {
		t.Errorf("a damaged cubin: %v", err)
	}
}

// FuzzStripPTX: nothing but white space and comments goes, and stripping once is enough.
func FuzzStripPTX(f *testing.F) {
	for _, s := range []string{"a // b\n\tc  d /* e */ f", "\"//\" x", "/*", "//", "\"", " / * "} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		if out := stripPTX(src); len(out) > len(src) {
			t.Errorf("%q becomes %q", src, out)
		}
	})
}
