package assign

import (
	"slices"

	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/isa/kernel"
	"github.com/cupatch/cupatch/isa/schedule"
)

// A Profile says what control codes are made for.
type Profile uint8

// The profiles.
const (
	Ptxas Profile = iota // as ptxas would: issue rates and habits count
	Tight                // the least that is safe
)

// A Scheduler makes control codes for code of an architecture. It is not for several
// goroutines at once.
type Scheduler struct {
	Profile Profile

	habits  *Habits
	reader  *reader
	checker *schedule.Checker // nil where there is no model
	traits  []traits          // by class
	cycles  distanceCache
	stalls  map[stallPair]stallHabit
	ends    ender
}

// traits is what is known of a class.
type traits struct {
	results, sources bool // whether they come late
	always           bool // nearly all instructions set a scoreboard for their results
	reads            bool // some set one for their sources
	counted          bool // DEPBAR counts the scoreboard
	set              int  // cycles from setting a scoreboard to waiting
	latency          int
}

// NewScheduler returns a scheduler for code that t decodes. Checker, which may be nil, has the
// last word on what it makes.
func NewScheduler(h *Habits, t *isa.Table, checker *schedule.Checker) *Scheduler {
	return &Scheduler{habits: h, reader: newReader(t), checker: checker, cycles: distanceCache{}, stalls: map[stallPair]stallHabit{}, ends: ender{}}
}

// A plan is the making of one kernel's control codes.
type plan struct {
	*Scheduler
	c      *section
	needs  []need
	starts []distances
	ctrl   []isa.Control
	chosen []bool  // instructions whose scoreboards are chosen
	keep   []bool  // instructions whose control codes may only get longer
	floor  []uint8 // the least stall
	forced map[int32]bool
	after  map[int32][]int32 // instructions to wait for, besides what is known

	reserved uint8           // scoreboards that DEPBAR counts
	counts   map[int32]uint8 // the scoreboards of instructions that DEPBAR counts

	in    [][]entry
	out   [][]entry
	preds [][]pred
	dirty []bool
	state *state
	busy  [numBoards]busy
}

// busy is what is known of a scoreboard that is set.
type busy struct {
	set   bool
	ready int32 // when the last that set it may be done
	touch int32 // when it will be waited for
	user  int32 // by which instruction, counted from the start of the block
}

// maxRounds is how often control codes are made anew because the checker finds something.
const maxRounds = 20

// Schedule returns the control codes of the instructions of a kernel, in their order. Only
// instructions that within holds for get new ones, nil stands for all; the others
// may wait for more scoreboards and longer than they did. What the checker finds
// nevertheless is returned as well.
func (s *Scheduler) Schedule(k kernel.Code, within func(i int) bool) ([]isa.Control, []schedule.Finding) {
	g := kernel.New(k)
	c := s.reader.read(g)
	s.learn()
	n := len(c.insts)
	p := &plan{Scheduler: s, c: c, ctrl: make([]isa.Control, n), chosen: make([]bool, n), keep: make([]bool, n),
		floor: make([]uint8, n), forced: map[int32]bool{}, after: map[int32][]int32{}, state: &state{code: c}}
	for i := range c.insts {
		p.ctrl[i] = isa.Control{WBar: isa.NoBar, RBar: isa.NoBar}
		if x := &c.insts[i]; x.class == noClass || within != nil && !within(i) {
			p.keep[i], p.chosen[i], p.ctrl[i], p.floor[i] = true, true, x.ctrl, x.ctrl.Stall
		}
	}
	p.needs, p.starts = c.needs()
	p.reserve()
	for round := 0; ; round++ {
		p.solve()
		p.reuse()
		if s.checker == nil {
			return p.ctrl, nil
		}
		found := s.checker.Check(withControls(k, p.ctrl))
		if len(found) == 0 || round == maxRounds || !p.mend(found) {
			return p.ctrl, found
		}
	}
}

// reuse keeps the reuse flags of instructions that do not yield and are followed by one that waits
// for no scoreboard; other flags are left out, and so are batch numbers.
func (p *plan) reuse() {
	for i := range p.ctrl {
		x := &p.c.insts[i]
		b := &p.c.graph.Blocks[p.c.graph.Block(i)]
		switch {
		case p.keep[i]:
			p.ctrl[i].Reuse, p.ctrl[i].Batch = x.ctrl.Reuse, x.ctrl.Batch
		case !p.ctrl[i].Yield && i+1 < b.End && p.ctrl[i+1].Wait == 0:
			p.ctrl[i].Reuse = x.ctrl.Reuse
		}
	}
}

// withControls returns the graph of k with other control codes.
func withControls(k kernel.Code, ctrl []isa.Control) *kernel.Graph {
	data := make([]byte, len(k.Data))
	copy(data, k.Data)
	for i, c := range ctrl {
		c.Set(isa.LoadWord(data[i*isa.WordSize:])).Store(data[i*isa.WordSize:])
	}
	k.Data = data
	return kernel.New(k)
}

// mend makes sure that what was found is not found again, and reports whether it could do
// something about it.
func (p *plan) mend(found []schedule.Finding) bool {
	done := false
	for _, f := range found {
		first, second := int32(f.First), int32(f.Second)
		if f.Name == schedule.Stall {
			done = p.delay(second, int32(f.Need.Cycles-f.Cycles), 0) || done
			continue
		}
		if !p.keep[first] && !p.forced[first] {
			p.forced[first], done = true, true
		}
		if !slices.Contains(p.after[second], first) {
			p.after[second], done = append(p.after[second], first), true
		}
	}
	clear(p.chosen)
	copy(p.chosen, p.keep)
	return done
}

// learn fills in the traits of classes that are new.
func (s *Scheduler) learn() {
	for len(s.traits) < len(s.reader.classes.List) {
		c := s.reader.classes.List[len(s.traits)]
		var t traits
		t.results, t.sources = s.habits.late(c)
		b, ok := s.habits.boards[c.Opcode]
		if !ok {
			b = s.habits.names[c.Mnemonic]
		}
		t.always = b.all > 0 && b.results*20 >= b.all*19
		t.reads = b.sources > 0 || b.all == 0
		t.counted = c.Mnemonic == "LDGDEPBAR" || c.Mnemonic == "UTMACMDFLUSH"
		t.set = s.habits.setDistance(c.Mnemonic)
		t.latency = latencyOf(c.Mnemonic)
		s.traits = append(s.traits, t)
	}
}

// reserve finds the scoreboards that DEPBARs count, and gives them to what they count.
func (p *plan) reserve() {
	p.counts = map[int32]uint8{}
	for i := range p.c.insts {
		x := &p.c.insts[i]
		if x.class == noClass || !p.traits[x.class].counted {
			continue
		}
		b := p.counter(i)
		p.counts[int32(i)] = b
		p.reserved |= 1 << b
	}
}

// counter returns the scoreboard of the next DEPBAR after instruction i, in the order of
// addresses, or of the last before it.
func (p *plan) counter(i int) uint8 {
	at := -1
	for j, w := range p.c.waits {
		if len(w) == 0 || w[0].Board >= numBoards {
			continue
		}
		switch {
		case at < 0, j > i && (at < i || j < at), j < i && at < i && j > at:
			at = j
		}
	}
	if at < 0 {
		return 0
	}
	return p.c.waits[at][0].Board
}

// solve makes the control codes: blocks are gone through until what each leaves pending, and how
// long each stalls, stays as it is.
func (p *plan) solve() {
	n := len(p.c.graph.Blocks)
	p.in, p.out, p.dirty = make([][]entry, n), make([][]entry, n), make([]bool, n)
	p.preds = make([][]pred, n)
	visits := make([]int, n)
	for k := range n {
		p.dirty[k] = true
		p.c.leave(k, func(to int, never uint8) { p.preds[to] = append(p.preds[to], pred{k, never}) })
	}
	for again := true; again; {
		again = false
		for k := range n {
			if !p.dirty[k] {
				continue
			}
			p.dirty[k], again = false, true
			if visits[k]++; visits[k] < patience {
				p.in[k] = nil
			}
			for _, x := range p.preds[k] {
				p.in[k], _ = merge(p.in[k], p.out[x.block], x.never)
			}
			p.block(k)
			out := p.state.save(p.fixed)
			if slices.Equal(out, p.out[k]) {
				continue
			}
			p.out[k] = out
			p.c.leave(k, func(to int, _ uint8) { p.dirty[to] = true })
		}
	}
}

// A pred is a block that control comes from, and the guard that is known not to hold then.
type pred struct {
	block int
	never uint8
}

// patience is how often a block is gone through before what was ever pending at its start counts
// for good, so that the search comes to an end.
const patience = 20

// fixed reports whether e is over after some time.
func (p *plan) fixed(e *entry) bool {
	return e.class != noClass && !e.source && !p.traits[e.class].results && e.board == isa.NoBar
}

// block makes the control codes of block k.
func (p *plan) block(k int) {
	s := p.state
	b := &p.c.graph.Blocks[k]
	s.begin(k, p.in[k])
	p.startBoards(k)
	for i := b.Start; i < b.End; i++ {
		x := &p.c.insts[i]
		at := p.wait(i, k)
		if i == b.Start {
			if at > 0 {
				p.delay(int32(i), at, 0)
			}
			s.now = max(at, 0)
		} else {
			s.now = p.stall(i-1, i, at)
		}
		p.chooseBoards(i, x, b.Start)
		reading := x.class == noClass || p.traits[x.class].sources
		s.issue(int32(i), p.ctrl[i], reading)
	}
	last := stallHabit{}
	if !p.c.self(k) {
		last = p.habit(b.End-1, -1, p.ends.needed(s, p.reader, p.habits))
	}
	s.now += p.setStall(b.End-1, last)
}

// wait sets what instruction i waits for, and returns the time before which it may not be
// issued.
func (p *plan) wait(i, k int) int32 {
	s, x := p.state, &p.c.insts[i]
	mask := p.c.textWaits(i)
	var own uint8
	if p.keep[i] {
		own = x.ctrl.Wait
	}
	at := int32(-longAge)
	s.meetings(int32(i), func(m *meeting) {
		e := m.first
		switch {
		case e.class == noClass || e.source || p.traits[e.class].results || e.board < numBoards:
			if !p.passes(m) {
				own |= bit(e.board)
				if e.board == isa.NoBar {
					own |= bit(e.board2)
				}
			}
		default:
			at = max(at, e.time+int32(p.distance(m)))
		}
	})
	if p.c.opaque(x) {
		for _, r := range s.live {
			for n := range s.regs[r] {
				own |= bit(s.regs[r][n].board)
			}
		}
	}
	for _, j := range p.after[int32(i)] {
		own |= bit(p.ctrl[j].WBar) | bit(p.ctrl[j].RBar)
	}
	if i > p.c.graph.Blocks[k].Start {
		if y := &p.c.insts[i-1]; y.class != noClass && p.traits[y.class].always && !p.traits[y.class].counted && !p.c.writes(y) {
			own |= bit(p.ctrl[i-1].WBar)
		}
	}
	p.ctrl[i].Wait = own
	mask |= own
	for b := range reg(numBoards) {
		if mask>>b&1 == 0 {
			continue
		}
		for _, e := range s.regs[firstBoard+b] {
			d := setLeast
			if e.class != noClass {
				d = p.traits[e.class].set
			}
			at = max(at, e.time+int32(d))
		}
		p.busy[b] = busy{}
	}
	s.wait(mask)
	return at
}

// textWaits returns the scoreboards that the text of instruction i waits for until nothing is left.
func (c *section) textWaits(i int) uint8 {
	mask := uint8(0)
	for _, w := range c.waits[i] {
		if w.Left == 0 && w.Board < numBoards {
			mask |= 1 << w.Board
		}
	}
	return mask
}

func bit(board uint8) uint8 {
	if board < numBoards {
		return 1 << board
	}
	return 0
}

// passes reports whether ptxas lets the second of m overwrite what is pending.
func (p *plan) passes(m *meeting) bool {
	x := &p.c.insts[m.inst]
	if m.kind != rewrite || m.first.class == noClass || x.class == noClass {
		return false
	}
	return p.habits.pass[through{rewrite, p.reader.classes.List[m.first.class].Mnemonic, p.reader.classes.List[x.class].Mnemonic}] > 0
}

// distance returns how many cycles have to be between the instructions of m.
func (p *plan) distance(m *meeting) int {
	if m.kind == overwrite {
		return 0
	}
	x := &p.c.insts[m.inst]
	return p.cycles.of(m.pair(x.class), p.reader, p.habits)
}

// stall sets the stall count of instruction i, which the next follows that may be issued at a
// time, and returns when it is.
func (p *plan) stall(i, next int, at int32) int32 {
	s := p.state
	least := at - s.now
	want := p.habit(i, next, int(max(least, 0)))
	want.stall = uint8(min(max(int32(want.stall), least), maxStall))
	most := p.setStall(i, want)
	if least > most {
		p.delay(int32(next), least-most, 0)
	}
	return s.now + max(most, least)
}

// setStall sets the stall count of instruction i to at least what h says, and returns it.
func (p *plan) setStall(i int, h stallHabit) int32 {
	c := &p.ctrl[i]
	stall := max(h.stall, p.floor[i])
	if p.keep[i] {
		if stall != c.Stall {
			c.Stall, c.Yield = stall, c.Yield || stall > maxQuiet
		}
		return int32(stall)
	}
	c.Yield = stall > maxQuiet || stall == 0 || h.yield && stall == h.stall
	c.Stall = stall
	return int32(stall)
}

// maxStall is the longest stall, and maxQuiet the longest without a yield.
const (
	maxStall = 15
	maxQuiet = 11
)

// delay makes instruction i come n cycles later than it does, by longer stalls before it. It
// reports whether it could.
func (p *plan) delay(i, n int32, depth int) bool {
	k := p.c.graph.Block(int(i))
	b := &p.c.graph.Blocks[k]
	done := false
	for j := int(i) - 1; j >= b.Start && n > 0; j-- {
		more := min(n, maxStall-max(int32(p.floor[j]), int32(p.ctrl[j].Stall)))
		if more > 0 {
			p.floor[j] = max(p.floor[j], p.ctrl[j].Stall) + uint8(more)
			n -= more
			p.dirty[k], done = true, true
		}
	}
	if n <= 0 || depth > 3 {
		return done
	}
	for _, e := range p.preds[k] {
		end := p.c.graph.Blocks[e.block].End
		last := end - 1
		more := min(n, maxStall-max(int32(p.floor[last]), int32(p.ctrl[last].Stall)))
		if more > 0 {
			p.floor[last] = max(p.floor[last], p.ctrl[last].Stall) + uint8(more)
			p.dirty[e.block], done = true, true
		}
		if n > more {
			done = p.delay(int32(last), n-max(more, 0), depth+1) || done
		}
	}
	return done
}
