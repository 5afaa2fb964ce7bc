package rule

import (
	"errors"

	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/patch/check"
	"github.com/cupatch/cupatch/patch/listing"
)

// compileBits makes bits[a..b]=value ready.
func (c *compiled) compileBits(i int, ch *change) (func(*editing) error, error) {
	x, err := c.intValue(i, ch)
	if err != nil {
		return nil, err
	}
	f := isa.Bits(ch.lo, ch.hi)
	return func(ed *editing) error {
		v, err := ed.eval(x, ch)
		if err != nil {
			return err
		}
		return ed.set(f, uint64(v), ch.pos)
	}, nil
}

// compileText makes the replacement of a whole instruction ready. The text may start
// with a control code; without one the old word's stays.
func (c *compiled) compileText(ch *change) (func(*editing) error, error) {
	r := c.rule
	code, text, pos, err := listing.SplitControl(ch.value)
	if err != nil {
		return nil, r.errAt(&r.set, ch.pos+1, "%v", err)
	}
	if _, err := c.table.Encode(text, 0, nil); err != nil {
		return nil, syntaxAt(r, ch.pos+1+pos, err)
	}
	return func(ed *editing) error {
		ed.whole = true
		over := ed.word
		if code != nil {
			over = code.SetCode(over)
		}
		w, err := check.EncodeOver(c.table, text, ed.pc(), over)
		var hidden *check.HiddenError
		if errors.As(err, &hidden) {
			w, err = hidden.Word, ed.refuse(check.RefuseHidden, ch.pos, "%v", hidden)
		}
		if err != nil {
			var re *Error
			if errors.As(err, &re) {
				return err
			}
			off, why := reason(err)
			return ed.errorf(ch.pos+1+pos+off, "%s", why)
		}
		ed.word = w
		return nil
	}, nil
}

// syntaxAt places the encoder's error in the rule.
func syntaxAt(r *Rule, pos int, err error) *Error {
	off, why := reason(err)
	return r.errAt(&r.set, pos+off, "%s", why)
}

// reason returns what is wrong with a text that does not encode, and where in it.
func reason(err error) (pos int, why string) {
	var se *isa.SyntaxError
	if errors.As(err, &se) {
		return se.Pos, se.Reason()
	}
	return 0, err.Error()
}

// compileNOP makes NOP ready: it keeps wait mask, stall and yield, and clears both
// scoreboard indices, reuse flags and guard.
func (c *compiled) compileNOP(ch *change) (func(*editing) error, error) {
	nop, err := c.table.Encode("NOP", 0, nil)
	if err != nil {
		return nil, c.rule.errAt(&c.rule.set, ch.pos, "%s has no NOP: %v", c.arch, err)
	}
	return func(ed *editing) error {
		ed.whole = true
		ctl := isa.ControlOf(ed.word)
		ctl.WBar, ctl.RBar, ctl.Reuse, ctl.Batch = isa.NoBar, isa.NoBar, 0, 0
		if ed.inst().IsPadding() {
			ed.word = ctl.Set(ed.word)
			return ed.setGuard(&change{kind: changeGuard, guard: guardChange{none: true}, pos: ch.pos})
		}
		ed.word = ctl.Set(nop)
		return nil
	}, nil
}
