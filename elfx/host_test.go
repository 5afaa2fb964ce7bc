package elfx

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"hash/fnv"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cupatch/cupatch/scripts/nv/oracletest"
)

func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", name, err, out)
	}
	return string(out)
}

// lint returns what eu-elflint says, or "" where it is not installed.
func lint(t *testing.T, path string) string {
	if _, err := exec.LookPath("eu-elflint"); err != nil {
		return ""
	}
	out, _ := exec.Command("eu-elflint", "--gnu-ld", path).CombinedOutput()
	return regexp.MustCompile(`header entry \d+`).ReplaceAllString(string(out), "header entry")
}

// TestGrowHost grows the fatbins of programs and libraries, twice, and sees that they
// start, that they find their fatbins, that eu-elflint has no new complaint, and that
// cuobjdump extracts what was put in.
func TestGrowHost(t *testing.T) {
	if testing.Short() {
		t.Skip("builds programs with nvcc")
	}
	tc := oracletest.NewToolchain(t)
	loader := filepath.Join(t.TempDir(), "load")
	run(t, "gcc", "testdata/host/load.c", "-o", loader, "-ldl")
	size := []string{"-Xfatbin", "-compress-all", "--compress-mode=size"}
	program := []string{"testdata/host/main.cpp", "-Xlinker", "--wrap=__cudaRegisterFatBinary"}
	library := []string{"-shared", "-Xcompiler", "-fPIC"}
	relr := []string{"-Xlinker", "-z,pack-relative-relocs"}
	for _, tt := range []struct {
		name string
		args [][]string
	}{
		{"program", [][]string{size, program, {"-cudart", "static"}}},
		{"program at a fixed address", [][]string{size, program, {"-cudart", "static", "-Xcompiler", "-no-pie", "-Xlinker", "-no-pie"}}},
		{"program of linked units", [][]string{size, program, {"-cudart", "shared", "-rdc=true", "-DRDC"}}},
		{"program with RELR", [][]string{size, program, relr, {"-cudart", "shared", "-Xcompiler", "-fPIE", "-Xlinker", "-pie"}}},
		{"library of linked units", [][]string{size, library, {"-cudart", "shared", "-rdc=true", "-DRDC"}}},
		{"library with RELR", [][]string{size, library, relr, {"-cudart", "shared"}}},
		{"library without a spare header", [][]string{size, library, {"-cudart", "shared"}}},
		{"program without a spare header", [][]string{size, program, {"-cudart", "shared"}}},
		{"library with LZ4", [][]string{{"-Xfatbin", "-compress-all", "--compress-mode=speed"}, library, {"-cudart", "shared"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "host")
			tc.Build(t, path, append([]string{"testdata/host/kernels.cu", "testdata/host/more.cu"}, slices.Concat(tt.args...)...)...)
			h := &hostRun{loader: loader, path: path, program: strings.HasPrefix(tt.name, "program")}
			if strings.Contains(tt.name, "without a spare") {
				hideNotes(t, path)
			}
			h.grow(t)
		})
	}
}

// A hostRun is a built program or library whose fatbins grow.
type hostRun struct {
	loader, path string
	program      bool
	before       string // what eu-elflint says of the original
}

// grow lets the file grow twice and checks the result each time, also stripped.
func (h *hostRun) grow(t *testing.T) {
	h.before = lint(t, h.path)
	data, err := os.ReadFile(h.path)
	if err != nil {
		t.Fatal(err)
	}
	f := mustOpen(t, h.path, data)
	for round := range 2 {
		f = growOnce(t, f, int64(round))
		next := fmt.Sprintf("%s.%d", h.path, round)
		if err := os.WriteFile(next, f.Data(), 0o755); err != nil {
			t.Fatal(err)
		}
		h.check(t, f, next)
		if le.Uint64(f.Data()[32:]) == elfHeaderSize { // strip does not know of a moved program header table
			run(t, "strip", "-o", next+".stripped", next)
			h.check(t, f, next+".stripped")
		}
	}
}

// check sees that the file at path is sound and has the fatbins of f.
func (h *hostRun) check(t *testing.T, f *File, path string) {
	t.Helper()
	if after := lint(t, path); after != h.before {
		t.Errorf("eu-elflint of %s: %s, before: %s", filepath.Base(path), after, h.before)
	}
	if h.program {
		checkRegistered(t, f, run(t, path))
	} else if out := run(t, h.loader, path); !strings.Contains(out, "launched") {
		t.Errorf("dlopen: %s", out)
	}
	checkExtracted(t, f, path)
}

// hideNotes gives the note segments a type that nothing looks at.
func hideNotes(t *testing.T, path string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	h, err := parseELFHeader(data)
	if err != nil {
		t.Fatal(err)
	}
	for i := range uint64(h.Phnum) {
		b := data[h.Phoff+i*progHeaderSize:]
		if typ := le.Uint32(b); typ == ptNote || typ == ptGNUProperty {
			le.PutUint32(b, 0x6ffffffe)
		}
	}
	if err := os.WriteFile(path, data, 0o755); err != nil {
		t.Fatal(err)
	}
}

// growOnce fills the cubins with noise, so that nothing fits any more. Host code and
// data stay: all sections but the fatbins are compared.
func growOnce(t *testing.T, f *File, seed int64) *File {
	t.Helper()
	changes := map[*Entry][]byte{}
	for _, e := range f.Entries() {
		if e.Kind == KindELF {
			changes[e] = noise(t, entryBytes(t, e), 40, seed)
		}
	}
	g, rep := rewrite(t, f, changes)
	if rep.NewSize <= rep.OldSize {
		t.Fatalf("the file did not grow: %+v", rep)
	}
	old, now := hostSections(t, f.Data()), hostSections(t, g.Data())
	for name, b := range old {
		switch {
		case fatbinSections[name], name == ".symtab", name == ".dynsym", strings.HasPrefix(name, ".rela"), name == wrapperSection:
			if len(b) != len(now[name]) && !fatbinSections[name] {
				t.Errorf("section %s changed its size", name)
			}
		case !bytes.Equal(b, now[name]):
			t.Errorf("section %s changed", name)
		}
	}
	return g
}

func hostSections(t *testing.T, data []byte) map[string][]byte {
	t.Helper()
	h, err := parseELFHeader(data)
	if err != nil {
		t.Fatal(err)
	}
	secs, err := parseSections(data, h)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]byte{}
	for _, s := range secs {
		if s.HasData() {
			out[s.Name] = data[s.Offset:s.end()]
		}
	}
	return out
}

// checkRegistered compares what the program saw with the containers of the file.
func checkRegistered(t *testing.T, f *File, out string) {
	t.Helper()
	if !strings.Contains(out, "launched") {
		t.Errorf("the program says %s", out)
	}
	want := map[string]bool{}
	for c := range f.containers() {
		if c.Region.Name != "__nv_relfatbin" {
			h := fnv.New64a()
			h.Write(f.Data()[c.Offset : c.Offset+c.Size])
			want[fmt.Sprintf("fatbin %d %016x", c.Size, h.Sum64())] = true
		}
	}
	n := 0
	for _, line := range strings.Split(out, "\n") {
		if strings.HasPrefix(line, "fatbin ") {
			n++
			if !want[line] {
				t.Errorf("the program found %q, which is not in the file", line)
			}
		}
	}
	if n == 0 {
		t.Errorf("the program found no fatbin: %s", out)
	}
}

// checkExtracted compares every cubin with what cuobjdump extracts.
func checkExtracted(t *testing.T, f *File, path string) {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command(oracletest.Tool(t, "cuobjdump"), "-all", "-xelf", "all", path)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("cuobjdump: %v: %s", err, out)
	}
	want := map[[32]byte]int{}
	files, _ := filepath.Glob(filepath.Join(dir, "*.cubin"))
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		want[sha256.Sum256(b)]++
	}
	for _, e := range f.Entries() {
		if e.Kind == KindELF {
			want[sha256.Sum256(entryBytes(t, e))]--
		}
	}
	for _, n := range want {
		if n != 0 {
			t.Fatalf("cuobjdump and this package differ: %d files, %d entries", len(files), len(f.Entries()))
		}
	}
}
