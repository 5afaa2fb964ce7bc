// Package check compares the instruction tables with nvdisasm: the text of every word
// of real code, of random words of every encoding class, and of words with bits flipped.
//
// It counts what agrees and keeps examples of each kind of disagreement. That a table
// agrees on millions of words proves nothing about the others.
package check

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/cupatch/cupatch/isa"
)

// An Answer is what nvdisasm says of a word.
type Answer struct {
	Text    string // empty when refused or silent
	PC      uint64 // the address that the text is for
	Refused bool
}

// An Oracle answers for words, in their order.
type Oracle func(words []isa.Word) ([]Answer, error)

// Options say how much to compare.
type Options struct {
	Samples  int    // random words of random classes
	Flips    int    // words of real code, or random ones, with one to twelve bits flipped
	Seed     uint64 // of the random numbers
	Examples int    // kept of each kind of disagreement
	// Progress, if set, is called now and then with what was done.
	Progress func(what string, done, all int)
}

// A Report is the outcome.
type Report struct {
	Arch    string `json:"arch"`
	Seed    uint64 `json:"seed"`
	Real    Tally  `json:"real"`
	Random  Tally  `json:"random"`
	Flipped Tally  `json:"flipped"`
	Kinds   []Kind `json:"disagreements"`
}

// A Tally counts the words of one sort.
type Tally struct {
	Words    int `json:"words"`
	Accepted int `json:"accepted"` // by nvdisasm
	Equal    int `json:"equal"`    // of the accepted: the same text, or silent both
	// Of the refused: answered with .illegal or .word, a schedule value that the class
	// does not have included.
	Refused     int `json:"refused"`
	RefusedToo  int `json:"refused_too"`
	Reencoded   int `json:"reencoded"`    // of the equal: encoding like the word gives the word
	EncodedText int `json:"encoded_text"` // … encoding the text alone gives a word with that text
	EncodedSame int `json:"encoded_same"` // … which is that very word, control bits aside
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

// A run is a comparison under way.
type run struct {
	table  *isa.Table
	oracle Oracle
	opt    Options
	rand   *rand.Rand
	report *Report
	kinds  map[[2]string]*Kind
	buf    []byte
}

// batch is the number of words asked for at once.
const batch = 20000

// Run compares the words of real code, which should not hold a word twice, and as
// many others as opt says.
func Run(t *isa.Table, oracle Oracle, real []isa.Word, opt Options) (*Report, error) {
	r := &run{table: t, oracle: oracle, opt: opt, rand: rand.New(rand.NewPCG(opt.Seed, 0)),
		report: &Report{Arch: t.Arch().String(), Seed: opt.Seed}, kinds: map[[2]string]*Kind{}}
	if err := r.words("real words", real, &r.report.Real); err != nil {
		return nil, err
	}
	random := r.randomWords(opt.Samples)
	if err := r.words("random words", random, &r.report.Random); err != nil {
		return nil, err
	}
	from := real
	if len(from) == 0 {
		from = random
	}
	if err := r.words("flipped words", r.flippedWords(from, opt.Flips), &r.report.Flipped); err != nil {
		return nil, err
	}
	for _, k := range r.kinds {
		r.report.Kinds = append(r.report.Kinds, *k)
	}
	slices.SortFunc(r.report.Kinds, func(a, b Kind) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Class, b.Class), cmp.Compare(a.What, b.What))
	})
	return r.report, nil
}

// randomWords returns n words of random classes whose fields have random values that
// the table thinks legal.
func (r *run) randomWords(n int) []isa.Word {
	vs := r.table.Variants()
	if len(vs) == 0 {
		return nil
	}
	words := make([]isa.Word, 0, n)
	for tries := 0; len(words) < n && tries < 100*n; tries++ {
		v := vs[r.rand.IntN(len(vs))]
		w := isa.Word{Lo: r.rand.Uint64(), Hi: r.rand.Uint64()}.AndNot(v.Mask).Or(v.Value)
		if r.rand.IntN(4) > 0 {
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

// flippedWords returns n of the words with one to twelve random bits flipped.
func (r *run) flippedWords(from []isa.Word, n int) []isa.Word {
	if len(from) == 0 {
		return nil
	}
	words := make([]isa.Word, n)
	for i := range words {
		w := from[r.rand.IntN(len(from))]
		for range 1 + r.rand.IntN(12) {
			w = w.Xor(isa.BitWord(r.rand.IntN(128)))
		}
		words[i] = w
	}
	return words
}

// words compares words and counts in t.
func (r *run) words(what string, words []isa.Word, t *Tally) error {
	for start := 0; start < len(words); start += batch {
		part := words[start:min(start+batch, len(words))]
		answers, err := r.oracle(part)
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		for i, w := range part {
			r.word(w, answers[i], t)
		}
		if r.opt.Progress != nil {
			r.opt.Progress(what, start+len(part), len(words))
		}
	}
	return nil
}

// word compares one word.
func (r *run) word(w isa.Word, a Answer, t *Tally) {
	t.Words++
	in := r.table.Decode(w)
	refused := in.Status == isa.StatusUnknown || in.Status == isa.StatusIllegal || in.BadSched
	r.buf = r.table.AppendText(r.buf[:0], in, a.PC)
	got := string(r.buf)
	if a.Refused {
		t.Refused++
		if refused {
			t.RefusedToo++
			return
		}
		r.disagree(in, "has text, nvdisasm refuses it", "", got, a.PC)
		return
	}
	t.Accepted++
	switch {
	case in.Status == isa.StatusUnknown:
		r.disagree(in, "is unknown", a.Text, got, a.PC)
	case in.Status == isa.StatusIllegal:
		r.disagree(in, "is refused, nvdisasm accepts it", a.Text, got, a.PC)
	case in.BadSched:
		r.disagree(in, "has a schedule value that is refused, nvdisasm accepts it", a.Text, got, a.PC)
	case (in.Status == isa.StatusSilent) != (a.Text == ""):
		r.disagree(in, "is silent for one and not the other", a.Text, got, a.PC)
	case in.Status != isa.StatusSilent && oneBlank(got) != oneBlank(a.Text):
		r.disagree(in, "has another text", a.Text, got, a.PC)
	default:
		t.Equal++
		r.encode(in, a, got, t)
	}
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
		r.disagree(in, "does not encode to itself", text, fmt.Sprint(got, err), a.PC)
	} else {
		t.Reencoded++
	}
	got, err := r.table.Encode(text, a.PC, nil)
	if err != nil {
		r.disagree(in, "has a text that does not encode", text, err.Error(), a.PC)
		return
	}
	if again := r.table.Text(r.table.Decode(got), a.PC); again != text {
		r.disagree(in, "has a text that encodes to another", text, again, a.PC)
		return
	}
	t.EncodedText++
	if isa.ControlOf(w).Set(got).Xor(w).Hi<<3 == 0 && got.Lo == w.Lo {
		t.EncodedSame++
	}
}

// disagree counts a disagreement and keeps an example.
func (r *run) disagree(in isa.Inst, what, want, got string, pc uint64) {
	class := "(none)"
	if in.Variant != nil {
		class = cmp.Or(in.Variant.Class, in.Variant.Mnemonic())
	}
	k := r.kinds[[2]string{class, what}]
	if k == nil {
		k = &Kind{Class: class, What: what}
		r.kinds[[2]string{class, what}] = k
	}
	k.Count++
	if len(k.Examples) < r.opt.Examples {
		k.Examples = append(k.Examples, Example{fmt.Sprintf("0x%016x", in.Word.Lo), fmt.Sprintf("0x%016x", in.Word.Hi), pc, want, got})
	}
}
