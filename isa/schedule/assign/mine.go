package assign

import (
	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/isa/kernel"
)

// A Miner gathers what code of ptxas says of its control codes. It is not for several
// goroutines at once. Code is looked at three times, with all of it each time: by [Miner.Count],
// [Miner.Look] and [Miner.Issue].
type Miner struct {
	reader *reader
	boards []boardCount // by class
	pairs  map[pair]*sample
	sets   map[string]*sample // least distances from setting a scoreboard to waiting, by mnemonic
	opens  map[through]int
	stalls map[stallPair]*stallCount
	habits *Habits
	cycles distanceCache
	ends   ender

	instructions int
}

// A boardCount is how often instructions of a class set scoreboards.
type boardCount struct{ all, results, sources int }

// A pair is what dependences have in common.
type pair struct {
	kind   kind
	file   isa.RegFile
	first  int32 // class
	second int32 // class; replaced by its mnemonic later
	slot   uint8
	count  uint8
	rest   bool
}

// pair returns what m has in common with others, where second is the class of its second
// instruction.
func (m *meeting) pair(second int32) pair {
	p := pair{m.kind, m.first.reg.file(), m.first.class, second, noBit, 0, false}
	if m.kind == read {
		p.slot, p.count, p.rest = m.slot, m.count, m.first.rest
	}
	return p
}

// A distanceCache has the cycles that have to be between the instructions of pairs.
type distanceCache map[pair]int

// of returns what h says of p, whose classes r has numbered.
func (c distanceCache) of(p pair, r *reader, h *Habits) int {
	d, ok := c[p]
	if !ok {
		d = h.distance(p.kind, p.file, r.classes.List[p.first], p.secondName(r))
		c[p] = d
	}
	return d
}

// secondName returns the second of the pair in a leastKey.
func (p *pair) secondName(r *reader) string {
	return secondName(p.kind, r.secondOf(p.second), p.slot, p.count, p.rest)
}

// A through is a dependence for which nobody waits though a scoreboard is set.
type through struct {
	kind          kind
	first, second string // mnemonics
}

// A sample is what was seen of a pair.
type sample struct {
	seen  int
	least int
	times [maxAge]int32
}

func (s *sample) see(age int) {
	age = min(age, longAge)
	if s.seen == 0 || age < s.least {
		s.least = age
	}
	s.seen++
	if age < maxAge {
		s.times[age]++
	}
}

// NewMiner returns a miner for code of an architecture.
func NewMiner(t *isa.Table) *Miner {
	return &Miner{reader: newReader(t), pairs: map[pair]*sample{}, sets: map[string]*sample{},
		opens: map[through]int{}, stalls: map[stallPair]*stallCount{}, cycles: distanceCache{}, ends: ender{}}
}

// Count notes which instructions of g set scoreboards.
func (m *Miner) Count(g *kernel.Graph) {
	c := m.reader.read(g)
	for len(m.boards) < len(m.reader.classes.List) {
		m.boards = append(m.boards, boardCount{})
	}
	for i := range c.insts {
		x := &c.insts[i]
		if x.class == noClass {
			continue
		}
		b := &m.boards[x.class]
		b.all++
		if x.ctrl.WBar < numBoards {
			b.results++
		}
		if x.ctrl.RBar < numBoards {
			b.sources++
		}
	}
	m.instructions += len(c.insts)
}

// reading reports whether instructions of a class may read their sources late.
func (m *Miner) reading(class int32) bool {
	return class != noClass && (m.boards[class].sources > 0 || m.boards[class].results > 0)
}

// Look notes how near the dependences of g come.
func (m *Miner) Look(g *kernel.Graph) {
	c := m.reader.read(g)
	ins := c.solve(m.reading)
	s := &state{code: c}
	for k := range g.Blocks {
		s.begin(k, ins[k])
		c.follow(s, k, m.reading, func(i int32, before bool) { m.look(s, i, before) })
	}
}

func (m *Miner) look(s *state, i int32, before bool) {
	c := s.code
	x := &c.insts[i]
	if x.class == noClass {
		return
	}
	name := m.reader.classes.List[x.class].Mnemonic
	if before {
		mask := c.waitMask(int(i))
		for b := range numBoards {
			for _, e := range s.regs[firstBoard+reg(b)] {
				if mask>>b&1 != 0 && e.class != noClass {
					first := m.reader.classes.List[e.class].Mnemonic
					if m.sets[first] == nil {
						m.sets[first] = &sample{}
					}
					m.sets[first].see(int(s.now - e.time))
				}
			}
		}
		return
	}
	s.meetings(i, func(t *meeting) {
		e := t.first
		if e.class == noClass {
			return
		}
		if e.board < numBoards || e.board2 < numBoards {
			m.opens[through{t.kind, m.reader.classes.List[e.class].Mnemonic, name}]++
			return
		}
		p := t.pair(x.class)
		if m.pairs[p] == nil {
			m.pairs[p] = &sample{}
		}
		m.pairs[p].see(int(s.now - e.time))
	})
}

// writes reports whether x writes a register.
func (c *section) writes(x *inst) bool {
	for _, a := range c.of(x) {
		if a.writes {
			return true
		}
	}
	return false
}

// waitMask returns the scoreboards that instruction i waits for until nothing is left.
func (c *section) waitMask(i int) uint8 { return c.insts[i].ctrl.Wait | c.textWaits(i) }

// solve returns what is pending at the start of each block, with the control codes as they are.
func (c *section) solve(reading func(class int32) bool) [][]entry {
	n := len(c.graph.Blocks)
	ins := make([][]entry, n)
	dirty := make([]bool, n)
	for k := range dirty {
		dirty[k] = true
	}
	s := &state{code: c}
	fixed := func(e *entry) bool { return e.board == isa.NoBar && e.board2 == isa.NoBar }
	for again := true; again; {
		again = false
		for k := range n {
			if !dirty[k] {
				continue
			}
			dirty[k] = false
			s.begin(k, ins[k])
			c.follow(s, k, reading, func(int32, bool) {})
			out := s.save(fixed)
			c.leave(k, func(to int, never uint8) {
				var changed bool
				if ins[to], changed = merge(ins[to], out, never); changed {
					dirty[to], again = true, true
				}
			})
		}
	}
	return ins
}

// follow goes through block k, with the control codes as they are, and calls visit before and
// after each instruction's waits.
func (c *section) follow(s *state, k int, reading func(class int32) bool, visit func(i int32, before bool)) {
	b := &c.graph.Blocks[k]
	for i := b.Start; i < b.End; i++ {
		x := &c.insts[i]
		visit(int32(i), true)
		s.wait(c.waitMask(i))
		visit(int32(i), false)
		s.issue(int32(i), x.ctrl, reading(x.class))
		s.now += int32(x.ctrl.Stall)
		if x.ctrl.Stall == 0 {
			s.begin(k, nil) // it waits for all that is outstanding
		}
	}
}
