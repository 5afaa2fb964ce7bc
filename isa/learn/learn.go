// Package learn finds out an architecture's instruction set by asking nvdisasm: which
// encoding classes there are, which of their bits are constant, what every other bit
// prints, and which values are refused together. It knows nothing of any instruction
// in advance.
//
// Learning needs nvdisasm, and a C compiler to be quick. What it returns has been
// compared with nvdisasm on thousands of random words of every class; a class that
// could not be explained is returned with its notes, so that nothing is guessed in
// silence.
package learn

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/isa/internal/wordgen"
)

// A Result is what was learned of one class.
type Result struct {
	Opcode  uint16 // bits 0–11, and bit 91 as bit 12
	Class   string
	Variant *isa.Variant // nil when nothing could be learned
	Text    string       // of the word that shows most
	Misses  int          // wrong predictions in the last test
	Tested  int          // words of the last test
	Notes   []string

	found []isa.Word // words of other classes met on the way
}

// String summarises r in one line.
func (r Result) String() string {
	return fmt.Sprintf("%04x %-30s %-60s tested %d missed %d %q", r.Opcode, r.Class, r.Text, r.Tested, r.Misses, r.Notes)
}

// Options say how to learn an architecture.
type Options struct {
	Arch     isa.Arch
	NVDisasm string       // path of the tool
	Cache    string       // folder for the fork server
	Seeds    []isa.Word   // words to start from: real code, or words of other architectures
	Scan     bool         // also try every opcode
	Tests    int          // random words that each class has to predict; 2000 if 0
	Mutants  int          // words of seeds and examples, with bits flipped, that the whole table has to predict
	Workers  int          // nvdisasm processes; 2 if 0
	Done     func(Result) // called for each class learned, one at a time
	Base     *isa.Table   // a related architecture, or an older table, whose variants are tried first
	Related  []*isa.Table // of other architectures: their classes are looked for, and their variants tried
	Trust    bool         // take the variants of Base as they are, until words show them wrong
	// Sample is called for each word that is kept as an example of a class, and Samples
	// are such words of an earlier run. After a run that has come to the end of its
	// search, Searched is called; with SkipSearch no search is made.
	Sample     func(class string, w isa.Word)
	Samples    map[string][]isa.Word
	Searched   func()
	SkipSearch bool
	Known      []Result // results of an earlier run, not learned again
}

// An Outcome is what a run has learned, sorted by opcode and class, and how good it is: of
// Hunted words, made without a look at the table, the whole table got Wrong wrong.
type Outcome struct {
	Results       []Result
	Hunted, Wrong int
}

// Learn learns an architecture.
func Learn(opt Options) (*Outcome, error) {
	if opt.Tests == 0 {
		opt.Tests = 2000
	}
	if opt.Workers == 0 {
		opt.Workers = 2
	}
	var os []*session
	for range opt.Workers {
		o, err := OpenOracle(opt.NVDisasm, opt.Arch, opt.Cache)
		if err != nil {
			return nil, err
		}
		defer o.Close()
		os = append(os, o.session())
	}
	return newRun(opt, os[0].QuietNaN).learn(os)
}

// newRun returns the run of opt with an nvdisasm that calls every NaN quiet, or not.
func newRun(opt Options, quietNaN bool) *run {
	p := newPool()
	p.sample = opt.Sample
	for name, ws := range opt.Samples {
		for _, w := range ws {
			p.add(name, w)
		}
	}
	l := &run{opt: opt, cousins: cousinsOf(opt.Related, quietNaN), pool: p, known: map[key]Result{}, results: map[key]Result{}, hard: map[key][]isa.Word{}, tries: map[key]int{}, sampled: map[*isa.Variant]bool{}}
	if quietNaN && opt.Base != nil {
		vs := make([]*isa.Variant, len(opt.Base.Variants()))
		for i, v := range opt.Base.Variants() {
			vs[i] = quietNaNs(v)
		}
		l.opt.Base = isa.NewTable(opt.Arch, vs)
	}
	for _, r := range opt.Known {
		if r.Variant != nil {
			if quietNaN {
				r.Variant = quietNaNs(r.Variant)
			}
			simplify(r.Variant)
		}
		l.known[key{r.Opcode, r.Class}] = r
	}
	return l
}

// learn asks in the sessions until all is learned.
func (l *run) learn(os []*session) (*Outcome, error) {
	if !l.opt.SkipSearch {
		if err := l.search(os); err != nil {
			return nil, err
		}
	}
	out := &Outcome{}
	for round := uint64(0); ; round++ {
		if err := each(os, func(i int, o *session) { l.work(o) }); err != nil {
			return nil, err
		}
		out.Results = l.sorted()
		if l.opt.Mutants == 0 {
			return out, nil
		}
		var err error
		if out.Hunted, out.Wrong, err = l.hunt(os, round); err != nil {
			return nil, err
		}
		if round == huntRounds || out.Wrong == 0 && l.pool.empty() {
			return out, nil
		}
	}
}

// search looks for words of as many classes as it can find: in the related table, in the
// seeds, and by trying opcodes.
func (l *run) search(os []*session) error {
	if l.opt.Base != nil {
		vs := l.opt.Base.Variants()
		if err := each(os, func(i int, o *session) {
			n := len(vs)
			l.adopt(o, vs[n*i/len(os):n*(i+1)/len(os)], l.opt.Base)
		}); err != nil {
			return err
		}
	}
	if err := each(os, func(i int, o *session) {
		n := len(l.opt.Seeds)
		l.pool.seed(o, l.opt.Seeds[n*i/len(os):n*(i+1)/len(os)])
	}); err != nil {
		return err
	}
	if l.opt.Scan {
		src := l.source()
		if err := each(os, func(i int, o *session) {
			n := 4096 / len(os)
			l.pool.scan(o, n*i, n*(i+1))
			rng := rand.New(rand.NewPCG(23, uint64(i)))
			for _, s := range wordgen.Sorts() {
				l.pool.find(o, s.Make(src, rng, searchWords/len(os)))
			}
			l.pool.find(o, src.Spread(rng, searchEach/len(os)))
		}); err != nil {
			return err
		}
	}
	if l.opt.Searched != nil {
		l.opt.Searched()
	}
	return nil
}

// A search asks for the class of so many words of each sort, and of so many with each
// opcode, half of them by each session.
const (
	searchWords = 40_000
	searchEach  = 8
)

// source returns what random words are made from.
func (l *run) source() *wordgen.Source {
	return wordgen.NewSource(l.opt.Seeds, l.opt.Related)
}

// each runs f for every session at once and returns an error where one has lost nvdisasm.
func each(os []*session, f func(i int, o *session)) error {
	var wg sync.WaitGroup
	for i, o := range os {
		wg.Go(func() { f(i, o) })
	}
	wg.Wait()
	for _, o := range os {
		if o.err != nil {
			return o.err
		}
	}
	return nil
}

// A run is the learning of one architecture.
type run struct {
	opt   Options
	pool  *pool
	known map[key]Result

	mu      sync.Mutex
	results map[key]Result
	hard    map[key][]isa.Word     // words that a class got wrong
	tries   map[key]int            // how often hunts had it learned again
	cousins map[key][]*isa.Variant // of related tables
	sampled map[*isa.Variant]bool  // those whose random words were asked for, as part of a table
}

// work learns classes until there are no more.
func (l *run) work(o *session) {
	for {
		k, samples, ok := l.pool.next()
		if !ok {
			return
		}
		l.learnOne(o, k, samples)
		if o.err != nil {
			return
		}
	}
}

func (l *run) learnOne(o *session, k key, samples []isa.Word) {
	defer l.pool.finish()
	res, have := l.known[k]
	if !have {
		l.mu.Lock()
		hard := l.hard[k]
		l.mu.Unlock()
		var ok bool
		if res, ok = l.twin(o, k, hard); !ok {
			res, ok = l.cousin(o, k, hard)
		}
		if !ok {
			res = learnClass(o, k.name, samples, l.opt.Tests, hard)
		}
		for i, name := range o.ClassOf(res.found) {
			l.pool.add(name, res.found[i])
		}
	}
	if o.err != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.results[k] = res
	if l.opt.Done != nil && !have {
		l.opt.Done(res)
	}
}

// learnClass learns the encoding class called name, of which samples are words. It has to
// predict the text of so many random words (tests), and of those in hard.
func learnClass(o *session, name string, samples []isa.Word, tests int, hard []isa.Word) Result {
	h := fnv.New64a()
	fmt.Fprint(h, name)
	c := &class{o: o, name: name, outside: map[int]Answer{}, rng: rand.New(rand.NewPCG(h.Sum64(), uint64(samples[0].Opcode())))}
	res := Result{Class: name, Opcode: uint16(samples[0].Opcode())}
	res.Variant, res.Misses, res.Tested = c.learn(samples, tests, hard)
	res.Text, res.found, res.Notes = c.text, c.found, c.notes
	return res
}

// rounds bounds how often a class is refined.
const rounds = 14

func (c *class) learn(samples []isa.Word, tests int, hard []isa.Word) (*isa.Variant, int, int) {
	c.hard = slices.Concat(hard, samples)
	if !c.enrich(samples) {
		c.note("no accepted sample")
		return nil, 0, 0
	}
	c.survey()
	c.explore()
	c.learnControl()
	if err := c.solveAll(); err != nil {
		c.note("%v", err)
		return nil, 0, 0
	}
	v := c.withAliasOff(c.variant())
	for round := 0; ; round++ {
		n := min(tests, 150<<round)
		misses := c.predict(v, c.random(v, n), 6)
		if len(misses) == 0 && n >= tests {
			misses = c.predict(v, c.hard, 6)
		}
		if len(misses) == 0 && n >= tests {
			return v, c.checkSchedules(v), n
		}
		if round >= rounds {
			for _, m := range misses {
				c.note("%s prints %q, predicted %q (%v)", m.w, m.ans.Text, m.pred, m.in.Status)
			}
			return v, len(misses), n
		}
		if len(misses) == 0 {
			continue
		}
		for _, m := range misses[:min(3, len(misses))] {
			if err := c.learnFrom(v, m, round >= 4); err != nil {
				c.note("%v", err)
			}
		}
		if err := c.solve(); err != nil {
			c.note("%v", err)
			return v, len(misses), n
		}
		v = c.withAliasOff(c.variant())
	}
}

// solveAll learns operands, specials and pairs, and then the regions.
func (c *class) solveAll() error {
	fs := c.flips(c.free.Not())
	c.fitOperands(fs)
	for _, f := range fs {
		for i, a := range c.atoms {
			if a.bit != f.bit {
				continue
			}
			switch {
			case f.ans.OK && f.ans.Text != "":
				c.addHunks(f.hs, i)
			default:
				c.needLegality(i)
			}
		}
	}
	c.findSpecials()
	for i, a := range c.atoms {
		if a.bit < 0 && !c.ask([]isa.Word{c.with(i)})[0].OK {
			c.needLegality(i)
		}
	}
	c.findPairs()
	return c.solve()
}

// checkSchedules compares which schedules are legal. Where there are fewer than v says, it
// adds a piece to v that refuses the others; it returns the number of those that are legal
// and should not be.
func (c *class) checkSchedules(v *isa.Variant) int {
	t := isa.NewTable(c.o.Arch, []*isa.Variant{v})
	f := fieldOf(append(schedField.Bits(), 122, 123, 124))
	ws := make([]isa.Word, 1<<f.Width())
	for i := range ws {
		ws[i] = f.MustSet(c.base, uint64(i))
	}
	p := isa.Piece{Tests: []isa.Test{{Field: f}}, Table: make([]uint16, len(ws)), Alts: []isa.Alt{nil}}
	wrong, fewer := 0, false
	for i, a := range c.o.Ask(ws) {
		in := t.Decode(ws[i])
		legal := (in.Status == isa.StatusKnown || in.Status == isa.StatusSilent) && !in.BadSched
		switch {
		case legal && !a.OK:
			fewer = true
			p.Table[i] = isa.PieceIllegal
		case !legal && a.OK:
			wrong++
			c.note("%s: schedule legal, thought not", ws[i])
		}
	}
	if fewer {
		v.Template = append(slices.Clone(v.Template), dropUnused(p))
	}
	return wrong
}

// learnControl finds the guard's register file, the legal reuse flags, and the batch
// numbers of the class.
func (c *class) learnControl() {
	a := c.ask([]isa.Word{guardField.MustSet(c.base, 0)})[0]
	switch {
	case c.silent: // it does not show
	case len(a.Text) > 4 && a.Text[:4] == "@UP0":
		c.guard = isa.GuardUP
	case len(a.Text) > 3 && a.Text[:3] == "@P0":
		c.guard = isa.GuardP
	default:
		c.guard = isa.GuardNone
	}
	for i, b := range []int{122, 123, 124} {
		if c.free.Bit(b) == 1 {
			c.sched |= 1 << i
		}
	}
	w := schedField.MustSet(c.base.AndNot(reuseMask), 2)
	if !c.drain && !c.ask([]isa.Word{isa.Bits(122, 124).MustSet(w, 3)})[0].OK {
		c.sched |= isa.SchedUniform
	}
}
