package elfx

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cupatch/cupatch/scripts/nv/oracletest"
)

// reopened returns the file that an output makes, after the way back has been proved.
func reopened(t *testing.T, f *File, out *Output, err error) *File {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	checkUndo(t, f, out)
	return mustOpen(t, f.Name, out.Bytes())
}

// checkKept compares the entries of a pruned file with those of the old one that fit.
func checkKept(t *testing.T, name string, f, g *File, keep func(*Entry) bool) {
	t.Helper()
	var want []*Entry
	for _, e := range f.Entries() {
		if keep(e) && e.Kind != KindConcat {
			want = append(want, e)
		}
	}
	got := slices.DeleteFunc(slices.Clone(g.Entries()), func(e *Entry) bool { return e.Kind == KindConcat })
	if len(got) != len(want) {
		t.Fatalf("%s: %d entries, want %d", name, len(got), len(want))
	}
	for i := range want {
		// What is stored fills its place up with zeros.
		trim := func(e *Entry) []byte { return bytes.TrimRight(entryBytes(t, e), "\x00") }
		if !bytes.Equal(trim(got[i]), trim(want[i])) || got[i].Target() != want[i].Target() {
			t.Errorf("%s: entry %d is not %s of before", name, i+1, want[i].Target())
		}
	}
	if a, b := len(slices.Collect(f.containers())), len(slices.Collect(g.containers())); a != b {
		t.Errorf("%s: %d containers, before %d", name, b, a)
	}
}

func TestPrune(t *testing.T) {
	keep := func(e *Entry) bool { return e.SM == 80 && e.Kind == KindELF }
	obj := makeELF(etRel, madeSection{".nv_fatbin", shfAlloc, 0, mustRead(t, "fatbin/lz4.fatbin")}, madeSection{".data", shfAlloc, 0, []byte("data")})
	for name, data := range map[string][]byte{
		"stored.fatbin": mustRead(t, "fatbin/stored.fatbin"), "zstd.fatbin": mustRead(t, "fatbin/zstd.fatbin"),
		"a.o": obj, "lib.a": archiveFile(t),
	} {
		f := mustOpen(t, name, data)
		out, rep, err := f.Prune(keep)
		g := reopened(t, f, out, err)
		checkKept(t, name, f, g, keep)
		if err := g.Damage(); err != nil || out.Size() >= f.Size || rep.NewSize != out.Size() {
			t.Errorf("%s: %d bytes of %d, %v", name, out.Size(), f.Size, err)
		}
		if name == "a.o" {
			if got := hostSections(t, out.Bytes())[".data"]; string(got) != "data" {
				t.Errorf("the data after the fatbin is %q", got)
			}
		}
		for _, how := range []Compression{Zstd, LZ4, Stored} {
			out, _, err := f.Recompress(how, 3)
			h := reopened(t, f, out, err)
			checkKept(t, name, f, h, func(*Entry) bool { return true })
			for _, e := range h.Entries() {
				if e.Compression != how {
					t.Errorf("%s: entry #%d is %s, want %s", name, e.Number, e.Compression, how)
				}
			}
		}
	}
	if _, _, err := mustOpen(t, "x.cubin", mustRead(t, "cubin/new/sm_80/cache.cubin")).Prune(keep); err != nil {
		t.Errorf("a bare cubin stays: %v", err)
	}
}

// Pointers to fatbins follow when the fatbins before them shrink, and the pages that are
// free leave the file.
func TestPruneProgram(t *testing.T) {
	for _, how := range []pointing{byRela, byRelr, byFixed} {
		for _, spare := range []bool{true, false} {
			p := makeProgram(t, how, spare)
			f := mustOpen(t, "lib.so", p.data)
			keep := func(e *Entry) bool { return e.Number%2 == 0 }
			out, _, err := f.Prune(keep)
			g := reopened(t, f, out, err)
			checkKept(t, "program", f, g, keep)
			containers := slices.Collect(g.containers())
			for i, addr := range p.targets(t, g.Data()) {
				c := containers[i]
				if want := c.Region.Addr + uint64(c.Offset-c.Region.Offset); addr != want {
					t.Errorf("way %d: wrapper %d points to 0x%x, the container is at 0x%x", how, i, addr, want)
				}
				if c.Size >= 64 {
					checkMapped(t, g.Data(), addr, c.Offset)
				}
			}
			checkSymbol(t, g, containers[1])
		}
	}
}

// Programs and libraries that nvcc built run after pruning and compression in another way,
// and what is linked of pruned objects and archives too.
func TestPruneHost(t *testing.T) {
	if testing.Short() {
		t.Skip("builds programs with nvcc")
	}
	tc := oracletest.NewToolchain(t)
	dir := t.TempDir()
	loader := filepath.Join(dir, "load")
	run(t, "gcc", "testdata/host/load.c", "-o", loader, "-ldl")
	keep := func(e *Entry) bool { return e.SM == 90 }
	change := func(path string, how func(f *File) (*Output, *RewriteReport, error)) *File {
		f := mustOpen(t, path, readPath(t, path))
		out, _, err := how(f)
		g := reopened(t, f, out, err)
		if err := os.WriteFile(path, g.Data(), 0o755); err != nil {
			t.Fatal(err)
		}
		checkExtracted(t, g, path)
		return g
	}
	prune := func(f *File) (*Output, *RewriteReport, error) { return f.Prune(keep) }
	main := []string{"testdata/host/main.cpp", "-Xlinker", "--wrap=__cudaRegisterFatBinary", "-cudart", "shared"}
	path := func(name string) string { return filepath.Join(dir, name) }
	kernels, more := "testdata/host/kernels.cu", "testdata/host/more.cu"
	for _, obj := range []string{kernels, more} {
		tc.Build(t, path(strings.TrimSuffix(filepath.Base(obj), ".cu")+".o"), "-c", obj)
	}
	run(t, "ar", "rcs", path("lib.a"), path("kernels.o"), path("more.o"))
	// An object, then an archive with its index of symbols, then what is linked of them.
	change(path("kernels.o"), prune)
	tc.Build(t, path("of_objects"), append([]string{path("kernels.o"), path("more.o")}, main...)...)
	change(path("lib.a"), prune)
	tc.Build(t, path("of_archive"), append([]string{"-Xlinker", "--whole-archive", path("lib.a"), "-Xlinker", "--no-whole-archive"}, main...)...)
	for _, name := range []string{"of_objects", "of_archive"} {
		checkRegistered(t, mustOpen(t, name, readPath(t, path(name))), run(t, path(name)))
	}
	tc.Build(t, path("program"), append([]string{kernels, more}, main...)...)
	tc.Build(t, path("lib.so"), kernels, more, "-shared", "-Xcompiler", "-fPIC", "-cudart", "shared")
	for _, how := range []Compression{Stored, Zstd, LZ4} {
		recompress := func(f *File) (*Output, *RewriteReport, error) { return f.Recompress(how, 0) }
		checkRegistered(t, change(path("program"), recompress), run(t, path("program")))
		change(path("lib.so"), recompress)
		if out := run(t, loader, path("lib.so")); !strings.Contains(out, "launched") {
			t.Errorf("dlopen: %s", out)
		}
	}
	checkRegistered(t, change(path("program"), prune), run(t, path("program")))
	change(path("lib.so"), prune)
	if out := run(t, loader, path("lib.so")); !strings.Contains(out, "launched") {
		t.Errorf("dlopen: %s", out)
	}
}

func readPath(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
