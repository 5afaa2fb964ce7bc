package assign

import (
	"strconv"

	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/isa/schedule/internal/insts"
)

// Habits is what code of ptxas for an architecture keeps to.
type Habits struct {
	Arch         isa.Arch // without suffix: the variants of an architecture have one schedule
	Instructions int      // that it was learned from

	boards map[string]boardCount // by opcode
	names  map[string]boardCount // by mnemonic
	least  map[leastKey]figure
	safe   map[safeKey]figure
	sets   map[string]figure // from setting a scoreboard to waiting, by mnemonic
	pass   map[through]int
	stalls map[stallKey]stallHabit
}

// A figure is a number of cycles, and how many uses it rests on.
type figure struct{ cycles, seen int }

// A leastKey says for which dependences a least distance is.
type leastKey struct {
	kind   kind
	file   isa.RegFile
	first  string // opcode
	second string // mnemonic, with @BIT for the operand whose field starts there
}

// A safeKey says for which first instructions a distance is enough, whatever the second is.
type safeKey struct {
	kind  kind
	file  isa.RegFile
	first string // an opcode or a mnemonic
}

// What is unknown is given more than all that is known of its group.
const (
	margin   = 3  // for a pair that was never seen
	unknown  = 40 // of an instruction that has nothing in common with any that was seen
	setLeast = 8  // from setting a scoreboard to waiting, where few did
)

// secondName returns the second of a key: for reads with the lowest bit of the operand's
// field, how many registers it is, and + for one that is not the first that the first
// instruction writes.
func secondName(k kind, mnemonic string, slot, count uint8, rest bool) string {
	if k != read || slot == noBit {
		return mnemonic
	}
	name := mnemonic + "@" + strconv.Itoa(int(slot))
	if count > 1 {
		name += "*" + strconv.Itoa(int(count))
	}
	if rest {
		name += "+"
	}
	return name
}

// distance returns how many cycles a result of fixed latency takes.
func (h *Habits) distance(k kind, file isa.RegFile, first insts.Class, second string) int {
	safe, use := unknown, k
	if k == rewrite { // a result that could be read is there
		use = read
	}
	for _, name := range [...]string{first.Opcode, first.Mnemonic} {
		if f, ok := h.safe[safeKey{use, file, name}]; ok {
			safe = f.cycles + margin
			break
		}
	}
	if f, ok := h.least[leastKey{k, file, first.Opcode, second}]; ok {
		return min(f.cycles, safe)
	}
	return safe
}

// longest returns how many cycles a result of fixed latency takes at most, 0 if that is not known.
func (h *Habits) longest(k kind, file isa.RegFile, first insts.Class) int {
	if f, ok := h.safe[safeKey{k, file, first.Opcode}]; ok {
		return f.cycles
	}
	return h.safe[safeKey{k, file, first.Mnemonic}].cycles
}

// setDistance returns how many cycles have to be between an instruction that sets a
// scoreboard and one that waits for it.
func (h *Habits) setDistance(mnemonic string) int {
	if f, ok := h.sets[mnemonic]; ok && f.seen >= few {
		return min(f.cycles, setLeast)
	}
	return setLeast
}

// few is how often something has to be seen to count.
const few = 50

// late says whether results of a class come late, and whether its sources are read late.
func (h *Habits) late(c insts.Class) (results, sources bool) {
	b, ok := h.boards[c.Opcode]
	if !ok {
		if b, ok = h.names[c.Mnemonic]; !ok {
			return true, true
		}
	}
	return b.results > 0, b.results > 0 || b.sources > 0
}

// Habits returns what the code that m has seen keeps to.
func (m *Miner) Habits() *Habits {
	h := m.distancesSeen()
	m.stallsSeen(h)
	return h
}

// distancesSeen returns what code that was counted and looked at keeps to, its stalls aside. It
// stays as it is from the first call on.
func (m *Miner) distancesSeen() *Habits {
	if m.habits != nil {
		return m.habits
	}
	h := newHabits()
	h.Arch, h.Instructions = isa.Arch{SM: m.reader.table.Arch().SM}, m.instructions
	for c, b := range m.boards {
		h.boards[m.reader.classes.List[c].Opcode] = b
	}
	h.sumNames()
	for name, s := range m.sets {
		h.sets[name] = figure{s.least, s.seen}
	}
	for t, n := range m.opens {
		if n >= few && t.kind == rewrite {
			h.pass[t] = n
		}
	}
	m.distances(h)
	m.habits = h
	return h
}

// sumNames fills in names.
func (h *Habits) sumNames() {
	for opcode, b := range h.boards {
		n := h.names[mnemonicOf(opcode)]
		h.names[mnemonicOf(opcode)] = boardCount{n.all + b.all, n.results + b.results, n.sources + b.sources}
	}
}

func mnemonicOf(opcode string) string {
	for i := range len(opcode) {
		if opcode[i] == '.' {
			return opcode[:i]
		}
	}
	return opcode
}

// distances fills in the least distances.
func (m *Miner) distances(h *Habits) {
	sums := map[leastKey]*sample{}
	for p, s := range m.pairs {
		first := m.reader.classes.List[p.first]
		if results, _ := h.late(first); results || p.kind == overwrite {
			continue
		}
		k := leastKey{p.kind, p.file, first.Opcode, p.secondName(m.reader)}
		if sums[k] == nil {
			sums[k] = &sample{}
		}
		sums[k].add(s)
	}
	groups := map[safeKey][]figure{}
	for k, s := range sums {
		h.least[k] = figure{s.least, s.seen}
		if s.seen < few || !s.steep() {
			continue
		}
		if k.kind == rewrite {
			continue
		}
		sk := safeKey{k.kind, k.file, k.first}
		groups[sk] = append(groups[sk], figure{s.least, s.seen})
	}
	for k, list := range groups {
		f := most(list)
		for i, name := range [...]string{k.first, mnemonicOf(k.first)} {
			sk := safeKey{k.kind, k.file, name}
			if x := h.safe[sk]; i == 0 || name != k.first {
				h.safe[sk] = figure{max(x.cycles, f.cycles), x.seen + f.seen}
			}
		}
	}
	for k, f := range h.least {
		use := k.kind
		if use == rewrite {
			use = read
		}
		s, ok := h.safe[safeKey{use, k.file, k.first}]
		if ok && f.cycles >= s.cycles+margin {
			delete(h.least, k)
		}
	}
}

// most returns the greatest of distances, those left out that are much greater than what
// most uses have: they stand where nobody was in a hurry. It counts all uses.
func most(list []figure) figure {
	var seen [longAge + 1]int
	out := figure{}
	for _, f := range list {
		seen[f.cycles] += f.seen
		out.seen += f.seen
	}
	usual := 0
	for n := range seen {
		if seen[n] > seen[usual] {
			usual = n
		}
	}
	for _, f := range list {
		if f.cycles <= usual+spread {
			out.cycles = max(out.cycles, f.cycles)
		}
	}
	return out
}

// spread is by how many cycles the distances from one instruction to others differ: a uniform
// result takes 4 cycles to some and 9 to others.
const spread = 5

func (s *sample) add(t *sample) {
	if s.seen == 0 || t.least < s.least {
		s.least = t.least
	}
	s.seen += t.seen
	for i, n := range t.times {
		s.times[i] += n
	}
}

// steep reports whether so many have the least distance that it is no accident: ptxas comes as
// near as it may.
func (s *sample) steep() bool { return s.least < maxAge && int(s.times[s.least]) >= s.seen/5 }

// Boards counts the instructions of a mnemonic in code of ptxas, and those of them that set
// scoreboards. Where none of many does, the results are there after a fixed number of cycles, and
// the sources are read when the instruction is issued.
type Boards struct {
	Instructions int `json:"instructions"`
	Results      int `json:"results"` // set one for their results
	Sources      int `json:"sources"` // set one for their sources
}

// Boards returns the counts of a mnemonic, such as LDG.
func (h *Habits) Boards(mnemonic string) Boards {
	n := h.names[mnemonic]
	return Boards{n.all, n.results, n.sources}
}
