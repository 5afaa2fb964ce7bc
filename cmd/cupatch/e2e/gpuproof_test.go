package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cupatch/cupatch/patch/gpu"
	"github.com/cupatch/cupatch/scripts/nv/fakecuda"
)

// TestGPUProof runs scripts/gpuproof with a stand-in for the driver: every variant is made,
// launched and judged, and the table is written.
func TestGPUProof(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("no python3")
	}
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(gpu.LibraryVariable, fakecuda.Build(t))
	t.Setenv("FAKECUDA_TAME", "1")
	dir := t.TempDir()
	out, err := exec.Command("../../../scripts/gpuproof", "--small", "--no-host", "--cupatch", path, "--out", dir).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	table, err := os.ReadFile(filepath.Join(dir, "gpuproof.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		": Fake GPU (sm_90, 2 multiprocessors), driver for CUDA 13.1",
		" cases, all as they should be.\n",
		"\n| saxpy | evict EF | 2 | identical | 8.00 us | 0.8000 (0.8000 to 0.8000) |\n",
		"\n| snake | FFMA interleave | 68 | identical | 10.00 us | 1.0000 (1.0000 to 1.0000) |\n",
		"\n| chain | stall too low | 14 | differ | 10.00 us | 1.0000 (1.0000 to 1.0000) |\n",
	} {
		if !strings.Contains(string(table), want) {
			t.Errorf("no %q in\n%s", want, table)
		}
	}
	t.Setenv(gpu.LibraryVariable, "nosuch.so")
	out, err = exec.Command("../../../scripts/gpuproof", "--small", "--no-host", "--cupatch", path, "--out", dir).CombinedOutput()
	if x, ok := err.(*exec.ExitError); !ok || x.ExitCode() != 2 || strings.Count(string(out), "\n") != 1 {
		t.Errorf("without a driver: %v\n%s", err, out)
	}
}
