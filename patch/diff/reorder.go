package diff

import (
	"math/bits"
	"slices"
	"strings"

	"github.com/cupatch/cupatch/isa"
)

// reorder reports whether B is A with the instructions within its basic blocks in another
// order that keeps every dependence, control codes aside, and if so fills in the result.
//
// Registers, predicates and barriers keep each read after the same write, and each block
// leaves the same values. What stores, synchronizes, branches or has no result keeps its
// order. Loads may pass loads, and nothing else that touches memory; those from constant
// banks pass anything.
func (d *CodeDiff) reorder() bool {
	a, b := d.A, d.B
	if a.Table == nil || a.Table != b.Table || a.raw || b.raw || a.Unknown+b.Unknown > 0 || !slices.Equal(a.stray, b.stray) {
		return false
	}
	if a.bag() != b.bag() {
		return false
	}
	blocks := a.blockStarts()
	if !slices.Equal(blocks, b.blockStarts()) {
		return false
	}
	perm := make([]int32, a.Len())
	var x, y blockFlow
	for k := range len(blocks) - 1 {
		lo, hi := blocks[k], blocks[k+1]
		if !permuted(a, b, lo, hi, perm) || !x.read(a, lo, hi, nil) || !y.read(b, lo, hi, perm) || !x.same(&y, perm) {
			return false
		}
	}
	d.takeOrder(perm)
	return true
}

// bag returns a number that does not depend on the order of the instructions, nor on their
// control codes.
func (c *Code) bag() (sum uint64) {
	for _, w := range c.norm {
		w = w.AndNot(controlMask)
		h := (w.Lo ^ bits.RotateLeft64(w.Hi*hashFactor, 32)) * hashFactor
		sum += h ^ h>>29
	}
	return sum
}

// takeOrder makes the list of differences from the order of B: by index of A that in B.
func (d *CodeDiff) takeOrder(perm []int32) {
	pairs := make([][2]int, len(perm))
	for i, j := range perm {
		pairs[i] = [2]int{i, int(j)}
	}
	d.match, d.back = unmatched(len(perm)), unmatched(len(perm))
	for _, p := range increasing(pairs) {
		d.match[p[0]], d.back[p[1]] = int32(p[1]), int32(p[0])
	}
	moved := map[int32]int32{}
	for i, j := range perm {
		if d.match[i] < 0 {
			moved[int32(i)] = j
		}
	}
	d.list(moved)
	for i := range d.Ops {
		if o := &d.Ops[i]; o.Kind == OpMove {
			o.Kinds = compare(d.A, d.B, int(o.A), int(o.B))
			d.Kinds |= o.Kinds
		}
	}
	d.Class, d.Kinds = Reordered, d.Kinds|Order
}

// blockStarts returns the indexes at which basic blocks start, and the length at the end.
func (c *Code) blockStarts() []int {
	starts := make([]bool, c.Len()+1)
	starts[0], starts[c.Len()] = true, true
	for i := range c.Len() {
		if t := c.target[i]; t >= 0 {
			starts[t] = true
		}
		if c.understand(c.norm[i]).Flow().EndsBlock() {
			starts[i+1] = true
		}
	}
	var out []int
	for i, s := range starts {
		if s {
			out = append(out, i)
		}
	}
	return out
}

// permuted pairs the instructions lo to hi of a and b that are the same but for the control
// code: the first of several with the first.
func permuted(a, b *Code, lo, hi int, perm []int32) bool {
	type key struct {
		word   isa.Word
		target int32
		sym    string
	}
	keyOf := func(c *Code, i int) key {
		return key{neutral(c.norm[i]).AndNot(controlMask), c.target[i], c.syms[c.sym[i]]}
	}
	theirs := map[key][]int32{}
	for j := lo; j < hi; j++ {
		k := keyOf(b, j)
		theirs[k] = append(theirs[k], int32(j))
	}
	for i := lo; i < hi; i++ {
		k := keyOf(a, i)
		list := theirs[k]
		if len(list) == 0 {
			return false
		}
		perm[i], theirs[k] = list[0], list[1:]
	}
	return true
}

// A blockFlow is what the instructions of a block depend on. Instructions of B go by the
// index of their partner in A.
type blockFlow struct {
	from  map[int32][]int32 // by instruction: the writers of what it reads, -1 for none in the block
	last  map[operand]int32 // who writes a register last
	fixed []int32           // what keeps its order
	after map[int32]int     // by load: how many of those come before it
}

// An operand is a register of any file.
type operand struct {
	file isa.RegFile
	n    int
}

// read reads the instructions lo to hi of c; perm is nil for A. It reports false where the
// effects of an instruction are not known.
func (f *blockFlow) read(c *Code, lo, hi int, perm []int32) bool {
	*f = blockFlow{from: map[int32][]int32{}, last: map[operand]int32{}, after: map[int32]int{}}
	names := make([]int32, hi-lo)
	for i := range names {
		names[i] = int32(lo + i)
	}
	if perm != nil {
		for i := lo; i < hi; i++ {
			names[int(perm[i])-lo] = int32(i)
		}
	}
	for j := lo; j < hi; j++ {
		in := c.understand(c.norm[j])
		if !in.HasEffects() {
			return false
		}
		name, fx := names[j-lo], in.Effects()
		var from []int32
		reads := fx.Reads
		if in.IsGuarded() { // the old value may stay
			reads = reads.Union(fx.Writes)
		}
		reads.Each(func(file isa.RegFile, n int) {
			w, ok := f.last[operand{file, n}]
			if !ok {
				w = -1
			}
			from = append(from, w)
		})
		f.from[name] = from
		fx.Writes.Each(func(file isa.RegFile, n int) { f.last[operand{file, n}] = name })
		switch m := in.Memory(); {
		case keepsOrder(c, in, m, fx.Writes.IsEmpty()):
			f.fixed = append(f.fixed, name)
		case m.Op == isa.MemoryLoad && m.Space != isa.SpaceConstant:
			f.after[name] = len(f.fixed)
		}
	}
	return true
}

// keepsOrder reports whether an instruction, which may have no result, stays in order with
// all others of which that is true.
func keepsOrder(c *Code, in isa.Inst, m isa.Memory, noResult bool) bool {
	switch {
	case in.Flow().Kind != isa.FlowNone, noResult:
		return true
	case m.Op == isa.MemoryNone:
		// What reads a clock says when.
		return in.Formula() == isa.FormulaNumber && strings.Contains(string(c.appendText(nil, in.Word, 0)), "CLOCK")
	}
	return m.Op != isa.MemoryLoad || in.HasModifier("STRONG")
}

// same reports whether two blocks have the same dependences.
func (f *blockFlow) same(g *blockFlow, perm []int32) bool {
	if !slices.Equal(f.fixed, g.fixed) || len(f.last) != len(g.last) {
		return false
	}
	for r, w := range f.last {
		if o, ok := g.last[r]; !ok || o != w {
			return false
		}
	}
	for i, from := range f.from {
		if !slices.Equal(from, g.from[i]) || f.after[i] != g.after[i] {
			return false
		}
	}
	return true
}
