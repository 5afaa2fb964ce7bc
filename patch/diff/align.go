package diff

import "slices"

// maxEdits bounds the edits that one step of the search looks for; what it found by
// then is kept and the search goes on from there. It bounds the time to a multiple of
// the length.
const maxEdits = 128

// An aligner pairs the elements of two sequences: match[i] becomes the element of b that
// element i of a is paired with. Pairs are in order in both.
type aligner struct {
	a, b  []uint64
	match []int32
	depth int

	v, trace []int32 // memory of myersStep
}

// alignKeys returns an alignment of a and b in which paired elements are equal; -1 is
// no partner.
func alignKeys(a, b []uint64) []int32 {
	al := &aligner{a: a, b: b, match: make([]int32, len(a))}
	for i := range al.match {
		al.match[i] = -1
	}
	al.patience(0, len(a), 0, len(b))
	return al.match
}

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

// anchors returns the longest sequence of pairs, in order in both, of elements that
// occur once in each range.
func (al *aligner) anchors(a0, a1, b0, b1 int) [][2]int {
	type place struct{ i, j, na, nb int32 }
	at := make(map[uint64]*place, a1-a0)
	for i := a0; i < a1; i++ {
		p := at[al.a[i]]
		if p == nil {
			p = &place{i: int32(i)}
			at[al.a[i]] = p
		}
		p.na++
	}
	for j := b0; j < b1; j++ {
		if p := at[al.b[j]]; p != nil {
			p.j = int32(j)
			p.nb++
		}
	}
	var pairs [][2]int
	for i := a0; i < a1; i++ {
		if p := at[al.a[i]]; p.na == 1 && p.nb == 1 {
			pairs = append(pairs, [2]int{i, int(p.j)})
		}
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
	v := append(al.v[:0], make([]int32, 2*limit+3)...)
	for i := range v {
		v[i] = never
	}
	al.v, al.trace = v, al.trace[:0]
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
