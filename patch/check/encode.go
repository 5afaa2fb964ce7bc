package check

import (
	"errors"

	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/patch/code"
	"github.com/cupatch/cupatch/patch/listing"
)

// A HiddenError says that text cannot say all of an instruction.
type HiddenError struct {
	Word isa.Word // with the values that ptxas uses most
}

func (e *HiddenError) Error() string {
	return "this instruction has an operand that its text does not show, and the old one gives no value for it"
}

// EncodeOver encodes text in place of the word old: with all that the text does not
// say taken from old where the variant stays the same. The control code stays; reuse
// flags stand in the text. Where the variant changes and the text hides an operand,
// the error is a *hiddenError.
func EncodeOver(t *isa.Table, text string, pc uint64, old isa.Word) (isa.Word, error) {
	w, err := t.Encode(text, pc, nil)
	if err != nil {
		return w, err
	}
	if v := t.Decode(w).Variant; v != nil && v == t.Decode(old).Variant {
		return t.Encode(text, pc, &old)
	}
	ctl := isa.ControlOf(old)
	if ctl.Yield && isa.ControlOf(w).Reuse != 0 {
		return w, isa.ErrReuse
	}
	w = ctl.SetCode(w)
	if t.Decode(w).HidesOperand() {
		return w, &HiddenError{w}
	}
	return w, nil
}

// EncodeLine returns the word that a line of an edited listing means in place of old. What
// concerns the kernel, its registers and its size, is not checked.
func EncodeLine(t *isa.Table, in *listing.Inst, old isa.Word, allow Allow) (isa.Word, error) {
	return EncodeLineIn(code.NewState(&code.Kernel{}, t), in, old, Allow{RefuseFootprint: true, RefuseTarget: true}.with(allow))
}

// EncodeLineIn is encodeListed for a line of the kernel c, with all that a rule's change is refused
// for.
func EncodeLineIn(c *code.State, in *listing.Inst, old isa.Word, allow Allow) (isa.Word, error) {
	over := old
	if in.Control != nil {
		over = in.Control.SetCode(old)
	}
	w, whole, err := encodeText(c.Table, in, over, allow)
	if err != nil {
		return w, err
	}
	if w == old {
		return w, nil
	}
	i := int(in.PC / isa.WordSize)
	ck := &Change{Allow: allow, Old: c.ViewOf(i, old), Now: c.ViewOf(i, w), Whole: whole}
	if r := ck.Check(); r != nil {
		return w, r
	}
	return w, nil
}

// encodeText encodes the text of a line; whole reports that it is not what is there.
func encodeText(t *isa.Table, in *listing.Inst, old isa.Word, allow Allow) (w isa.Word, whole bool, err error) {
	if in.Text == t.Text(t.Decode(old), in.PC) {
		return old, false, nil
	}
	w, raw, err := listing.ParseRaw(in.Text)
	if raw || err != nil {
		return w, true, err
	}
	w, err = EncodeOver(t, in.Text, in.PC, old)
	var hidden *HiddenError
	if errors.As(err, &hidden) {
		if w, err = hidden.Word, nil; !allow[RefuseHidden] {
			err = &Refusal{Kind: RefuseHidden, Msg: hidden.Error()}
		}
	}
	return w, true, err
}
