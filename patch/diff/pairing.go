package diff

import (
	"bytes"
	"hash/maphash"
	"math/bits"
	"slices"
	"sync"

	"github.com/cupatch/cupatch/isa"
)

// align finds out which instructions of the two kernels correspond and lists the
// differences. It always goes from the smaller code to the greater, so that the result
// does not depend on which is called a.
func (d *CodeDiff) align() {
	a, b := d.A, d.B
	swap := a.Len() > b.Len() || a.Len() == b.Len() && bytes.Compare(a.data, b.data) > 0
	if swap {
		a, b = b, a
	}
	p := &pairer{a: a, b: b}
	p.run()
	if swap {
		moved := map[int32]int32{}
		for i, j := range p.moved {
			moved[j] = i
		}
		p.match, p.moved = inverse(p.match, d.A.Len()), moved
	}
	d.match = p.match
	d.back = inverse(p.match, d.B.Len())
	d.list(p.moved)
}

// inverse returns the alignment seen from the other side, which has n elements.
func inverse(match []int32, n int) []int32 {
	out := unmatched(n)
	for i, j := range match {
		if j >= 0 {
			out[j] = int32(i)
		}
	}
	return out
}

// A pairer pairs the instructions of two kernels.
type pairer struct {
	a, b  *Code
	match []int32
	moved map[int32]int32 // instructions without partner that stand elsewhere in b

	memory *[]int32 // of table
}

func (p *pairer) run() {
	seed := maphash.MakeSeed()
	p.match = alignKeys(p.a.keys(seed, false), p.b.keys(seed, false))
	p.refine(seed)
	p.move(seed)
	if p.memory != nil {
		tables.Put(p.memory)
	}
}

// keys returns what makes the instructions what they are, as numbers: the words without
// control codes and what they refer to, or, when loose, the opcodes alone.
func (c *Code) keys(seed maphash.Seed, loose bool) []uint64 {
	out := make([]uint64, len(c.norm))
	var h maphash.Hash
	h.SetSeed(seed)
	for i, w := range c.norm {
		if loose {
			out[i] = uint64(w.Opcode())
			continue
		}
		w = w.AndNot(controlMask)
		x := w.Lo*0x9e3779b97f4a7c15 ^ bits.RotateLeft64(w.Hi*0xc2b2ae3d27d4eb4f, 31)
		if c.sym[i] != 0 {
			h.Reset()
			h.WriteString(c.syms[c.sym[i]])
			x ^= h.Sum64()
		}
		if c.target[i] != noTarget {
			x++
		}
		out[i] = x
	}
	return out
}

// refine pairs the instructions between those that are paired already by their opcodes
// and their likeness.
func (p *pairer) refine(seed maphash.Seed) {
	ka, kb := p.a.keys(seed, true), p.b.keys(seed, true)
	i, j := 0, 0
	for i < len(p.match) || j < len(kb) {
		if i < len(p.match) && p.match[i] == int32(j) {
			i++
			j++
			continue
		}
		i1, j1 := i, len(kb)
		for i1 < len(p.match) && p.match[i1] < 0 {
			i1++
		}
		if i1 < len(p.match) {
			j1 = int(p.match[i1])
		}
		p.gap(ka, kb, i, i1, j, j1)
		i, j = i1, j1
	}
}

// maxTable bounds the table for one gap, in elements.
const maxTable = 1 << 16

// gap pairs a[i0:i1] with b[j0:j1], none of which are equal in order.
func (p *pairer) gap(ka, kb []uint64, i0, i1, j0, j1 int) {
	n, m := i1-i0, j1-j0
	if n == 0 || m == 0 {
		return
	}
	if n*m > maxTable {
		for i, j := range alignKeys(ka[i0:i1], kb[j0:j1]) {
			if j >= 0 {
				p.match[i0+i] = int32(j0) + j
			}
		}
		return
	}
	// The best sum of likeness, by dynamic programming.
	width := m + 1
	best := p.table((n + 1) * width)
	for i := n - 1; i >= 0; i-- {
		row, below := best[i*width:(i+1)*width], best[(i+1)*width:(i+2)*width]
		op, w := ka[i0+i], p.a.norm[i0+i]
		theirs, words := kb[j0:j1], p.b.norm[j0:j1]
		for j := m - 1; j >= 0; j-- {
			x := max(row[j+1], below[j])
			if theirs[j] == op {
				x = max(x, below[j+1]+likeness(w, words[j]))
			}
			row[j] = x
		}
	}
	for i, j := 0, 0; i < n && j < m; {
		at := i*width + j
		switch {
		case ka[i0+i] == kb[j0+j] && best[at] == best[at+width+1]+likeness(p.a.norm[i0+i], p.b.norm[j0+j]):
			p.match[i0+i] = int32(j0 + j)
			i++
			j++
		case best[at] == best[at+width]:
			i++
		default:
			j++
		}
	}
}

// tables keeps the memory of pairer.table for the next pair of kernels.
var tables = sync.Pool{New: func() any { return new([]int32) }}

// table returns n zeros.
func (p *pairer) table(n int) []int32 {
	if p.memory == nil {
		p.memory = tables.Get().(*[]int32)
	}
	*p.memory = slices.Grow((*p.memory)[:0], n)[:n]
	clear(*p.memory)
	return *p.memory
}

// likeness is the number of bits that two instructions with the same opcode have in
// common, and 1.
func likeness(x, y isa.Word) int32 { return int32(129 - x.Xor(y).OnesCount()) }

// minMove is the shortest run of instructions that counts as moved.
const minMove = 3

// move finds runs of instructions without partners that both kernels have at different
// places.
func (p *pairer) move(seed maphash.Seed) {
	ka, kb := p.a.keys(seed, false), p.b.keys(seed, false)
	free := make([]bool, len(kb))
	for j := range free {
		free[j] = true
	}
	for _, j := range p.match {
		if j >= 0 {
			free[j] = false
		}
	}
	runs := map[[minMove]uint64]int{}
	for j := 0; j+minMove <= len(kb); j++ {
		if free[j] && free[j+1] && free[j+2] {
			key := [minMove]uint64{kb[j], kb[j+1], kb[j+2]}
			if _, ok := runs[key]; !ok {
				runs[key] = j
			}
		}
	}
	p.moved = map[int32]int32{}
	lone := func(i int) bool { return i < len(ka) && p.match[i] < 0 }
	for i := 0; i+minMove <= len(ka); i++ {
		if !lone(i) || !lone(i+1) || !lone(i+2) {
			continue
		}
		j, ok := runs[[minMove]uint64{ka[i], ka[i+1], ka[i+2]}]
		if !ok || !free[j] || !free[j+1] || !free[j+2] {
			continue
		}
		for lone(i) && j < len(kb) && free[j] && ka[i] == kb[j] {
			p.moved[int32(i)] = int32(j)
			free[j] = false
			i++
			j++
		}
		i--
	}
}

// list turns the pairs into the list of differences.
func (d *CodeDiff) list(moved map[int32]int32) {
	to := make(map[int32]bool, len(moved))
	for _, j := range moved {
		to[j] = true
	}
	j := int32(0)
	insert := func(end int32) {
		for ; j < end; j++ {
			if !to[j] {
				d.Ops = append(d.Ops, Op{Kind: OpInsert, A: -1, B: j})
			}
		}
	}
	for i, m := range d.match {
		if m < 0 {
			if at, ok := moved[int32(i)]; ok {
				d.Ops = append(d.Ops, Op{Kind: OpMove, A: int32(i), B: at})
			} else {
				d.Ops = append(d.Ops, Op{Kind: OpDelete, A: int32(i), B: -1})
			}
			continue
		}
		insert(m)
		j = m + 1
		if k := d.pairKinds(i, int(m)); k != 0 {
			d.Ops = append(d.Ops, Op{OpChange, int32(i), m, k})
			d.Kinds |= k
		}
	}
	insert(int32(d.B.Len()))
}

// pairKinds compares a pair of instructions and what they refer to.
func (d *CodeDiff) pairKinds(i, j int) Kinds {
	k := compare(d.A, d.B, i, j)
	if d.targetDiffers(i, j) {
		k |= Other
	}
	return k
}

// targetDiffers reports whether instruction i of A and j of B refer to different
// things. Targets in the code are the same when they are partners.
func (d *CodeDiff) targetDiffers(i, j int) bool {
	a, b := d.A, d.B
	if a.syms[a.sym[i]] != b.syms[b.sym[j]] {
		return true
	}
	s, t := a.target[i], b.target[j]
	if s < 0 || t < 0 || d.match == nil {
		return s != t
	}
	return d.match[s] != t && !d.passes(s, t)
}

// passes reports whether the targets s and t, which are not partners, are followed by
// instructions that are, with nothing before those but what only one side has.
func (d *CodeDiff) passes(s, t int32) bool {
	for int(s) < len(d.match) && d.match[s] < 0 {
		s++
	}
	for int(t) < len(d.back) && d.back[t] < 0 {
		t++
	}
	return int(s) < len(d.match) && d.match[s] == t
}
