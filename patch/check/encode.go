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
		return w, &HiddenError{w}
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

// EncodeLine returns the word that a line of an edited listing means in place of old. What
// concerns the kernel, its registers and its size, is not checked.
func EncodeLine(t *isa.Table, in *listing.Inst, old isa.Word, allow Allow) (isa.Word, error) {
	return EncodeLineIn(code.NewState(&code.Kernel{}, t), in, old, Allow{RefuseFootprint: true, RefuseTarget: true}.with(allow))
}

// EncodeLineIn is encodeListed for a line of the kernel c, with all that a rule's change is refused
// for.
func EncodeLineIn(c *code.State, in *listing.Inst, old isa.Word, allow Allow) (isa.Word, error) {
	w, whole, err := encodeText(c.Table, in, old, allow)
	if err != nil {
		return w, err
	}
	if in.Control != nil {
		w = in.Control.SetCode(w)
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

// encodeText encodes the text of a line; whole reports that it is not what stands there.
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
