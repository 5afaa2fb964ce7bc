package diff

import (
	"math/bits"
	"math/rand/v2"
	"slices"
)

// maxEdits bounds the edits that one step of the search looks for; what it found by
// then is kept and the search goes on from there. It bounds the time to a multiple of
// the length.
const maxEdits = 128

// An aligner pairs the elements of two sequences. It sees those that both have, by number:
// others can have no partner, and leaving them out makes the search for the rest short.
type aligner struct {
	a, b            []int32
	placeA, placeB  []int32      // where they stand in the sequences
	match           []int32      // by index of a: index of b, in order in both, or -1
	occurs          []occurrence // by number, zero between calls of anchors
	depth           int
	frontier, trace []int32 // memory of myersStep
}

// alignKeys returns an alignment of a and b in which paired elements are equal: by index
// of a the index of b, in order in both, or -1.
func alignKeys(a, b []uint64) []int32 {
	al := newAligner(a, b)
	al.patience(0, len(al.a), 0, len(al.b))
	return al.result(len(a))
}

func newAligner(a, b []uint64) *aligner {
	n := newNumberer(len(b))
	for _, x := range b {
		n.add(x)
	}
	al := &aligner{occurs: make([]occurrence, n.count)}
	al.a, al.placeA = make([]int32, 0, len(a)), make([]int32, 0, len(a))
	al.b, al.placeB = make([]int32, 0, len(b)), make([]int32, 0, len(b))
	shared := make([]bool, n.count)
	for i, x := range a {
		if id := n.find(x); id >= 0 {
			shared[id] = true
			al.a, al.placeA = append(al.a, id), append(al.placeA, int32(i))
		}
	}
	for j, x := range b {
		if id := n.find(x); shared[id] {
			al.b, al.placeB = append(al.b, id), append(al.placeB, int32(j))
		}
	}
	al.match = unmatched(len(al.a))
	return al
}

// result returns the alignment of the whole sequences, of which the first has n elements.
func (al *aligner) result(n int) []int32 {
	out := unmatched(n)
	for i, j := range al.match {
		if j >= 0 {
			out[al.placeA[i]] = al.placeB[j]
		}
	}
	return out
}

// unmatched returns an alignment of n elements without partners.
func unmatched(n int) []int32 {
	out := make([]int32, n)
	for i := range out {
		out[i] = -1
	}
	return out
}

// hashFactor spreads values over a table; that nobody can know it keeps input from being
// made to collide.
var hashFactor = rand.Uint64() | 1

// A numberer numbers values from 0 up: a hash table with open addressing.
type numberer struct {
	keys  []uint64
	ids   []int32 // plus 1, 0 is none
	shift uint
	count int
}

// newNumberer returns a numberer for at most n values.
func newNumberer(n int) *numberer {
	size := uint(bits.Len(uint(n)) + 1)
	return &numberer{keys: make([]uint64, 1<<size), ids: make([]int32, 1<<size), shift: 64 - size}
}

// slot returns where x stands or would stand.
func (n *numberer) slot(x uint64) int {
	i := int(x * hashFactor >> n.shift)
	for n.ids[i] != 0 && n.keys[i] != x {
		i = (i + 1) & (len(n.ids) - 1)
	}
	return i
}

func (n *numberer) add(x uint64) {
	if i := n.slot(x); n.ids[i] == 0 {
		n.count++
		n.keys[i], n.ids[i] = x, int32(n.count)
	}
}

// find returns the number of x, -1 for none.
func (n *numberer) find(x uint64) int32 { return n.ids[n.slot(x)] - 1 }

// maxPatience bounds the recursion.
const maxPatience = 64

// patience aligns a[a0:a1] with b[b0:b1]: the same beginning and end, then what is
// unique in both, then what lies between.
func (al *aligner) patience(a0, a1, b0, b1 int) {
	for a0 < a1 && b0 < b1 && al.a[a0] == al.b[b0] {
		al.match[a0] = int32(b0)
		a0++
		b0++
	}
	for a0 < a1 && b0 < b1 && al.a[a1-1] == al.b[b1-1] {
		a1--
		b1--
		al.match[a1] = int32(b1)
	}
	if a0 == a1 || b0 == b1 {
		return
	}
	anchors := al.anchors(a0, a1, b0, b1)
	if len(anchors) == 0 || al.depth >= maxPatience {
		al.myers(a0, a1, b0, b1)
		return
	}
	al.depth++
	for _, p := range anchors {
		if p[0] < a0 || p[1] < b0 {
			continue // the end of the stretch before took it in
		}
		al.patience(a0, p[0], b0, p[1])
		al.match[p[0]] = int32(p[1])
		a0, b0 = p[0]+1, p[1]+1
	}
	al.patience(a0, a1, b0, b1)
	al.depth--
}

// An occurrence says how often an element stands in each of the two ranges that anchors
// looks at, and where in the second.
type occurrence struct{ j, na, nb int32 }

// anchors returns the longest sequence of pairs, in order in both, of elements that
// occur once in each range.
func (al *aligner) anchors(a0, a1, b0, b1 int) [][2]int {
	for _, x := range al.a[a0:a1] {
		al.occurs[x].na++
	}
	for j := b0; j < b1; j++ {
		p := &al.occurs[al.b[j]]
		p.j = int32(j)
		p.nb++
	}
	var pairs [][2]int
	for i := a0; i < a1; i++ {
		if p := &al.occurs[al.a[i]]; p.na == 1 && p.nb == 1 {
			pairs = append(pairs, [2]int{i, int(p.j)})
		}
	}
	for _, x := range al.a[a0:a1] {
		al.occurs[x] = occurrence{}
	}
	for _, x := range al.b[b0:b1] {
		al.occurs[x] = occurrence{}
	}
	return increasing(pairs)
}

// increasing returns the longest part of pairs, which ascend in their first element, that
// ascends in the second too.
func increasing(pairs [][2]int) [][2]int {
	var tails []int // indexes into pairs: the lowest end of a sequence of each length
	prev := make([]int, len(pairs))
	for i, p := range pairs {
		n, _ := slices.BinarySearchFunc(tails, p[1], func(t, x int) int { return pairs[t][1] - x })
		prev[i] = -1
		if n > 0 {
			prev[i] = tails[n-1]
		}
		if n == len(tails) {
			tails = append(tails, i)
		} else {
			tails[n] = i
		}
	}
	out := make([][2]int, len(tails))
	if len(tails) == 0 {
		return out
	}
	for n, i := len(tails)-1, tails[len(tails)-1]; n >= 0; n, i = n-1, prev[i] {
		out[n] = pairs[i]
	}
	return out
}

// myers aligns by the fewest edits as far as the budget goes, and from there again.
func (al *aligner) myers(a0, a1, b0, b1 int) {
	for a0 < a1 && b0 < b1 {
		x, y := al.myersStep(a0, a1, b0, b1)
		if x == a0 && y == b0 {
			return
		}
		a0, b0 = x, y
	}
}

// never is a place that no path reaches.
const never = -1 << 30

// A front is the furthest place on a diagonal, and after how many edits it was reached.
type front struct{ d, k, x int }

// myersStep is the greedy algorithm of E. Myers, "An O(ND) difference algorithm and its
// variations" (1986), stopped after maxEdits edits: it notes the pairs on the path that
// got furthest and returns where that ends.
func (al *aligner) myersStep(a0, a1, b0, b1 int) (int, int) {
	n, m := a1-a0, b1-b0
	limit := min(n+m, maxEdits)
	v := append(al.frontier[:0], make([]int32, 2*limit+3)...)
	for i := range v {
		v[i] = never
	}
	al.frontier, al.trace = v, al.trace[:0]
	off := limit + 1
	v[off+1] = 0
	var best front
	for d := 0; d <= limit; d++ {
		al.trace = append(al.trace, v[off-d:off+d+1]...)
		for k := max(-d, -m+(d+m)&1); k <= min(d, n); k += 2 {
			x := al.extend(v, off, d, k, a0, a1, b0, b1)
			v[off+k] = int32(x)
			if x < 0 || x > n || x-k > m {
				continue
			}
			if best.x == 0 && best.d == 0 || 2*x-k > 2*best.x-best.k {
				best = front{d, k, x}
			}
			if x == n && x-k == m {
				al.backtrack(best, a0, b0)
				return a1, b1
			}
		}
	}
	al.backtrack(best, a0, b0)
	return a0 + best.x, b0 + best.x - best.k
}

// extend returns how far diagonal k is reached after d edits.
func (al *aligner) extend(v []int32, off, d, k, a0, a1, b0, b1 int) int {
	var x int
	if k == -d || k != d && v[off+k-1] < v[off+k+1] {
		x = int(v[off+k+1])
	} else {
		x = int(v[off+k-1]) + 1
	}
	if x < 0 || x < k {
		return never
	}
	i, j := a0+x, b0+x-k
	for i < a1 && j < b1 && al.a[i] == al.b[j] {
		i++
		j++
	}
	return i - a0
}

// backtrack notes the pairs of the path to f. The trace has, for each number d of edits,
// the 2d+1 diagonals as they were before it.
func (al *aligner) backtrack(f front, a0, b0 int) {
	x, k := f.x, f.k
	for d := f.d; d > 0; d-- {
		prev := al.trace[d*d : (d+1)*(d+1)]
		at := func(k int) int32 {
			if i := k + d; i >= 0 && i < len(prev) {
				return prev[i]
			}
			return never
		}
		from, start := k-1, 0
		if k == -d || k != d && at(k-1) < at(k+1) {
			from = k + 1
			start = int(at(from))
		} else {
			start = int(at(from)) + 1
		}
		for x > start {
			x--
			al.match[a0+x] = int32(b0 + x - k)
		}
		x, k = int(at(from)), from
	}
	for x > 0 {
		x--
		al.match[a0+x] = int32(b0 + x)
	}
}
