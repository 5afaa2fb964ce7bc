package schedule

import (
	"slices"

	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/isa/kernel"
)

// An entry is something that is not over yet at a place of the code: a result that
// may not be there, or a source that may not have been read.
type entry struct {
	inst   int32
	class  classNumber
	time   int32 // when it was issued, counted from the start of the block
	seq    int32 // the instruction's place in the block, -1 for one of an earlier block
	next   int32 // the next entry of the same register, -1 for none
	boards [2]board
	reg    regID
	guard  uint8 // noGuard where it has none that still says the same
	read   bool  // the source of an instruction, else a result
	pipe   uint8 // of a source: what reads it
	cover  uint8 // of a source of an earlier block: scoreboards that later instructions of the pipe set
	late   bool  // counts however long ago it was
	rest   bool  // a register of a result behind its first
}

// A board is a scoreboard that an instruction sets; number 7 is none.
type board struct {
	number uint8
	at     int32 // how many instructions had set it, this one included
}

// A saved is an entry at the end of a block, with its times counted back from there.
type saved struct {
	entry
	key uint64
}

// maxAge is when a result of a fixed latency is taken to be there, in cycles: more than
// twice the longest that ptxas keeps to.
const maxAge = 64

// longAge is where the age of what is not over stops to be counted.
const longAge = 255

// A dependence is a pair of instructions of which the second may not come too soon.
type dependence struct {
	kind    Kind
	reg     regID
	first   int32 // instructions
	second  int32
	class   classNumber // of the first
	age     int32       // cycles from the first to the second; longAge or less
	board   bool        // the first sets a scoreboard that ends the dependence
	waited  bool        // and it has been waited for
	covered bool        // a later instruction like the first has been waited for
	slot    slot        // of the second's operand
}

// A walker follows the flow of a kernel with what is not over yet.
type walker struct {
	*reader
	graph *kernel.Graph
	in    [][]saved // at the start of each block
	dirty []bool

	// The block that is being followed.
	pool    []entry
	head    [numRegs]int32
	live    []regID // registers that have entries
	now     int32
	seq     int32
	set     [8]int32 // how often each scoreboard was set
	over    [8]int32 // how many of those are over
	wrote   [16]int32
	waited  uint8               // scoreboards waited for in the block
	setBy   [numPipes][6]int32  // the last instruction of a pipe that set a scoreboard
	pipeAt  [numPipes]int32     // instructions of a pipe up to this one have read their sources
	found   func(d *dependence) // nil while the flow is not known
	scratch []saved
}

// run follows every path of g and reports the dependences of each instruction with
// what may be pending there.
func (w *walker) run(g *kernel.Graph, found func(d *dependence)) {
	w.read(g)
	w.graph = g
	n := len(g.Blocks)
	w.in = make([][]saved, n)
	w.dirty = make([]bool, n)
	for k := range w.dirty {
		w.dirty[k] = true
	}
	for r := range w.head {
		w.head[r] = -1
	}
	w.found = nil
	for again := true; again; {
		again = false
		for k := range n {
			if w.dirty[k] {
				w.dirty[k] = false
				w.follow(k)
				again = w.leave(k) || again
			}
		}
	}
	w.found = found
	for k := range n {
		w.follow(k)
	}
	w.clear()
}

// clear forgets the entries of a block.
func (w *walker) clear() {
	for _, r := range w.live {
		w.head[r] = -1
	}
	w.live, w.pool = w.live[:0], w.pool[:0]
}

// follow goes through block k.
func (w *walker) follow(k int) {
	w.clear()
	w.now, w.set, w.over = 0, [8]int32{}, [8]int32{}
	for i := range w.over {
		w.over[i] = -1 << 20
	}
	for i := range w.wrote {
		w.wrote[i] = -2
	}
	w.waited = 0
	for p := range w.setBy {
		w.pipeAt[p] = -2
		for s := range w.setBy[p] {
			w.setBy[p][s] = -2
		}
	}
	for i := range w.in[k] {
		w.add(w.in[k][i].entry)
	}
	b := &w.graph.Blocks[k]
	for i := b.Start; i < b.End; i++ {
		w.seq = int32(i - b.Start)
		w.step(int32(i), &w.ops[i])
	}
}

func (w *walker) add(e entry) {
	if e.next = w.head[e.reg]; e.next < 0 {
		w.live = append(w.live, e.reg)
	}
	w.head[e.reg] = int32(len(w.pool))
	w.pool = append(w.pool, e)
}

// step issues instruction i.
func (w *walker) step(i int32, o *op) {
	if o.ctrl.Wait != 0 {
		for s := range uint8(6) {
			if o.ctrl.Wait>>s&1 != 0 {
				w.wait(s)
			}
		}
	}
	if w.waits != nil {
		for _, x := range w.waits[int(i)] {
			if x.Left == 0 {
				w.wait(x.Board)
			} else {
				w.over[x.Board] = max(w.over[x.Board], w.set[x.Board]-x.Left)
			}
		}
	}
	if o.guard != noGuard {
		w.meet(i, o, fileBase[isa.FileP]+regID(o.guard>>1), Guard, slot{bit: noBit})
	}
	for _, a := range w.accesses[o.from:o.to] {
		if a.reads {
			for r := range regID(a.count) {
				w.meet(i, o, a.first+r, Read, slot{bit: a.slot, count: a.count})
			}
		}
	}
	for _, b := range [...]uint8{o.ctrl.WBar, o.ctrl.RBar} {
		if b < 6 {
			w.set[b]++
			w.setBy[sourcePipe][b] = w.seq
		}
	}
	if o.ctrl.WBar < 6 && o.class != noClass {
		w.setBy[w.pipes[o.class]][o.ctrl.WBar] = w.seq
	}
	w.write(i, o)
	if o.reading {
		w.sources(i, o)
	}
	w.pass(o)
}

// wait waits for scoreboard s. A pipe reads the sources of its instructions in their order,
// so that what one of them ends has ended for those before it.
func (w *walker) wait(s uint8) {
	w.over[s] = w.set[s]
	w.waited |= 1 << s
	for p := range w.setBy {
		w.pipeAt[p] = max(w.pipeAt[p], w.setBy[p][s])
	}
}

// pass lets the time of instruction o pass.
func (w *walker) pass(o *op) {
	w.now += int32(o.ctrl.Stall)
	if o.ctrl.Stall == 0 { // it waits for all that is outstanding
		w.clear()
	}
}

// write meets what instruction i overwrites, and adds its results.
func (w *walker) write(i int32, o *op) {
	for _, a := range w.accesses[o.from:o.to] {
		if !a.writes {
			continue
		}
		for n := range regID(a.count) {
			r := a.first + n
			w.meet(i, o, r, Rewrite, slot{bit: noBit})
			w.kill(o, r)
			if p := int(r) - int(fileBase[isa.FileP]); p >= 0 && p < len(w.wrote) {
				w.wrote[p] = w.seq
			}
		}
	}
	for _, a := range w.accesses[o.from:o.to] {
		if a.writes {
			e := entry{inst: i, class: o.class, time: w.now, seq: w.seq, guard: o.guard, late: o.pending}
			if o.class != noClass {
				e.pipe = w.pipes[o.class]
			}
			e.boards = [2]board{w.board(o.ctrl.WBar), {number: 7}}
			for n := range regID(a.count) {
				e.reg, e.rest = a.first+n, n > 0
				w.add(e)
			}
		}
	}
}

// sources adds the sources of instruction i, which reads them late.
func (w *walker) sources(i int32, o *op) {
	for _, a := range w.accesses[o.from:o.to] {
		if !a.reads || a.first >= fileBase[isa.FileP] {
			continue // predicates are read at issue
		}
		e := entry{inst: i, class: o.class, time: w.now, seq: w.seq, guard: o.guard, read: true, late: true, pipe: sourcePipe}
		e.boards = [2]board{w.board(o.ctrl.RBar), w.board(o.ctrl.WBar)}
		for n := range regID(a.count) {
			e.reg = a.first + n
			w.add(e)
		}
	}
}

func (w *walker) board(n uint8) board {
	if n >= 6 {
		return board{number: 7}
	}
	return board{n, w.set[n]}
}

// done reports whether e has a scoreboard that has been waited for.
func (w *walker) done(e *entry) bool {
	for _, b := range e.boards {
		if b.number < 6 && w.over[b.number] >= b.at {
			return true
		}
	}
	return (e.read || e.pipe == orderedPipe) && w.covered(e)
}

// covered reports whether a later instruction of the same pipe has been waited for.
func (w *walker) covered(e *entry) bool {
	return e.pipe != noPipe && (e.cover&w.waited != 0 || w.pipeAt[e.pipe] > e.seq)
}

// guardOf returns e's guard if its predicate is still what it was.
func (w *walker) guardOf(e *entry) uint8 {
	if e.guard == noGuard || w.wrote[e.guard>>1] >= e.seq && w.wrote[e.guard>>1] >= 0 {
		return noGuard
	}
	return e.guard
}

// meet reports the dependences of instruction i with what is pending of register r.
func (w *walker) meet(i int32, o *op, r regID, kind Kind, at slot) {
	if w.found == nil {
		return
	}
	for n := w.head[r]; n >= 0; n = w.pool[n].next {
		e := &w.pool[n]
		if e.read && kind != Rewrite || o.guard != noGuard && w.guardOf(e) == o.guard^1 {
			continue
		}
		d := dependence{kind: kind, reg: r, first: e.inst, second: i, class: e.class, age: min(w.now-e.time, longAge), slot: at}
		d.slot.rest = e.rest && kind == Read
		if e.read {
			d.kind = Overwrite
		}
		d.board = e.boards[0].number < 6 || e.boards[1].number < 6
		d.waited = (d.board || e.pipe == orderedPipe) && w.done(e)
		d.covered = !d.waited && w.covered(e)
		if !d.board && !e.late && d.age >= maxAge {
			continue
		}
		w.found(&d)
	}
}

// kill forgets what an instruction ends by writing r: everything, or under a guard what has
// the same guard.
func (w *walker) kill(o *op, r regID) {
	at := &w.head[r]
	for *at >= 0 {
		e := &w.pool[*at]
		if o.guard == noGuard || w.guardOf(e) == o.guard {
			*at = e.next
		} else {
			at = &e.next
		}
	}
}

// leave gives what is pending at the end of block k to the blocks that follow, and
// reports whether one of them has to be followed again.
func (w *walker) leave(k int) bool {
	list := w.save()
	b := &w.graph.Blocks[k]
	last := &w.ops[b.End-1]
	flow := w.graph.Inst(b.End - 1).Flow()
	again := false
	for _, e := range b.Succs {
		if flow.Kind == isa.FlowCall && !flow.Conditional {
			continue // what the function leaves pending is not known
		}
		// Where a guarded branch goes on, its guard is known.
		never := uint8(noGuard)
		if last.guard != noGuard && flow.Kind != isa.FlowNone {
			if never = last.guard; e.Kind == kernel.Taken {
				never ^= 1
			}
		}
		again = w.merge(e.Block, list, never) || again
	}
	if to, ok := w.graph.Callee(k); ok {
		again = w.merge(to, list, noGuard) || again
	}
	return again
}

// save returns what is pending at the end of the block, in the order of keys.
func (w *walker) save() []saved {
	list := w.scratch[:0]
	for _, r := range w.live {
		for at := w.head[r]; at >= 0; at = w.pool[at].next {
			e := w.pool[at]
			age := min(w.now-e.time, longAge)
			if w.done(&e) || !e.late && age >= maxAge {
				continue
			}
			e.guard = w.guardOf(&e)
			if e.pipe != noPipe {
				for s := range w.setBy[e.pipe] {
					if w.setBy[e.pipe][s] > e.seq {
						e.cover |= 1 << s
					}
				}
			}
			e.time, e.seq = -age, -1
			for i := range e.boards {
				if b := &e.boards[i]; b.number < 6 {
					b.at = max(b.at-w.set[b.number], -maxAge)
				}
			}
			list = append(list, saved{e, e.key()})
		}
		w.head[r] = -1
	}
	w.live = w.live[:0]
	slices.SortFunc(list, func(a, b saved) int {
		switch {
		case a.key < b.key:
			return -1
		case a.key > b.key:
			return 1
		case a.inst != b.inst:
			return int(a.inst - b.inst)
		}
		return int(b.time - a.time)
	})
	out := list[:0]
	for _, x := range list {
		if n := len(out); n > 0 && out[n-1].key == x.key {
			out[n-1].join(&x.entry)
		} else {
			out = append(out, x)
		}
	}
	w.scratch = list
	return out
}

// key tells apart what has to be kept apart: of two entries with the same key the one that is
// nearer in time counts for both.
func (e *entry) key() uint64 {
	k := uint64(e.reg)<<48 | uint64(uint32(e.class)&0xffffff)<<16 | uint64(e.boards[0].number)<<12 | uint64(e.boards[1].number)<<8 | uint64(e.guard&0x3f)
	if e.read {
		k |= 1 << 6
	}
	if e.late {
		k |= 1 << 7
	}
	if e.rest {
		k |= 1 << 40
	}
	return k
}

// join makes e stand for x too, and reports whether that changed it.
func (e *entry) join(x *entry) bool {
	changed := false
	if x.time > e.time {
		e.time, e.inst, changed = x.time, x.inst, true
	}
	if c := e.cover & x.cover; c != e.cover {
		e.cover, changed = c, true
	}
	for i := range e.boards {
		if x.boards[i].at > e.boards[i].at {
			e.boards[i].at, changed = x.boards[i].at, true
		}
	}
	return changed
}

// merge adds a list to what is pending at the start of block k, without what has the guard
// never.
func (w *walker) merge(k int, list []saved, never uint8) bool {
	old := w.in[k]
	fresh := 0 // entries of list that old does not have
	changed := false
	i := 0
	for j := range list {
		x := &list[j]
		if never != noGuard && x.guard == never {
			continue
		}
		for i < len(old) && old[i].key < x.key {
			i++
		}
		if i < len(old) && old[i].key == x.key {
			changed = old[i].join(&x.entry) || changed
		} else {
			fresh++
		}
	}
	if fresh > 0 {
		changed = true
		merged := make([]saved, 0, len(old)+fresh)
		i = 0
		for j := range list {
			x := &list[j]
			if never != noGuard && x.guard == never {
				continue
			}
			for i < len(old) && old[i].key < x.key {
				merged = append(merged, old[i])
				i++
			}
			if i < len(old) && old[i].key == x.key {
				continue
			}
			merged = append(merged, *x)
		}
		w.in[k] = append(merged, old[i:]...)
	}
	w.dirty[k] = w.dirty[k] || changed
	return changed
}
