package code_test

import (
	"bytes"
	"os/exec"
	"slices"
	"testing"

	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/isa/kernel"
	"github.com/cupatch/cupatch/isa/liferange"
	"github.com/cupatch/cupatch/patch/code"
	"github.com/cupatch/cupatch/scripts/nv/corpustest"
	"github.com/cupatch/cupatch/scripts/nv/oracle"
)

// eachCorpusCubin calls fn with each different cubin of the public corpus.
func eachCorpusCubin(t *testing.T, fn func(tool, path string, target *code.Target)) {
	t.Helper()
	corpustest.Each(t, func(x corpustest.Cubin) {
		if target, err := code.Open(x.Entry); err == nil && target.Table != nil {
			fn(x.Tool, x.Path, target)
		}
	})
}

// TestFlowOfCorpus compares the control flow of every function of the corpus that nvdisasm
// makes a graph of.
func TestFlowOfCorpus(t *testing.T) {
	functions, bad := 0, 0
	eachCorpusCubin(t, func(tool, path string, target *code.Target) {
		flows, err := oracle.Graphs(tool, path)
		if err != nil {
			t.Logf("%s: %v", target.File, err)
			return
		}
		for i := range target.Cubin.Kernels() {
			k := &target.Cubin.Kernels()[i]
			g := code.NewState(target.Kernel(k), target.Table).Flow()
			starts := map[uint64]bool{}
			for _, f := range k.Functions() {
				starts[f.Offset] = true
			}
			for _, f := range k.Functions() {
				flow := flows[f.Name]
				if flow == nil {
					continue
				}
				functions++
				for pc, want := range flow {
					got := successors(g, int(pc/isa.WordSize))
					slices.Sort(want)
					// A trap at the end of a function leads into the next one, which nvdisasm leaves out.
					got = slices.DeleteFunc(got, func(to uint64) bool { return len(want) == 0 && starts[to] })
					if want = slices.Compact(want); !slices.Equal(got, want) {
						if bad++; bad <= 20 {
							t.Errorf("%s#%s %s: after %#x: %#x, nvdisasm %#x", target.File, target.Entry, f.Name, pc, got, want)
						}
						break
					}
				}
			}
		}
	})
	t.Logf("%d functions, %d with another flow", functions, bad)
}

// TestLiveOfCorpus looks for registers in use that nvdisasm does not have, at every instruction
// of the sections of the corpus that neither call nor return. For each there must be a path to
// a read of the value, on which predicates keep their values: nvdisasm takes some writes under
// a guard for ones that always happen. In sections with P2R, which for nvdisasm reads no
// predicates, those are not compared. What is needed only where two guards hold at once is
// taken to be needed where one does: that has no path, and is rare.
func TestLiveOfCorpus(t *testing.T) {
	sections, instructions, same, moreAt, bad := 0, 0, 0, 0, 0
	var unshown isa.RegSet // R1, which is always in use for nvdisasm, and what it never marks
	unshown.Add(isa.FileR, 1, 1)
	unshown.Add(isa.FileUR, 63, 192)
	eachCorpusCubin(t, func(tool, path string, target *code.Target) {
		nvdisasm, err := oracle.Lookup(tool)
		if err != nil {
			t.Fatal(err)
		}
		ours, extra := map[string][]isa.RegSet{}, map[string]map[int]isa.RegSet{}
		graphs, masked := map[string]*kernel.Graph{}, map[string]bool{}
		for i := range target.Cubin.Kernels() {
			k := &target.Cubin.Kernels()[i]
			if g := code.NewState(target.Kernel(k), target.Table).Flow(); alone(g, int(k.Size/isa.WordSize)) {
				ours[k.Name] = usedSets(g, int(k.Size/isa.WordSize))
				masked[k.Name] = readsMask(g, int(k.Size/isa.WordSize))
				graphs[k.Name] = g
			}
		}
		out, err := exec.Command(nvdisasm, "-plr", "-lrm", "narrow", "-c", path).Output()
		if err != nil {
			t.Logf("%s#%s: %v", target.File, target.Entry, err)
			return
		}
		last := ""
		err = liferange.Parse(bytes.NewReader(out), func(r liferange.Row) error {
			sets := ours[r.Section]
			if sets == nil || int(r.PC/isa.WordSize) >= len(sets) {
				return nil
			}
			if r.Section != last {
				sections++
				last = r.Section
			}
			instructions++
			got, want := sets[r.PC/isa.WordSize].Minus(unshown), r.InUse.Minus(unshown)
			if masked[r.Section] {
				got.P, got.UP, want.P, want.UP = 0, 0, 0, 0
			}
			if got == want {
				same++
			}
			if more := got.Minus(want); !more.IsEmpty() {
				i := int(r.PC / isa.WordSize)
				if extra[r.Section] == nil {
					extra[r.Section] = map[int]isa.RegSet{}
				}
				extra[r.Section][i] = more
				moreAt++
			}
			return nil
		})
		if err != nil {
			t.Errorf("%s#%s: %v", target.File, target.Entry, err)
		}
		for name, more := range extra {
			for i, set := range unneeded(graphs[name], len(ours[name]), more) {
				if bad++; bad <= 5 {
					t.Logf("%s#%s %s at %#x: %s too, and no path needs them", target.File, target.Entry, name, i*isa.WordSize, set)
				}
			}
		}
	})
	t.Logf("%d sections with %d instructions, the same sets at %d, more registers at %d, for no path at %d", sections, instructions, same, moreAt, bad)
	if bad > instructions/1000 {
		t.Error("too many")
	}
}

// unneeded returns, of registers taken to be needed after instructions, those that no path needs.
func unneeded(g *kernel.Graph, n int, sets map[int]isa.RegSet) map[int]isa.RegSet {
	w, out := newWitness(g, n), map[int]isa.RegSet{}
	var later isa.RegSet // needed after the instruction after this one, as far as is known
	for i := n - 1; i >= 0; i-- {
		set, ok := sets[i]
		if !ok {
			later = isa.RegSet{}
			continue
		}
		if i+1 < n && w.ends[i] < 0 {
			later = later.Minus(g.Inst(i + 1).Effects().Writes)
		} else {
			later = isa.RegSet{}
		}
		var none isa.RegSet
		set.Each(func(f isa.RegFile, r int) {
			if !later.Has(f, r) && !w.needed(i, f, r) {
				none.Add(f, r, 1)
			}
		})
		if !none.IsEmpty() {
			out[i] = none
		}
		later = set.Minus(none)
	}
	return out
}

// readsMask reports whether one of n instructions reads predicates by a mask.
func readsMask(g *kernel.Graph, n int) bool {
	for i := range n {
		switch g.Inst(i).Mnemonic() {
		case "P2R", "UP2UR":
			return true
		}
	}
	return false
}

// alone reports whether none of n instructions calls or returns.
func alone(g *kernel.Graph, n int) bool {
	for i := range n {
		switch g.Inst(i).Flow().Kind {
		case isa.FlowCall, isa.FlowReturn:
			return false
		}
	}
	return true
}
