package liferange

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"

	"github.com/cupatch/cupatch/isa"
)

// Options say how to learn the effects of an architecture.
type Options struct {
	Seed    uint64   // of the random words
	Tool    string   // version of the nvdisasm that is asked
	Classes []string // the classes to learn; all if empty
	// Base, if set, has the effects of a related architecture, which are tried first.
	Base *isa.EffectsFile
	// Progress, if set, is called before each round with the number of classes left.
	Progress func(round, left int)
}

// A Result is what was learned.
type Result struct {
	File  *isa.EffectsFile
	Notes []Note // of classes that are not explained, or not in full
}

// A Note says what is odd about a class.
type Note struct{ Class, Text string }

const (
	fewSamples    = 48  // words of a variant whose rules another architecture has
	fewCells      = 200 // the same, of combinations that a count depends on
	fewBits       = 8   // the same, of modifiers, all of whose combinations are asked for
	enoughToPrune = 24  // answers of a class before candidates without a rule are left out
	firstSamples  = 100 // words of a variant in the first round
	laterSamples  = 60  // in each round after it
	manySamples   = 300 // in each round after the third
	rounds        = 16
	secondLook    = 5   // the round in which all fields are looked at again
	cellWords     = 10  // words for each combination that a count depends on
	cellSamples   = 400 // in one round
	longRun       = 4   // registers: more are a matrix's, whose counts are many
	openRounds    = 6   // after so many rounds counts that were never shown are let be
	cleanRounds   = 3   // without a wrong answer, of a class whose counts depend on modifiers
	mostBits      = 10  // of modifiers, all of whose combinations are asked for
	allBits       = 15  // modifiers of matrix instructions, all of whose combinations are asked for
)

// A class is a class under study; several variants may have its name.
type class struct {
	name     string
	variants []*variant
	cands    []candidate // those that are studied
	all      []candidate
	fs       []feature
	straight bool
	rules    []isa.AccessRule
	implied  isa.Effects // in every answer, whatever the fields
	note     string
	done     bool
	pruned   bool
	answered bool
	clean    int // rounds without a wrong answer
	// inherited says that the rules are those of the base.
	inherited bool
	formOnly  bool // its rules are what its text says
}

type variant struct {
	*generator
	words   []isa.Word
	answers []Answer
}

// Learn asks o for the effects of every class of t.
func Learn(t *isa.Table, o *Oracle, opt Options) (*Result, error) {
	r := rand.New(rand.NewPCG(opt.Seed, 1))
	classes := map[string]*class{}
	var order []*class
	for _, v := range t.Variants() {
		if len(opt.Classes) > 0 && !slices.Contains(opt.Classes, v.Class) {
			continue
		}
		c := classes[v.Class]
		if c == nil {
			c = &class{name: v.Class}
			if opt.Base != nil && opt.Base.Rules[v.Class] != nil {
				c.rules, c.inherited = withoutFacts(opt.Base.Rules[v.Class]), true
			}
			classes[v.Class] = c
			order = append(order, c)
		}
		c.variants = append(c.variants, &variant{generator: newGenerator(t, v, r)})
		for _, k := range candidates(v, o.Arch) {
			c.cands = addCandidate(c.cands, k)
		}
	}
	for _, c := range order {
		c.all = slices.Clone(c.cands)
		if c.inherited && !c.fits() {
			c.rules, c.inherited = nil, false
		}
	}
	if err := probeFlow(o, order); err != nil {
		return nil, err
	}
	for round := range rounds {
		left := slices.DeleteFunc(slices.Clone(order), func(c *class) bool { return c.done })
		if len(left) == 0 {
			break
		}
		if opt.Progress != nil {
			opt.Progress(round, len(left))
		}
		if err := askRound(o, left, round); err != nil {
			return nil, err
		}
		for _, c := range left {
			c.study(round)
		}
	}
	res := &Result{File: &isa.EffectsFile{Arch: t.Arch(), Tool: opt.Tool, Rules: map[string][]isa.AccessRule{}}}
	for _, c := range order {
		if c.note == "" && !c.done && c.answered {
			c.note = "not settled"
		}
		if c.note != "" {
			res.Notes = append(res.Notes, Note{c.name, c.note})
		}
		switch {
		case c.answered:
			res.File.Rules[c.name] = c.rules
		case c.formOnly:
			res.File.Rules[c.name] = formRules(c.variants[0].v, o.Arch)
		}
	}
	if err := addFacts(res.File); err != nil {
		return nil, err
	}
	sort.Slice(res.Notes, func(i, j int) bool { return res.Notes[i].Class < res.Notes[j].Class })
	return res, nil
}

// fits reports whether the rules of the base name the fields that print c's registers: a
// field that has become wider, as those of UR on sm_100, has another rule, even though all
// words with low numbers agree.
func (c *class) fits() bool {
	for i := range c.rules {
		r := &c.rules[i]
		for k := range c.all {
			d := &c.all[k]
			if d.printed && d.file == r.File && !d.field.Mask().And(r.Field.Mask()).IsZero() && !slices.Equal(d.field, r.Field) {
				return false
			}
		}
	}
	return true
}

// askRound asks for a number of new words of each class.
func askRound(o *Oracle, classes []*class, round int) error {
	var words []known
	var of []*variant
	straight := map[string]bool{}
	for _, c := range classes {
		straight[c.name] = c.straight
		for _, v := range c.variants {
			for _, w := range c.newWords(v, round) {
				if !c.straight {
					w = alone(v.v, w)
				}
				words, of = append(words, known{w, v.v}), append(of, v)
			}
		}
	}
	answers, err := askWords(o, words, straight)
	if err != nil {
		return err
	}
	for i, v := range of {
		v.words = append(v.words, words[i].w)
		v.answers = append(v.answers, answers[i])
	}
	for _, c := range classes {
		c.straight = straight[c.name]
	}
	return nil
}

// open reports whether some count of a long run was never shown: neighbors' counts stand
// in for it.
func (c *class) open() bool {
	for i := range c.rules {
		r := &c.rules[i]
		if len(r.Tests) == 0 || slices.Max(r.Counts) <= longRun {
			continue
		}
		for _, v := range c.variants {
			if slices.Contains(c.shownCounts(v, r), 0) {
				return true
			}
		}
	}
	return false
}

// wrong returns the number of answers that c's rules do not give, and the first of them.
func (c *class) wrong() (n int, example string) {
	for _, v := range c.variants {
		p := isa.CompileEffects(v.v, c.rules)
		for i, w := range v.words {
			if !v.answers[i].OK {
				continue
			}
			got, want := compare(p, w, v.answers[i].Effects)
			want.Reads, want.Writes = want.Reads.Minus(c.implied.Reads), want.Writes.Minus(c.implied.Writes)
			got.Reads, got.Writes = got.Reads.Minus(c.implied.Reads), got.Writes.Minus(c.implied.Writes)
			if isCall(v.v) {
				want.Writes = isa.RegSet{}
				if c.inherited { // its marks do not always show its own operands
					want.Reads = both(want.Reads, got.Reads)
					got.Reads = want.Reads
				}
			}
			if got != want {
				if n++; n == 1 {
					example = fmt.Sprintf("%s %s: reads %s writes %s, nvdisasm reads %s writes %s", w,
						v.table.Text(v.table.Decode(w), 0), got.Reads, got.Writes, want.Reads, want.Writes)
				}
			}
		}
	}
	return n, example
}

// study makes c's rules anew unless they explain all answers.
func (c *class) study(round int) {
	asked, answered, complaint := 0, 0, ""
	for _, v := range c.variants {
		for i := range v.words {
			asked++
			if v.answers[i].OK {
				answered++
			} else {
				complaint = v.answers[i].Complaint
			}
		}
	}
	c.answered = answered > 0
	switch {
	case asked == 0:
		c.note, c.done = "no legal word found", true
		return
	case answered == 0:
		c.note, c.done = "no answer: "+complaint, true
		return
	}
	if (round > 0 || c.inherited) && c.stands(round, answered) {
		return
	}
	c.findImplied()
	c.learnRules()
	if round == secondLook {
		c.cands, c.pruned = slices.Clone(c.all), false
	}
	if !c.pruned && answered >= enoughToPrune {
		c.prune()
		c.learnRules()
	}
	n, example := c.wrong()
	if n > 0 {
		c.note = fmt.Sprintf("%d of %d answers not explained: %s", n, answered, example)
	}
}

// stands reports whether c's rules may stay as they are: they give every answer. It sets
// done if no more words need to be asked.
func (c *class) stands(round, answered int) bool {
	n, example := c.wrong()
	if n > 0 {
		c.inherited, c.clean = false, 0
		c.note = fmt.Sprintf("%d of %d answers wrong: %s", n, answered, example)
		return false
	}
	c.clean++
	enough := c.inherited || !c.conditional() || c.clean >= cleanRounds
	if enough && (round >= openRounds || !c.open()) {
		c.done, c.note = true, ""
		return true
	}
	return c.inherited || !enough
}

// findImplied sets the registers that every answer has, the fields' values being random.
func (c *class) findImplied() {
	first := true
	for _, v := range c.variants {
		for i := range v.words {
			a := v.answers[i]
			if !a.OK {
				continue
			}
			if first {
				c.implied, first = a.Effects, false
				continue
			}
			c.implied.Reads = both(c.implied.Reads, a.Reads)
			c.implied.Writes = both(c.implied.Writes, a.Writes)
		}
	}
}

func both(a, b isa.RegSet) isa.RegSet { return a.Minus(a.Minus(b)) }

// prune leaves out the candidates that no rule is about, which only stand in the way of
// others.
func (c *class) prune() {
	c.pruned = true
	c.cands = slices.DeleteFunc(c.cands, func(k candidate) bool {
		return !slices.ContainsFunc(c.rules, func(r isa.AccessRule) bool {
			return r.File == k.file && slices.Equal(r.Field, k.field) && r.Invert == k.invert && r.Add == k.add
		})
	})
}

// learnRules fits a count for each field, read and written.
func (c *class) learnRules() {
	c.fs = nil
	for _, v := range c.variants {
		for _, f := range features(v.v, c.cands) {
			if !slices.ContainsFunc(c.fs, func(g feature) bool {
				return g.test.Kind == f.test.Kind && g.test.Arg == f.test.Arg && slices.Equal(g.test.Field, f.test.Field)
			}) {
				c.fs = append(c.fs, f)
			}
		}
	}
	reads, writes := make([][]point, len(c.cands)), make([][]point, len(c.cands))
	for _, v := range c.variants {
		for i, w := range v.words {
			a := &v.answers[i]
			if !a.OK {
				continue
			}
			// The guard's own mark is not a field's.
			marks := a.Reads
			if g := int(isa.GuardField.Get(w)); g != 7 {
				marks = marks.Minus(guardSet(v.v.Guard, g))
			}
			for k, n := range attribute(c.cands, w, &marks, &c.implied.Reads) {
				if n != unknown {
					reads[k] = append(reads[k], point{w, n})
				}
			}
			for k, n := range attribute(c.cands, w, &a.Writes, &c.implied.Writes) {
				if n != unknown && !isCall(v.v) {
					writes[k] = append(writes[k], point{w, n})
				}
			}
		}
	}
	c.rules = []isa.AccessRule{}
	for k := range c.cands {
		for _, p := range append(reads[k], writes[k]...) {
			c.cands[k].long = c.cands[k].long || p.n > 16
		}
		read, write := c.rule(k, reads[k]), c.rule(k, writes[k])
		switch {
		case read != nil && write != nil && sameCounts(read, write):
			read.Reads, read.Writes = true, true
			c.rules = append(c.rules, *read)
		default:
			if write != nil {
				write.Writes = true
				c.rules = append(c.rules, *write)
			}
			if read != nil {
				read.Reads = true
				c.rules = append(c.rules, *read)
			}
		}
	}
}

// isCall reports whether v is a call, at which nvdisasm also marks what the calling
// convention lets the callee change.
func isCall(v *isa.Variant) bool { return v.Mnemonic() == "CALL" }

func guardSet(g isa.Guard, n int) isa.RegSet {
	var s isa.RegSet
	switch g {
	case isa.GuardP:
		s.Add(isa.FileP, n, 1)
	case isa.GuardUP:
		s.Add(isa.FileUP, n, 1)
	}
	return s
}

func sameCounts(a, b *isa.AccessRule) bool { return a.String() == b.String() }

// rule returns the rule of candidate k with the given counts, or nil if it has none.
func (c *class) rule(k int, points []point) *isa.AccessRule {
	found := 0
	for _, p := range points {
		if p.n > 0 {
			found++
		}
	}
	if found == 0 {
		return nil
	}
	if !c.pruned {
		// Whether the field is one is all that counts now.
		return c.newRule(k, fitted{counts: []int{1}})
	}
	f, ok := fit(points, c.fs)
	if !ok {
		// The most frequent count; what it does not explain is noted.
		f = fitted{counts: []int{mostFrequent(points)}}
	}
	if slices.Max(f.counts) <= 0 {
		return nil
	}
	return c.newRule(k, f)
}

// mostFrequent returns the count that most points have.
func mostFrequent(points []point) int {
	times := map[int]int{}
	best := points[0].n
	for _, p := range points {
		if times[p.n]++; times[p.n] > times[best] {
			best = p.n
		}
	}
	return best
}

func (c *class) newRule(k int, f fitted) *isa.AccessRule {
	d := &c.cands[k]
	rule := &isa.AccessRule{File: d.file, Field: d.field, Invert: d.invert, Add: d.add, Counts: f.complete()}
	for _, t := range f.tests {
		if t.Kind != isa.TestValue {
			rule.Tests = append(rule.Tests, t)
			continue
		}
		for _, run := range t.Field {
			rule.Tests = append(rule.Tests, isa.Test{Field: isa.Field{run}})
		}
	}
	return rule
}
