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
	if v != nil && hidesOperand(t.Arch(), v) {
		return w, &hiddenError{w}
	}
	return w, nil
}

// descriptors are the places of the uniform register with the memory descriptor, which
// loads, stores and atomic operations have on sm_80 to sm_89 without printing it.
var descriptors = []isa.Word{isa.Bits(32, 37).Mask(), isa.Bits(64, 69).Mask()}

// hidesOperand reports whether the text of v leaves out an operand that real code
// varies. Other bits without text hold one pattern for each class, which encoding fills
// in.
func hidesOperand(a isa.Arch, v *isa.Variant) bool {
	if a.SM >= 90 || !isMemory(v.Mnemonic()) {
		return false
	}
	for _, m := range descriptors {
		if v.Ignored.And(m) == m && !v.Default.And(m).IsZero() {
			return true
		}
	}
	return false
}

// isMemory tells the instructions that address global memory.
func isMemory(mnemonic string) bool {
	for _, p := range []string{"LDG", "STG", "LD", "ST", "ATOM", "RED", "CCTL", "LDGSTS"} {
		if mnemonic == p || mnemonic == p+"G" {
			return true
		}
	}
	return false
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
		if ed.inst().Variant != nil && ed.name() == "NOP" {
			ed.word = ctl.Set(ed.word)
			return ed.setGuard(&change{kind: changeGuard, guard: guardChange{none: true}, pos: ch.pos})
		}
		ed.word = ctl.Set(nop)
		return nil
	}, nil
}
