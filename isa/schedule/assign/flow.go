package assign

import (
	"cmp"
	"slices"

	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/isa/kernel"
)

// A kind says how one instruction depends on another.
type kind uint8

const (
	read      kind = iota // the second reads what the first writes
	guard                 // the second is guarded by a predicate that the first writes
	rewrite               // both write the register
	overwrite             // the second writes what the first reads
	boardSet              // the second waits for a scoreboard that the first sets
	numKinds
)

var kindNames = [numKinds]string{"read", "guard", "rewrite", "overwrite", "board"}

// An entry is something that may not be over at a place of the code.
type entry struct {
	reg    reg
	guard  uint8 // noGuard where it has none that still says the same
	board  uint8 // which ends it, 7 for none
	board2 uint8 // of a source: that of the result, which ends it too
	source bool  // the source of an instruction, else a result
	rest   bool  // a register of a result behind its first
	class  int32
	inst   int32
	time   int32 // when it was issued, counted from the start of the block
}

// longAge is where the age of what is not over stops to be counted, in cycles.
const longAge = 255

// maxAge is when a result of fixed latency is taken to be there, in cycles.
const maxAge = 64

// A meeting is an instruction that comes upon what may not be over.
type meeting struct {
	kind  kind
	first *entry
	inst  int32 // the second
	slot  uint8
	count uint8
}

// A state is what is not over yet at a place of a block.
type state struct {
	code  *section
	regs  [numRegs][]entry
	live  []reg
	now   int32
	start int32     // the first instruction of the block
	wrote [16]int32 // the last instruction of the block that wrote a predicate
}

// begin makes s the state at the start of block k, with what was pending before.
func (s *state) begin(k int, in []entry) {
	for _, r := range s.live {
		s.regs[r] = s.regs[r][:0]
	}
	s.live, s.now = s.live[:0], 0
	s.start = int32(s.code.graph.Blocks[k].Start)
	for i := range s.wrote {
		s.wrote[i] = -1
	}
	for i := range in {
		s.add(in[i])
	}
}

func (s *state) add(e entry) {
	if len(s.regs[e.reg]) == 0 {
		s.live = append(s.live, e.reg)
	}
	s.regs[e.reg] = append(s.regs[e.reg], e)
}

// guardOf returns e's guard if its predicate is still what it was.
func (s *state) guardOf(e *entry) uint8 {
	if e.guard == noGuard {
		return noGuard
	}
	if w := s.wrote[e.guard>>1]; w >= 0 && (w >= e.inst || e.time < 0) {
		return noGuard
	}
	return e.guard
}

// meetings calls fn with everything pending that instruction i comes upon.
func (s *state) meetings(i int32, fn func(m *meeting)) {
	x := &s.code.insts[i]
	m := meeting{inst: i, slot: noBit}
	meet := func(r reg, k kind) {
		for n := range s.regs[r] {
			e := &s.regs[r][n]
			if e.source && k != rewrite || x.guard != noGuard && s.guardOf(e) == x.guard^1 {
				continue
			}
			m.kind, m.first = k, e
			if e.source {
				m.kind = overwrite
			}
			fn(&m)
		}
	}
	if x.guard != noGuard {
		meet(fileBase[isa.FileP]+reg(x.guard>>1), guard)
	}
	for _, a := range s.code.of(x) {
		if a.reads {
			m.slot, m.count = a.slot, a.count
			for r := range reg(a.count) {
				meet(a.first+r, read)
			}
		}
	}
	m.slot, m.count = noBit, 0
	for _, a := range s.code.of(x) {
		if a.writes {
			for r := range reg(a.count) {
				meet(a.first+r, rewrite)
			}
		}
	}
}

// wait ends what the scoreboards of mask end.
func (s *state) wait(mask uint8) {
	if mask == 0 {
		return
	}
	for _, r := range s.live {
		s.regs[r] = slices.DeleteFunc(s.regs[r], func(e entry) bool {
			return r < firstBoard && (e.board < numBoards && mask>>e.board&1 != 0 || e.board2 < numBoards && mask>>e.board2&1 != 0)
		})
	}
	for b := range reg(numBoards) {
		if mask>>b&1 != 0 {
			s.regs[firstBoard+b] = s.regs[firstBoard+b][:0]
		}
	}
	s.tidy()
}

// tidy forgets registers of which nothing is pending.
func (s *state) tidy() {
	s.live = slices.DeleteFunc(s.live, func(r reg) bool { return len(s.regs[r]) == 0 })
}

// issue adds what instruction i leaves pending: its results, where reading says so its sources,
// and the scoreboards it sets.
func (s *state) issue(i int32, ctrl isa.Control, reading bool) {
	x := &s.code.insts[i]
	for _, a := range s.code.of(x) {
		if !a.writes {
			continue
		}
		for n := range reg(a.count) {
			r := a.first + n
			list := slices.DeleteFunc(s.regs[r], func(e entry) bool { return x.guard == noGuard || s.guardOf(&e) == x.guard })
			if s.regs[r] = list; len(list) == 0 {
				if at := slices.Index(s.live, r); at >= 0 {
					s.live = slices.Delete(s.live, at, at+1)
				}
			}
			if p := int(r) - int(fileBase[isa.FileP]); p >= 0 && p < len(s.wrote) {
				s.wrote[p] = i
			}
		}
	}
	e := entry{inst: i, class: x.class, time: s.now, guard: x.guard, board: noBoard(ctrl.WBar), board2: isa.NoBar}
	for _, a := range s.code.of(x) {
		if a.writes {
			for n := range reg(a.count) {
				e.reg, e.rest = a.first+n, n > 0
				s.add(e)
			}
		}
	}
	e.rest = false
	if reading {
		e.source, e.board, e.board2 = true, noBoard(ctrl.RBar), noBoard(ctrl.WBar)
		for _, a := range s.code.of(x) {
			if a.reads && a.first < fileBase[isa.FileP] {
				for n := range reg(a.count) {
					e.reg = a.first + n
					s.add(e)
				}
			}
		}
		e.source = false
	}
	for _, b := range [...]uint8{ctrl.WBar, ctrl.RBar} {
		if b < numBoards {
			e.reg, e.board, e.board2, e.guard = firstBoard+reg(b), isa.NoBar, isa.NoBar, noGuard
			s.regs[e.reg] = s.regs[e.reg][:0]
			if !slices.Contains(s.live, e.reg) {
				s.live = append(s.live, e.reg)
			}
			s.regs[e.reg] = append(s.regs[e.reg], e)
		}
	}
}

// noBoard makes 7 of scoreboards that do not exist.
func noBoard(b uint8) uint8 {
	if b < numBoards {
		return b
	}
	return isa.NoBar
}

// save returns what is pending at the end of a block, in the order of keys, with the times
// counted back from there. What is fixed, as long says, is over after maxAge.
func (s *state) save(fixed func(e *entry) bool) []entry {
	var out []entry
	for _, r := range s.live {
		for _, e := range s.regs[r] {
			e.guard = s.guardOf(&e)
			if e.time = max(e.time-s.now, -longAge); e.time < -maxAge && (r >= firstBoard || fixed(&e)) {
				if r < firstBoard {
					continue
				}
				e.time = -longAge
			}
			if e.time == 0 {
				e.time = -1 // one that stalls no cycle
			}
			out = append(out, e)
		}
	}
	slices.SortFunc(out, compareEntries)
	merged := out[:0]
	for _, e := range out {
		if n := len(merged); n > 0 && sameKey(&merged[n-1], &e) {
			if e.time > merged[n-1].time {
				merged[n-1] = e
			}
		} else {
			merged = append(merged, e)
		}
	}
	return merged
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

// compareEntries orders entries by what has to be kept apart.
func compareEntries(a, b entry) int {
	return cmp.Or(int(a.reg)-int(b.reg), int(a.class)-int(b.class), int(a.board)-int(b.board), int(a.board2)-int(b.board2),
		int(a.guard)-int(b.guard), flag(a.source)-flag(b.source), flag(a.rest)-flag(b.rest))
}

func sameKey(a, b *entry) bool { return compareEntries(*a, *b) == 0 }

// merge adds list to old, both in the order of keys, without what has the guard never, and
// reports whether that changed old: of two entries with one key the later counts.
func merge(old, list []entry, never uint8) (out []entry, changed bool) {
	i := 0
	for _, x := range list {
		if never != noGuard && x.guard == never {
			continue
		}
		for i < len(old) && compareEntries(old[i], x) < 0 {
			out = append(out, old[i])
			i++
		}
		if i < len(old) && sameKey(&old[i], &x) {
			if x.time > old[i].time {
				old[i].time, old[i].inst, changed = x.time, x.inst, true
			}
			continue
		}
		out, changed = append(out, x), true
	}
	return append(out, old[i:]...), changed
}

// leave calls fn with the blocks that control goes to from block k, and with the guard that is
// known not to hold there.
func (c *section) leave(k int, fn func(to int, never uint8)) {
	b := &c.graph.Blocks[k]
	last := &c.insts[b.End-1]
	for _, e := range b.Succs {
		if last.flow == isa.FlowCall && last.guard == noGuard {
			continue // what the function leaves pending is not known
		}
		never := uint8(noGuard)
		if last.guard != noGuard && last.flow != isa.FlowNone {
			if never = last.guard; e.Kind == kernel.Taken {
				never ^= 1
			}
		}
		fn(e.Block, never)
	}
	if to, ok := c.graph.Callee(k); ok {
		fn(to, noGuard)
	}
}
