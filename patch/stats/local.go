package stats

import (
	"strings"

	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/isa/kernel"
	"github.com/cupatch/cupatch/patch/code"
)

// Local counts what loads and stores of local memory move for a thread when each of them
// runs once, in bytes.
type Local struct {
	Stores int `json:"stores"`
	Loads  int `json:"loads"`
	// SpillStores and SpillLoads are what ptxas -v calls so, for the kernel and the device
	// functions in its section together: what moves at fixed places of the stack, registers
	// that functions save included. They are nil where an instruction shows that something
	// else is there as well, such as an array: the two cannot be told apart.
	SpillStores *int `json:"spill_stores,omitempty"`
	SpillLoads  *int `json:"spill_loads,omitempty"`
}

// stackPointer is the register with the stack pointer in what ptxas makes.
const stackPointer = 1

// countLocal counts the accesses of a section.
func countLocal(t *isa.Table, g *kernel.Graph) Local {
	var out Local
	var spills stackUse
	for b := range g.Blocks {
		for i := g.Blocks[b].Start; i < g.Blocks[b].End; i++ {
			in := g.Inst(i)
			if in.Status != isa.StatusKnown {
				continue
			}
			m := in.Memory()
			switch {
			case m.Space != isa.SpaceLocal || m.Op != isa.MemoryLoad && m.Op != isa.MemoryStore:
				spills.others = spills.others || takesStackAddress(in)
				continue
			case m.Op == isa.MemoryLoad:
				out.Loads += m.Bytes
			default:
				out.Stores += m.Bytes
			}
			spills.access(t, in, m)
		}
	}
	if stores, loads, ok := spills.sum(); ok {
		out.SpillStores, out.SpillLoads = &stores, &loads
	}
	return out
}

// A stackUse is what is done with the stack.
type stackUse struct {
	stores, loads  int            // bytes at fixed places
	stored, loaded map[int64]bool // which places, in words of four bytes
	others         bool           // there is something else than fixed places
}

// access notes a load or store.
func (u *stackUse) access(t *isa.Table, in isa.Inst, m isa.Memory) {
	at, ok := stackOffset(t, in)
	if !ok || m.Bytes < 4 || at%4 != 0 {
		u.others = true
		return
	}
	if u.stored == nil {
		u.stored, u.loaded = map[int64]bool{}, map[int64]bool{}
	}
	words, n := u.stored, &u.stores
	if m.Op == isa.MemoryLoad {
		words, n = u.loaded, &u.loads
	}
	*n += m.Bytes
	for i := range int64(m.Bytes / 4) {
		words[at/4+i] = true
	}
}

// sum returns the bytes of stores and loads; ok is false where something else is on the
// stack. What is stored and never loaded is there for something else.
func (u *stackUse) sum() (stores, loads int, ok bool) {
	for w := range u.stored {
		if !u.loaded[w] {
			return 0, 0, false
		}
	}
	return u.stores, u.loads, !u.others
}

// takesStackAddress reports whether an instruction makes an address out of the stack
// pointer: it reads it and does not move it.
func takesStackAddress(in isa.Inst) bool {
	fx := in.Effects()
	return fx.Reads.Has(isa.FileR, stackPointer) && !fx.Writes.Has(isa.FileR, stackPointer)
}

// stackOffset returns the constant that an access adds to the stack pointer; ok is false
// where its address is anything else.
func stackOffset(t *isa.Table, in isa.Inst) (off int64, ok bool) {
	for _, s := range t.Split(in, 0).Operands {
		op := code.Operand(s)
		at := op.Address()
		if at < 0 {
			continue
		}
		rest, ok := strings.CutPrefix(strings.TrimSuffix(s[at:], "]"), "R1")
		off, _ := op.Integer()
		return off, ok && (rest == "" || strings.HasPrefix(rest, "+0x") || strings.HasPrefix(rest, "+-0x"))
	}
	return 0, false
}
