package kernel

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// graphOf makes a graph of n blocks of one instruction from its edges.
func graphOf(n int, edges [][2]int, entries ...int) *Graph {
	g := &Graph{Blocks: make([]Block, n), Entries: entries, at: make([]int32, n)}
	for i := range g.Blocks {
		g.Blocks[i] = Block{Start: i, End: i + 1, Idom: -1, Loop: -1}
		g.at[i] = int32(i)
	}
	for _, e := range edges {
		b := &g.Blocks[e[0]]
		b.Succs = append(b.Succs, Edge{Block: e[1]})
	}
	g.analyze()
	return g
}

// reach returns the blocks that can be reached from any of from without entering avoid.
func reach(n int, edges [][2]int, from []int, avoid int) []bool {
	seen := make([]bool, n)
	var walk func(b int)
	walk = func(b int) {
		if b == avoid || seen[b] {
			return
		}
		seen[b] = true
		for _, e := range edges {
			if e[0] == b {
				walk(e[1])
			}
		}
	}
	for _, b := range from {
		walk(b)
	}
	return seen
}

// TestGraphAgainstDefinition compares dominators and loops of small random graphs, most
// of them irreducible, with what their definitions say.
func TestGraphAgainstDefinition(t *testing.T) {
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 1))
		n := 1 + r.IntN(9)
		var edges [][2]int
		for range r.IntN(2*n + 1) {
			edges = append(edges, [2]int{r.IntN(n), r.IntN(n)})
		}
		entries := []int{0}
		if r.IntN(3) == 0 && n > 1 {
			entries = append(entries, 1+r.IntN(n-1))
		}
		if err := compareWithDefinition(n, edges, entries); err != nil {
			t.Fatalf("seed %d: %d blocks, edges %v, entries %v: %v", seed, n, edges, entries, err)
		}
	}
}

func compareWithDefinition(n int, edges [][2]int, entries []int) error {
	g := graphOf(n, edges, entries...)
	all := reach(n, edges, entries, -1)
	dom := make([][]bool, n) // dom[a][b]: a dominates b
	for a := range n {
		without := reach(n, edges, entries, a)
		dom[a] = make([]bool, n)
		for b := range n {
			dom[a][b] = all[a] && all[b] && (a == b || !without[b])
			if got := g.Dominates(a, b); got != dom[a][b] {
				return fmt.Errorf("Dominates(%d, %d) = %v", a, b, got)
			}
		}
	}
	for b := range n {
		want := -1 // the strict dominator that all others dominate
		for a := range n {
			if a != b && dom[a][b] && (want < 0 || dom[want][a]) {
				want = a
			}
		}
		if g.Blocks[b].Idom != want || g.Blocks[b].Reachable != all[b] {
			return fmt.Errorf("block %d: idom %d, want %d; reachable %v, want %v", b, g.Blocks[b].Idom, want, g.Blocks[b].Reachable, all[b])
		}
	}
	return compareLoops(g, n, edges, dom, all)
}

// compareLoops checks the loops of g against the definition: header and back edges, and
// all that reaches a back edge without the header.
func compareLoops(g *Graph, n int, edges [][2]int, dom [][]bool, all []bool) error {
	body := make([][]bool, n) // by header; nil for none
	var reversed, forward [][2]int
	for _, e := range edges {
		if all[e[0]] {
			reversed = append(reversed, [2]int{e[1], e[0]})
		}
	}
	for h := range n {
		var latches []int
		for _, e := range edges {
			if e[1] == h && dom[h][e[0]] {
				latches = append(latches, e[0])
			}
		}
		if latches != nil {
			body[h] = reach(n, reversed, latches, h)
			body[h][h] = true
		}
	}
	headers := 0
	for h := range n {
		if body[h] != nil {
			headers++
		}
	}
	if len(g.Loops) != headers {
		return fmt.Errorf("%d loops, want %d", len(g.Loops), headers)
	}
	for b := range n {
		depth := 0
		for h := range n {
			if body[h] != nil && body[h][b] {
				depth++
			}
		}
		if got := g.LoopDepth(b); got != depth {
			return fmt.Errorf("block %d: depth %d, want %d", b, got, depth)
		}
		for l := g.Blocks[b].Loop; l >= 0; l = g.Loops[l].Parent {
			if h := g.Loops[l].Header; body[h] == nil || !body[h][b] {
				return fmt.Errorf("block %d is said to be in the loop of %d", b, h)
			}
		}
	}
	for i, l := range g.Loops {
		if !slices.Contains(l.Blocks, l.Header) || l.Parent >= i {
			return fmt.Errorf("loop %d: %+v", i, l)
		}
	}
	for _, e := range edges {
		if all[e[0]] && !dom[e[1]][e[0]] {
			forward = append(forward, e)
		}
	}
	cycle := false
	for _, e := range forward {
		cycle = cycle || reach(n, forward, []int{e[1]}, -1)[e[0]]
	}
	if g.Irreducible != cycle {
		return fmt.Errorf("irreducible: %v, want %v", g.Irreducible, cycle)
	}
	return nil
}

// TestGraphsThatAreHard makes sure that deep and wide graphs end in reasonable time; a
// quadratic step would take hours.
func TestGraphsThatAreHard(t *testing.T) {
	const n = 200_000
	shapes := map[string]func(i int) []int{
		"chain":        func(i int) []int { return []int{i + 1} },
		"nested loops": func(i int) []int { return []int{i + 1, n - 1 - i} },
		"ladder":       func(i int) []int { return []int{i + 1, i / 2} },
		"fan":          func(i int) []int { return []int{i + 1, 0} },
		"tangle":       func(i int) []int { return []int{i + 1, int(uint64(i) * 2654435761 % n)} },
	}
	for name, next := range shapes {
		t.Run(name, func(t *testing.T) {
			edges := make([][2]int, 0, 2*n)
			for i := range n {
				for _, to := range next(i) {
					if to < n {
						edges = append(edges, [2]int{i, to})
					}
				}
			}
			if g := graphOf(n, edges, 0); !g.Blocks[n-1].Reachable {
				t.Error("the last block cannot be reached")
			}
		})
	}
}
