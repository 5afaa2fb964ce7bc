package code_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/patch/code"
)

// stateOf returns a kernel of a cubin of testdata.
func stateOf(t *testing.T, path, name string) *code.State {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, "testdata/cubin", path))
	if err != nil {
		t.Fatal(err)
	}
	c, err := elfx.ParseCubin(data)
	if err != nil {
		t.Fatal(err)
	}
	table, err := code.TableOf(c)
	if err != nil {
		t.Fatal(err)
	}
	target := code.Target{Cubin: c, Table: table}
	for i := range c.Kernels() {
		if k := &c.Kernels()[i]; k.Name == name {
			return code.NewState(target.Kernel(k), table)
		}
	}
	t.Fatalf("%s has no kernel %s", path, name)
	return nil
}

func TestTry(t *testing.T) {
	for _, p := range []string{"new/sm_75/gemm.cubin", "new/sm_80/gemm.cubin", "new/sm_90/gemm.cubin", "new/sm_100/gemm.cubin", "new/sm_120/gemm.cubin", "old/sm_90/gemm.cubin", "old/sm_70/gemm.cubin"} {
		s := stateOf(t, p, "sgemm")
		got := map[string]int{}
		for i := range s.N {
			in := s.View(i).Inst
			m := in.Memory()
			if m.Space != isa.SpaceGlobal {
				continue
			}
			n, ok := s.Param(i)
			got[fmt.Sprintf("%s%d %d %v", m.Op, m.Bytes, n, ok)]++
		}
		fmt.Println(p, got)
	}
}
func TestTry2(t *testing.T) {
	s := stateOf(t, "new/sm_80/gemm.cubin", "sgemm")
	o := s.DataFlow().Origins(true, func(b, off int) bool { return off == 0x160 || off == 0x168 || off == 0x170 })
	fmt.Println(o.Register(0x2880/16, isa.FileR, 2), o.Register(0x28c0/16, isa.FileR, 4))
	fmt.Println("origin", s.Origin(0x320/16), s.View(0x320/16).Inst.Memory(), s.View(0x320/16).Inst.AppendOperands(nil))
	in := s.View(0x2880/16).Inst
	fmt.Println(in.Formula(), in.Effects(), s.Table.Split(in, 0).Names, in.Memory())
	for _, p := range []string{"new/sm_80/gemm.cubin", "new/sm_90/gemm.cubin"} {
		fmt.Println(stateOf(t, p, "sgemm").Params())
	}
	for _, pc := range []int{0x280, 0x320,0x330,0x370} {
		for _, r := range []int{10, 8, 98} {
			fmt.Printf("%x R%d %v %v\n", pc, r, o.Register(pc/16, isa.FileR, r), s.DataFlow().Defs().Reaching(pc/16, isa.FileR, r))
		}
	}
}
