package assign

import "github.com/cupatch/cupatch/isa"

// A place is how many instructions lie before an instruction, counted from the start of a
// block, or from another instruction.
type place uint16

const (
	never    place = 1<<16 - 1 // the place of what does not come
	farthest place = never - 1 // and of all that is as far or farther
)

// after returns the place n instructions after p.
func (p place) after(n int) place {
	if p == never {
		return never
	}
	return place(min(int(p)+n, int(farthest)))
}

// distances holds, for each register, where the next instruction is that reads or writes it, and
// the next that writes it, on the shortest way.
type distances struct{ touch, write [firstBoard]place }

func (d *distances) fill(p place) {
	for r := range d.touch {
		d.touch[r], d.write[r] = p, p
	}
}

// nearest makes d the nearer of d and what e is n instructions later, and reports whether that
// changed d.
func (d *distances) nearest(e *distances, n int) bool {
	changed := false
	for r := range d.touch {
		if p := e.touch[r].after(n); p < d.touch[r] {
			d.touch[r], changed = p, true
		}
		if p := e.write[r].after(n); p < d.write[r] {
			d.write[r], changed = p, true
		}
	}
	return changed
}

// back goes back over x, which is at a place.
func (d *distances) back(c *section, x *inst, at place) {
	if x.guard != noGuard {
		d.touch[fileBase[isa.FileP]+reg(x.guard>>1)] = at
	}
	for _, a := range c.of(x) {
		for n := range reg(a.count) {
			d.touch[a.first+n] = at
			if a.writes {
				d.write[a.first+n] = at
			}
		}
	}
	if c.opaque(x) {
		d.fill(at)
	}
}

// opaque reports whether control goes on after x where nobody knows what it comes upon, or
// whether x itself is not known.
func (c *section) opaque(x *inst) bool {
	switch x.flow {
	case isa.FlowCall, isa.FlowReturn, isa.FlowIndirect:
		return true
	}
	return x.class == noClass
}

// A need is what has to be known of an instruction to choose scoreboards for it.
type need struct {
	touch place // how far away its results are read or overwritten, in instructions
	write place // how far away its sources are overwritten
}

// needs returns the needs of instructions, and how far away registers are touched at the
// start of each block.
func (c *section) needs() ([]need, []distances) {
	n := len(c.graph.Blocks)
	starts, ends := make([]distances, n), make([]distances, n)
	place := func(i int) place { return place(0).after(i) }
	for k := range n {
		b := &c.graph.Blocks[k]
		starts[k].fill(never)
		ends[k].fill(never)
		for i := b.End - 1; i >= b.Start; i-- {
			starts[k].back(c, &c.insts[i], place(i-b.Start))
		}
	}
	for again := true; again; {
		again = false
		for k := n - 1; k >= 0; k-- {
			changed := false
			c.leave(k, func(to int, _ uint8) { changed = ends[k].nearest(&starts[to], 0) || changed })
			if changed {
				b := &c.graph.Blocks[k]
				again = starts[k].nearest(&ends[k], b.End-b.Start) || again
			}
		}
	}
	out := make([]need, len(c.insts))
	var d distances
	for k := range n {
		b := &c.graph.Blocks[k]
		d.fill(never)
		d.nearest(&ends[k], b.End-b.Start)
		for i := b.End - 1; i >= b.Start; i-- {
			x, at := &c.insts[i], place(i-b.Start)
			out[i] = need{never, never}
			for _, a := range c.of(x) {
				for r := range reg(a.count) {
					if p := d.touch[a.first+r]; a.writes && p != never {
						out[i].touch = min(out[i].touch, p-at)
					}
					if p := d.write[a.first+r]; a.reads && p != never && a.first < fileBase[isa.FileP] {
						out[i].write = min(out[i].write, p-at)
					}
				}
			}
			d.back(c, x, at)
		}
	}
	return out, starts
}
