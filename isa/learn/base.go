package learn

import (
	"hash/fnv"
	"math/rand/v2"
	"slices"

	"github.com/cupatch/cupatch/isa"
)

// adopt tests the variants of a related architecture: those that predict every one of
// their random words are taken as they are, the others are learned anew from words of
// theirs. With Trust all are taken, until a word of the whole table shows one to be wrong.
func (l *run) adopt(o *session, vs []*isa.Variant, t *isa.Table) {
	for _, v := range vs {
		n, trusted := l.opt.Tests, l.opt.Trust && !hasAliases(v)
		if trusted {
			n = 6
		}
		ws, printed := TestWords(t, v, n)
		if hasAliases(v) {
			v, t, ws = l.adoptAliases(o, v, t, ws)
		}
		if len(ws) > 0 && (trusted && printed || holds(o, v, t, ws)) {
			res := Result{Opcode: uint16(v.Value.Opcode()), Class: v.Class, Variant: v, Tested: len(ws)}
			l.mu.Lock()
			l.known[key{res.Opcode, res.Class}] = res
			l.sampled[v] = true
			if l.opt.Done != nil {
				l.opt.Done(res)
			}
			l.mu.Unlock()
			l.pool.add(v.Class, ws[0])
			continue
		}
		if len(ws) == 0 { // with a single legal schedule, say
			ws = PlainWords(v)
		}
		l.pool.find(o, ws[:min(len(ws), 6)])
	}
}

// adoptAliases returns v, a variant of t, or v with aliases that the control code turns off,
// with its table and words of it that show them.
func (l *run) adoptAliases(o *session, v *isa.Variant, t *isa.Table, ws []isa.Word) (*isa.Variant, *isa.Table, []isa.Word) {
	off := unaliased(ws)
	if holds(o, v, t, off) {
		return v, t, append(ws, off...)
	}
	w := aliasesOff(v)
	own := isa.NewTable(o.Arch, []*isa.Variant{w})
	if !holds(o, w, own, off) {
		return v, t, append(ws, off...)
	}
	return w, own, append(ws, off...)
}

// TestWords returns up to n words that v, a variant of t, has to predict, with texts where it
// has any, and whether it has.
func TestWords(t *isa.Table, v *isa.Variant, n int) (ws []isa.Word, printed bool) {
	if ws = sampleOf(t, v, n, isa.StatusKnown); len(ws) > 0 {
		return ws, true
	}
	return sampleOf(t, v, n, isa.StatusSilent), false
}

// PlainWords returns words of v in which nothing is set that need not be, with an ordinary
// control code and with none.
func PlainWords(v *isa.Variant) []isa.Word {
	w := guardField.MustSet(v.Value.Or(v.Default), 7)
	return []isa.Word{isa.DefaultControl.Set(w).AndNot(v.Mask).Or(v.Value), w}
}

// holds reports whether v, a variant of t, is right about ws, words of its own, and about
// its limits.
func holds(o *session, v *isa.Variant, t *isa.Table, ws []isa.Word) bool {
	all := slices.Concat(ws, probes(v, ws[0]), eachValue(t, v, ws[0]))
	for i, a := range o.Ask(all) {
		if m, miss := compare(t, all[i], a); miss && (a.OK || m.in.Status != isa.StatusUnknown) {
			return false
		}
	}
	return slices.Contains(o.ClassOf(ws[:min(len(ws), 4)]), v.Class)
}

// twin tries the variant of the class that has k's name and differs in bit 91 alone:
// architectures without uniform registers ignore that bit in most classes.
func (l *run) twin(o *session, k key, hard []isa.Word) (Result, bool) {
	l.mu.Lock()
	r := l.results[key{k.op ^ 1<<12, k.name}]
	l.mu.Unlock()
	if r.Variant == nil || r.Misses > 0 {
		return r, false
	}
	v := *r.Variant
	v.Value = v.Value.Xor(isa.BitWord(91))
	t := isa.NewTable(o.Arch, []*isa.Variant{&v})
	ws := Sample(t, &v, l.opt.Tests)
	if len(ws) == 0 || !holds(o, &v, t, append(ws, hard...)) {
		return r, false
	}
	return Result{Opcode: k.op, Class: k.name, Variant: &v, Text: r.Text, Tested: len(ws)}, true
}

// cousinsOf returns the different variants of each class of the tables.
func cousinsOf(tables []*isa.Table, quietNaN bool) map[key][]*isa.Variant {
	out := map[key][]*isa.Variant{}
	seen := map[string]bool{}
	for _, t := range tables {
		for _, v := range t.Variants() {
			if quietNaN {
				v = quietNaNs(v)
			}
			if text := isa.FormatVariant(v); !seen[text] {
				seen[text] = true
				k := key{uint16(v.Value.Opcode()), v.Class}
				out[k] = append(out[k], v)
			}
		}
	}
	return out
}

// maxCousins bounds the variants of related tables that are tried.
const maxCousins = 6

// cousin tries the variants that related tables have of the class: one that predicts all of
// its random words, and the hard ones, is taken.
func (l *run) cousin(o *session, k key, hard []isa.Word) (Result, bool) {
	vs := l.cousins[k]
	for _, v := range vs[:min(len(vs), maxCousins)] {
		t := isa.NewTable(o.Arch, []*isa.Variant{v})
		ws, _ := TestWords(t, v, l.opt.Tests)
		if len(ws) > 0 && holds(o, v, t, slices.Concat(ws, hard)) {
			return Result{Opcode: k.op, Class: k.name, Variant: v, Tested: len(ws)}, true
		}
	}
	return Result{}, false
}

// eachValue returns w, a word of v, with each value of each field of at most 8 bits that
// chooses a text, as far as t thinks them legal.
func eachValue(t *isa.Table, v *isa.Variant, w isa.Word) []isa.Word {
	var ws []isa.Word
	for _, p := range v.Template {
		for _, test := range p.Tests {
			n := test.Field.Width()
			if test.Kind != isa.TestValue || n > 8 || !test.Field.Mask().And(controlMask).IsZero() {
				continue
			}
			for x := range uint64(1) << n {
				c := test.Field.MustSet(w, x)
				if in := t.Decode(c); in.Variant == v && in.Status == isa.StatusKnown {
					ws = append(ws, c)
				}
			}
		}
	}
	return ws
}

// probes returns words that show the limits of v: w with each constant bit flipped, the
// opcode's aside, and w with every schedule.
func probes(v *isa.Variant, w isa.Word) []isa.Word {
	var ws []isa.Word
	for _, b := range bitsOfWord(v.Mask.AndNot(opcodeMask)) {
		ws = append(ws, w.Xor(isa.BitWord(b)))
	}
	return append(ws, schedules(w)...)
}

// schedules returns w with every value of the schedule field, every set of reuse flags,
// and every batch number.
func schedules(w isa.Word) []isa.Word {
	var ws []isa.Word
	w = w.AndNot(schedMask)
	for v := uint64(0); v < 32; v++ {
		ws = append(ws, schedField.MustSet(w, v))
	}
	for v := uint64(1); v < 8; v++ {
		f := isa.Bits(122, 124).MustSet(w, v)
		ws = append(ws, schedField.MustSet(f, 0), schedField.MustSet(f, 2), schedField.MustSet(f, 17))
	}
	return ws
}

// Sample returns up to n words of v that t thinks legal: random values in all bits that
// are free, at several densities of change, with random control codes and guards. It
// always returns the same words.
func Sample(t *isa.Table, v *isa.Variant, n int) []isa.Word {
	return sampleOf(t, v, n, isa.StatusKnown)
}

// sampleOf is like Sample, for words of the status.
func sampleOf(t *isa.Table, v *isa.Variant, n int, status isa.Status) []isa.Word {
	h := fnv.New64a()
	h.Write([]byte(v.Class))
	rng := rand.New(rand.NewPCG(h.Sum64(), v.Value.Lo))
	free := v.Mask.Or(controlMask).Or(guardMask).Not()
	fields := slotFields(v)
	start := v.Value.Or(v.Default)
	var ws []isa.Word
	for try := 0; len(ws) < n && try < 60*n; try++ {
		w := start
		if len(ws) > 0 && try%3 > 0 {
			w = ws[rng.IntN(len(ws))]
		}
		p := []float64{0.02, 0.08, 0.25, 0.5}[rng.IntN(4)]
		for _, b := range bitsOfWord(free) {
			if rng.Float64() < p {
				w = w.Xor(isa.BitWord(b))
			}
		}
		for _, f := range fields {
			ones := ^uint64(0) >> (64 - f.Width())
			switch rng.IntN(8) {
			case 0:
				w = f.MustSet(w, ones)
			case 1:
				w = f.MustSet(w, 0)
			case 2:
				w = f.MustSet(w, 1<<rng.IntN(f.Width()))
			case 3, 4:
				w = f.MustSet(w, rng.Uint64()&ones)
			}
		}
		w = w.AndNot(v.Mask).Or(v.Value)
		w = randomControl(rng.Uint64(), w, v.Sched)
		if try%8 == 7 { // some classes have no other schedule
			w = w.AndNot(schedMask)
		}
		w = w.AndNot(v.Mask).Or(v.Value)
		if in := t.Decode(w); in.Variant == v && in.Status == status && !in.BadSched {
			ws = append(ws, w)
		}
	}
	return ws
}

// slotFields lists the fields that v prints as operands, each once.
func slotFields(v *isa.Variant) []isa.Field {
	seen := map[string]bool{}
	var out []isa.Field
	for _, p := range v.Template {
		for _, a := range p.Alts {
			for _, e := range a {
				if e.Lit == "" && len(e.Slot.Field) > 0 && !seen[e.Slot.Field.String()] {
					seen[e.Slot.Field.String()] = true
					out = append(out, e.Slot.Field)
				}
			}
		}
	}
	return out
}

// SeedsOf returns a few words of every variant of a table, to find the classes of
// another architecture with.
func SeedsOf(t *isa.Table) []isa.Word {
	var out []isa.Word
	for _, v := range t.Variants() {
		out = append(out, Sample(t, v, 3)...)
	}
	return out
}
