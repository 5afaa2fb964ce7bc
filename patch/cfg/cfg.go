// Package cfg describes the control flow of kernels for people and other programs: as a
// value that encodes to JSON, and as text for Graphviz.
//
// Blocks, edges and loops are those of [kernel.Graph]; nothing is added to them but counts.
package cfg

import (
	"slices"

	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/isa/kernel"
	"github.com/cupatch/cupatch/patch/code"
)

// A Graph is the control flow of a kernel and of the device functions in its section.
// Addresses are in bytes from the start of the section.
type Graph struct {
	File         string  `json:"file,omitempty"`
	Entry        int     `json:"entry,omitempty"` // number in a container
	Arch         string  `json:"arch,omitempty"`
	Kernel       string  `json:"kernel"`
	Demangled    string  `json:"demangled,omitempty"`
	Registers    int     `json:"registers"` // of a thread, 0 if not known
	Instructions int     `json:"instructions"`
	Irreducible  bool    `json:"irreducible,omitempty"` // some cycle has several entries, and is no loop
	Blocks       []Block `json:"blocks"`
	Loops        []Loop  `json:"loops"` // by depth, then by address

	state *code.State
}

// A Block is a basic block. Its number is its place in the order of addresses.
type Block struct {
	Block        int             `json:"block"`
	Start        int             `json:"start"` // address of its first instruction
	End          int             `json:"end"`   // address after its last one
	Instructions int             `json:"instructions"`
	Function     string          `json:"function,omitempty"` // that starts here
	Entry        bool            `json:"entry,omitempty"`    // execution may start here
	Unreachable  bool            `json:"unreachable,omitempty"`
	Open         bool            `json:"open,omitempty"` // control may leave to where nobody knows
	Loop         *int            `json:"loop,omitempty"` // innermost loop that it is in
	Depth        int             `json:"depth"`          // how many loops it is in
	Idom         *int            `json:"idom,omitempty"` // immediate dominator
	Pressure     kernel.Pressure `json:"pressure"`       // highest in the block, each file for itself
	Successors   []Edge          `json:"successors"`
	Predecessors []Edge          `json:"predecessors"`
	Calls        *int            `json:"calls,omitempty"` // the block that it calls at its end
}

// An Edge leads to another block, or comes from one.
type Edge struct {
	Block int    `json:"block"`
	Kind  string `json:"kind"`           // as [kernel.EdgeKind] has it
	Back  bool   `json:"back,omitempty"` // to the header of a loop, from inside
}

// A Loop is a natural loop.
type Loop struct {
	Loop         int   `json:"loop"`
	Header       int   `json:"header"` // the block that every way into the loop leads through
	Latches      []int `json:"latches"`
	Blocks       []int `json:"blocks"` // those of the loops inside are listed there only
	Parent       *int  `json:"parent,omitempty"`
	Depth        int   `json:"depth"`
	Instructions int   `json:"instructions"` // loops inside included
}

// New describes a kernel.
func New(t *isa.Table, c *code.Kernel) *Graph {
	state := code.NewState(c, t)
	flow := state.Flow()
	g := &Graph{
		Kernel: c.Name, Registers: c.Regs, Instructions: state.N, Irreducible: flow.Irreducible,
		Blocks: make([]Block, len(flow.Blocks)), Loops: make([]Loop, len(flow.Loops)), state: state,
	}
	names := map[int]string{}
	for _, f := range c.Functions() {
		if _, ok := names[int(f.Offset)]; !ok {
			names[int(f.Offset)] = f.Name
		}
	}
	pressure := flow.Live().Pressure()
	for i := range g.Blocks {
		b := &g.Blocks[i]
		*b = block(flow, i, pressure)
		b.Function = names[b.Start]
	}
	for i := range g.Loops {
		x := &flow.Loops[i]
		g.Loops[i] = Loop{Loop: i, Header: x.Header, Latches: x.Latches, Blocks: x.Blocks, Parent: known(x.Parent), Depth: x.Depth}
	}
	for i := len(g.Loops) - 1; i >= 0; i-- { // a loop comes before those inside it
		l := &g.Loops[i]
		for _, b := range l.Blocks {
			l.Instructions += g.Blocks[b].Instructions
		}
		if l.Parent != nil {
			g.Loops[*l.Parent].Instructions += l.Instructions
		}
	}
	return g
}

// known returns a pointer to i, nil for -1.
func known(i int) *int {
	if i < 0 {
		return nil
	}
	return &i
}

// block describes block i.
func block(g *kernel.Graph, i int, pressure []kernel.Pressure) Block {
	x := &g.Blocks[i]
	_, entry := slices.BinarySearch(g.Entries, i)
	b := Block{
		Block: i, Start: x.Start * isa.WordSize, End: x.End * isa.WordSize, Instructions: x.End - x.Start,
		Entry: entry, Unreachable: !x.Reachable, Open: x.Open, Loop: known(x.Loop), Idom: known(x.Idom),
		Depth: g.LoopDepth(x.Start), Successors: []Edge{}, Predecessors: []Edge{},
	}
	for _, e := range x.Succs {
		b.Successors = append(b.Successors, Edge{e.Block, e.Kind.String(), g.Dominates(e.Block, i)})
	}
	for _, e := range x.Preds {
		b.Predecessors = append(b.Predecessors, Edge{e.Block, e.Kind.String(), g.Dominates(i, e.Block)})
	}
	for _, p := range pressure[x.Start:x.End] {
		b.Pressure = kernel.Pressure{R: max(b.Pressure.R, p.R), UR: max(b.Pressure.UR, p.UR), P: max(b.Pressure.P, p.P), UP: max(b.Pressure.UP, p.UP)}
	}
	if to, ok := g.Callee(i); ok {
		b.Calls = known(to)
	}
	return b
}
