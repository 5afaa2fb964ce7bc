package isa

import (
	"fmt"
	"sync"
)

// Effects are the registers that an instruction reads and writes, whether or not its
// guard lets it. RZ, URZ, PT and UPT are never among them. A guard that is not PT is read.
//
// Memory, scoreboards and special registers are no registers here. A call's effects are
// those of the CALL itself, not of what it calls.
type Effects struct{ Reads, Writes RegSet }

// An Access is a run of registers that an instruction reads or writes because one of its
// fields names the first.
type Access struct {
	File   RegFile
	First  int // its number
	Count  int // at least 1
	Reads  bool
	Writes bool
	Bit    int // the lowest bit of the field, -1 if there is none
}

// An AccessRule says which registers of one field a class of instructions reads or
// writes: Count registers from the one that the field names, none where it names RZ, URZ,
// PT or UPT, and none beyond the end of the file.
type AccessRule struct {
	Reads, Writes bool
	File          RegFile
	Field         Field // empty where the registers are always the same
	Invert        bool  // the field holds the complement of the number
	Add           int   // what is added to the number, or the first register without a field
	// Mask says that the field is a mask of registers, bit 0 of the first.
	Mask bool
	// Counts is the number of registers by the outcomes of Tests, the first least
	// significant; one element if there are no tests.
	Tests  []Test
	Counts []uint8
}

// Effects returns the registers that in reads and writes: none for a word that is not
// known, or of a class whose effects are not known. It allocates nothing once it has seen
// the class.
func (in Inst) Effects() Effects {
	if p := in.effectProgram(); p != nil {
		return p.Effects(in.Word)
	}
	return Effects{}
}

// An EffectProgram is the rules of a variant's class made ready.
type EffectProgram struct {
	guard RegFile // numFiles where the guard is none
	ops   []effectOp
}

// Effects returns the registers that w reads and writes.
func (p *EffectProgram) Effects(w Word) Effects {
	var e Effects
	if g := int(w.Lo >> 12 & 7); g != 7 && p.guard < numFiles {
		e.Reads.Add(p.guard, g, 1)
	}
	for i := range p.ops {
		o := &p.ops[i]
		if first, n := o.run(w); n > 0 {
			o.rule.add(&e, first, n)
		}
	}
	return e
}

func (r *AccessRule) add(e *Effects, first, n int) {
	if r.Mask {
		for i := range 8 {
			if n>>i&1 != 0 {
				r.addRun(e, i, 1)
			}
		}
		return
	}
	r.addRun(e, first, n)
}

func (r *AccessRule) addRun(e *Effects, first, n int) {
	if r.Reads {
		e.Reads.Add(r.File, first, n)
	}
	if r.Writes {
		e.Writes.Add(r.File, first, n)
	}
}

// Accesses appends the runs of registers that in reads and writes to buf, the guard left
// out, and returns the result. One field may appear twice, once read and once written.
func (in Inst) Accesses(buf []Access) []Access {
	if p := in.effectProgram(); p != nil {
		return p.Accesses(buf, in.Word)
	}
	return buf
}

// Accesses is like [Inst.Accesses] for the word w.
func (p *EffectProgram) Accesses(buf []Access, w Word) []Access {
	for i := range p.ops {
		o := &p.ops[i]
		first, n := o.run(w)
		if n == 0 {
			continue
		}
		a := Access{File: o.rule.File, First: first, Count: n, Reads: o.rule.Reads, Writes: o.rule.Writes, Bit: -1}
		if len(o.rule.Field) > 0 {
			a.Bit = int(o.rule.Field[0].Lo)
		}
		if !o.rule.Mask {
			buf = append(buf, a)
			continue
		}
		for a.First, a.Count = 0, 1; n != 0; a.First, n = a.First+1, n>>1 {
			if n&1 != 0 {
				buf = append(buf, a)
			}
		}
	}
	return buf
}

// HasEffects reports whether it is known which registers in reads and writes.
func (in Inst) HasEffects() bool { return in.effectProgram() != nil }

type effectOp struct {
	rule    *AccessRule
	get     gather
	flip    uint64
	special uint64 // the value that names no register
	add     int
	fixed   int // the count, or 0 where counts has it
	index   gather
	counts  []uint8
}

// run returns the first register and their number; of a mask, 0 and the mask.
func (o *effectOp) run(w Word) (first, n int) {
	v := o.get.value(w) ^ o.flip
	if o.rule.Mask {
		return 0, int(v & 0x7f)
	}
	if v == o.special {
		return 0, 0
	}
	if n = o.fixed; n == 0 {
		if n = int(o.counts[o.index.value(w)]); n == 0 {
			return 0, 0
		}
	}
	first = int(v) + o.add
	return first, max(min(n, int(o.special)-first), 0)
}

// CompileEffects returns the program of the rules of v's class, which it keeps.
func CompileEffects(v *Variant, rules []AccessRule) *EffectProgram {
	p := &EffectProgram{guard: [...]RegFile{GuardP: FileP, GuardUP: FileUP, GuardNone: numFiles}[v.Guard]}
	for i := range rules {
		r := &rules[i]
		all := uint64(1)<<r.Field.Width() - 1
		o := effectOp{rule: r, get: fieldGather(r.Field), special: all, add: r.Add}
		if r.File == FileB || len(r.Field) == 0 {
			o.special = 1 << 8 // no number means none
		}
		if r.Invert {
			o.flip = all
		}
		if len(r.Tests) == 0 {
			if !r.Mask {
				o.fixed = int(r.Counts[0])
			}
		} else {
			o.index, o.counts = indexGather(&Piece{Tests: r.Tests}), r.Counts
		}
		p.ops = append(p.ops, o)
	}
	return p
}

// check returns what is wrong with r's counts.
func (r *AccessRule) check() error {
	n := 0
	for i := range r.Tests {
		n += int(r.Tests[i].width())
	}
	if n > maxEffectBits || !r.Mask && len(r.Counts) != 1<<n {
		return fmt.Errorf("%d counts for %d bits", len(r.Counts), n)
	}
	return nil
}

// maxEffectBits is the greatest number of bits on which a count depends.
const maxEffectBits = 16

// An effectsTable has the rules of an architecture's classes. It is read when it is first
// asked for.
type effectsTable struct {
	once  sync.Once
	rules map[string][]AccessRule
}

// of returns the rules of a class, and whether there are any on record.
func (t *effectsTable) of(arch Arch, class string) ([]AccessRule, bool) {
	t.once.Do(func() {
		if f, err := LoadEffects(arch); err == nil {
			t.rules = f.Rules
		}
	})
	rules, ok := t.rules[class]
	return rules, ok
}

// effectProgram returns the program of in's class, or nil if its effects are not known.
func (in Inst) effectProgram() *EffectProgram {
	p := in.prog
	if p == nil || in.Status != StatusKnown {
		return nil
	}
	p.effectsOnce.Do(func() {
		if p.table == nil {
			return
		}
		if rules, ok := p.table.effects.of(p.table.arch, p.v.Class); ok {
			p.effects = CompileEffects(p.v, rules)
		}
	})
	return p.effects
}
