package isa

import (
	"errors"
	"fmt"
	"strings"
)

// maxTests is the greatest number of bits that may index the table of one piece.
const maxTests = 16

var (
	opcodeMask  = Word{Lo: 0xfff, Hi: 1 << 27}
	guardMask   = Word{Lo: 0xf << 12}
	controlMask = Word{Hi: 1<<64 - 1<<41}
	// schedMask has the bits that a Sched speaks of: 105–109 and 122–124.
	schedMask = Word{Hi: 0x1f<<41 | 7<<58}
)

// Check reports what makes v no proper variant. The other functions of this package
// rely on variants that pass.
func (v *Variant) Check() error {
	switch {
	case strings.ContainsAny(v.Class, " \t\r\n"):
		return fmt.Errorf("class name %q has blanks", v.Class)
	case v.Mask.And(opcodeMask) != opcodeMask:
		return errors.New("the opcode, bits 0:11 and 91, is not constant")
	case !v.Mask.And(guardMask.Or(schedMask)).IsZero():
		return errors.New("guard or schedule bits are constant")
	case !v.Value.AndNot(v.Mask).IsZero():
		return errors.New("the constant value has bits outside the mask")
	case !v.Default.And(v.Mask.Or(guardMask).Or(controlMask)).IsZero():
		return errors.New("there is a default for constant, guard or control bits")
	case !v.Ignored.And(v.Mask).IsZero():
		return errors.New("a constant bit is hidden")
	case v.Guard > GuardNone:
		return fmt.Errorf("unknown guard %d", v.Guard)
	case v.Sched&^(7|SchedUniform) != 0:
		return fmt.Errorf("unknown schedule set %d", v.Sched)
	}
	if len(v.Template) > maxPieces {
		return fmt.Errorf("the text has %d pieces, more than %d", len(v.Template), maxPieces)
	}
	for i := range v.Template {
		if err := v.Template[i].check(); err != nil {
			return fmt.Errorf("piece %d: %w", i, err)
		}
	}
	return nil
}

func (p *Piece) check() error {
	if len(p.Tests) == 0 && (len(p.Alts) != 1 || len(p.Table) != 0) {
		return errors.New("a piece without tests has one alternative and no table")
	}
	n := uint(0)
	for i := range p.Tests {
		t := &p.Tests[i]
		if err := checkField(t.Field); err != nil {
			return err
		}
		if t.Kind > TestNeg {
			return fmt.Errorf("unknown kind of test %d", t.Kind)
		}
		if w := t.Field.Width(); t.Kind == TestEq && w < 64 && t.Arg>>w != 0 {
			return fmt.Errorf("the test %s is never true", t)
		}
		if n += t.width(); n > maxTests {
			return fmt.Errorf("the tests have more than %d bits", maxTests)
		}
	}
	if len(p.Tests) > 0 && len(p.Table) != 1<<n {
		return fmt.Errorf("the table has %d entries, its tests have %d bits", len(p.Table), n)
	}
	for _, x := range p.Table {
		if int(x) >= len(p.Alts) && x < PieceOther {
			return fmt.Errorf("alternative %d of %d", x, len(p.Alts))
		}
	}
	for _, a := range p.Alts {
		for _, e := range a {
			if err := e.check(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (e *Elem) check() error {
	if e.Lit != "" {
		if strings.ContainsAny(e.Lit, "\r\n\t") {
			return fmt.Errorf("literal %q has control characters", e.Lit)
		}
		return nil
	}
	s := &e.Slot
	if err := checkField(s.Field); err != nil {
		return err
	}
	n := s.Field.Width()
	switch {
	case s.Kind == KindNone || s.Kind > KindF32Q:
		return fmt.Errorf("unknown kind of operand %d", s.Kind)
	case s.Shift > 63 || n < 64 && s.Xor>>n != 0:
		return fmt.Errorf("operand at %s: shift or inversion out of range", s.Field)
	case s.Kind <= KindUPred && n > maxRegBits:
		return fmt.Errorf("operand at %s: a register of %d bits", s.Field, n)
	}
	return nil
}

// maxRegBits is the greatest width of a register field.
const maxRegBits = 12

func checkField(f Field) error {
	if len(f) == 0 || f.Width() > 64 || f.Width() == 0 {
		return fmt.Errorf("field %s has %d bits, not 1 to 64", f, f.Width())
	}
	var seen Word
	for _, r := range f {
		if int(r.Lo)+int(r.N) > 128 || r.N == 0 {
			return fmt.Errorf("field %s leaves the word", f)
		}
		m := Field{r}.Mask()
		if !m.And(seen).IsZero() {
			return fmt.Errorf("field %s names a bit twice", f)
		}
		seen = seen.Or(m)
	}
	return nil
}
