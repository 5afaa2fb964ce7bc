package kernel

import (
	"slices"
	"sync"

	"github.com/cupatch/cupatch/isa"
)

// Defs answers which instructions may have written the value that is in a register.
//
// A write under a guard leaves the value before it possible. A call may have written what
// the function that it calls writes, or, where that is not in the section, every register
// that the section names; so may an instruction whose effects are not known.
//
// A block is looked at when it is first asked about, and what is found at its start is
// kept, so that many questions take little more time than one. A Defs may be used by one
// goroutine at a time.
type Defs struct {
	g      *Graph
	blocks []map[reg][]int32 // by block: the writers of each register, ascending
	starts map[place]value   // values at the start of blocks
	entry  []bool            // by block: execution may come here from outside the section
	all    isa.RegSet        // every register that the section names
	once   sync.Once         // of all
	calls  *calls
	ahead  []isa.Effects // see called
}

// Defs returns the definitions of the graph's code.
func (g *Graph) Defs() *Defs {
	d := &Defs{g: g, blocks: make([]map[reg][]int32, len(g.Blocks)), starts: map[place]value{},
		entry: make([]bool, len(g.Blocks)), calls: newCalls(g)}
	if len(g.Blocks) > 0 {
		d.entry[0] = true
	}
	for _, f := range g.code.Functions { // whose addresses may be taken
		if f%isa.WordSize == 0 && f/isa.WordSize < uint64(len(g.at)) {
			d.entry[g.at[f/isa.WordSize]] = true
		}
	}
	return d
}

// A Source is where a value may come from.
type Source struct {
	// Inst is the instruction that wrote it, or -1 where it was there when execution
	// entered the kernel or the function.
	Inst int
	// Call says that the instruction is a call, and that the function may have written it.
	Call bool
}

// Reaching returns where the value that register n of file f has before instruction i may
// come from, by ascending instruction.
func (d *Defs) Reaching(i int, f isa.RegFile, n int) []Source {
	var out []Source
	seen := map[value]bool{}
	work := []value{d.before(i, regOf(f, n))}
	for len(work) > 0 {
		v := work[len(work)-1]
		work = work[:len(work)-1]
		if seen[v] {
			continue
		}
		seen[v] = true
		switch v.kind {
		case valueEntry:
			out = append(out, Source{Inst: -1})
		case valueDef:
			out = append(out, Source{Inst: int(v.at), Call: d.g.Inst(int(v.at)).Flow().Kind == isa.FlowCall})
		default:
			work = append(work, d.inputs(v)...)
		}
	}
	slices.SortFunc(out, func(a, b Source) int { return a.Inst - b.Inst })
	return slices.Compact(out)
}

// Uses returns the instructions that may read what instruction i writes to register n of
// file f, by ascending instruction. A call is among them where its function may.
func (d *Defs) Uses(i int, f isa.RegFile, n int) []int {
	var out []int
	seen := make(map[int]bool)
	var work []int
	scan := func(from, end int) {
		for j := from; j < end; j++ {
			in := d.g.Inst(j)
			if e := d.effects(j, in); e.Reads.Has(f, n) {
				out = append(out, j)
			}
			if fx := in.Effects(); fx.Writes.Has(f, n) && !in.IsGuarded() {
				return
			}
		}
		for _, e := range d.g.Blocks[d.g.Block(end-1)].Succs {
			if !seen[e.Block] {
				seen[e.Block] = true
				work = append(work, e.Block)
			}
		}
	}
	scan(i+1, d.g.Blocks[d.g.Block(i)].End)
	for len(work) > 0 {
		b := &d.g.Blocks[work[len(work)-1]]
		work = work[:len(work)-1]
		scan(b.Start, b.End)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// A reg is a register of any file.
type reg uint16

func regOf(f isa.RegFile, n int) reg { return reg(f)<<8 | reg(n&0xff) }

func (r reg) in(s *isa.RegSet) bool { return s.Has(isa.RegFile(r>>8), int(r&0xff)) }

// A place is the start of a block, for a register.
type place struct {
	block int32
	reg   reg
}

// A valueKind says what a value is.
type valueKind uint8

const (
	valueEntry valueKind = iota // what was there when execution entered the block at
	valueDef                    // what the instruction at has written
	valueMaybe                  // that, or what was there before
	valueJoin                   // what comes into the block at from any side
)

// A value is what a register has in some places. Two that are equal are the same value.
type value struct {
	kind valueKind
	reg  reg
	at   int32
}

// before returns the value of a register before instruction i.
func (d *Defs) before(i int, r reg) value {
	k := d.g.at[i]
	if v, ok := d.written(k, i, r); ok {
		return v
	}
	return d.start(k, r)
}

// written returns the value that block k has given a register before instruction i.
func (d *Defs) written(k int32, i int, r reg) (value, bool) {
	list := d.writers(k)[r]
	n, _ := slices.BinarySearch(list, int32(i))
	if n == 0 {
		return value{}, false
	}
	at := list[n-1]
	in := d.g.Inst(int(at))
	fx := in.Effects()
	if in.IsGuarded() || !r.in(&fx.Writes) { // it may have, or the function that it calls
		return value{valueMaybe, r, at}, true
	}
	return value{valueDef, r, at}, true
}

// start returns the value of a register at the start of block k: where a block has one
// predecessor, what is there at its end.
func (d *Defs) start(k int32, r reg) value {
	var way []place
	var v value
	for {
		p := place{k, r}
		if known, ok := d.starts[p]; ok {
			v = known
			break
		}
		b := &d.g.Blocks[k]
		way = append(way, p)
		called := len(d.calls.callers[k]) > 0
		if len(b.Preds) == 0 && !called {
			v = value{valueEntry, r, k}
			break
		}
		// Unreachable blocks can lead to one another in a circle.
		if d.entry[k] || called || len(b.Preds) > 1 || len(way) > len(d.g.Blocks) {
			v = value{valueJoin, r, k}
			break
		}
		from := b.Preds[0].Block
		if w, ok := d.written(int32(from), d.g.Blocks[from].End, r); ok {
			v = w
			break
		}
		k = int32(from)
	}
	for _, p := range way {
		d.starts[p] = v
	}
	return v
}

// inputs returns the values that v may be.
func (d *Defs) inputs(v value) []value {
	switch v.kind {
	case valueMaybe:
		return []value{{valueDef, v.reg, v.at}, d.before(int(v.at), v.reg)}
	case valueJoin:
		var out []value
		if d.entry[v.at] {
			out = append(out, value{valueEntry, v.reg, v.at})
		}
		for _, e := range d.g.Blocks[v.at].Preds {
			if !d.calls.goesOn(e.Block, e) {
				continue
			}
			end := d.g.Blocks[e.Block].End
			if w, ok := d.written(int32(e.Block), end, v.reg); ok {
				out = append(out, w)
			} else {
				out = append(out, d.start(int32(e.Block), v.reg))
			}
		}
		for _, k := range d.calls.callers[v.at] {
			out = append(out, d.before(d.g.Blocks[k].End-1, v.reg))
		}
		return out
	}
	return nil
}

// writers returns the instructions of a block that may write a register, by register.
func (d *Defs) writers(k int32) map[reg][]int32 {
	if m := d.blocks[k]; m != nil {
		return m
	}
	m := map[reg][]int32{}
	for i := d.g.Blocks[k].Start; i < d.g.Blocks[k].End; i++ {
		fx := d.effects(i, d.g.Inst(i))
		fx.Writes.Each(func(f isa.RegFile, n int) { m[regOf(f, n)] = append(m[regOf(f, n)], int32(i)) })
	}
	d.blocks[k] = m
	return m
}

// effects returns what instruction i may read and write, what it calls included.
func (d *Defs) effects(i int, in isa.Inst) isa.Effects {
	fx := in.Effects()
	k := d.g.at[i]
	switch {
	case !in.HasEffects():
		return isa.Effects{Reads: d.named(), Writes: d.named()}
	case i+1 < d.g.Blocks[k].End || !d.calls.calling(int(k)):
		return fx
	case d.calls.exits[k].callee < 0:
		return isa.Effects{Reads: d.named(), Writes: d.named()}
	case !d.calls.comesBack(int(k)): // nothing that the function writes is seen here
		return isa.Effects{Reads: merged(fx, d.called()[d.calls.exits[k].callee]).Reads, Writes: fx.Writes}
	}
	return merged(fx, d.called()[d.calls.exits[k].callee])
}

func merged(a, b isa.Effects) isa.Effects {
	return isa.Effects{Reads: a.Reads.Union(b.Reads), Writes: a.Writes.Union(b.Writes)}
}

// named returns every register that the section names.
func (d *Defs) named() isa.RegSet {
	d.once.Do(func() {
		for i := range d.g.at {
			fx := d.g.Inst(i).Effects()
			d.all = d.all.Union(fx.Reads).Union(fx.Writes)
		}
	})
	return d.all
}

// called returns, by block, what may be read and written from the start of the block on,
// until the function that it is in returns.
func (d *Defs) called() []isa.Effects {
	if d.ahead != nil {
		return d.ahead
	}
	own := make([]isa.Effects, len(d.g.Blocks))
	for k := range d.g.Blocks {
		b := &d.g.Blocks[k]
		for i := b.Start; i < b.End; i++ {
			in := d.g.Inst(i)
			if own[k] = merged(own[k], in.Effects()); !in.HasEffects() {
				own[k] = isa.Effects{Reads: d.named(), Writes: d.named()}
			}
		}
		if b.Open || d.calls.calling(k) && d.calls.exits[k].callee < 0 {
			own[k] = isa.Effects{Reads: d.named(), Writes: d.named()}
		}
	}
	ahead := make([]isa.Effects, len(d.g.Blocks))
	d.calls.until(func(k int) bool {
		now := own[k]
		for _, e := range d.g.Blocks[k].Succs {
			now = merged(now, ahead[e.Block])
		}
		if c := d.calls.exits[k].callee; c >= 0 {
			now = merged(now, ahead[c])
		}
		if now == ahead[k] {
			return false
		}
		ahead[k] = now
		return true
	})
	d.ahead = ahead
	return ahead
}
