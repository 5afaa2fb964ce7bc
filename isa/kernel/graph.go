package kernel

import (
	"sync"

	"github.com/cupatch/cupatch/isa"
)

// A Graph is the control flow of the code in one section: a kernel, and the device
// functions that stand in the section with it.
type Graph struct {
	Blocks  []Block // in the order of their addresses
	Loops   []Loop  // by depth, then by address
	Entries []int   // blocks where execution may start: the first, functions, targets of calls

	// Irreducible says that some cycle can be entered in more than one place: it is no
	// loop, and loop depths say nothing of it.
	Irreducible bool

	code    Code
	order   []int32 // blocks that can be reached, in depth-first order
	in, out []int32 // numbers of a walk of the dominator tree
	at      []int32 // block of each instruction

	liveOnce sync.Once
	live     *Live
}

// A Block is a run of instructions that is entered at its first one only and left at
// its last one only.
type Block struct {
	Start, End int    // instructions [Start, End), counted from the start of the section
	Succs      []Edge // where execution may go on, in the order of Kind
	Preds      []Edge // where it may come from: Block is the block it comes from
	Idom       int    // immediate dominator, -1 for none
	Loop       int    // innermost loop, an index of Graph.Loops, or -1
	Reachable  bool   // from an entry
	Open       bool   // control may leave to where the graph does not know; see New
}

// An Edge leads from one block to another.
type Edge struct {
	Block int
	Kind  EdgeKind
}

// An EdgeKind says how control gets from a block to the next.
type EdgeKind uint8

const (
	FallThrough EdgeKind = iota // to the next address
	Taken                       // a direct branch
	Indirect                    // a branch through a register, to a target that was given
)

func (k EdgeKind) String() string {
	return [...]string{"fall through", "taken", "indirect"}[k]
}

// Inst returns instruction i.
func (g *Graph) Inst(i int) isa.Inst {
	return g.code.Table.Decode(isa.LoadWord(g.code.Data[i*isa.WordSize:]))
}

// Block returns the index of the block that instruction i is in.
func (g *Graph) Block(i int) int { return int(g.at[i]) }

// Callee returns the block that block k calls at its end, and false where it ends with no
// call, or with one to another section or to an unknown place.
func (g *Graph) Callee(k int) (block int, ok bool) {
	last := g.Blocks[k].End - 1
	in := g.Inst(last)
	if in.Flow().Kind != isa.FlowCall {
		return 0, false
	}
	to, ok := in.Target(uint64(last) * isa.WordSize)
	if !ok || to%isa.WordSize != 0 || to/isa.WordSize >= uint64(len(g.at)) {
		return 0, false
	}
	return g.Block(int(to / isa.WordSize)), true
}

// LoopDepth returns how many loops instruction i is in.
func (g *Graph) LoopDepth(i int) int {
	if l := g.Blocks[g.at[i]].Loop; l >= 0 {
		return g.Loops[l].Depth
	}
	return 0
}

// Innermost reports whether instruction i is in a loop that has no other loop in it, and in
// none inside that.
func (g *Graph) Innermost(i int) bool {
	l := g.Blocks[g.at[i]].Loop
	return l >= 0 && g.Loops[l].Innermost
}

// InHeader reports whether instruction i is in the block through which a loop is entered.
func (g *Graph) InHeader(i int) bool {
	k := g.at[i]
	l := g.Blocks[k].Loop
	return l >= 0 && g.Loops[l].Header == int(k)
}

// analyze fills in all that follows from blocks, successors and entries.
func (g *Graph) analyze() {
	g.predecessors()
	g.dominators()
	g.numberDominators()
	g.findLoops()
}

// predecessors turns the edges around.
func (g *Graph) predecessors() {
	count := make([]int, len(g.Blocks))
	total := 0
	for b := range g.Blocks {
		for _, e := range g.Blocks[b].Succs {
			count[e.Block]++
			total++
		}
	}
	all := make([]Edge, total)
	for b := range g.Blocks {
		g.Blocks[b].Preds, all = all[:0:count[b]], all[count[b]:]
	}
	for b := range g.Blocks {
		for _, e := range g.Blocks[b].Succs {
			to := &g.Blocks[e.Block]
			to.Preds = append(to.Preds, Edge{Block: b, Kind: e.Kind})
		}
	}
}
