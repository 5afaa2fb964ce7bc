package schedule

import (
	"fmt"

	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/isa/kernel"
)

// A Miner gathers what the code of ptxas says of its dependences. It is not for several
// goroutines at once.
//
// Code is looked at three times: [Miner.Count] with all of it, [Miner.Look] with all of it, and
// after [Miner.Order] Look again.
type Miner struct {
	table        *isa.Table
	instructions int
	dependences  int
	boards       map[string]*boardCount // by opcode
	seen         map[pair]*sample
	ordered      map[string]bool // mnemonics
	counter      *reader
	walker       *walker
	byNumber     map[numbered]*sample
}

// A boardCount is how often instructions of an opcode set scoreboards.
type boardCount struct{ All, Results, Sources int }

// A pair is what dependences have in common.
type pair struct {
	kind   Kind
	file   isa.RegFile
	first  string // opcode
	second string // mnemonic
	slot   slot   // of the second's operand, for Read
}

// A numbered is a pair before the names of its classes are known.
type numbered struct {
	kind   Kind
	slot   slot
	file   isa.RegFile
	first  classNumber
	second classNumber
	boards bool // whether the second sets scoreboards, for verdicts
}

// A sample is what was seen of a pair.
type sample struct {
	waited  int           // a scoreboard was waited for
	open    int           // a scoreboard was not waited for
	covered int           // no scoreboard was waited for, but that of a later instruction like the first
	timed   int           // none of these
	least   int           // the least distance of those
	times   [maxAge]int32 // how many have each distance
	place   string
	broken  string // where a scoreboard was not waited for
}

// NewMiner returns a miner for code of an architecture.
func NewMiner(t *isa.Table) *Miner {
	return &Miner{table: t, boards: map[string]*boardCount{}, seen: map[pair]*sample{}, ordered: map[string]bool{}}
}

// Count notes which instructions of g set scoreboards.
func (m *Miner) Count(g *kernel.Graph) {
	if m.counter == nil {
		m.counter = newReader(m.table, m)
	}
	r := m.counter
	r.read(g)
	for i := range r.ops {
		o := &r.ops[i]
		if o.class == noClass {
			continue
		}
		name := r.classes.List[o.class].Opcode
		c := m.boards[name]
		if c == nil {
			c = &boardCount{}
			m.boards[name] = c
		}
		c.All++
		if o.ctrl.WBar < 6 {
			c.Results++
		}
		if o.ctrl.RBar < 6 {
			c.Sources++
		}
	}
}

// late says which of the results and sources of a class are there late, as far as counted.
func (m *Miner) late(c Class) (results, sources bool) {
	b := m.boards[c.Opcode]
	return b != nil && b.Results > 0, b != nil && b.Sources > 0
}

// inOrder says what [Miner.Order] has found.
func (m *Miner) inOrder(mnemonic string) bool { return m.ordered[mnemonic] }

// Order ends a first look, after which it is known which instructions answer in their order:
// those of which ptxas takes a result for ready because that of a later one of the same name is.
// What they answer together is seen in a second look, which has to follow.
func (m *Miner) Order() {
	for p, s := range m.seen {
		if s.covered > 0 {
			m.ordered[mnemonicOf(p.first)] = true
		}
	}
	m.seen, m.walker, m.instructions, m.dependences = map[pair]*sample{}, nil, 0, 0
}

// Look notes the dependences of g. Place says where the code is.
func (m *Miner) Look(g *kernel.Graph, place string) {
	if m.walker == nil {
		m.walker = &walker{reader: newReader(m.table, m)}
		m.byNumber = map[numbered]*sample{}
	}
	w := m.walker
	w.run(g, func(d *dependence) {
		second := w.ops[d.second].class
		file, _ := d.reg.file()
		key := numbered{d.kind, d.slot, file, d.class, second, false}
		s := m.byNumber[key]
		if s == nil {
			s = m.sample(w, key)
			m.byNumber[key] = s
		}
		m.dependences++
		s.see(d, place)
	})
	m.instructions += len(w.ops)
}

// sample returns the sample of a pair.
func (m *Miner) sample(w *walker, n numbered) *sample {
	p := pair{kind: n.kind, file: n.file, first: w.classes.List[n.first].Opcode, second: "?"}
	if n.second != noClass {
		p.second = w.classes.List[n.second].Mnemonic
	}
	if n.kind == Read {
		p.slot = n.slot
	}
	s := m.seen[p]
	if s == nil {
		s = &sample{least: longAge + 1}
		m.seen[p] = s
	}
	return s
}

// see adds a dependence to s.
func (s *sample) see(d *dependence, place string) {
	switch {
	case d.waited:
		s.waited++
	case d.covered && d.kind != Overwrite:
		s.covered++
	case d.board:
		if s.open++; s.broken == "" {
			s.broken = at(place, d)
		}
	default:
		s.timed++
		if d.age < maxAge {
			s.times[d.age]++
		}
		if int(d.age) < s.least {
			s.least, s.place = int(d.age), at(place, d)
		}
	}
}

func at(place string, d *dependence) string {
	return fmt.Sprintf("%s %#x %#x", place, int(d.first)*isa.WordSize, int(d.second)*isa.WordSize)
}
