package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cupatch/cupatch/patch/gpu"
	"github.com/cupatch/cupatch/scripts/nv/fakecuda"
)

const proofCubin = "../../testdata/cubin/new/sm_90/proof.cubin"

// saxpy is a launch of the kernel saxpy.
var saxpy = []string{"-k", "saxpy", "--grid", "4", "--block", "256", "--arg", "u32:1000", "--arg", "f32:3",
	"--arg", "buf:f32:1000:iota", "--arg", "buf:f32:1000:const(0.5)"}

// withEvict patches proof.cubin: another cache hint on every load of saxpy.
func withEvict(t *testing.T, hint string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "patched.cubin")
	if _, talk, status := cupatch(t, nil, "patch", "-q", "-k", "saxpy", "-e", "LDG => evict="+hint, "-o", path, proofCubin); status != 0 {
		t.Fatalf("status %d, %s", status, talk)
	}
	return path
}

func TestRunWithoutDriver(t *testing.T) {
	t.Setenv(gpu.LibraryVariable, filepath.Join(t.TempDir(), "libcuda.so.1"))
	out, talk, status := cupatch(t, nil, append([]string{"run", proofCubin}, saxpy...)...)
	if status != 2 || out != "" || strings.Count(talk, "\n") != 1 || !strings.HasPrefix(talk, "cupatch: error: no NVIDIA driver: ") {
		t.Errorf("status %d, %q, %q", status, out, talk)
	}
	out, _, status = cupatch(t, nil, append([]string{"run", "-n", "../../testdata/fatbin/concat.fatbin"}, saxpy...)...)
	if status != 0 || !strings.Contains(out, "parameter 2: 4 bytes at 0x4: f32:3\n") || !strings.Contains(out, "concat.fatbin#") {
		t.Errorf("dry run: status %d, %q", status, out)
	}
}

// TestRunMistakes checks that mistakes are found before a driver is looked for.
func TestRunMistakes(t *testing.T) {
	t.Setenv(gpu.LibraryVariable, "nosuch.so")
	launch := []string{"--grid", "1", "--block", "1"}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{}, "run needs one FILE"},
		{[]string{proofCubin, "-k", "saxpy"}, "a launch needs --grid and --block"},
		{append([]string{proofCubin}, launch...), "7 kernels to choose from"},
		{append([]string{proofCubin, "-k", "axpy"}, launch...), "no kernel axpy\ncupatch: hint: there are chain, copy128,"},
		{append([]string{proofCubin, "-a", "sm_80", "-k", "saxpy"}, launch...), "no kernel for sm_80"},
		{append([]string{proofCubin, "-k", "saxpy"}, launch...), "kernel saxpy takes 4 arguments (4, 4, 8 and 8 bytes), not 0"},
		{append([]string{proofCubin, "-k", "reduce", "--arg", "i32:1", "--arg", "null"}, launch...), `argument 1: "i32:1" has 4 bytes, the parameter of kernel reduce 8`},
		{append([]string{proofCubin, "-k", "reduce", "--arg", "f31:1"}, launch...), `no type "f31"`},
		{append([]string{proofCubin, "--repeat", "10001"}, launch...), "--repeat 10001: want 0 to 10000"},
		{append([]string{proofCubin, "--check", "0"}, launch...), "--check 0: want 1 to 10000"},
		{append([]string{proofCubin, "--timeout", "-1s"}, launch...), "want a time such as 30s"},
		{[]string{proofCubin, "--grid", "0", "--block", "1"}, `--grid "0": X is 0: want 1 to 2147483647`},
		{[]string{proofCubin, "--grid", "1", "--block", "1,2048"}, "--block \"1,2048\": Y is 2048: want 1 to 1024"},
		{append([]string{"nosuch.cubin"}, saxpy...), "nosuch.cubin"},
		{append([]string{proofCubin, "--compare", "../../testdata/cubin/new/sm_90/gemm.cubin"}, saxpy...), "gemm.cubin: no kernel saxpy"},
	} {
		out, talk, status := cupatch(t, nil, append([]string{"run"}, c.args...)...)
		if status != 2 || out != "" || !strings.Contains(talk, c.want) || strings.Contains(talk, "no NVIDIA driver") {
			t.Errorf("%v: status %d, %q, %q, want %q", c.args, status, out, talk, c.want)
		}
	}
}

func TestRunCompare(t *testing.T) {
	t.Setenv(gpu.LibraryVariable, fakecuda.Build(t))
	for _, c := range []struct {
		name   string
		hint   string
		more   []string
		status int
		out    []string
		talk   string
	}{
		{"evict first", "EF", nil, 0, []string{"GPU 0: Fake GPU, sm_90, 2 multiprocessors, driver for CUDA 13.1\nA ", "B against A: results bit-identical, 2 times\n",
			"  8.00 us: median of 20 launches", "B against A: takes 0.8000 of the time (quartiles 0.8000 to 0.8000)\n"}, ""},
		{"evict unchanged", "EU", nil, 1, []string{"A ", "argument 4: 1000 f32, sha256 "}, "an illegal memory access was encountered (CUDA_ERROR_ILLEGAL_ADDRESS)\n"},
		{"no allocate", "NA", []string{"--timeout", "500ms"}, 1, []string{"A "}, "patched.cubin: still running after 500ms\n"},
		{"last use", "LU", nil, 1, []string{"A "}, "patched.cubin: the driver crashed: signal: aborted\n"},
	} {
		args := append([]string{"run", proofCubin, "--compare", withEvict(t, c.hint)}, append(saxpy, c.more...)...)
		out, talk, status := cupatch(t, nil, args...)
		if status != c.status || !strings.HasSuffix(talk, c.talk) || (c.talk == "") != (talk == "") {
			t.Errorf("%s: status %d, %q, want %d, %q", c.name, status, talk, c.status, c.talk)
		}
		for _, want := range c.out {
			if !strings.Contains(out, want) {
				t.Errorf("%s: %q in\n%s", c.name, want, out)
			}
		}
	}
}

// TestRunChoice checks that the device decides between the entries of a container.
func TestRunChoice(t *testing.T) {
	t.Setenv(gpu.LibraryVariable, fakecuda.Build(t))
	args := append([]string{"run", "../../testdata/fatbin/concat.fatbin", "--json"}, saxpy...)
	out, talk, status := cupatch(t, nil, args...)
	var got runReport
	if err := json.Unmarshal([]byte(out), &got); err != nil || status != 0 || talk != "" {
		t.Fatalf("status %d, %v, %q", status, err, talk)
	}
	if got.Format != "cupatch-run-1" || got.Programs[0].Arch != "sm_90" || got.Programs[0].Times.Median != 10 || got.Launch.Repeat != 20 || len(got.Launch.Args) != 4 {
		t.Errorf("%s", out)
	}
	t.Setenv("FAKECUDA_SM", "80")
	_, talk, status = cupatch(t, nil, args...)
	if status != 2 || !strings.Contains(talk, "kernel saxpy is for sm_90, the GPU (Fake GPU) is sm_80") {
		t.Errorf("status %d, %q", status, talk)
	}
}

// TestSweepRun sweeps over cache hints: the stand-in for the driver is faster with one,
// faults with another, and never ends with a third.
func TestSweepRun(t *testing.T) {
	t.Setenv(gpu.LibraryVariable, fakecuda.Build(t))
	dir := t.TempDir()
	recipe := filepath.Join(dir, "hints.toml")
	text := "[param.hint]\nvalues = [\"-\", \"NA\", \"EU\", \"EF\"]\n[[rule]]\nname = \"hint\"\nmatch = \"LDG.E\"\nset = \"evict=${hint}\"\n"
	if err := os.WriteFile(recipe, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"sweep", "-q", "-f", recipe, "-o", filepath.Join(dir, "out"), "--run", "--timeout", "2s", proofCubin}, saxpy...)
	out, talk, status := cupatch(t, nil, args...)
	if status != 1 || talk != "" {
		t.Fatalf("status %d, %q", status, talk)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")[2:]
	for i, want := range [][]string{{"hint=EF", "8.00 us", "0.8000", "identical"}, {"hint=-", "10.00 us", "1.0000", "identical"}, {"hint=NA", "still running after 2s"}, {"hint=EU", "illegal memory access"}} {
		for _, w := range want {
			if i >= len(lines) || !strings.Contains(lines[i], w) {
				t.Errorf("line %d has no %q:\n%s", i+1, w, out)
			}
		}
	}
	data, err := os.ReadFile(filepath.Join(dir, "out", "run.json"))
	if err != nil {
		t.Fatal(err)
	}
	var got sweepTrials
	if err := json.Unmarshal(data, &got); err != nil || len(got.Trials) != 4 || got.Trials[0].Params["hint"] != "EF" || !got.Trials[0].Identical || got.Trials[2].Error == "" {
		t.Errorf("%v\n%s", err, data)
	}
	t.Setenv(gpu.LibraryVariable, "nosuch.so")
	args[5] = filepath.Join(dir, "none")
	if _, talk, status := cupatch(t, nil, args...); status != 2 || !strings.Contains(talk, "no NVIDIA driver") {
		t.Errorf("without a driver: status %d, %q", status, talk)
	}
	if _, err := os.Stat(args[5]); err == nil {
		t.Error("variants are written though nothing can run them")
	}
}
