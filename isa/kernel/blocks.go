package kernel

import (
	"slices"

	"github.com/cupatch/cupatch/isa"
)

// Code is what the graph is made from: the instructions of one section and what the file
// says of them.
type Code struct {
	Table *isa.Table
	Data  []byte // the section, whole instructions
	// Functions are the offsets, in bytes from the start of the section, at which
	// functions start; the first instruction is always one of them.
	Functions []uint64
	// Targets has the offsets that an indirect branch may go to, by the offset of the
	// branch, all in bytes. Where it has none, the branch is taken to end its path.
	Targets map[uint64][]uint64
}

// New returns the control flow of c. It accepts any words: an instruction that the
// tables do not know falls through, and a target outside the section, or inside an
// instruction, makes the block Open.
//
// A call falls through to the instruction after it: its target becomes an entry, not a
// successor. So does BSSY, whose address says where threads meet, not where they go.
// WARPSYNC.COLLECTIVE falls through too, as nvdisasm sees it.
//
// Time and memory are linear in the size of the code, but for a logarithm in the search
// for dominators.
func New(c Code) *Graph {
	b := &builder{code: c, n: len(c.Data) / isa.WordSize}
	b.leader = make([]bool, b.n+1)
	b.mark(0)
	for _, f := range c.Functions {
		b.entry(f)
	}
	for from, list := range c.Targets {
		if _, ok := b.index(from); ok {
			for _, to := range list {
				b.mark(to)
			}
		}
	}
	b.scan()
	g := b.blocks()
	g.analyze()
	return g
}

// A builder finds blocks and edges.
type builder struct {
	code    Code
	n       int    // instructions
	leader  []bool // where blocks start; [n] is not used
	entries []int  // instructions
	ends    []end  // the instructions that end a block, in order
}

// An end is an instruction that ends a block.
type end struct {
	at     int
	flow   isa.Flow
	target int // instruction that a branch or a call goes to, -1 for none
}

// index returns the instruction at an offset in bytes.
func (b *builder) index(offset uint64) (int, bool) {
	i := offset / isa.WordSize
	return int(i), offset%isa.WordSize == 0 && i < uint64(b.n)
}

// mark makes a block start at an offset.
func (b *builder) mark(offset uint64) {
	if i, ok := b.index(offset); ok {
		b.leader[i] = true
	}
}

// entry makes execution start at an offset.
func (b *builder) entry(offset uint64) {
	if i, ok := b.index(offset); ok {
		b.leader[i] = true
		b.entries = append(b.entries, i)
	}
}

// scan decodes every instruction and notes where blocks start and end.
func (b *builder) scan() {
	for i := range b.n {
		in := b.code.Table.Decode(isa.LoadWord(b.code.Data[i*isa.WordSize:]))
		if in.Status != isa.StatusKnown {
			continue
		}
		flow := in.Flow()
		if flow.Kind == isa.FlowNone {
			continue
		}
		pc := uint64(i) * isa.WordSize
		target, relative := in.Target(pc)
		if relative && flow.Kind != isa.FlowIndirect {
			b.mark(target)
		}
		if !flow.EndsBlock() {
			continue
		}
		b.leader[i+1] = true
		e := end{at: i, flow: flow, target: -1}
		if to, ok := b.index(target); relative && ok {
			e.target = to
			if flow.Kind == isa.FlowCall {
				b.entries = append(b.entries, to)
			}
		}
		b.ends = append(b.ends, e)
	}
}

// blocks cuts the code into blocks and joins them.
func (b *builder) blocks() *Graph {
	g := &Graph{code: b.code, at: make([]int32, b.n)}
	count := 0
	for i := range b.n {
		if b.leader[i] {
			count++
		}
		g.at[i] = int32(count - 1)
	}
	g.Blocks = make([]Block, count)
	for i, next := b.n-1, b.n; i >= 0; i-- {
		if b.leader[i] {
			g.Blocks[g.at[i]] = Block{Start: i, End: next, Idom: -1, Loop: -1}
			next = i
		}
	}
	g.Entries = b.entryBlocks(g)
	ends := b.ends
	for k := range g.Blocks {
		x := &g.Blocks[k]
		if len(ends) > 0 && ends[0].at == x.End-1 {
			b.join(g, x, ends[0])
			ends = ends[1:]
		} else {
			b.fall(x, k+1, g)
		}
	}
	return g
}

func (b *builder) entryBlocks(g *Graph) []int {
	if b.n == 0 {
		return nil
	}
	list := []int{0}
	for _, i := range b.entries {
		list = append(list, g.Block(i))
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// fall joins x with the block after it; code that ends without leaving is open.
func (b *builder) fall(x *Block, next int, g *Graph) {
	if next == len(g.Blocks) {
		x.Open = true
		return
	}
	x.Succs = append(x.Succs, Edge{Block: next, Kind: FallThrough})
}

// join adds the edges that the instruction at the end of x says.
func (b *builder) join(g *Graph, x *Block, e end) {
	if !e.flow.NeverPasses() {
		b.fall(x, g.Block(x.Start)+1, g)
	}
	switch e.flow.Kind {
	case isa.FlowBranch:
		if e.target < 0 {
			x.Open = true
			return
		}
		x.Succs = append(x.Succs, Edge{Block: g.Block(e.target), Kind: Taken})
	case isa.FlowIndirect:
		list := b.code.Targets[uint64(e.at)*isa.WordSize]
		x.Open = len(list) == 0
		seen := map[int]bool{}
		for _, to := range list {
			i, ok := b.index(to)
			if !ok {
				x.Open = true
			} else if k := g.Block(i); !seen[k] {
				seen[k] = true
				x.Succs = append(x.Succs, Edge{Block: k, Kind: Indirect})
			}
		}
	}
}
