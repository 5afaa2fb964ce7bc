package kernel

import "slices"

// A Loop is a natural loop: the blocks that can reach one of its back edges without
// passing its header. All back edges to one header make one loop.
//
// A branch backwards makes no loop by itself: ptxas puts slow paths after the code and
// branches back. A cycle that can be entered in more than one place has no header and is
// not listed; see Graph.Irreducible.
type Loop struct {
	Header  int   // the block through which every path into the loop leads
	Latches []int // blocks with an edge back to the header, in order
	Blocks  []int // in order, the header included; those of inner loops are listed there only
	Parent  int   // the index of the loop around it, or -1
	Depth   int   // 1 for a loop that is in no other

	Innermost bool // there is no other loop in it
}

// findLoops fills in Loops, the Loop of each block, and Irreducible.
//
// Headers are visited from the inside to the outside. A finished loop is collapsed into
// its header, so that each block is walked over once: nearly linear.
func (g *Graph) findLoops() {
	n := len(g.Blocks)
	f := loopFinder{g: g, into: make([]int32, n), of: make([]int32, n)}
	for b := range n {
		f.into[b], f.of[b] = int32(b), -1
	}
	for i := len(g.order) - 1; i >= 0; i-- {
		f.header(int(g.order[i]))
	}
	g.sortLoops(f.of)
	g.Irreducible = f.irreducible()
}

type loopFinder struct {
	g    *Graph
	into []int32 // a forest: the header of the loop that a block was collapsed into
	of   []int32 // innermost loop of a block found so far, -1 for none
	work []int32
}

// find returns the header that b is collapsed into, b itself if there is none.
func (f *loopFinder) find(b int32) int32 {
	for f.into[b] != b {
		f.into[b] = f.into[f.into[b]]
		b = f.into[b]
	}
	return b
}

// header finds the loop of header h, if it has one. Loops whose header comes later in
// the search are done and collapsed.
func (f *loopFinder) header(h int) {
	g := f.g
	var latches []int
	for _, e := range g.Blocks[h].Preds {
		if g.Dominates(h, e.Block) {
			latches = append(latches, e.Block)
		}
	}
	if latches == nil {
		return
	}
	slices.Sort(latches)
	latches = slices.Compact(latches)
	l := int32(len(g.Loops))
	g.Loops = append(g.Loops, Loop{Header: h, Latches: latches, Parent: -1})
	f.work = f.work[:0]
	for _, b := range latches {
		f.work = append(f.work, int32(b))
	}
	for len(f.work) > 0 {
		b := f.find(f.work[len(f.work)-1])
		f.work = f.work[:len(f.work)-1]
		if int(b) == h {
			continue
		}
		if inner := f.of[b]; inner < 0 {
			f.of[b] = l
		} else { // b is the header of a loop inside
			g.Loops[inner].Parent = int(l)
		}
		f.into[b] = int32(h)
		for _, e := range g.Blocks[b].Preds {
			if g.Blocks[e.Block].Reachable {
				f.work = append(f.work, int32(e.Block))
			}
		}
	}
	f.of[h] = l
}

// sortLoops puts the loops in the order of their headers, an outer loop before those
// inside it, and lists their blocks. of is the innermost loop of each block.
func (g *Graph) sortLoops(of []int32) {
	n := len(g.Loops)
	for l := n - 1; l >= 0; l-- { // a loop is found after those inside it
		x := &g.Loops[l]
		x.Depth = 1
		if x.Parent >= 0 {
			x.Depth = g.Loops[x.Parent].Depth + 1
		}
	}
	perm := make([]int, n)
	for i := range perm {
		perm[i] = i
	}
	slices.SortFunc(perm, func(a, b int) int {
		x, y := &g.Loops[a], &g.Loops[b]
		if x.Depth != y.Depth {
			return x.Depth - y.Depth
		}
		return x.Header - y.Header
	})
	now := make([]int, n)
	loops := make([]Loop, n)
	for i, old := range perm {
		now[old], loops[i] = i, g.Loops[old]
	}
	for i := range loops {
		loops[i].Innermost = true
		if p := loops[i].Parent; p >= 0 {
			loops[i].Parent = now[p]
			loops[now[p]].Innermost = false // which is before this one
		}
	}
	g.Loops = loops
	for b := range g.Blocks {
		if of[b] < 0 {
			continue
		}
		g.Blocks[b].Loop = now[of[b]]
		loops[now[of[b]]].Blocks = append(loops[now[of[b]]].Blocks, b)
	}
}

// irreducible reports whether a cycle is left once the edges back to headers are taken
// away: a cycle without a header.
func (f *loopFinder) irreducible() bool {
	g := f.g
	degree := make([]int32, len(g.Blocks))
	forward := func(visit func(from, to int)) {
		for _, b := range g.order {
			for _, e := range g.Blocks[b].Succs {
				if !g.Dominates(e.Block, int(b)) {
					visit(int(b), e.Block)
				}
			}
		}
	}
	forward(func(_, to int) { degree[to]++ })
	f.work = f.work[:0]
	for _, b := range g.order {
		if degree[b] == 0 {
			f.work = append(f.work, b)
		}
	}
	left := len(g.order)
	for len(f.work) > 0 {
		b := f.work[len(f.work)-1]
		f.work = f.work[:len(f.work)-1]
		left--
		for _, e := range g.Blocks[b].Succs {
			if g.Dominates(e.Block, int(b)) {
				continue
			}
			if degree[e.Block]--; degree[e.Block] == 0 {
				f.work = append(f.work, int32(e.Block))
			}
		}
	}
	return left > 0
}
