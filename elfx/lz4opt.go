package elfx

import "math/bits"

// Bounds of the LZ4 block format: matches reach back 64 KiB and are at least 4 long;
// the last match starts 12 bytes before the end or earlier, and the last 5 bytes are
// literals.
const (
	lz4Window    = 1<<16 - 1
	lz4MinMatch  = 4
	lz4TailStart = 12
	lz4Literals  = 5
)

// lz4Smallest compresses src to the smallest LZ4 block that the matches it finds
// allow; it looks at up to attempts candidates for each. With 64 it makes blocks of
// CUDA 12.8 (libctranslate2) 7 % smaller than they are, with 4,096 it makes them 8 %
// smaller, at 6 and 1.4 MB/s. It is for payloads that have to fit a given space.
//
// A block is a list of sequences: a run of literals, then a match. Read from the end,
// the cheapest way to go on from a position depends on nothing before it, except that
// a run of literals costs an extra byte from length 15 on and every 255 after:
//
//	match[i] = cheapest encoding of src[i:] that starts with a match
//	start[i] = cheapest encoding of src[i:] that starts with literals, maybe none
//	long[i]  = the same with at least 15 literals
func lz4Smallest(src []byte, attempts int) []byte {
	n := len(src)
	if n < lz4TailStart+1 {
		return lz4Emit(nil, src, 0, 0)
	}
	found := longestMatches(src, attempts)
	p := &lz4Plan{
		match: make([]int32, n+1), start: make([]int32, n+1), long: make([]int32, n+1),
		run: make([]int32, n+1), longRun: make([]int32, n+1), length: make([]int32, n+1),
	}
	p.solve(n, found)
	return p.emit(src, found)
}

// A found match: how far back, and how long at most.
type lz4Match struct{ offset, length int32 }

type lz4Plan struct {
	match, start, long   []int32
	run, longRun, length []int32 // the choices after start, long and match
}

const lz4Never = 1 << 30

// extra is the number of length bytes of a run or match beyond its token.
func extra(n, base int32) int32 {
	if n < base {
		return 0
	}
	return 1 + (n-base)/255
}

// solve fills the plan from the end.
func (p *lz4Plan) solve(n int, found []lz4Match) {
	short := &slidingMin{cost: p.match, span: 15} // runs of 0 to 14 literals
	mid := &slidingMin{cost: p.match, span: 255}  // runs of 15 to 269
	for i := n; i >= 0; i-- {
		p.match[i] = lz4Never
		if i < n && found[i].length >= lz4MinMatch {
			p.solveMatch(i, found[i].length)
		}
		short.push(i)
		if i+15 <= n {
			mid.push(i + 15)
		}
		p.solveLiterals(i, n, short, mid)
	}
}

// solveMatch tries the lengths that can be best: all short ones, the longest, and
// the longest with each number of length bytes below that.
func (p *lz4Plan) solveMatch(i int, longest int32) {
	try := func(l int32) {
		if c := 3 + extra(l, 19) + p.start[i+int(l)]; c < p.match[i] {
			p.match[i], p.length[i] = c, l
		}
	}
	for l := int32(lz4MinMatch); l <= min(longest, 18); l++ {
		try(l)
	}
	if longest > 18 {
		try(longest)
		for k, l := 0, longest-(longest-19)%255-1; k < 4 && l > 18; k, l = k+1, l-255 {
			try(l)
		}
	}
}

// solveLiterals finds the cheapest run of literals at i. The final run, which no
// match follows, costs its token and bytes.
func (p *lz4Plan) solveLiterals(i, n int, short, mid *slidingMin) {
	last := int32(n - i)
	p.long[i], p.longRun[i] = lz4Never, 0
	if i+15 <= n {
		if j := mid.best(i + 15); j >= 0 {
			if c := p.match[j] + int32(j-i) + 1; c < p.long[i] {
				p.long[i], p.longRun[i] = c, int32(j-i)
			}
		}
		if i+270 <= n && p.long[i+255]+256 < p.long[i] {
			p.long[i], p.longRun[i] = p.long[i+255]+256, p.longRun[i+255]+255
		}
	}
	p.start[i], p.run[i] = 1+last+extra(last, 15), -1
	if j := short.best(i); j >= 0 {
		if c := p.match[j] + int32(j-i); c <= p.start[i] {
			p.start[i], p.run[i] = c, int32(j-i)
		}
	}
	if p.long[i] < p.start[i] {
		p.start[i], p.run[i] = p.long[i], p.longRun[i]
	}
}

// A slidingMin finds, for windows that move towards the front, the position with the
// least cost plus position.
type slidingMin struct {
	cost  []int32
	span  int
	queue []int // positions, best last
}

// push adds the position in front of the window.
func (s *slidingMin) push(i int) {
	if s.cost[i] >= lz4Never {
		return
	}
	key := s.cost[i] + int32(i)
	for len(s.queue) > 0 {
		if b := s.queue[len(s.queue)-1]; s.cost[b]+int32(b) < key {
			break
		}
		s.queue = s.queue[:len(s.queue)-1]
	}
	s.queue = append(s.queue, i)
}

// best returns the best position among first … first+span-1, or -1.
func (s *slidingMin) best(first int) int {
	for len(s.queue) > 0 && s.queue[0] >= first+s.span {
		s.queue = s.queue[1:]
	}
	if len(s.queue) == 0 {
		return -1
	}
	return s.queue[0]
}

// emit writes the sequences of the plan.
func (p *lz4Plan) emit(src []byte, found []lz4Match) []byte {
	out := make([]byte, 0, p.start[0])
	for i := 0; ; {
		run := int(p.run[i])
		if run < 0 {
			return lz4Emit(out, src[i:], 0, 0)
		}
		at := i + run
		out = lz4Emit(out, src[i:at], int(found[at].offset), int(p.length[at]))
		i = at + int(p.length[at])
	}
}

// lz4Emit appends a sequence; offset 0 stands for the last one, without a match.
func lz4Emit(out, literals []byte, offset, length int) []byte {
	token := min(len(literals), 15) << 4
	if offset != 0 {
		token |= min(length-lz4MinMatch, 15)
	}
	out = append(out, byte(token))
	out = lz4Length(out, len(literals)-15)
	out = append(out, literals...)
	if offset == 0 {
		return out
	}
	out = append(out, byte(offset), byte(offset>>8))
	return lz4Length(out, length-lz4MinMatch-15)
}

// lz4Length appends the part of a length that the token does not hold, if any.
func lz4Length(out []byte, n int) []byte {
	if n < 0 {
		return out
	}
	for ; n >= 255; n -= 255 {
		out = append(out, 255)
	}
	return append(out, byte(n))
}

// longestMatches finds the longest match at each position, looking at a bounded
// number of candidates.
func longestMatches(src []byte, attempts int) []lz4Match {
	n := len(src)
	const hashBits = 16
	head := make([]int32, 1<<hashBits) // position+1 of the latest with that hash
	prev := make([]int32, n)
	out := make([]lz4Match, n)
	end := n - lz4Literals
	for i := 0; i+lz4TailStart <= n; i++ {
		h := le.Uint32(src[i:]) * 2654435761 >> (32 - hashBits)
		best := lz4Match{}
		if i > 0 && out[i-1].length > lz4MinMatch {
			best = lz4Match{out[i-1].offset, out[i-1].length - 1} // the match before, one later
		}
		// A long match is as good as any; looking further makes runs of zeros slow.
		for c, left := head[h], attempts; c > 0 && i-int(c-1) <= lz4Window && left > 0 && best.length < 1<<10; c, left = prev[c-1], left-1 {
			j := int(c - 1)
			if b := int(best.length); i+b >= end || src[j+b] != src[i+b] {
				continue
			}
			if l := matchLength(src, j, i, end); l > int(best.length) {
				best = lz4Match{int32(i - j), int32(l)}
			}
		}
		if best.length >= lz4MinMatch {
			out[i] = best
		}
		prev[i], head[h] = head[h], int32(i+1)
	}
	return out
}

// matchLength returns how many bytes at j and i are equal, with i staying below end.
func matchLength(src []byte, j, i, end int) int {
	start := i
	for i+8 <= end {
		if x := le.Uint64(src[i:]) ^ le.Uint64(src[j:]); x != 0 {
			return i - start + bits.TrailingZeros64(x)/8
		}
		i, j = i+8, j+8
	}
	for i < end && src[i] == src[j] {
		i, j = i+1, j+1
	}
	return i - start
}
