package oracletest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A Toolchain builds host programs with nvcc and the machine's own compiler.
type Toolchain struct {
	NVCC string
	Lib  string // folder with the CUDA runtime under the names that a linker looks for
}

// NewToolchain finds the parts of a toolchain; where one is missing the test is skipped.
func NewToolchain(tb testing.TB) *Toolchain {
	tb.Helper()
	tc := &Toolchain{NVCC: Tool(tb, "nvcc"), Lib: tb.TempDir()}
	for _, tool := range []string{"g++", "gcc"} {
		if _, err := exec.LookPath(tool); err != nil {
			tb.Skip(err)
		}
	}
	from, err := filepath.Abs(filepath.Join(filepath.Dir(tc.NVCC), "..", "lib"))
	if err != nil {
		tb.Fatal(err)
	}
	static := filepath.Join(from, "libcudart_static.a")
	shared, _ := filepath.Glob(filepath.Join(from, "libcudart.so.*"))
	if _, err := os.Stat(static); err != nil || len(shared) == 0 {
		tb.Skip("no CUDA runtime beside nvcc: run scripts/oracle")
	}
	for name, to := range map[string]string{
		"libcudart_static.a": static, "libcudadevrt.a": filepath.Join(from, "libcudadevrt.a"),
		"libcudart.so": shared[0], filepath.Base(shared[0]): shared[0],
	} {
		if err := os.Symlink(to, filepath.Join(tc.Lib, name)); err != nil {
			tb.Fatal(err)
		}
	}
	return tc
}

// Build compiles and links with nvcc, for sm_80 and sm_90 with PTX for 90.
func (tc *Toolchain) Build(tb testing.TB, out string, args ...string) {
	tb.Helper()
	all := []string{
		"-gencode", "arch=compute_80,code=sm_80", "-gencode", "arch=compute_90,code=[sm_90,compute_90]",
		"-L" + tc.Lib, "-Xlinker", "-rpath," + tc.Lib, "-o", out,
	}
	cmd := exec.Command(tc.NVCC, append(all, args...)...)
	if msg, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("nvcc %s: %v: %s", strings.Join(args, " "), err, msg)
	}
}
