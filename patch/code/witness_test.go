package code_test

import (
	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/isa/kernel"
)

// A witness finds paths in a section without calls that show that a register is needed.
type witness struct {
	g    *kernel.Graph
	ends []int // by instruction: the block that it ends, -1 for none
}

func newWitness(g *kernel.Graph, n int) *witness {
	w := &witness{g, make([]int, n)}
	for i := range w.ends {
		w.ends[i] = -1
	}
	for k := range g.Blocks {
		if end := g.Blocks[k].End; end <= n {
			w.ends[end-1] = k
		}
	}
	return w
}

// A step is a place on a path and what the path says of predicates: bit n is P n, bit 8+n UP n.
type step struct {
	pc         int
	known, yes uint16
}

// needed reports whether the value that register n of file f has after instruction i is read on
// some path before another takes its place. Predicates keep their values until they are
// written; a written one may have any. What has not been found after many steps is not there.
func (w *witness) needed(i int, f isa.RegFile, n int) bool {
	todo := w.onward(nil, step{pc: i}, false)
	seen := map[step]bool{}
	for len(todo) > 0 && len(seen) < 1<<17 {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if s.pc >= len(w.ends) || seen[s] {
			continue
		}
		seen[s] = true
		in := w.g.Inst(s.pc)
		fx := in.Effects()
		if _, _, mayRun, _ := choose(in, s); mayRun && fx.Reads.Has(f, n) || !in.HasEffects() {
			return true
		}
		todo = w.onward(todo, s, fx.Writes.Has(f, n))
	}
	return false
}

// onward adds the places after s to list; over says that the search ends where the instruction
// at s runs.
func (w *witness) onward(list []step, s step, over bool) []step {
	in := w.g.Inst(s.pc)
	run, skip, mayRun, maySkip := choose(in, s)
	if maySkip {
		list = w.after(list, skip, false)
	}
	if mayRun && !over {
		writes := in.Effects().Writes
		run.known &^= uint16(writes.P) | uint16(writes.UP)<<8
		run.yes &= run.known
		list = w.after(list, run, true)
	}
	return list
}

// choose returns whether an instruction may run at s and whether it may be passed over, and what
// the path knows then.
func choose(in isa.Inst, s step) (run, skip step, mayRun, maySkip bool) {
	if !in.IsGuarded() {
		return s, s, true, false
	}
	bit := uint16(1) << isa.GuardField.Get(in.Word)
	if in.Variant.Guard == isa.GuardUP {
		bit <<= 8
	}
	not := isa.GuardNot.Get(in.Word) != 0
	if bit&0x8080 != 0 { // PT
		return s, s, !not, not
	}
	run, skip = s, s
	run.known, skip.known = s.known|bit, s.known|bit
	run.yes, skip.yes = s.yes|bit, s.yes&^bit
	if not {
		run.yes, skip.yes = skip.yes, run.yes
	}
	return run, skip, s.known&bit == 0 || s.yes&bit == run.yes&bit, s.known&bit == 0 || s.yes&bit == skip.yes&bit
}

// after adds the places after s to list, where the instruction at s ran or did not.
func (w *witness) after(list []step, s step, ran bool) []step {
	k := w.ends[s.pc]
	if k < 0 || !ran {
		return append(list, step{s.pc + 1, s.known, s.yes})
	}
	for _, e := range w.g.Blocks[k].Succs {
		in := w.g.Inst(s.pc)
		if in.IsGuarded() && e.Kind == kernel.FallThrough && in.Flow().Kind != isa.FlowNone && in.Flow().Kind != isa.FlowSync {
			continue // that is passing over it
		}
		list = append(list, step{w.g.Blocks[e.Block].Start, s.known, s.yes})
	}
	return list
}
