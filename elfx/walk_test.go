package elfx

import (
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// makeZip returns a zip file with these members.
func makeZip(t *testing.T, members map[string][]byte, order ...string) []byte {
	t.Helper()
	var buf bytes.Buffer
	z := zip.NewWriter(&buf)
	for _, name := range order {
		w, err := z.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(members[name]); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// walked lists what Walk visits: the name below dir, the kind and the entries.
func walked(t *testing.T, dir, path string, opt *Options) ([]string, error) {
	t.Helper()
	var got []string
	err := Walk(path, opt, func(name string, f *File, err error) error {
		rel := strings.TrimPrefix(strings.TrimPrefix(filepath.ToSlash(name), filepath.ToSlash(dir)), "/")
		if err != nil {
			got = append(got, rel+": error")
			return nil
		}
		got = append(got, rel+": "+f.Kind.String())
		for _, e := range f.Entries() {
			if _, err := e.Data(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		return nil
	})
	return got, err
}

func TestWalk(t *testing.T) {
	dir := t.TempDir()
	fat := mustRead(t, "fatbin/zstd.fatbin")
	inner := makeZip(t, map[string][]byte{"deep.fatbin": fat, "more.fatbin": fat}, "deep.fatbin", "more.fatbin")
	wheel := makeZip(t, map[string][]byte{
		"pkg/lib.so": hostFile(t), "pkg/__init__.py": []byte("import this"), "pkg/inner.zip": inner, "../escape.fatbin": fat,
	}, "pkg/lib.so", "pkg/__init__.py", "pkg/inner.zip", "../escape.fatbin")
	for name, data := range map[string][]byte{
		"a.cubin": mustRead(t, "cubin/new/sm_80/cache.cubin"), "b.txt": []byte("text"), "c/d.fatbin": fat,
		"e.whl": wheel, "f.so": makeELF(etDyn), "g.so": hostFile(t)[:4000],
	} {
		p := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{
		"a.cubin: cubin", "c/d.fatbin: fatbin", "e.whl!pkg/lib.so: ELF shared object", "e.whl!pkg/inner.zip!deep.fatbin: fatbin",
		"e.whl!pkg/inner.zip!more.fatbin: fatbin", "e.whl!../escape.fatbin: fatbin", "g.so: ELF shared object",
	}
	got, err := walked(t, dir, dir, nil)
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("visited (-want +got):\n%s%v", d, err)
	}
	for _, one := range []string{"e.whl!pkg/lib.so: ELF shared object", "e.whl!pkg/inner.zip!deep.fatbin: fatbin", "e.whl!../escape.fatbin: fatbin"} {
		path, _, _ := strings.Cut(one, ": ")
		got, err = walked(t, dir, dir+"/"+path, nil)
		if d := cmp.Diff([]string{one}, got); d != "" || err != nil {
			t.Errorf("one member (-want +got):\n%s%v", d, err)
		}
	}
	if got, err = walked(t, dir, filepath.Join(dir, "e.whl!pkg/inner.zip"), nil); len(got) != 2 || err != nil {
		t.Errorf("a zip file in a zip file: %v, %v", got, err)
	}
	if err := os.Mkdir(filepath.Join(dir, "none"), 0o755); err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{
		"e.whl!nothing": "no member", "e.whl!pkg/inner.zip!x": "no member", "e.whl!pkg/lib.so!x": "no member", "b.txt": "no GPU code",
		"missing": "no such file", "missing!x": "no such file", "a.cubin!x": "not a zip file", "none": "no GPU code",
	} {
		if _, err := walked(t, dir, filepath.Join(dir, path), nil); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: error %v, want one with %q", path, err, text)
		}
	}
}

// WalkData reads what Walk reads, from memory.
func TestWalkData(t *testing.T) {
	fat := mustRead(t, "fatbin/zstd.fatbin")
	for want, data := range map[string][]byte{
		"- fatbin": fat, "-!a.fatbin fatbin": makeZip(t, map[string][]byte{"a.fatbin": fat}, "a.fatbin"),
	} {
		var got []string
		err := WalkData("-", data, nil, func(name string, f *File, err error) error {
			got = append(got, name+" "+f.Kind.String())
			return err
		})
		if len(got) != 1 || got[0] != want || err != nil {
			t.Errorf("visited %q, %v; want %q", got, err, want)
		}
	}
	for _, data := range [][]byte{nil, []byte("text"), makeZip(t, map[string][]byte{"a": nil}, "a")} {
		if err := WalkData("-", data, nil, nil); !errors.Is(err, ErrNoCode) {
			t.Errorf("%.10q: error %v, want %v", data, err, ErrNoCode)
		}
	}
}

// OpenFile is for files that can be written, and says so of a zip file.
func TestOpenZip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.whl")
	fat := mustRead(t, "fatbin/zstd.fatbin")
	if err := os.WriteFile(path, makeZip(t, map[string][]byte{"a.fatbin": fat}, "a.fatbin"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, path + "!a.fatbin"} {
		if f, err := OpenFile(name, nil); f != nil || !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "read only") {
			t.Errorf("%s: error %v", filepath.Base(name), err)
		}
	}
}

// A member that is larger than the limit is an error of its own.
func TestWalkLimit(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x.zip")
	bomb := append(bytes.Clone(fatbinMagicBytes), make([]byte, 1<<20)...)
	fat := mustRead(t, "fatbin/ptx.fatbin")
	data := makeZip(t, map[string][]byte{"bomb.fatbin": bomb, "good.fatbin": fat}, "bomb.fatbin", "good.fatbin")
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	var errs []error
	n := 0
	err := Walk(path, &Options{MaxEntry: 100 << 10}, func(_ string, f *File, err error) error {
		if err != nil {
			errs = append(errs, err)
			return nil
		}
		if n++; f.ReadOnly() == "" {
			t.Error("a member of a zip file can be written")
		}
		if f.Entries()[0].FileOffset(0) != -1 {
			t.Error("a member of a zip file has offsets in the file")
		}
		return nil
	})
	if err != nil || n != 1 || len(errs) != 1 || !errors.Is(errs[0], ErrTooLarge) {
		t.Errorf("%d files, errors %v, %v", n, errs, err)
	}
}

// OpenFile maps the file: the mapping outlives a rename over it.
func TestOpenFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.fatbin")
	data := mustRead(t, "fatbin/stored.fatbin")
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := OpenFile(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	other := path + ".new"
	if err := os.WriteFile(other, []byte("other"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(other, path); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(f.Data(), data) {
		t.Error("the data changed with the file")
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Errorf("closed again: %v", err)
	}
}

// TestShared decodes the entries of zip members and plain files into memory of the
// caller's: it is used just where Shared says that the bytes are not the file's.
func TestShared(t *testing.T) {
	paths, _ := filepath.Glob("../testdata/fatbin/*.fatbin")
	seen := map[bool]int{}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, in := range [][]byte{data, makeZip(t, map[string][]byte{"x.fatbin": data}, "x.fatbin")} {
			err = WalkData("x", in, nil, func(name string, f *File, err error) error {
				if err != nil {
					return err
				}
				for _, e := range f.Entries() {
					buf := make([]byte, 0, e.Size+1)
					d, err := e.DataIn(buf)
					if err != nil || len(d) == 0 {
						continue
					}
					if mine := &d[0] == &buf[:1][0]; mine == e.Shared() {
						t.Errorf("%s: entry #%d: in the caller's memory %v, Shared %v", name, e.Number, mine, e.Shared())
					}
					seen[e.Shared()]++
				}
				return nil
			})
			if err != nil {
				t.Error(path, err)
			}
		}
	}
	if seen[true] < 10 || seen[false] < 10 {
		t.Errorf("too few entries: %v", seen)
	}
}

// TestPlace names an entry in errors, also one without an architecture.
func TestPlace(t *testing.T) {
	f := &File{Name: "x"}
	for want, e := range map[string]*Entry{
		"x: entry #3 (unknown)":         {File: f, Number: 3},
		"x: entry #4 (ptx compute_90a)": {File: f, Number: 4, Kind: KindPTX, SM: 90, Suffix: "a"},
	} {
		if got := e.place(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// zeros goes on for ever.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// TestReadStream bounds what is read of something that has no end.
func TestReadStream(t *testing.T) {
	if _, err := ReadStream(zeros{}, 1000); !errors.Is(err, ErrTooLarge) {
		t.Error(err)
	}
	data, err := ReadStream(io.LimitReader(zeros{}, 1000), 1000)
	if err != nil || len(data) != 1000 {
		t.Error(len(data), err)
	}
	if _, err := OpenFile(os.DevNull, nil); err == nil {
		t.Error("a device was opened")
	}
}
