package code

import (
	"bytes"

	"github.com/cupatch/cupatch/isa"
)

// A View is an instruction, decoded, with its text and operands made when asked for.
type View struct {
	State    *State
	Index    int
	Inst     isa.Inst
	buf      []byte // Text, empty until made
	parts    isa.Parts
	hasParts bool
}

func (v *View) PC() uint64 { return uint64(v.Index) * isa.WordSize }

func (v *View) Text() []byte {
	if len(v.buf) == 0 {
		v.buf = v.State.Table.AppendText(v.buf, v.Inst, v.PC())
	}
	return v.buf
}

// Mnemonic returns the mnemonic with its modifiers, LDG.E.64, or nothing for a word
// without text.
func (v *View) Mnemonic() []byte {
	if v.Inst.Status != isa.StatusKnown {
		return nil
	}
	t := v.Text()
	if len(t) > 0 && t[0] == '@' {
		_, t, _ = bytes.Cut(t, []byte(" "))
	}
	if i := bytes.IndexByte(t, ' '); i >= 0 {
		t = t[:i]
	}
	return t
}

// Guard returns the guard as conditions see it: P0, !UP1, PT for none.
func (v *View) Guard() string {
	return guardText(v.Inst.Word, v.UniformGuard())
}

func (v *View) UniformGuard() bool {
	return v.Inst.Variant != nil && v.Inst.Variant.Guard == isa.GuardUP
}

func guardText(w isa.Word, uniform bool) string {
	s := "P"
	if uniform {
		s = "UP"
	}
	if i := isa.GuardField.Get(w); i == 7 {
		s += "T"
	} else {
		s += string(rune('0' + i))
	}
	if isa.GuardNot.Get(w) != 0 {
		s = "!" + s
	} else if s == "UPT" {
		s = "PT"
	}
	return s
}

// Group returns the text of a modifier group's value, "-" for the default.
func (v *View) Group(name string) (string, bool) {
	if v.Inst.Variant == nil {
		return "", false
	}
	for _, g := range v.State.Table.Groups(v.Inst.Variant) {
		if g.Name == name {
			return g.Text(v.Inst.Word)
		}
	}
	return "", false
}

func (v *View) Split() *isa.Parts {
	if !v.hasParts {
		v.parts, v.hasParts = v.State.Table.Split(v.Inst, v.PC()), true
	}
	return &v.parts
}

// Operand returns a named operand's text. imm also means the offset of an address
// when no operand has that name.
func (v *View) Operand(name string) (Operand, bool) {
	i, ok := v.OperandIndex(name)
	if !ok {
		return "", false
	}
	return Operand(v.Split().Operands[i]), true
}

func (v *View) OperandIndex(name string) (int, bool) {
	if v.Inst.Status != isa.StatusKnown {
		return 0, false
	}
	parts := v.Split()
	for i, n := range parts.Names {
		if n == name {
			return i, true
		}
	}
	if name == "imm" {
		for i := range parts.Operands {
			if Operand(parts.Operands[i]).Address() >= 0 {
				return i, true
			}
		}
	}
	return 0, false
}
