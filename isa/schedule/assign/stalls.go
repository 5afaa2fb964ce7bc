package assign

import (
	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/isa/kernel"
	"github.com/cupatch/cupatch/isa/schedule/internal/insts"
)

// A stallKey says after which instructions there is a stall: a first, the one after it, and how
// many cycles the second has to wait for what it depends on.
type stallKey struct {
	first, second string // an opcode and a mnemonic, or mnemonics; second is END or * too
	need          int
}

// A stallHabit is how long ptxas stalls.
type stallHabit struct {
	stall uint8
	yield bool
	least uint8 // the shortest
	seen  int
}

// A stallPair is a stallKey with classes.
type stallPair struct {
	first, second int32
	need          int
}

// habit returns how long instruction i stalls by habit where the next needs some cycles; next is -1
// at the end of a block.
func (p *plan) habit(i, next, need int) stallHabit {
	x := &p.c.insts[i]
	if p.keep[i] {
		return stallHabit{}
	}
	key := stallPair{x.class, end, need}
	if next >= 0 {
		key.second = p.c.insts[next].class
	}
	h, ok := p.stalls[key]
	if !ok {
		first, second := p.reader.classes.List[x.class], p.reader.secondOf(key.second)
		h = p.habits.stall(first, second, need)
		if p.Profile == Tight {
			h.stall = min(h.least, p.habits.stall(first, second, 0).least)
		}
		p.stalls[key] = h
	}
	return h
}

// end stands for the class of what follows at the end of a block.
const end = -2

// secondOf returns the name of what follows an instruction.
func (r *reader) secondOf(class int32) string {
	switch class {
	case end:
		return "END"
	case noClass:
		return "?"
	}
	return r.classes.List[class].Mnemonic
}

// stall returns the habit after first and before second.
func (h *Habits) stall(first insts.Class, second string, need int) stallHabit {
	for _, k := range [...]stallKey{
		{first.Opcode, second, need}, {first.Mnemonic, second, need}, {first.Mnemonic, "*", need}, {"*", "*", need},
	} {
		if x, ok := h.stalls[k]; ok {
			return x
		}
	}
	return stallHabit{stall: uint8(min(max(need, 2), maxStall)), least: 2} // nothing like it was seen
}

// stallCount counts how long instructions stall.
type stallCount struct {
	seen  int
	least uint8
	count [32]int32 // by stall, and 16 more where it yields
}

func (s *stallCount) see(c uint8, n int32) {
	if stall := c & 15; s.seen == 0 || stall < s.least {
		s.least = stall
	}
	s.seen += int(n)
	s.count[c] += n
}

func (s *stallCount) habit() stallHabit {
	best := 0
	total := func(stall int) int32 { return s.count[stall] + s.count[stall|16] }
	for i := range 16 {
		if total(i) > total(best) {
			best = i
		}
	}
	return stallHabit{uint8(best), s.count[best|16] > s.count[best], s.least, s.seen}
}

// Issue notes how long the instructions of g stall.
func (m *Miner) Issue(g *kernel.Graph) {
	m.distancesSeen()
	c := m.reader.read(g)
	ins := c.solve(m.reading)
	s := &state{code: c}
	for k := range g.Blocks {
		s.begin(k, ins[k])
		b := &g.Blocks[k]
		c.follow(s, k, m.reading, func(i int32, before bool) {
			if before && int(i) > b.Start {
				m.stall(c, i-1, c.insts[i].class, m.needed(s, i))
			}
		})
		if last := int32(b.End - 1); !c.self(k) {
			s.now -= int32(c.insts[last].ctrl.Stall)
			m.stall(c, last, end, m.ends.needed(s, m.reader, m.habits))
		}
	}
}

// An ender knows how long the results of classes take at most.
type ender map[enderKey]int

type enderKey struct {
	class int32
	file  isa.RegFile
}

// needed returns how many cycles the instruction at which s ends would have to stall for all
// results of fixed latency to be there for whatever follows.
func (m ender) needed(s *state, r *reader, h *Habits) int {
	at := s.now
	for _, x := range s.live {
		if x >= firstBoard {
			continue
		}
		for n := range s.regs[x] {
			e := &s.regs[x][n]
			if e.class == noClass || e.source || e.board < numBoards {
				continue
			}
			key := enderKey{e.class, x.file()}
			d, ok := m[key]
			if !ok {
				c := r.classes.List[e.class]
				if late, _ := h.late(c); !late {
					d = max(h.longest(read, key.file, c), h.longest(guard, key.file, c))
				}
				m[key] = d
			}
			at = max(at, e.time+int32(d))
		}
	}
	return int(min(at-s.now, maxStall))
}

// self reports whether block k is one branch to itself, as behind the end of kernels.
func (c *section) self(k int) bool {
	b := &c.graph.Blocks[k]
	return b.End-b.Start == 1 && len(b.Succs) == 1 && b.Succs[0].Block == k
}

func (m *Miner) stall(c *section, i, second int32, need int) {
	x := &c.insts[i]
	if x.class == noClass {
		return
	}
	key := stallPair{x.class, second, need}
	if m.stalls[key] == nil {
		m.stalls[key] = &stallCount{}
	}
	n := x.ctrl.Stall
	if x.ctrl.Yield {
		n |= 16
	}
	m.stalls[key].see(n, 1)
}

// needed returns how many cycles instruction i needs after the one before it.
func (m *Miner) needed(s *state, i int32) int {
	c := s.code
	x := &c.insts[i]
	at := int32(-longAge)
	s.meetings(i, func(t *meeting) {
		e := t.first
		if e.class == noClass || e.source || e.board < numBoards {
			return
		}
		if late, _ := m.habits.late(m.reader.classes.List[e.class]); late {
			return
		}
		at = max(at, e.time+int32(m.cycles.of(t.pair(x.class), m.reader, m.habits)))
	})
	mask := c.waitMask(int(i))
	for b := range reg(numBoards) {
		if mask>>b&1 == 0 {
			continue
		}
		for _, e := range s.regs[firstBoard+b] {
			if e.class != noClass {
				at = max(at, e.time+int32(m.habits.setDistance(m.reader.classes.List[e.class].Mnemonic)))
			}
		}
	}
	return int(max(at-(s.now-int32(c.insts[i-1].ctrl.Stall)), 0))
}

// stallsSeen fills in the stalls of h.
func (m *Miner) stallsSeen(h *Habits) {
	sums := map[stallKey]*stallCount{}
	for k, s := range m.stalls {
		first, second := m.reader.classes.List[k.first], m.reader.secondOf(k.second)
		keys := [...]stallKey{{first.Opcode, second, k.need}, {first.Mnemonic, second, k.need}, {first.Mnemonic, "*", k.need}, {"*", "*", k.need}}
		for i, x := range keys {
			if i == 1 && x == keys[0] {
				continue
			}
			if sums[x] == nil {
				sums[x] = &stallCount{}
			}
			for n, count := range s.count {
				if count > 0 {
					sums[x].see(uint8(n), count)
				}
			}
		}
	}
	for k, s := range sums {
		h.stalls[k] = s.habit()
	}
	for _, level := range []func(k stallKey) bool{
		func(k stallKey) bool { return k.first != mnemonicOf(k.first) },
		func(k stallKey) bool { return k.first != "*" && k.second != "*" },
		func(k stallKey) bool { return k.first != "*" },
	} {
		for k, x := range h.stalls {
			if level(k) {
				if y := h.above(k); y.stall == x.stall && y.yield == x.yield && y.least == x.least {
					delete(h.stalls, k)
				}
			}
		}
	}
}

// above returns what holds for k if nothing is said of it.
func (h *Habits) above(k stallKey) stallHabit {
	x := h.stalls[k]
	delete(h.stalls, k)
	y := h.stall(insts.Class{Opcode: k.first, Mnemonic: mnemonicOf(k.first)}, k.second, k.need)
	h.stalls[k] = x
	return y
}
