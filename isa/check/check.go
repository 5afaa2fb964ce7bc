// Package check compares the instruction tables with nvdisasm: the text of every word
// of real code, of random words of every encoding class, and of words that are made
// without a look at the table, so that they find what it lacks.
//
// It counts what agrees and keeps examples of each kind of disagreement. That a table
// agrees on millions of words proves nothing about the others.
package check

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/isa/internal/wordgen"
)

// An Answer is what nvdisasm says of a word.
type Answer struct {
	Text    string // empty when refused or silent
	PC      uint64 // the address that the text is for
	Refused bool
	// Class and Table may be set for a refused word: its encoding class, and the table
	// that lacks a value of it.
	Class, Table string
}

// An Oracle answers for words, in their order.
type Oracle func(words []isa.Word) ([]Answer, error)

// Options say how much to compare.
type Options struct {
	Samples  int    // random words of random classes
	Words    int    // words of each sort that is made without the table
	Seed     uint64 // of the random numbers
	Examples int    // kept of each kind of disagreement
	// Start are words to change, beside those of real code; Related are tables of other
	// architectures, whose classes are tried too.
	Start   []isa.Word
	Related []*isa.Table
	// Before are the batches of an earlier run with the same options, which are not
	// compared again; Done, if set, is called with each batch that is.
	Before []Batch
	Done   func(Batch)
	// Stop, if set, is asked before each batch whether to compare no more.
	Stop func() bool
	// Progress, if set, is called now and then with what was done.
	Progress func(what string, done, all int)
}

// A Report is the outcome.
type Report struct {
	Arch     string `json:"arch"`
	Seed     uint64 `json:"seed"`
	Complete bool   `json:"complete"` // all was compared
	Sorts    []Sort `json:"sorts"`
	// Classes is the number of classes of the table that were met, of ClassesInTable, by
	// the names that nvdisasm gives to refused words.
	Classes        int    `json:"classes_met"`
	ClassesInTable int    `json:"classes"`
	Kinds          []Kind `json:"disagreements"`
}

// A Sort is what was found about the words of one sort.
type Sort struct {
	Name string `json:"name"`
	Tally
}

// A Tally counts words.
type Tally struct {
	Words    int `json:"words"`
	Accepted int `json:"accepted"` // by nvdisasm
	Equal    int `json:"equal"`    // of the accepted: the same text, or silent both
	Silent   int `json:"silent"`   // of the equal
	// Of the refused: answered with .illegal or .word, a schedule value that the class
	// does not have included.
	Refused     int `json:"refused"`
	RefusedToo  int `json:"refused_too"`
	Reencoded   int `json:"reencoded"`    // of those with a text: encoding like the word gives the word
	EncodedText int `json:"encoded_text"` // … encoding the text alone gives a word with that text
	EncodedSame int `json:"encoded_same"` // … which is that very word, control bits aside
	// Disagreements: another text, or a silent word for one and not the other; .word or
	// .illegal where nvdisasm accepts; accepted where nvdisasm refuses; the schedule alone
	// legal for one and not the other.
	TextDiffers int `json:"text_differs"`
	NotKnown    int `json:"not_known"`
	NotRefused  int `json:"not_refused"`
	Schedule    int `json:"schedule"`
	// Words of classes that the table does not have, which nvdisasm refuses like the table.
	NewClass int `json:"new_class"`
}

// add adds the counts of u to t.
func (t *Tally) add(u *Tally) {
	t.Words += u.Words
	t.Accepted += u.Accepted
	t.Equal += u.Equal
	t.Silent += u.Silent
	t.Refused += u.Refused
	t.RefusedToo += u.RefusedToo
	t.Reencoded += u.Reencoded
	t.EncodedText += u.EncodedText
	t.EncodedSame += u.EncodedSame
	t.TextDiffers += u.TextDiffers
	t.NotKnown += u.NotKnown
	t.NotRefused += u.NotRefused
	t.Schedule += u.Schedule
	t.NewClass += u.NewClass
}

// Wrong returns the number of disagreements.
func (t *Tally) Wrong() int {
	return t.TextDiffers + t.NotKnown + t.NotRefused + t.Schedule + t.NewClass
}

// A Kind is a kind of disagreement.
type Kind struct {
	Class    string    `json:"class"`
	What     string    `json:"what"`
	Count    int       `json:"count"`
	Examples []Example `json:"examples"`
}

// An Example is a word on which the table and nvdisasm disagree.
type Example struct {
	Lo   string `json:"lo"`
	Hi   string `json:"hi"`
	PC   uint64 `json:"pc"`
	Want string `json:"nvdisasm"`
	Got  string `json:"cupatch"`
}

// A Batch is the outcome of some words, in a form that can be kept.
type Batch struct {
	Sort    string   `json:"sort"`
	Index   int      `json:"index"`
	Tally   Tally    `json:"tally"`
	Kinds   []Kind   `json:"kinds,omitempty"`
	Classes []string `json:"classes,omitempty"` // met among refused words
}

// A class is an opcode and nvdisasm's name of an encoding class.
type class struct {
	opcode int
	name   string
}

func (c class) String() string { return fmt.Sprintf("%04x %s", c.opcode, c.name) }

// A run is a comparison under way.
type run struct {
	table   *isa.Table
	oracle  Oracle
	opt     Options
	real    []isa.Word
	source  *wordgen.Source
	known   map[class]bool
	before  map[string]*Batch
	report  *Report
	kinds   map[[2]string]*Kind
	met     map[string]bool
	stopped bool
	// Of the batch under way.
	batch Batch
	part  map[[2]string]*Kind
	buf   []byte
}

// size is the number of words in a batch.
const size = 20000

// The names of the sorts that wordgen does not have.
const (
	realWords   = "real"
	randomWords = "random"
	nameWords   = "names"
)

// Run compares the words of real code, which should not hold a word twice, and as
// many others as opt says.
func Run(t *isa.Table, oracle Oracle, real []isa.Word, opt Options) (*Report, error) {
	r := &run{table: t, oracle: oracle, opt: opt, real: real, known: map[class]bool{}, before: map[string]*Batch{},
		report: &Report{Arch: t.Arch().String(), Seed: opt.Seed, Kinds: []Kind{}}, kinds: map[[2]string]*Kind{}, met: map[string]bool{}}
	for _, v := range t.Variants() {
		r.known[class{v.Value.Opcode(), v.Class}] = true
	}
	for i := range opt.Before {
		b := &opt.Before[i]
		r.before[batchName(b.Sort, b.Index)] = b
	}
	if err := r.sort(realWords, len(real), r.realPart); err != nil {
		return nil, err
	}
	if err := r.sort(randomWords, opt.Samples, r.randomPart); err != nil {
		return nil, err
	}
	if opt.Words > 0 {
		if err := r.blind(); err != nil {
			return nil, err
		}
	}
	r.finish()
	return r.report, nil
}

// blind compares the words that are made without the table.
func (r *run) blind() error {
	ops, err := r.opcodes()
	if err != nil {
		return err
	}
	r.source = &wordgen.Source{Real: slices.Concat(r.real, r.opt.Start), Shapes: wordgen.Shapes(r.opt.Related), Opcodes: ops}
	names := func(i, n int) []isa.Word { return r.source.Unscheduled(r.random(nameWords, i), n) }
	if err := r.sort(nameWords, r.opt.Words, names); err != nil {
		return err
	}
	for _, s := range wordgen.Sorts() {
		if len(s.Make(r.source, r.random(s.Name, 0), 1)) == 0 {
			continue // nothing to make them from
		}
		err := r.sort(s.Name, r.opt.Words, func(i, n int) []isa.Word { return s.Make(r.source, r.random(s.Name, i), n) })
		if err != nil {
			return err
		}
	}
	return nil
}

// opcodes returns the opcodes that nvdisasm has: those of which it accepts a word, or names
// a class.
func (r *run) opcodes() ([]int, error) {
	const each = 6
	src := &wordgen.Source{}
	valid := map[int]bool{}
	words := src.Spread(r.random("opcodes", 0), each)
	for len(words) > 0 {
		n := min(len(words), size)
		answers, err := r.oracle(words[:n])
		if err != nil {
			return nil, err
		}
		for i, a := range answers {
			if !a.Refused || a.Class != "" {
				valid[words[i].Opcode()] = true
			}
		}
		words = words[n:]
	}
	return slices.Sorted(maps.Keys(valid)), nil
}

// random returns the random numbers of a batch.
func (r *run) random(sort string, batch int) *rand.Rand {
	h := fnv.New64a()
	fmt.Fprint(h, batchName(sort, batch))
	return rand.New(rand.NewPCG(r.opt.Seed, h.Sum64()))
}

func batchName(sort string, i int) string { return fmt.Sprint(sort, " ", i) }

// finish completes the report.
func (r *run) finish() {
	for _, k := range r.kinds {
		r.report.Kinds = append(r.report.Kinds, *k)
	}
	slices.SortFunc(r.report.Kinds, func(a, b Kind) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Class, b.Class), cmp.Compare(a.What, b.What))
	})
	for c := range r.known {
		if r.met[c.String()] {
			r.report.Classes++
		}
	}
	r.report.ClassesInTable = len(r.known)
	r.report.Complete = !r.stopped
}

// sort compares n words of a sort, which part makes: those of the batch i, count of them.
func (r *run) sort(name string, n int, part func(i, count int) []isa.Word) error {
	s := Sort{Name: name}
	for i := 0; i*size < n && !r.stopped; i++ {
		b := r.before[batchName(name, i)]
		if b == nil {
			if r.stopped = r.opt.Stop != nil && r.opt.Stop(); r.stopped {
				break
			}
			if err := r.words(name, i, part(i, min(size, n-i*size))); err != nil {
				return fmt.Errorf("%s words: %w", name, err)
			}
			b = &r.batch
			if r.opt.Done != nil {
				r.opt.Done(*b)
			}
		}
		s.add(&b.Tally)
		r.merge(b)
		if r.opt.Progress != nil {
			r.opt.Progress(name+" words", min(n, (i+1)*size), n)
		}
	}
	if s.Words > 0 {
		r.report.Sorts = append(r.report.Sorts, s)
	}
	return nil
}

// merge adds the disagreements of a batch to those of the run.
func (r *run) merge(b *Batch) {
	for _, k := range b.Kinds {
		all := r.kinds[[2]string{k.Class, k.What}]
		if all == nil {
			all = &Kind{Class: k.Class, What: k.What}
			r.kinds[[2]string{k.Class, k.What}] = all
		}
		all.Count += k.Count
		all.Examples = append(all.Examples, k.Examples[:min(len(k.Examples), r.opt.Examples-len(all.Examples))]...)
	}
	for _, c := range b.Classes {
		r.met[c] = true
	}
}

func (r *run) realPart(i, n int) []isa.Word { return r.real[i*size:][:n] }

// randomPart returns n words of random classes whose fields have random values that
// the table thinks legal.
func (r *run) randomPart(i, n int) []isa.Word {
	x := r.random(randomWords, i)
	vs := r.table.Variants()
	if len(vs) == 0 {
		return nil
	}
	words := make([]isa.Word, 0, n)
	for tries := 0; len(words) < n && tries < 100*n; tries++ {
		v := vs[x.IntN(len(vs))]
		w := isa.Word{Lo: x.Uint64(), Hi: x.Uint64()}.AndNot(v.Mask).Or(v.Value)
		if x.IntN(4) > 0 {
			w = isa.GuardField.MustSet(isa.GuardNot.MustSet(w, 0), 7)
		}
		w = isa.DefaultControl.Set(w)
		w.Hi &^= 7 << 61
		if in := r.table.Decode(w); in.Variant == v && in.Status == isa.StatusKnown {
			words = append(words, w)
		}
	}
	return words
}

// words compares the words of a batch.
func (r *run) words(sort string, i int, words []isa.Word) error {
	r.batch = Batch{Sort: sort, Index: i}
	r.part = map[[2]string]*Kind{}
	classes := map[string]bool{}
	answers, err := r.oracle(words)
	if err != nil {
		return err
	}
	for k, w := range words {
		a := answers[k]
		if c := (class{w.Opcode(), a.Class}); a.Class != "" {
			classes[c.String()] = true
			if !r.known[c] {
				r.batch.Tally.NewClass++
				r.disagree(a.Class, w, "is a class that the table does not have", "", "", a.PC)
			}
		}
		r.word(w, a, &r.batch.Tally)
	}
	for _, k := range r.part {
		r.batch.Kinds = append(r.batch.Kinds, *k)
	}
	r.batch.Classes = slices.Sorted(maps.Keys(classes))
	return nil
}

// word compares one word.
func (r *run) word(w isa.Word, a Answer, t *Tally) {
	t.Words++
	in := r.table.Decode(w)
	refused := in.Status == isa.StatusUnknown || in.Status == isa.StatusIllegal || in.BadSched
	r.buf = r.table.AppendText(r.buf[:0], in, a.PC)
	got := string(r.buf)
	differ := func(n *int, what string) {
		*n++
		r.disagree(nameOf(in), w, what, a.Text, got, a.PC)
	}
	if a.Refused {
		t.Refused++
		switch {
		case refused:
			t.RefusedToo++
		case strings.HasPrefix(a.Table, schedTables):
			differ(&t.Schedule, "has a schedule value that nvdisasm refuses")
		default:
			differ(&t.NotRefused, "has text, nvdisasm refuses it")
		}
		return
	}
	t.Accepted++
	switch {
	case in.Status == isa.StatusUnknown:
		differ(&t.NotKnown, "is unknown")
	case in.Status == isa.StatusIllegal:
		differ(&t.NotKnown, "is refused, nvdisasm accepts it")
	case in.BadSched:
		differ(&t.Schedule, "has a schedule value that is refused, nvdisasm accepts it")
	case (in.Status == isa.StatusSilent) != (a.Text == ""):
		differ(&t.TextDiffers, "is silent for one and not the other")
	case in.Status != isa.StatusSilent && oneBlank(got) != oneBlank(a.Text):
		differ(&t.TextDiffers, "has another text")
	default:
		t.Equal++
		if in.Status == isa.StatusSilent {
			t.Silent++
			return
		}
		r.encode(in, a, got, t)
	}
}

// schedTables is how the names of the tables start that say which schedules a class has.
const schedTables = "TABLES_opex"

// nameOf returns the class of in, or its mnemonic.
func nameOf(in isa.Inst) string {
	if in.Variant == nil {
		return "(none)"
	}
	return cmp.Or(in.Variant.Class, in.Variant.Mnemonic())
}

// oneBlank makes runs of blanks one where ??? stands, around which nvdisasm's padding
// depends on what it printed before.
func oneBlank(s string) string {
	if strings.Contains(s, "???") {
		return strings.Join(strings.Fields(s), " ")
	}
	return s
}

// encode encodes the text of a word again, like the word and from the text alone.
func (r *run) encode(in isa.Inst, a Answer, text string, t *Tally) {
	w := in.Word
	if got, err := r.table.Encode(text, a.PC, &w); err != nil || got != w {
		r.disagree(nameOf(in), w, "does not encode to itself", text, fmt.Sprint(got, err), a.PC)
	} else {
		t.Reencoded++
	}
	got, err := r.table.Encode(text, a.PC, nil)
	if err != nil {
		r.disagree(nameOf(in), w, "has a text that does not encode", text, err.Error(), a.PC)
		return
	}
	if again := r.table.Text(r.table.Decode(got), a.PC); again != text {
		r.disagree(nameOf(in), w, "has a text that encodes to another", text, again, a.PC)
		return
	}
	t.EncodedText++
	if isa.ControlOf(w).Set(got).Xor(w).Hi<<3 == 0 && got.Lo == w.Lo {
		t.EncodedSame++
	}
}

// disagree counts a disagreement and keeps an example.
func (r *run) disagree(class string, w isa.Word, what, want, got string, pc uint64) {
	k := r.part[[2]string{class, what}]
	if k == nil {
		k = &Kind{Class: class, What: what}
		r.part[[2]string{class, what}] = k
	}
	k.Count++
	if len(k.Examples) < r.opt.Examples {
		k.Examples = append(k.Examples, Example{fmt.Sprintf("0x%016x", w.Lo), fmt.Sprintf("0x%016x", w.Hi), pc, want, got})
	}
}
