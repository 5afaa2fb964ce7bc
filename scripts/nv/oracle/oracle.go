// Package oracle finds and runs NVIDIA's own disassemblers, the reference that every text
// and every patch of this module is compared with. Tests and developers' scripts use it;
// the program does not.
//
// The tools are installed by scripts/oracle.
package oracle

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// places maps a tool's name to where scripts/oracle puts it, as a pattern below Dir.
var places = map[string]string{
	"nvdisasm":    "lib/python3*/site-packages/nvidia/cu13/bin/nvdisasm",
	"cuobjdump":   "lib/python3*/site-packages/nvidia/cu13/bin/cuobjdump",
	"ptxas":       "lib/python3*/site-packages/nvidia/cu13/bin/ptxas",
	"fatbinary":   "lib/python3*/site-packages/nvidia/cu13/bin/fatbinary",
	"nvlink":      "lib/python3*/site-packages/nvidia/cu13/bin/nvlink",
	"nvcc":        "lib/python3*/site-packages/nvidia/cu13/bin/nvcc",
	"ptxas12":     "lib/python3*/site-packages/nvidia/cuda_nvcc/bin/ptxas",
	"nvdisasm12":  "triton/nvdisasm",
	"cuobjdump12": "triton/cuobjdump",
}

// CacheDir returns the folder outside the tree that holds the tools, the corpus and
// whatever else is slow to make: $CUPATCH_CACHE, or cupatch in the user's cache folder.
func CacheDir() string {
	if d := os.Getenv("CUPATCH_CACHE"); d != "" {
		return d
	}
	if d := os.Getenv("XDG_CACHE_HOME"); d != "" {
		return filepath.Join(d, "cupatch")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return filepath.Join(os.TempDir(), "cupatch")
	}
	return filepath.Join(home, ".cache", "cupatch")
}

// Dir returns the folder of the tools: $CUPATCH_ORACLE, or oracle in CacheDir.
func Dir() string {
	if d := os.Getenv("CUPATCH_ORACLE"); d != "" {
		return d
	}
	return filepath.Join(CacheDir(), "oracle")
}

// Lookup returns the path of a tool, or an error that says how to install it. The names
// are nvdisasm, cuobjdump, ptxas, fatbinary, nvlink and nvcc (CUDA 13.5), ptxas12 (12.9),
// nvdisasm12 and cuobjdump12 (12.8, for sm_70 and sm_72).
func Lookup(name string) (string, error) {
	pattern, ok := places[name]
	if !ok {
		return "", fmt.Errorf("no tool of the name %q", name)
	}
	found, err := filepath.Glob(filepath.Join(Dir(), filepath.FromSlash(pattern)))
	if err != nil {
		return "", err
	}
	for _, path := range found {
		if st, err := os.Stat(path); err == nil && st.Mode().IsRegular() {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s is not installed: run scripts/oracle", name)
}

// Current returns the name of the tool, nvdisasm or cuobjdump, that knows an architecture
// such as sm_90a: version 13 from sm_75 on, version 12.8 for sm_70 and sm_72.
func Current(tool, arch string) string {
	if strings.HasPrefix(arch, "sm_70") || strings.HasPrefix(arch, "sm_72") {
		return tool + "12"
	}
	return tool
}
