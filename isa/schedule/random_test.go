package schedule

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/isa/kernel"
	"github.com/cupatch/cupatch/isa/schedule/internal/insts"
)

// randomCode returns n instructions with random control codes and branches.
func randomCode(r *rand.Rand, n int) string {
	var lines []string
	reg := func() string { return fmt.Sprintf("R%d", r.IntN(4)) }
	for range n - 1 {
		guard := []string{"", "", "", "@P0 ", "@!P0 "}[r.IntN(5)]
		c := isa.Control{Stall: uint8(1 + r.IntN(5)), Yield: true, WBar: isa.NoBar, RBar: isa.NoBar}
		if r.IntN(3) == 0 {
			c.Wait = uint8(1 << r.IntN(3))
		}
		var text string
		switch r.IntN(7) {
		case 0, 1:
			text = fmt.Sprintf("FADD %s, %s, %s", reg(), reg(), reg())
		case 2:
			text = fmt.Sprintf("ISETP.GE.AND P0, PT, %s, %s, PT", reg(), reg())
			c.Stall += uint8(r.IntN(11))
		case 3, 4:
			text = fmt.Sprintf("LDG.E %s, desc[UR4][R%d.64]", reg(), 2*r.IntN(2))
			c.WBar = uint8(r.IntN(3))
		case 5:
			text = fmt.Sprintf("STG.E desc[UR4][R%d.64], %s", 2*r.IntN(2), reg())
			c.RBar = uint8(r.IntN(3))
		case 6:
			text = fmt.Sprintf("BRA 0x%x", 16*r.IntN(n))
		}
		lines = append(lines, c.String()+" "+guard+text)
	}
	return strings.Join(append(lines, "EXIT"), "\n")
}

// An issued is an instruction on a path.
type issued struct {
	inst, time int
	waited     [6]bool // scoreboards that were waited for since
}

// A walkTest follows single paths, and keeps whatever was issued on them.
type walkTest struct {
	g     *kernel.Graph
	found map[string]bool
}

// holds reports whether the guards of the instructions at from and at in path can both be
// true: no, if they are opposite and the predicate was not written from one to the other.
func (w *walkTest) holds(path []issued, from, at int) bool {
	a, b := w.g.Inst(path[from].inst), w.g.Inst(path[at].inst)
	ga, gb := insts.Guard(&a), insts.Guard(&b)
	if ga == noGuard || gb == noGuard || ga^1 != gb {
		return true
	}
	for _, x := range path[from:at] {
		if fx := w.g.Inst(x.inst).Effects(); fx.Writes.Has(isa.FileP, int(ga>>1)) {
			return true
		}
	}
	return false
}

// skipped reports whether the path's branches contradict what an instruction before them did
// under its guard: it did nothing then.
func (w *walkTest) skipped(path []issued, from int) bool {
	in := w.g.Inst(path[from].inst)
	ga := insts.Guard(&in)
	if ga == noGuard {
		return false
	}
	for k := from; k < len(path)-1; k++ {
		x := w.g.Inst(path[k].inst)
		if fx := x.Effects(); fx.Writes.Has(isa.FileP, int(ga>>1)) {
			return false
		}
		gb := insts.Guard(&x)
		b := &w.g.Blocks[w.g.Block(path[k].inst)]
		if k == from || gb == noGuard || gb>>1 != ga>>1 || path[k].inst != b.End-1 || x.Flow().Kind == isa.FlowNone || len(b.Succs) < 2 && x.Flow().Kind != isa.FlowExit {
			continue
		}
		taken := path[k+1].inst != path[k].inst+1
		if to, ok := x.Target(uint64(path[k].inst) * isa.WordSize); ok && int(to/isa.WordSize) == path[k].inst+1 {
			continue // both ways lead to the same place
		}
		if taken != (gb == ga) {
			return true
		}
	}
	return false
}

// paths follows every path of up to depth instructions from path on.
func (w *walkTest) paths(path []issued, depth int) {
	last := path[len(path)-1]
	in := w.g.Inst(last.inst)
	w.meet(path)
	if depth == 0 {
		return
	}
	ctrl := isa.ControlOf(in.Word)
	flow := in.Flow()
	var next []int
	if !flow.NeverPasses() {
		next = append(next, last.inst+1)
	}
	if flow.Kind == isa.FlowBranch {
		to, _ := in.Target(uint64(last.inst) * isa.WordSize)
		next = append(next, int(to/isa.WordSize))
	}
	for _, n := range next {
		more := slices.Clone(path)
		c := isa.ControlOf(w.g.Inst(n).Word)
		for i := range more {
			for s := range 6 {
				more[i].waited[s] = more[i].waited[s] || c.Wait>>s&1 != 0
			}
		}
		w.paths(append(more, issued{inst: n, time: last.time + int(ctrl.Stall)}), depth-1)
	}
}

// meet notes what the last instruction of path does too soon.
func (w *walkTest) meet(path []issued) {
	at := len(path) - 1
	now := w.g.Inst(path[at].inst)
	fx := now.Effects()
	for f, n := range map[isa.RegFile]int{isa.FileR: 4, isa.FileP: 1} {
		for r := range n {
			switch {
			case fx.Reads.Has(f, r) && f == isa.FileP:
				w.judge(path, f, r, Guard)
			case fx.Reads.Has(f, r):
				w.judge(path, f, r, Read)
			}
			if fx.Writes.Has(f, r) {
				w.judge(path, f, r, Rewrite)
				w.judge(path, f, r, Overwrite)
			}
		}
	}
}

// judge looks for what is pending of a register in front of the last instruction of path, from
// the last instruction back to the one that surely wrote it.
func (w *walkTest) judge(path []issued, f isa.RegFile, r int, kind Kind) {
	at := len(path) - 1
	for k := at - 1; k >= 0; k-- {
		in := w.g.Inst(path[k].inst)
		fx, c := in.Effects(), isa.ControlOf(in.Word)
		writes, reads := fx.Writes.Has(f, r), fx.Reads.Has(f, r)
		if (kind == Overwrite && reads && f == isa.FileR && c.RBar+c.WBar < 2*isa.NoBar || kind != Overwrite && writes) && w.holds(path, k, at) && !w.skipped(path, k) && !w.replaced(path, k, f, r) {
			w.pair(path, k, f, r, kind)
		}
		if writes && insts.Guard(&in) == noGuard {
			return
		}
	}
}

// replaced reports whether an instruction behind the one at from, with the same guard, wrote the
// register.
func (w *walkTest) replaced(path []issued, from int, f isa.RegFile, r int) bool {
	in := w.g.Inst(path[from].inst)
	ga := insts.Guard(&in)
	if fx := in.Effects(); ga == noGuard || fx.Writes.Has(isa.FileP, int(ga>>1)) {
		return false
	}
	for _, x := range path[from+1 : len(path)-1] {
		in := w.g.Inst(x.inst)
		fx := in.Effects()
		if insts.Guard(&in) == ga && fx.Writes.Has(f, r) {
			return true
		}
		if fx.Writes.Has(isa.FileP, int(ga>>1)) {
			return false
		}
	}
	return false
}

// pair judges two instructions by what was measured: 4 cycles for results and 13 for guards, a wait
// for the rest.
func (w *walkTest) pair(path []issued, k int, f isa.RegFile, r int, kind Kind) {
	a, b := path[k], path[len(path)-1]
	in := w.g.Inst(a.inst)
	c := isa.ControlOf(in.Word)
	name := ""
	switch {
	case kind == Overwrite:
		next := w.g.Inst(b.inst)
		if nc := isa.ControlOf(next.Word); nc.RBar+nc.WBar < 2*isa.NoBar {
			return // the same pipe
		}
		for j := k; j < len(path)-1; j++ { // sources are read in order
			jc := isa.ControlOf(w.g.Inst(path[j].inst).Word)
			if jc.RBar < 6 && path[j].waited[jc.RBar] || jc.WBar < 6 && path[j].waited[jc.WBar] {
				return
			}
		}
		name = Waiting
	case c.WBar < 6:
		next := w.g.Inst(b.inst)
		if nc := isa.ControlOf(next.Word); kind == Rewrite && nc.WBar < 6 || a.waited[c.WBar] {
			return // LDG after LDG: they are not told apart here
		}
		name = Waiting
	case kind == Read && b.time-a.time < 4 || kind == Guard && b.time-a.time < 13:
		if w.g.Inst(b.inst).Mnemonic() != "FADD" && kind == Read {
			return // memory and comparison have distances of their own
		}
		name = Stall
	default:
		return
	}
	w.found[fmt.Sprint(name, " ", kind, " ", b.inst, " ", f.Names()[r])] = true
}

// TestCheckAgainstPaths compares what the checker finds in small random programs with what
// following every path says.
func TestCheckAgainstPaths(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 3))
		text := randomCode(r, 4+r.IntN(6))
		table, g := assemble(t, "sm_90", text)
		m, err := Load(table.Arch())
		if err != nil {
			t.Fatal(err)
		}
		c := NewChecker(m, table)
		w := &walkTest{g, map[string]bool{}}
		w.paths([]issued{{}}, 12)
		got := map[string]bool{}
		for _, f := range c.Check(g) {
			got[fmt.Sprint(f.Name, " ", f.Kind, " ", f.Second, " ", f.File.Names()[f.Register])] = true
		}
		for k := range w.found {
			if !got[k] {
				t.Fatalf("seed %d: %s is not found\n%s", seed, k, text)
			}
		}
		if slices.ContainsFunc(g.Blocks, func(b kernel.Block) bool { return !b.Reachable }) {
			continue // paths start at the first instruction here
		}
		for k := range got {
			if strings.HasPrefix(k, "wait read") && !w.found[k] {
				t.Fatalf("seed %d: no path leads to %s\n%s", seed, k, text)
			}
		}
	}
}
