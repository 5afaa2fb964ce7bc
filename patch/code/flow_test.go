package code_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/isa/kernel"
	"github.com/cupatch/cupatch/patch/code"
	"github.com/cupatch/cupatch/patch/internal/patchtest"
)

const root = "../.."

// TestFlow compares the control flow of every kernel of testdata with what nvdisasm says
// of it, for all instructions that nvdisasm shows: it leaves out most of those that
// nothing leads to.
func TestFlow(t *testing.T) {
	graphs := map[string]map[string]*kernel.Graph{} // by cubin, by function
	cases := patchtest.FlowCases(t, root)
	for _, c := range cases {
		if graphs[c.Cubin] == nil {
			graphs[c.Cubin] = cubinFlow(t, filepath.Join(root, c.Cubin))
		}
		g := graphs[c.Cubin][c.Function]
		if g == nil {
			t.Errorf("%s: no function %s", c.Cubin, c.Function)
			continue
		}
		for _, pc := range c.Shown {
			if got, want := successors(g, int(pc/isa.WordSize)), c.After(pc); !slices.Equal(got, want) {
				t.Errorf("%s %s: after %#x: %#x, nvdisasm %#x", c.Cubin, c.Function, pc, got, want)
			}
		}
	}
	if len(cases) < 800 {
		t.Errorf("only %d cases", len(cases))
	}
}

// openCubin opens the cubin at a path.
func openCubin(t *testing.T, path string) *code.Target {
	t.Helper()
	data, err := os.ReadFile(path)
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
	return &code.Target{Cubin: c, Table: table}
}

// cubinFlow returns the flow of each function of a cubin by its name.
func cubinFlow(t *testing.T, path string) map[string]*kernel.Graph {
	t.Helper()
	target := openCubin(t, path)
	graphs := map[string]*kernel.Graph{}
	for _, k := range target.Cubin.Kernels() {
		g := code.NewState(target.Kernel(&k), target.Table).Flow()
		for _, f := range k.Functions() {
			graphs[f.Name] = g
		}
	}
	return graphs
}

// successors returns the addresses at which execution may go on after instruction i.
func successors(g *kernel.Graph, i int) []uint64 {
	b := g.Blocks[g.Block(i)]
	if i+1 < b.End {
		return []uint64{uint64(i+1) * isa.WordSize}
	}
	to := []uint64{}
	for _, e := range b.Succs {
		to = append(to, uint64(g.Blocks[e.Block].Start)*isa.WordSize)
	}
	slices.Sort(to)
	return slices.Compact(to)
}
