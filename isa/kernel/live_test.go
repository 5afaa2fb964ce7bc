package kernel

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cupatch/cupatch/isa"
	assembler "github.com/cupatch/cupatch/isa/internal/assemble"
)

// assemble returns the code of instructions, one a line, for an architecture.
func assemble(tb testing.TB, arch, text string) Code {
	tb.Helper()
	table, data := assembler.Code(tb, arch, text)
	return Code{Table: table, Data: data}
}

// randomCode returns n instructions in which functions call later ones only, so that
// every stack of calls ends.
func randomCode(r *rand.Rand, n int) string {
	reg := func() string { return fmt.Sprintf("R%d", r.IntN(4)) }
	var lines []string
	for i := range n {
		guard := []string{"", "", "@P0 ", "@!P1 "}[r.IntN(4)]
		switch to := r.IntN(n); r.IntN(9) {
		case 0, 1, 2:
			lines = append(lines, fmt.Sprintf("%sMOV %s, %s", guard, reg(), reg()))
		case 3:
			lines = append(lines, fmt.Sprintf("%sIADD3 %s, %s, %s, RZ", guard, reg(), reg(), reg()))
		case 4:
			lines = append(lines, guard+"EXIT")
		case 5:
			lines = append(lines, fmt.Sprintf("%sBRA 0x%x", guard, 16*to))
		case 6:
			lines = append(lines, fmt.Sprintf("%sISETP.EQ.AND P%d, PT, %s, RZ, PT", guard, r.IntN(2), reg()))
		case 7:
			if i+1 < n {
				lines = append(lines, fmt.Sprintf("%sCALL.REL.NOINC 0x%x", guard, 16*(i+1+r.IntN(n-i-1))))
				continue
			}
			lines = append(lines, "EXIT")
		case 8:
			lines = append(lines, guard+"RET.REL.NODEC R2 0x0")
		}
	}
	lines[n-1] = "EXIT"
	return strings.Join(lines, "\n")
}

// A state of execution: the next instruction, and where the calls return to, the last one
// at the end.
type state struct {
	pc    int
	stack string
}

// next returns the states that may follow, and whether the section's caller may follow.
func next(g *Graph, s state) (out []state, left bool) {
	in := g.Inst(s.pc)
	flow := in.Flow()
	if !flow.NeverPasses() && (flow.Kind != isa.FlowCall || flow.Conditional) {
		out = append(out, state{s.pc + 1, s.stack})
	}
	to, _ := in.Target(uint64(s.pc) * isa.WordSize)
	switch flow.Kind {
	case isa.FlowBranch:
		out = append(out, state{int(to / isa.WordSize), s.stack})
	case isa.FlowCall:
		if len(s.stack) < 8 {
			out = append(out, state{int(to / isa.WordSize), s.stack + string(rune(s.pc+1))})
		}
	case isa.FlowReturn:
		if s.stack == "" {
			return out, true
		}
		r := []rune(s.stack)
		out = append(out, state{int(r[len(r)-1]), string(r[:len(r)-1])})
	}
	return out, false
}

// A taken is a state and what a path has found out about P0 and P1: 1 true, 2 false, 0
// nothing.
type taken struct {
	state
	p [2]uint8
}

// choices returns whether the instruction at s may run, and may be passed over, and what the
// path knows then.
func choices(in isa.Inst, s taken) (run, skip taken, mayRun, maySkip bool) {
	run, skip, mayRun = s, s, true
	if !in.IsGuarded() {
		return run, skip, true, false
	}
	n := isa.GuardField.Get(in.Word)
	if n > 1 {
		return run, skip, true, true
	}
	yes, no := uint8(1), uint8(2)
	if isa.GuardNot.Get(in.Word) != 0 {
		yes, no = no, yes
	}
	run.p[n], skip.p[n] = yes, no
	return run, skip, s.p[n] != no, s.p[n] != yes
}

// neededWith is needed along paths on which a predicate keeps its value until it is written.
func neededWith(g *Graph, s taken, f isa.RegFile, n int) bool {
	seen := map[taken]bool{}
	var from func(s taken) bool // what runs at s.pc and after it
	after := func(s taken, in isa.Inst, ran bool) bool {
		if !ran {
			return from(taken{state{s.pc + 1, s.stack}, s.p})
		}
		list, left := next(g, s.state)
		if left {
			return true
		}
		if len(list) > 1 || in.Flow().Kind != isa.FlowNone && in.IsGuarded() { // not the one of passing over
			list = slices.DeleteFunc(list, func(x state) bool { return x == state{s.pc + 1, s.stack} && in.IsGuarded() })
		}
		for _, x := range list {
			if from(taken{x, s.p}) {
				return true
			}
		}
		return false
	}
	from = func(s taken) bool {
		if seen[s] || s.pc >= len(g.at) {
			return false
		}
		seen[s] = true
		in := g.Inst(s.pc)
		fx := in.Effects()
		run, skip, mayRun, maySkip := choices(in, s)
		guard := isa.RegSet{}
		if in.IsGuarded() {
			guard.Add(isa.FileP, int(isa.GuardField.Get(in.Word)), 1)
		}
		if guard.Has(f, n) || mayRun && fx.Reads.Has(f, n) {
			return true
		}
		for i := range 2 {
			if fx.Writes.Has(isa.FileP, i) {
				run.p[i] = 0
			}
		}
		return mayRun && !fx.Writes.Has(f, n) && after(run, in, true) || maySkip && after(skip, in, false)
	}
	in := g.Inst(s.pc)
	list, left := next(g, s.state)
	if in.Flow().Kind == isa.FlowNone || !in.IsGuarded() {
		return left || slices.ContainsFunc(list, func(x state) bool { return from(taken{x, s.p}) })
	}
	// The guard has chosen the way from s.
	run, skip, mayRun, maySkip := choices(in, s)
	return mayRun && after(run, in, true) || maySkip && after(skip, in, false)
}

// needed follows every path from the states after s and reports whether the register is
// read before it is overwritten.
func needed(g *Graph, s state, f isa.RegFile, n int) bool {
	seen := map[state]bool{}
	var walk func(s state) bool
	walk = func(s state) bool {
		list, left := next(g, s)
		if left {
			return true
		}
		for _, s := range list {
			if seen[s] {
				continue
			}
			seen[s] = true
			in := g.Inst(s.pc)
			fx := in.Effects()
			if fx.Reads.Has(f, n) || (in.IsGuarded() || !fx.Writes.Has(f, n)) && walk(s) {
				return true
			}
		}
		return false
	}
	return walk(s)
}

// TestLiveAgainstDefinition compares what is live in small random programs with calls with
// what following every path says: nothing is missing that is needed where predicates keep
// their values, and nothing is there that no path needs, whatever predicates do.
func TestLiveAgainstDefinition(t *testing.T) {
	for seed := range uint64(600) {
		r := rand.New(rand.NewPCG(seed, 2))
		text := randomCode(r, 3+r.IntN(10))
		g := New(assemble(t, "sm_90", text))
		reached := []state{{}}
		seen := map[state]bool{{}: true}
		pcs := map[int]bool{}
		for len(reached) > 0 {
			s := reached[len(reached)-1]
			reached = reached[:len(reached)-1]
			pcs[s.pc] = true
			list, _ := next(g, s)
			for _, s := range list {
				if !seen[s] {
					seen[s] = true
					reached = append(reached, s)
				}
			}
		}
		want, least := make([]isa.RegSet, len(g.at)), make([]isa.RegSet, len(g.at))
		all := g.Live().all
		for s := range seen {
			for n := range 4 {
				for _, f := range []isa.RegFile{isa.FileR, isa.FileP} {
					if all.Has(f, n) && needed(g, s, f, n) {
						want[s.pc].Add(f, n, 1)
					}
					if all.Has(f, n) && neededWith(g, taken{state: s}, f, n) {
						least[s.pc].Add(f, n, 1)
					}
				}
			}
		}
		for pc := range want {
			got := g.Live().After(pc)
			if missing := least[pc].Minus(got); !missing.IsEmpty() {
				t.Fatalf("seed %d: %s are needed after %d and not in %s\n%s", seed, missing, pc, got, text)
			}
			if more := got.Minus(want[pc]); len(pcs) == len(want) && !more.IsEmpty() {
				t.Fatalf("seed %d: after %d: %s, and nothing needs %s\n%s", seed, pc, got, more, text)
			}
		}
	}
}

// TestLiveEach ties the ways of asking together.
func TestLiveEach(t *testing.T) {
	g := New(assemble(t, "sm_90", "MOV R0, R1\n@P0 MOV R2, R0\nIADD3 R3, R2, R0, RZ\nSTG.E desc[UR4][R4.64], R3\nEXIT"))
	var order []int
	for k := range g.Blocks {
		g.Live().Each(k, func(i int, in isa.Inst, live *isa.RegSet) {
			order = append(order, i)
			if *live != g.Live().After(i) {
				t.Errorf("after %d: %s and %s", i, live, g.Live().After(i))
			}
		})
	}
	if !slices.Equal(order, []int{4, 3, 2, 1, 0}) && len(g.Blocks) == 1 {
		t.Errorf("order %v", order)
	}
	first := g.Live().After(0)
	if got := first.String(); got != "R0 R2 R4 R5 UR4 UR5 P0" {
		t.Errorf("after the first instruction: %s", got)
	}
	if p := g.Live().Pressure()[2]; p != (Pressure{R: 3, UR: 2}) {
		t.Errorf("pressure at 2: %+v", p)
	}
}

// BenchmarkLive is the graph and what is live of a kernel of 100,000 instructions with
// 20,000 blocks.
func BenchmarkLive(b *testing.B) {
	part := assemble(b, "sm_90", `
		S2R R0, SR_TID.X
		ISETP.GE.AND P0, PT, R0, R1, PT
		@P0 BRA 0x80
		LDG.E R4, desc[UR4][R2.64]
		FFMA R5, R4, R4, R5
		IADD3 R2, P1, R2, 0x4, RZ
		IADD3.X R3, RZ, R3, RZ, P1, !PT
		@!P1 BRA 0x30
		STG.E desc[UR4][R2.64], R5
		@P1 BRA 0x0`)
	c := Code{Table: part.Table}
	for len(c.Data) < 100_000*isa.WordSize {
		c.Data = append(c.Data, part.Data...)
	}
	b.ReportAllocs()
	for b.Loop() {
		New(c).Live()
	}
}
