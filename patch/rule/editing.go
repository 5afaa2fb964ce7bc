package rule

import (
	"fmt"

	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/patch/check"
	"github.com/cupatch/cupatch/patch/code"
)

// refuse returns an error for a change that is refused, or nil where it is allowed.
func (ed *editing) refuse(kind string, pos int, format string, args ...any) error {
	if ed.ctx.allow[kind] {
		return nil
	}
	e := ed.errorf(pos, "refused: "+format, args...)
	e.refused = kind
	e.Help = refusedHint(kind)
	return e
}

func refusedHint(kind string) string {
	return check.AllowHint(kind) + "; --skip-refused leaves such instructions alone"
}

// check refuses what the new word must not be.
func (ed *editing) check() error {
	now := ed.view()
	ck := &check.Change{Allow: ed.ctx.allow, Old: ed.old, Now: now, Whole: ed.whole}
	if r := ck.Check(); r != nil {
		return ed.refuse(r.Kind, ed.posOf(r.Mask), "%s", r.Msg)
	}
	return nil
}

// posOf returns the position of the last change that touched bits of mask.
func (ed *editing) posOf(mask isa.Word) int {
	for i := len(ed.steps) - 1; i >= 0; i-- {
		if !ed.steps[i].diff.And(mask).IsZero() {
			return ed.steps[i].pos
		}
	}
	if len(ed.steps) > 0 {
		return ed.steps[len(ed.steps)-1].pos
	}
	return 0
}

// An editing is one instruction while a list of changes works on it.
type editing struct {
	ctx   *evalCtx
	old   *code.View // as planned before this list
	word  isa.Word
	whole bool // the whole instruction is replaced
	steps []editStep
}

// An editStep remembers which bits a change touched, so that a refusal can point at
// it.
type editStep struct {
	pos  int
	diff isa.Word
}

// inst decodes the word as changed so far.
func (ed *editing) inst() isa.Inst { return ed.ctx.code.Table.Decode(ed.word) }

// view returns the instruction as changed so far.
func (ed *editing) view() *code.View {
	return ed.ctx.code.ViewOf(ed.old.Index, ed.word)
}

func (ed *editing) pc() uint64 { return ed.old.PC() }

// set stores v in a field; a value that does not fit is an error at pos.
func (ed *editing) set(f isa.Field, v uint64, pos int) error {
	w, err := f.Set(ed.word, v)
	if err != nil {
		return ed.errorf(pos, "%v", err)
	}
	ed.word = w
	return nil
}

// errorf returns an error at pos in the rule's changes, with the instruction.
func (ed *editing) errorf(pos int, format string, args ...any) *Error {
	r := ed.ctx.rule.rule
	e := r.errAt(&r.set, pos, format, args...)
	e.Msg += ed.where()
	return e
}

// where returns the instruction for a message.
func (ed *editing) where() string {
	v := ed.old
	return fmt.Sprintf(" (kernel %s, %#x: %s)", v.State.Name, v.PC(), v.Text())
}

// name returns the mnemonic for a message, or what the word is.
func (ed *editing) name() string {
	m, _ := code.CutDot(ed.old.Mnemonic())
	if len(m) == 0 {
		return "this word"
	}
	return string(m)
}

// group returns a group of the instruction as changed so far, or nil.
func (ed *editing) group(name string) *isa.Group {
	v := ed.inst().Variant
	if v == nil {
		return nil
	}
	for _, g := range ed.ctx.code.Table.Groups(v) {
		if g.Name == name {
			return g
		}
	}
	return nil
}

// setGuard applies @P0, @!, @-.
func (ed *editing) setGuard(ch *change) error {
	in := ed.inst()
	uniform := in.Variant != nil && in.Variant.Guard == isa.GuardUP
	if in.Variant != nil && in.Variant.Guard == isa.GuardNone {
		return ed.errorf(ch.pos, "%s takes no guard", ed.name())
	}
	g := ch.guard
	switch {
	case g.negate:
		return ed.set(isa.GuardNot, isa.GuardNot.Get(ed.word)^1, ch.pos)
	case g.none:
		g.to = guardPattern{index: 7, uniform: uniform}
	case g.to.uniform != uniform && !(g.to.index == 7 && !g.to.uniform):
		want := "P"
		if uniform {
			want = "UP"
		}
		return ed.errorf(ch.pos, "the guard of %s is one of %s0 to %s6", ed.name(), want, want)
	}
	not := uint64(0)
	if g.to.not {
		not = 1
	}
	if err := ed.set(isa.GuardField, uint64(g.to.index), ch.pos); err != nil {
		return err
	}
	return ed.set(isa.GuardNot, not, ch.pos)
}

// run applies a list of changes and checks the result.
func (ed *editing) run(list []compiledChange) error {
	for _, ch := range list {
		before := ed.word
		if err := ch.apply(ed); err != nil {
			return err
		}
		ed.steps = append(ed.steps, editStep{ch.pos, before.Xor(ed.word)})
	}
	return ed.check()
}
