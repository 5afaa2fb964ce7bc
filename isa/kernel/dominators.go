package kernel

// dominators fills in the immediate dominator of every block that can be reached from
// the entries, by the algorithm of Lengauer and Tarjan with path compression: O(e log n)
// for e edges and n blocks, whatever the shape of the graph.
func (g *Graph) dominators() {
	d := newDomTree(g)
	for i := d.n - 1; i > 0; i-- {
		d.step(g, d.order[i])
	}
	for i := int32(1); i < d.n; i++ {
		b := d.order[i]
		if d.idom[b] != d.order[d.semi[b]] {
			d.idom[b] = d.idom[d.idom[b]]
		}
	}
	g.order = g.order[:0]
	for i := int32(1); i < d.n; i++ { // order[0] is the root above the entries
		b := d.order[i]
		g.order = append(g.order, b)
		if p := d.idom[b]; int(p) < len(g.Blocks) {
			g.Blocks[b].Idom = int(p)
		}
		g.Blocks[b].Reachable = true
	}
}

// A domTree is the state of the algorithm. Blocks are numbered as in the graph; one more
// number, that of the root, stands for a block in front of all entries.
type domTree struct {
	root, n  int32   // n: how many blocks a search from the root meets, the root included
	order    []int32 // blocks in the order of the search
	semi     []int32 // the block's number in that order, later that of its semidominator
	parent   []int32 // in the tree of the search
	idom     []int32
	ancestor []int32 // in the forest of finished blocks, -1 for a root
	label    []int32 // the block with the least semi on the way up
	bucket   []int32 // first of the blocks whose semidominator this is, -1 at the end
	next     []int32 // the next one in the same bucket
	path     []int32 // of compress
	isEntry  []bool
}

func newDomTree(g *Graph) *domTree {
	n := len(g.Blocks) + 1
	all := make([]int32, 8*n)
	cut := func() []int32 { s := all[:n:n]; all = all[n:]; return s }
	d := &domTree{root: int32(n - 1), order: cut(), semi: cut(), parent: cut(), idom: cut(),
		ancestor: cut(), label: cut(), bucket: cut(), next: cut(), isEntry: make([]bool, n)}
	for i := range n {
		d.semi[i], d.ancestor[i], d.label[i], d.bucket[i], d.next[i] = -1, -1, int32(i), -1, -1
	}
	for _, e := range g.Entries {
		d.isEntry[e] = true
	}
	d.search(g)
	return d
}

// search numbers the blocks in depth-first order, without recursion: a graph may be as
// deep as the kernel is long.
func (d *domTree) search(g *Graph) {
	type frame struct {
		block int32
		edge  int
	}
	visit := func(b, parent int32) frame {
		d.semi[b], d.order[d.n], d.parent[b] = d.n, b, parent
		d.n++
		return frame{block: b}
	}
	visit(d.root, d.root)
	for _, e := range g.Entries {
		if d.semi[e] >= 0 {
			continue
		}
		stack := []frame{visit(int32(e), d.root)}
		for len(stack) > 0 {
			top := &stack[len(stack)-1]
			succs := g.Blocks[top.block].Succs
			if top.edge == len(succs) {
				stack = stack[:len(stack)-1]
				continue
			}
			to := int32(succs[top.edge].Block)
			top.edge++
			if d.semi[to] < 0 {
				stack = append(stack, visit(to, top.block))
			}
		}
	}
}

// step finds the semidominator of w and the immediate dominators of the blocks whose
// semidominator is w's parent.
func (d *domTree) step(g *Graph, w int32) {
	if d.isEntry[w] {
		d.semi[w] = 0
	}
	for _, e := range g.Blocks[w].Preds {
		v := int32(e.Block)
		if d.semi[v] < 0 {
			continue
		}
		if u := d.eval(v); d.semi[u] < d.semi[w] {
			d.semi[w] = d.semi[u]
		}
	}
	s := d.order[d.semi[w]]
	d.next[w], d.bucket[s] = d.bucket[s], w
	p := d.parent[w]
	d.ancestor[w] = p
	for v := d.bucket[p]; v >= 0; v = d.next[v] {
		d.idom[v] = p
		if u := d.eval(v); d.semi[u] < d.semi[v] {
			d.idom[v] = u
		}
	}
	d.bucket[p] = -1
}

// eval returns the block with the least semidominator on the way from v to its root.
func (d *domTree) eval(v int32) int32 {
	if d.ancestor[v] < 0 {
		return v
	}
	d.path = d.path[:0]
	for u := v; d.ancestor[d.ancestor[u]] >= 0; u = d.ancestor[u] {
		d.path = append(d.path, u)
	}
	for i := len(d.path) - 1; i >= 0; i-- {
		u := d.path[i]
		a := d.ancestor[u]
		if d.semi[d.label[a]] < d.semi[d.label[u]] {
			d.label[u] = d.label[a]
		}
		d.ancestor[u] = d.ancestor[a]
	}
	return d.label[v]
}

// Dominates reports whether every path from an entry to block b leads through block a.
// A block dominates itself. Nothing dominates a block that cannot be reached, and such a
// block dominates nothing.
func (g *Graph) Dominates(a, b int) bool {
	x, y := &g.Blocks[a], &g.Blocks[b]
	return x.Reachable && y.Reachable && g.in[a] <= g.in[b] && g.out[b] <= g.out[a]
}

// numberDominators numbers the blocks so that Dominates is two comparisons: in is when
// a walk of the dominator tree enters a block, out when it leaves it for good.
func (g *Graph) numberDominators() {
	n := len(g.Blocks)
	g.in, g.out = make([]int32, n), make([]int32, n)
	size := make([]int32, n) // blocks below, the block itself included
	for i := len(g.order) - 1; i >= 0; i-- {
		b := g.order[i]
		size[b]++
		if p := g.Blocks[b].Idom; p >= 0 {
			size[p] += size[b]
		}
	}
	next := make([]int32, n) // the number that the next child of a block gets
	top := int32(0)
	for _, b := range g.order { // a dominator comes before what it dominates
		at := &top
		if p := g.Blocks[b].Idom; p >= 0 {
			at = &next[p]
		}
		g.in[b], g.out[b] = *at, *at+size[b]
		*at += size[b]
		next[b] = g.in[b] + 1
	}
}
