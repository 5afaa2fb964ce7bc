package kernel

import (
	"errors"
	"fmt"

	"github.com/cupatch/cupatch/isa"
)

// ErrUnknownAddress says that code computes an address of code in a way that is not
// understood.
var ErrUnknownAddress = errors.New("an address in the code is computed in a way that is not understood")

// returnRegister is the register in which functions that are called through a register
// find where to return to: NVIDIA's calling convention.
const returnRegister = 20

// Addresses returns the instructions that hold the address of another one as a number, and
// which: the moves that put into a register where a call returns to, and, with LEPC, where
// they are themselves. The code cannot move without them. relocated tells instructions
// whose numbers a relocation fills in.
//
// Every call that returns needs such an address. Where there is none, or where two
// registers might have it, the error is ErrUnknownAddress.
func (g *Graph) Addresses(relocated func(i int) bool) (map[int]int, error) {
	a := &addresses{g: g, relocated: relocated, defs: g.Defs(), out: map[int]int{}, moves: map[uint64][]int{}, returning: map[int]bool{}}
	for i := range g.at {
		if v, ok := a.constant(i); ok && !relocated(i) {
			a.moves[v] = append(a.moves[v], i)
		}
	}
	for k := range g.Blocks {
		if a.defs.calls.calling(k) && a.returns(k) {
			if err := a.call(g.Blocks[k].End - 1); err != nil {
				return nil, err
			}
		}
	}
	return a.out, nil
}

const (
	maxCopies = 8  // through how many copies an address is followed
	maxAhead  = 64 // how many instructions before a call its address may be made by LEPC or a relocation
)

type addresses struct {
	g         *Graph
	relocated func(i int) bool
	defs      *Defs
	moves     map[uint64][]int // instructions that put a number into a register, by the number
	returning map[int]bool     // blocks from which some path leads to a return, once asked for
	out       map[int]int
}

// returns reports whether the function that block k calls returns, as far as anybody
// knows. ptxas calls a place in the same function, too, that never does.
func (a *addresses) returns(k int) bool {
	callee, ok := a.g.Callee(k)
	if !ok {
		return true
	}
	if yes, ok := a.returning[callee]; ok {
		return yes
	}
	seen := make([]bool, len(a.g.Blocks))
	work := []int{callee}
	seen[callee] = true
	yes := false
	for len(work) > 0 && !yes {
		b := &a.g.Blocks[work[len(work)-1]]
		work = work[:len(work)-1]
		yes = b.Open || a.g.Inst(b.End-1).Flow().Kind == isa.FlowReturn
		for _, e := range b.Succs {
			if !seen[e.Block] {
				seen[e.Block] = true
				work = append(work, e.Block)
			}
		}
	}
	a.returning[callee] = yes
	return yes
}

// call finds what puts the address into a register that the call at instruction i returns to.
func (a *addresses) call(i int) error {
	back := uint64(i+1) * isa.WordSize
	for s := i - 1; s >= max(0, i-maxAhead); s-- {
		in := a.g.Inst(s)
		if to, ok := in.Target(uint64(s) * isa.WordSize); ok && to == back && in.Flow().Kind == isa.FlowNone {
			return nil // LEPC R20, address
		}
		if _, ok := in.Constant(); ok && a.relocated(s) {
			return nil
		}
	}
	register, setters := -1, []int(nil)
	for _, s := range a.moves[back] {
		in := a.g.Inst(s)
		for _, x := range in.Accesses(nil) {
			if !x.Writes || x.File != isa.FileR || x.First == register {
				continue
			}
			list, ok := a.all(i, x.First, back)
			if !ok {
				continue
			}
			if register >= 0 {
				return a.unknown(i, fmt.Sprintf("R%d and R%d both hold the address that it returns to", register, x.First))
			}
			register, setters = x.First, list
		}
	}
	if register < 0 {
		return a.setters(i, i, returnRegister, maxCopies)
	}
	for _, s := range setters {
		a.out[s] = i + 1
	}
	return nil
}

func (a *addresses) unknown(call int, why string) error {
	return fmt.Errorf("the call at %#x: %s: %w", call*isa.WordSize, why, ErrUnknownAddress)
}

// all returns the instructions that put a number into a register that instruction i reads,
// and false where it may have another value.
func (a *addresses) all(i, register int, number uint64) ([]int, bool) {
	var out []int
	for _, s := range a.defs.Reaching(i, isa.FileR, register) {
		if s.Inst < 0 || s.Call {
			return nil, false
		}
		if v, ok := a.constant(s.Inst); !ok || v != number || a.relocated(s.Inst) {
			return nil, false
		}
		out = append(out, s.Inst)
	}
	return out, len(out) > 0
}

// constant returns the number that instruction i moves into a register.
func (a *addresses) constant(i int) (uint64, bool) {
	in := a.g.Inst(i)
	f, ok := in.Constant()
	return f.Get(in.Word), ok
}

// setters finds what puts the address after the call into register r, as instruction at
// sees it.
func (a *addresses) setters(call, at, r, copies int) error {
	unknown := func() error {
		return a.unknown(call, fmt.Sprintf("nothing is seen to put the address that it returns to into a register; R%d comes from elsewhere", r))
	}
	back := uint64(call+1) * isa.WordSize
	for _, s := range a.defs.Reaching(at, isa.FileR, r) {
		if s.Inst < 0 || s.Call {
			return unknown()
		}
		if a.relocated(s.Inst) {
			continue
		}
		in := a.g.Inst(s.Inst)
		if v, ok := a.constant(s.Inst); ok {
			if v != back {
				return unknown()
			}
			a.out[s.Inst] = call + 1
			continue
		}
		if to, ok := in.Target(uint64(s.Inst) * isa.WordSize); ok && to == back && in.Flow().Kind == isa.FlowNone {
			continue // LEPC R20, address
		}
		switch from := sources(in); {
		case in.Formula() == isa.FormulaCopy && len(from) == 1 && copies > 0:
			if err := a.setters(call, s.Inst, from[0], copies-1); err != nil {
				return err
			}
		case in.Formula() == isa.FormulaSum && a.sum(call, s.Inst, from):
		default:
			return unknown()
		}
	}
	return nil
}

// sources returns the registers that an instruction reads.
func sources(in isa.Inst) []int {
	var out []int
	for _, x := range in.Accesses(nil) {
		if x.File == isa.FileR && x.Reads {
			for n := range x.Count {
				out = append(out, x.First+n)
			}
		}
	}
	return out
}

// sum understands LEPC R8; MOV R11, back; MOV R20, address of the LEPC; IADD3 R20, -R20, R11,
// R8 as older compilers write it, and reports whether instruction i is such a sum.
func (a *addresses) sum(call, i int, from []int) bool {
	found := map[int]int{}
	lepc := -1
	for _, r := range from {
		list := a.defs.Reaching(i, isa.FileR, r)
		if len(list) != 1 || list[0].Inst < 0 || list[0].Call {
			return false
		}
		s := list[0].Inst
		if v, ok := a.constant(s); ok {
			found[s] = int(v / isa.WordSize)
			continue
		}
		if lepc >= 0 || len(sources(a.g.Inst(s))) > 0 {
			return false
		}
		lepc = s
	}
	back, self := 0, 0
	for _, to := range found {
		switch to {
		case call + 1:
			back++
		case lepc:
			self++
		}
	}
	if len(from) != 3 || lepc < 0 || back != 1 || self != 1 {
		return false
	}
	for s, to := range found {
		a.out[s] = to
	}
	return true
}
