package code_test

import (
	"path/filepath"
	"testing"

	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/patch/code"
)

// stateOf returns a kernel of a cubin of testdata.
func stateOf(t *testing.T, path, name string) *code.State {
	t.Helper()
	target := openCubin(t, filepath.Join(root, "testdata/cubin", path))
	for i := range target.Cubin.Kernels() {
		if k := &target.Cubin.Kernels()[i]; k.Name == name {
			return code.NewState(target.Kernel(k), target.Table)
		}
	}
	t.Fatalf("%s has no kernel %s", path, name)
	return nil
}

// TestParam finds, for every access of global memory of a matrix product, the parameter
// that its address comes from. As its PTX has it: vectors of 16 bytes are loaded from a,
// parameter 0, words from b, parameter 1, and the result is stored to c, parameter 2.
func TestParam(t *testing.T) {
	for path, base := range map[string]int{"new/sm_75": 0x160, "new/sm_80": 0x160, "new/sm_90": 0x210, "new/sm_100": 0x380, "new/sm_120": 0x380,
		"old/sm_70": 0x160, "old/sm_80": 0x160, "old/sm_90": 0x210} {
		s := stateOf(t, path+"/gemm.cubin", "sgemm")
		n := 0
		for i := range s.N {
			m := s.View(i).Inst.Memory()
			if m.Space != isa.SpaceGlobal {
				continue
			}
			n++
			want := 2
			if m.Op == isa.MemoryLoad {
				want = map[int]int{16: 0, 4: 1}[m.Bytes]
			}
			if got, ok := s.Param(i); !ok || got != want {
				t.Errorf("%s: %s: parameter %d, %v, want %d", path, s.View(i).Text(), got, ok, want)
			}
			if o := s.Origin(i); o.Bank != 0 || o.Offset != base+8*want {
				t.Errorf("%s: %s: from %s", path, s.View(i).Text(), o)
			}
		}
		if n < 20 {
			t.Errorf("%s: only %d accesses", path, n)
		}
	}
}
