package shape

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/isa"
)

// write makes the instructions say where they lead now, and the cubin with them.
func (p *plan) write() ([]byte, error) {
	n := p.state.N
	relocs := p.state.Relocations()
	g := p.state.DataFlow()
	p.back = slices.Clone(p.label)
	indirect := false
	for i := range n {
		in := g.Inst(i)
		if in.Status == isa.StatusUnknown {
			return nil, fmt.Errorf("the word at %#x is not known; it may be a branch", i*isa.WordSize)
		}
		if in.Flow().Kind != isa.FlowCall {
			continue
		}
		if p.inst[i] >= 0 {
			p.back[i+1] = p.inst[i] + 1
		}
		_, direct := in.Target(0)
		indirect = indirect || direct && readsRegister(in)
	}
	addresses, err := g.Addresses(func(i int) bool { _, ok := relocs[uint64(i*isa.WordSize)]; return ok })
	if err != nil {
		return nil, err
	}
	m := elfx.CodeMove{
		Kernel: p.kernel.Name, Code: make([]byte, len(p.items)*isa.WordSize), Step: isa.WordSize,
		Inst: p.inst, Label: p.label, Return: p.back, FuncTable: indirect,
	}
	for j, x := range p.items {
		w := x.word
		in := p.state.Table.Decode(w)
		switch to, holds := addresses[x.old]; {
		case x.old < 0:
			if in.Flow().Kind == isa.FlowExit {
				m.Exits = append(m.Exits, j)
			}
		case holds:
			if w, err = p.constant(in, to); err != nil {
				return nil, fmt.Errorf("%#x: %w", x.old*isa.WordSize, err)
			}
		case relocs[uint64(x.old*isa.WordSize)] == "":
			if w, err = p.leads(in, x.old, j); err != nil {
				return nil, fmt.Errorf("%#x: %s: %w", x.old*isa.WordSize, p.state.Table.Text(in, uint64(x.old*isa.WordSize)), err)
			}
		}
		w.Store(m.Code[j*isa.WordSize:])
	}
	return p.target.Cubin.MoveCode(m)
}

// readsRegister reports whether an instruction has an operand in a register.
func readsRegister(in isa.Inst) bool {
	return slices.ContainsFunc(in.AppendOperands(nil), func(o isa.Operand) bool {
		return o.IsReg && o.First >= 0 && (o.File == isa.FileR || o.File == isa.FileUR)
	})
}

// constant puts the new address of an instruction into one that holds it as a number.
func (p *plan) constant(in isa.Inst, to int) (isa.Word, error) {
	f, ok := in.Constant()
	if !ok || to < 0 || to >= len(p.back) {
		return in.Word, errors.New("its number is no address")
	}
	return f.Set(in.Word, uint64(p.back[to]*isa.WordSize))
}

// leads returns the word of old instruction i at its new place j, where it leads to what it
// led to.
func (p *plan) leads(in isa.Inst, i, j int) (isa.Word, error) {
	pc, at := uint64(i)*isa.WordSize, uint64(j)*isa.WordSize
	to, ok := in.Target(pc)
	if ok {
		places := p.label
		if in.Flow().Kind == isa.FlowNone {
			places = p.back // LEPC: an address to return to
		}
		next, ok := follow(places, to)
		if !ok {
			return in.Word, fmt.Errorf("leads to %#x, outside the kernel", to)
		}
		if next-at == to-pc {
			return in.Word, nil
		}
		return in.WithTarget(at, next)
	}
	switch in.Flow().Kind {
	case isa.FlowIndirect:
		return p.indirect(in, pc, at)
	case isa.FlowBranch, isa.FlowCall:
		if !readsRegister(in) {
			return in.Word, errors.New("leads to an address that does not move with the code")
		}
	}
	return in.Word, nil
}

// follow returns where an old byte address is by a table of places.
func follow(places []int, to uint64) (uint64, bool) {
	if to%isa.WordSize != 0 || to/isa.WordSize >= uint64(len(places)) {
		return 0, false
	}
	return uint64(places[to/isa.WordSize]) * isa.WordSize, true
}

// indirect moves a branch to a register and a number that counts from its own end: BRX R4
// -0xe0.
func (p *plan) indirect(in isa.Inst, pc, at uint64) (isa.Word, error) {
	text := p.state.Table.Text(in, pc)
	cut := strings.LastIndexByte(text, ' ')
	number, err := strconv.ParseInt(text[cut+1:], 0, 64)
	if err != nil {
		return in.Word, errors.New("leads to where a register says alone")
	}
	base, ok := follow(p.label, pc+isa.WordSize+uint64(number))
	if !ok {
		return in.Word, errors.New("counts from outside the kernel")
	}
	now := int64(base - at - isa.WordSize)
	if now == number {
		return in.Word, nil
	}
	sign := ""
	if now < 0 {
		sign, now = "-", -now
	}
	return p.state.Table.Encode(fmt.Sprintf("%s%s%#x", text[:cut+1], sign, now), at, &in.Word)
}
