package elfx

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// stay is the move of a kernel that moves nothing.
func stay(k *Kernel, step int) CodeMove {
	m := CodeMove{Kernel: k.Name, Code: k.Data(), Step: step}
	for i := range int(k.Size)/step + 1 {
		m.Inst, m.Label, m.Return = append(m.Inst, i), append(m.Label, i), append(m.Return, i)
	}
	m.Inst = m.Inst[:len(m.Inst)-1]
	return m
}

// eachCubin calls fn with the cubins of testdata.
func eachCubin(t *testing.T, fn func(path string, c *Cubin)) {
	t.Helper()
	paths, err := filepath.Glob("../testdata/cubin/*/*/*.cubin")
	if err != nil || len(paths) == 0 {
		t.Fatal("no cubins", err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		c, err := ParseCubin(data)
		if err != nil {
			t.Fatal(path, err)
		}
		fn(path, c)
	}
}

// What does not move stays as it is, to the byte: line tables, too, are written as ptxas
// writes them.
func TestMoveCodeNowhere(t *testing.T) {
	eachCubin(t, func(path string, c *Cubin) {
		for i := range c.Kernels() {
			k := &c.Kernels()[i]
			got, err := c.MoveCode(stay(k, c.InstructionSize()))
			if err != nil {
				t.Errorf("%s: %v", path, err)
			} else if !bytes.Equal(got, c.Data()) {
				t.Errorf("%s: kernel %s: another cubin", path, k.Name)
			}
		}
	})
}
