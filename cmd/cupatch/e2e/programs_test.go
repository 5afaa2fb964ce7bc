package e2e

import (
	"fmt"
	"hash/fnv"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/scripts/nv/oracletest"
)

const hostSources = "../../../elfx/testdata/host/"

// TestPrograms patches programs and libraries of our own, built with each way of
// compressing and of linking, and starts them: they find their fatbins as patched.
func TestPrograms(t *testing.T) {
	long(t)
	tc := oracletest.NewToolchain(t)
	loader := filepath.Join(t.TempDir(), "load")
	start(t, "gcc", hostSources+"load.c", "-o", loader, "-ldl")
	packing := map[string][]string{"default": nil, "all": {"-Xfatbin", "-compress-all"}}
	for _, mode := range []string{"speed", "balance", "size"} {
		packing["all for "+mode] = []string{"-Xfatbin", "-compress-all", "--compress-mode=" + mode}
	}
	program := []string{hostSources + "main.cpp", "-Xlinker", "--wrap=__cudaRegisterFatBinary"}
	for _, kind := range []struct {
		name    string
		program bool
		args    []string
	}{
		{"program, static runtime", true, append(slices.Clone(program), "-cudart", "static")},
		{"program of linked units", true, append(slices.Clone(program), "-cudart", "shared", "-rdc=true", "-DRDC")},
		{"library, static runtime", false, []string{"-shared", "-Xcompiler", "-fPIC", "-cudart", "static"}},
		{"library of linked units", false, []string{"-shared", "-Xcompiler", "-fPIC", "-cudart", "shared", "-rdc=true", "-DRDC"}},
	} {
		for how, args := range packing {
			t.Run(kind.name+", compressed: "+how, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "host")
				tc.Build(t, path, slices.Concat([]string{hostSources + "kernels.cu", hostSources + "more.cu"}, args, kind.args)...)
				var run []string
				if !kind.program {
					run = []string{loader}
				}
				patchAndStart(t, append(run, path), path)
			})
		}
	}
}

// patchAndStart patches a program or library in place, twice, and takes both patches
// back. It must start each time.
func patchAndStart(t *testing.T, run []string, path string) {
	t.Helper()
	was := filepath.Join(filepath.Dir(path), "was")
	start(t, "cp", path, was)
	checkStarted(t, run, path)
	for i, rule := range []string{"LDG => .EF .LTC256B", "STG => .EL"} {
		report := fmt.Sprintf("%s.%d", path, i)
		cupatch(t, "patch", "-q", "-i", "-e", rule, "--no-warn", "all", "--report", report, "--keep-original", path)
		checkStarted(t, run, path)
		checkLint(t, was, path)
		p := &patched{old: open(t, path), now: open(t, path)}
		p.checkExtracted(t)
	}
	for i := 1; i >= 0; i-- {
		cupatch(t, "revert", "-q", "-i", fmt.Sprintf("%s.%d", path, i), path)
		checkStarted(t, run, path)
	}
	same(t, was, path)
}

func start(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// checkStarted starts a program, or loads a library. A program tells the digests of the
// fatbins that it registers: they are the containers of the file.
func checkStarted(t *testing.T, run []string, path string) {
	t.Helper()
	out := start(t, run[0], run[1:]...)
	if !strings.Contains(out, "launched") {
		t.Errorf("%s says %s", path, out)
	}
	f, err := elfx.OpenFile(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	there := map[string]bool{}
	for m := range f.All() {
		for _, r := range m.Regions {
			for _, c := range r.Containers {
				h := fnv.New64a()
				h.Write(f.Data()[c.Offset : c.Offset+c.Size])
				there[fmt.Sprintf("fatbin %d %016x", c.Size, h.Sum64())] = true
			}
		}
	}
	found := 0
	for line := range strings.Lines(out) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "fatbin ") {
			found++
			if !there[line] {
				t.Errorf("the program found %q, which is not in the file", line)
			}
		}
	}
	if found == 0 && len(run) == 1 {
		t.Errorf("the program found no fatbin: %s", out)
	}
}

// TestArchive patches an archive of objects before they are linked, device code and all.
func TestArchive(t *testing.T) {
	long(t)
	tc := oracletest.NewToolchain(t)
	for _, rdc := range []string{"-rdc=false", "-rdc=true"} {
		t.Run(rdc, func(t *testing.T) {
			dir := t.TempDir()
			name := func(s string) string { return filepath.Join(dir, s) }
			options := []string{rdc}
			if rdc == "-rdc=true" {
				options = append(options, "-DRDC")
			}
			packed := append(slices.Clone(options), "-Xfatbin", "-compress-all", "--compress-mode=speed")
			for _, unit := range []string{"kernels", "more"} {
				tc.Build(t, name(unit+".o"), append(packed, "-c", hostSources+unit+".cu")...)
			}
			start(t, "ar", "rcs", name("lib.a"), name("kernels.o"), name("more.o"))
			cupatch(t, "patch", "-q", "-i", "-e", "LDG => .EF .LTC256B", "--no-warn", "all", name("lib.a"))
			tc.Build(t, name("program"), append(options, hostSources+"main.cpp", name("lib.a"), "-Xlinker", "--wrap=__cudaRegisterFatBinary")...)
			checkStarted(t, []string{name("program")}, name("program"))
			loads := cupatch(t, "dis", "-q", "-m", "LDG", name("program"))
			if n, all := strings.Count(loads, ".EF.LTC256B"), strings.Count(loads, " LDG."); n == 0 || n != all {
				t.Errorf("%d of %d loads are patched in the linked program", n, all)
			}
		})
	}
}
