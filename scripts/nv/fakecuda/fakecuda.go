// Package fakecuda builds a small stand-in for NVIDIA's driver, for tests of what talks to
// it. The stand-in computes on the processor what the kernels of testdata/ptx/proof.ptx
// compute, and looks into their instructions to misbehave as told there; see
// testdata/fakecuda.c.
package fakecuda

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
)

//go:embed testdata/fakecuda.c
var source []byte

// Build compiles the library and returns its path. Without a C compiler, or where kernels
// cannot be run, the test is skipped.
func Build(tb testing.TB) string {
	tb.Helper()
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		tb.Skip("kernels can be run on Linux with an x86-64 processor only")
	}
	if _, err := exec.LookPath("cc"); err != nil {
		tb.Skip("no C compiler: cc is not installed")
	}
	lib, err := compiled()
	if err != nil {
		tb.Fatal(err)
	}
	path := filepath.Join(tb.TempDir(), "libcuda.so.1")
	if err := os.WriteFile(path, lib, 0o600); err != nil {
		tb.Fatal(err)
	}
	return path
}

// compiled returns the library.
var compiled = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "fakecuda")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	src, lib := filepath.Join(dir, "fakecuda.c"), filepath.Join(dir, "fakecuda.so")
	if err := os.WriteFile(src, source, 0o600); err != nil {
		return nil, err
	}
	// No multiplication may be fused with an addition unless fmaf says so.
	out, err := exec.Command("cc", "-shared", "-fPIC", "-O1", "-ffp-contract=off", "-o", lib, src, "-lm").CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("cc: %w: %s", err, out)
	}
	return os.ReadFile(lib)
})
