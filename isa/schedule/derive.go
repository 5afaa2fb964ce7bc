package schedule

import (
	"strconv"

	"github.com/cupatch/cupatch/isa"
)

// few is how many dependences a rule has to rest on. Rules that ask for a scoreboard need
// ofBoards times as many, since now and then ptxas knows better, distances ofSingles times as many
// and those of pairs ofPairs times as many: what stands between two instructions by habit is
// not what they need.
const (
	few       = 100
	ofBoards  = 20
	ofSingles = 10
	ofPairs   = 100
	ofSure    = 100
)

// secondName returns the second of a rule for pairs.
func secondName(kind Kind, mnemonic string, at slot) string {
	if kind != Read || at.bit == noBit {
		return mnemonic
	}
	name := mnemonic + "@" + strconv.Itoa(int(at.bit))
	if at.count > 1 {
		name += "*" + strconv.Itoa(int(at.count))
	}
	if at.rest {
		name += "+"
	}
	return name
}

// A learner makes rules of samples.
type learner struct {
	model *Model
	sums  map[sumKey]*sample
}

// A sumKey says of which samples there is a sum.
type sumKey struct {
	kind          Kind
	file          isa.RegFile
	first, second string
}

// Model returns what the code that m has seen keeps to.
func (m *Miner) Model() *Model {
	out := &Model{Arch: isa.Arch{SM: m.table.Arch().SM}, Instructions: m.instructions, Dependences: m.dependences,
		rules: map[ruleKey]Rule{}, slow: map[string]bool{}, ordered: m.ordered}
	l := &learner{model: out, sums: map[sumKey]*sample{}}
	for name, c := range m.boards {
		if c.Results+c.Sources > 0 {
			out.slow[mnemonicOf(name)] = true
		}
	}
	l.sum(m.seen)
	l.boards()
	l.distances(m.seen)
	return out
}

// add adds the samples of t.
func (s *sample) add(t *sample) {
	s.waited, s.open, s.timed = s.waited+t.waited, s.open+t.open, s.timed+t.timed
	s.covered += t.covered
	for i, n := range t.times {
		s.times[i] += n
	}
	if t.least < s.least || t.least == s.least && t.place < s.place {
		s.least, s.place = t.least, t.place
	}
}

func (l *learner) into(k sumKey, s *sample) {
	if l.sums[k] == nil {
		l.sums[k] = &sample{least: longAge + 1}
	}
	l.sums[k].add(s)
}

// isLate reports whether the second of a pair answers late: what writes a register late
// may be issued before what went the same way has answered.
func (l *learner) isLate(p pair) bool {
	return (p.kind == Rewrite || p.kind == Overwrite) && l.model.slow[p.second]
}

// sum adds the samples up by class, by mnemonic and all together.
func (l *learner) sum(seen map[pair]*sample) {
	for p, s := range seen {
		mnemonic := mnemonicOf(p.first)
		if l.isLate(p) {
			l.into(sumKey{p.kind, p.file, mnemonic, p.second}, s)
			if p.kind == Overwrite {
				continue
			}
			c := *s
			c.waited, c.open = 0, 0
			s = &c
		}
		for _, first := range []string{p.first, mnemonic, any} {
			if first != mnemonic || p.first != mnemonic {
				l.into(sumKey{p.kind, p.file, first, ""}, s)
			}
		}
		if p.first == mnemonic {
			// The opcode without modifiers has the name that the mnemonic has: the sum is over all.
			l.into(sumKey{p.kind, p.file, mnemonic, ""}, s)
		}
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

// boards makes the rules for scoreboards.
func (l *learner) boards() {
	m := l.model
	for k, s := range l.sums {
		if s.waited < few || k.second != "" && (k.second == k.first || s.waited < ofBoards*few) {
			continue // one kind of instruction after another of its kind: they keep their order
		}
		above := l.sums[sumKey{k.kind, k.file, mnemonicOf(k.first), k.second}]
		top := k.first == any || k.first == mnemonicOf(k.first)
		if s.open == 0 && (k.kind != Overwrite || s.waited >= ofBoards*few) && (top || above.open > 0) {
			m.rules[ruleKey{Wait, k.kind, k.file, k.first, k.second}] = Rule{Seen: s.waited}
		}
		if s.timed == 0 && s.waited >= ofBoards*few && k.first != any && (top || above.timed > 0) {
			m.rules[ruleKey{Board, k.kind, k.file, k.first, k.second}] = Rule{Seen: s.waited}
		}
	}
}

// distances makes the rules for least distances.
func (l *learner) distances(seen map[pair]*sample) {
	sums := map[sumKey]*sample{}
	into := func(p pair, first, second string, s *sample) {
		k := sumKey{p.kind, p.file, first, second}
		if sums[k] == nil {
			sums[k] = &sample{least: longAge + 1}
		}
		sums[k].add(s)
	}
	for p, s := range seen {
		if p.kind == Overwrite || p.file == isa.FileB || !l.fixed(p) {
			continue
		}
		mnemonic, second := mnemonicOf(p.first), secondName(p.kind, p.second, p.slot)
		into(p, any, second, s)
		into(p, mnemonic, "", s)
		into(p, mnemonic, second, s)
		if p.first != mnemonic {
			into(p, p.first, second, s)
		}
	}
	m := l.model
	for k, s := range sums {
		single := k.first == any || k.second == ""
		enough := ofPairs * few
		if single {
			enough = ofSingles * few
		}
		sure := single && s.timed >= ofSure*few // a bound, whether or not it is what is needed
		if s.timed < enough || !s.steep() && !sure || k.kind == Rewrite && !single {
			continue
		}
		m.rules[ruleKey{Least, k.kind, k.file, k.first, k.second}] = Rule{s.least, s.timed, s.place}
	}
	l.thin()
}

// steep reports whether so many have the least distance that it is no accident: ptxas comes as
// near as it may.
func (s *sample) steep() bool {
	return s.least < maxAge && int(s.times[s.least]) >= max(steepLeast, s.timed/steepShare)
}

const (
	steepLeast = 10
	steepShare = 10
)

// fixed reports whether the results of the first of a pair need no scoreboard.
func (l *learner) fixed(p pair) bool {
	s := l.sums[sumKey{p.kind, p.file, mnemonicOf(p.first), ""}]
	return s != nil && s.timed > 20*s.waited
}

// thin takes out the rules of opcodes that say what the rule of their mnemonic says, and those
// of pairs that say what holds without them.
func (l *learner) thin() {
	m := l.model
	for k, r := range m.rules {
		above := k
		above.first = mnemonicOf(k.first)
		if k.rule != Least || k.second == "" || k.first == any || above == k {
			continue
		}
		if a, ok := m.rules[above]; ok && a.Cycles == r.Cycles {
			delete(m.rules, k)
		}
	}
}
