package kernel

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cupatch/cupatch/isa"
)

// reaching returns, by instruction and register, the writers that some path leads from
// without an overwrite; -1 is the entry. It follows every state that execution can be in.
func reaching(g *Graph, regs []reg) (map[int]map[reg]map[int]bool, map[int]bool) {
	type sets map[reg]map[int]bool
	in := map[state]sets{{}: {}}
	for _, r := range regs {
		in[state{}][r] = map[int]bool{-1: true}
	}
	work := []state{{}}
	for len(work) > 0 {
		s := work[len(work)-1]
		work = work[:len(work)-1]
		fx := g.Inst(s.pc).Effects()
		list, _ := next(g, s)
		for _, to := range list {
			grew := in[to] == nil
			if grew {
				in[to] = sets{}
			}
			for _, r := range regs {
				if in[to][r] == nil {
					in[to][r] = map[int]bool{}
				}
				add := func(d int) {
					grew = grew || !in[to][r][d]
					in[to][r][d] = true
				}
				if r.in(&fx.Writes) {
					add(s.pc)
				}
				if !r.in(&fx.Writes) || g.Inst(s.pc).IsGuarded() {
					for d := range in[s][r] {
						add(d)
					}
				}
			}
			if grew {
				work = append(work, to)
			}
		}
	}
	out, pcs := map[int]map[reg]map[int]bool{}, map[int]bool{}
	for s, x := range in {
		pcs[s.pc] = true
		if out[s.pc] == nil {
			out[s.pc] = map[reg]map[int]bool{}
		}
		for _, r := range regs {
			if out[s.pc][r] == nil {
				out[s.pc][r] = map[int]bool{}
			}
			for d := range x[r] {
				out[s.pc][r][d] = true
			}
		}
	}
	return out, pcs
}

// TestDefsAgainstDefinition compares reaching definitions and uses of small random
// programs with what following every path says.
func TestDefsAgainstDefinition(t *testing.T) {
	var regs []reg
	for n := range 4 {
		regs = append(regs, regOf(isa.FileR, n))
	}
	regs = append(regs, regOf(isa.FileP, 0), regOf(isa.FileP, 1))
	exact := 0
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 3))
		text := randomCode(r, 3+r.IntN(10))
		g := New(assemble(t, "sm_90", text))
		calls := false
		for i := range g.at {
			calls = calls || g.Inst(i).Flow().Kind == isa.FlowCall
		}
		want, pcs := reaching(g, regs)
		d := g.Defs()
		for pc := range pcs {
			for _, r := range regs {
				f, n := isa.RegFile(r>>8), int(r&0xff)
				var got []int
				called := false
				for _, s := range d.Reaching(pc, f, n) {
					got = append(got, s.Inst)
					called = called || s.Call
				}
				for def := range want[pc][r] {
					if !slices.Contains(got, def) && !called && !slices.Contains(got, -1) {
						t.Fatalf("seed %d: %d may have written %s%d before %d; got %d\n%s", seed, def, f, n, pc, got, text)
					}
				}
				if calls || len(pcs) < len(g.at) {
					continue
				}
				exact++
				for _, def := range got {
					if !want[pc][r][def] {
						t.Fatalf("seed %d: %d cannot have written %s%d before %d\n%s", seed, def, f, n, pc, text)
					}
					fx := g.Inst(pc).Effects()
					if def >= 0 && r.in(&fx.Reads) && !slices.Contains(d.Uses(def, f, n), pc) {
						t.Fatalf("seed %d: %d uses the %s%d of %d\n%s", seed, pc, f, n, def, text)
					}
				}
				if len(got) != len(want[pc][r]) {
					t.Fatalf("seed %d: before %d %s%d is of %d, want %v\n%s", seed, pc, f, n, got, want[pc][r], text)
				}
			}
		}
	}
	if exact < 1000 {
		t.Errorf("only %d exact comparisons", exact)
	}
}
