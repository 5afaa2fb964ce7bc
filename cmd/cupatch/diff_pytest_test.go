package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestPytestExample runs examples/pytest, where there is a pytest.
func TestPytestExample(t *testing.T) {
	if err := exec.Command("python3", "-c", "import pytest").Run(); err != nil {
		t.Skip("no pytest: ", err)
	}
	program := filepath.Join(t.TempDir(), "cupatch")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.Command("python3", "-m", "pytest", "-q", "-p", "no:cacheprovider", filepath.Join("..", "..", "examples", "pytest"))
	cmd.Env = append(os.Environ(), "CUPATCH="+program, "PYTHONDONTWRITEBYTECODE=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
