package schedule

import "github.com/cupatch/cupatch/isa"

// A Model says how the dependences of an architecture's code have to be kept: what the code
// of ptxas never does otherwise.
type Model struct {
	Arch         isa.Arch // without suffix: the variants of an architecture have one schedule
	Instructions int      // that it was learned from
	Dependences  int

	rules   map[ruleKey]Rule
	ordered map[string]bool // mnemonics that answer in the order of their instructions
	slow    map[string]bool // mnemonics of which some set scoreboards: they keep their order among themselves
}

// A RuleKind says what a rule asks for.
type RuleKind uint8

// The kinds of rule.
const (
	// Least asks for a number of cycles between instructions, of which the first sets no
	// scoreboard for it.
	Least RuleKind = iota
	// Wait asks for a wait where the first sets a scoreboard.
	Wait
	// Board asks for a scoreboard.
	Board
	numRuleKinds
)

var ruleNames = [numRuleKinds]string{"least", "wait", "board"}

// String returns the kind's name, such as least.
func (k RuleKind) String() string { return ruleNames[k] }

// A ruleKey says for which dependences a rule is.
type ruleKey struct {
	rule   RuleKind
	kind   Kind
	file   isa.RegFile
	first  string // an opcode, a mnemonic or *
	second string // a mnemonic, with @BIT for the operand whose field starts there; or ""
}

// A Rule is one that no code of ptxas breaks.
type Rule struct {
	Cycles int // of Least
	Seen   int // how many dependences it rests on
	// Place is where the distance is the least: a kernel and the addresses of two instructions.
	Place string
}

// any class is the first of a rule for all classes.
const any = "*"

// rule returns the first of the rules that fits.
func (m *Model) rule(keys ...ruleKey) (Rule, bool) {
	for _, k := range keys {
		if r, ok := m.rules[k]; ok {
			return r, true
		}
	}
	return Rule{}, false
}

// A verdict is what the model says of a pair of classes.
type verdict struct {
	wait, board, least          Rule
	mustWait, mustBoard, bounds bool
}

// verdict returns what is known of dependences of a kind: first is the class of the first
// instruction, second the mnemonic of the second, late whether that answers late, at its operand.
func (m *Model) verdict(kind Kind, file isa.RegFile, first Class, second string, late bool, at slot) verdict {
	key := func(rule RuleKind, first, second string) ruleKey { return ruleKey{rule, kind, file, first, second} }
	var v verdict
	if late && (kind == Rewrite || kind == Overwrite) {
		v.wait, v.mustWait = m.rule(key(Wait, first.Mnemonic, second))
		v.board, v.mustBoard = m.rule(key(Board, first.Mnemonic, second))
	} else {
		v.wait, v.mustWait = m.rule(key(Wait, first.Opcode, ""), key(Wait, first.Mnemonic, ""), key(Wait, any, ""))
		v.board, v.mustBoard = m.rule(key(Board, first.Opcode, ""), key(Board, first.Mnemonic, ""))
	}
	if kind == Rewrite && !m.overtakes(file, first.Mnemonic, second) {
		return v
	}
	if v.least, v.bounds = m.least(kind, file, first, second, at); v.least.Cycles <= 1 {
		v.bounds = false
	}
	return v
}

// overtakes reports whether the result of second can be there before that of first, which is
// issued earlier: whether its results are read sooner.
func (m *Model) overtakes(file isa.RegFile, first, second string) bool {
	a, ok := m.rule(ruleKey{Least, Read, file, first, ""})
	b, ok2 := m.rule(ruleKey{Least, Read, file, second, ""})
	return ok && ok2 && b.Cycles < a.Cycles
}

// least returns the least distance: that of the pair, or the smaller of what holds for each with
// all others.
func (m *Model) least(kind Kind, file isa.RegFile, first Class, second string, at slot) (Rule, bool) {
	s := secondName(kind, second, at)
	key := func(first, second string) ruleKey { return ruleKey{Least, kind, file, first, second} }
	if r, ok := m.rule(key(first.Opcode, s), key(first.Mnemonic, s)); ok {
		return r, true
	}
	a, ok := m.rule(key(first.Mnemonic, ""))
	b, ok2 := m.rule(key(any, s))
	if b.Cycles < a.Cycles {
		a = b
	}
	return a, ok && ok2
}

// late says which of the results and sources of a class the model wants scoreboards for.
func (m *Model) late(c Class) (results, sources bool) {
	for f := range isa.FileB + 1 {
		for k := range numKinds {
			_, ok := m.rule(ruleKey{Board, k, f, c.Opcode, ""}, ruleKey{Board, k, f, c.Mnemonic, ""})
			if ok && k == Overwrite {
				sources = true
			} else if ok {
				results = true
			}
		}
	}
	return results, sources
}

func (m *Model) inOrder(mnemonic string) bool { return m.ordered[mnemonic] }
