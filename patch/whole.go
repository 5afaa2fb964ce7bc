package patch

import (
	"errors"
	"strings"

	"github.com/cupatch/cupatch/isa"
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
	code, text, pos, err := splitControl(ch.value)
	if err != nil {
		return nil, r.errAt(&r.set, ch.pos+1, "%v", err)
	}
	if _, err := c.table.Encode(text, 0, nil); err != nil {
		return nil, syntaxAt(r, ch.pos+1+pos, err)
	}
	return func(ed *editing) error {
		ed.whole = true
		w, err := encodeOver(c.table, text, ed.pc(), ed.word)
		var hidden *hiddenError
		if errors.As(err, &hidden) {
			w, err = hidden.word, ed.refuse(RefuseHidden, ch.pos, "%v", hidden)
		}
		if err != nil {
			var re *RuleError
			if errors.As(err, &re) {
				return err
			}
			return ed.errorf(ch.pos, "%v", err)
		}
		if code != nil {
			w = code.SetCode(w)
		}
		ed.word = w
		return nil
	}, nil
}

// syntaxAt places the encoder's error in the rule.
func syntaxAt(r *Rule, pos int, err error) *RuleError {
	var se *isa.SyntaxError
	if errors.As(err, &se) {
		pos += se.Pos
	}
	return r.errAt(&r.set, pos, "%v", err)
}

// splitControl takes a control code off the front of an instruction's text; pos is
// where the rest starts.
func splitControl(s string) (code *isa.Control, text string, pos int, err error) {
	text = strings.TrimLeft(s, " \t")
	if strings.HasPrefix(text, "[B") {
		end := strings.IndexByte(text, ']')
		if end < 0 {
			return nil, "", 0, errors.New("control code without ]")
		}
		c, err := isa.ParseControl(text[:end+1])
		if err != nil {
			return nil, "", 0, err
		}
		code, text = &c, strings.TrimLeft(text[end+1:], " \t")
	}
	pos = len(s) - len(text)
	text = strings.TrimRight(text, " \t")
	text = strings.TrimRight(strings.TrimSuffix(text, ";"), " \t")
	return code, text, pos, nil
}

// A hiddenError says that text cannot say all of an instruction.
type hiddenError struct {
	word isa.Word // with the values that ptxas uses most
}

func (e *hiddenError) Error() string {
	return "this instruction has an operand that its text does not show, and the old one gives no value for it"
}

// encodeOver encodes text in place of the word old: with all that the text does not
// say taken from old where the variant stays the same. The control code stays; reuse
// flags stand in the text. Where the variant changes and the text hides an operand,
// the error is a *hiddenError.
func encodeOver(t *isa.Table, text string, pc uint64, old isa.Word) (isa.Word, error) {
	w, err := t.Encode(text, pc, nil)
	if err != nil {
		return w, err
	}
	v := t.Decode(w).Variant
	if v != nil && v == t.Decode(old).Variant {
		return t.Encode(text, pc, &old)
	}
	ctl := isa.ControlOf(old)
	reuse := isa.ReuseField.Get(w)
	w = ctl.SetCode(w)
	if w, err = isa.ReuseField.Set(w, reuse); err != nil {
		return w, err
	}
	if v != nil && hiddenOperand(v, w) {
		return w, &hiddenError{w}
	}
	return w, nil
}

// hiddenOperand reports whether the text of w leaves out an operand whose value it
// does not tell either: a field that another form of the text prints, and on which
// nothing in this form depends. On sm_80 to sm_89 that is the register with the memory
// descriptor. A predicate that prints only when it is not PT is not hidden: its absence
// tells its value.
func hiddenOperand(v *isa.Variant, w isa.Word) bool {
	var told, left isa.Word
	for i := range v.Template {
		p := &v.Template[i]
		for _, t := range p.Tests {
			told = told.Or(t.Field.Mask())
		}
		chosen := chosenAlt(p, w)
		for k, a := range p.Alts {
			for _, e := range a {
				switch {
				case e.Lit != "":
				case k == chosen:
					told = told.Or(e.Slot.Field.Mask())
				default:
					left = left.Or(e.Slot.Field.Mask())
				}
			}
		}
	}
	return !left.AndNot(told).IsZero()
}

// chosenAlt returns the alternative of p that prints in w, or -1.
func chosenAlt(p *isa.Piece, w isa.Word) int {
	if len(p.Tests) == 0 {
		return 0
	}
	index, shift := uint64(0), 0
	for _, t := range p.Tests {
		index |= t.Outcome(w) << shift
		if shift++; t.Kind == isa.TestValue {
			shift += t.Field.Width() - 1
		}
	}
	if index >= uint64(len(p.Table)) || int(p.Table[index]) >= len(p.Alts) {
		return -1
	}
	return int(p.Table[index])
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
