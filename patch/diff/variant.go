package diff

import (
	"slices"
	"strings"
	"sync"

	"github.com/cupatch/cupatch/isa"
)

// A variantInfo is what comparing wants to know of an instruction variant.
type variantInfo struct {
	v        *isa.Variant
	mnemonic string
	hasRel   bool // some alternative prints a target
	uncond   bool // control does not pass it when its guard is PT
}

// A regSlot is a register that an instruction prints.
type regSlot struct {
	slot *isa.Slot
	file regFile
	pair bool // printed as R4.64: the next register belongs to it
}

// A regFile is a register file.
type regFile uint8

// The register files.
const (
	fileR regFile = iota
	fileUR
	fileP
	fileUP
	fileB
	numFiles
)

var fileNames = [numFiles]string{"R", "UR", "P", "UP", "B"}

var variantInfos sync.Map // *isa.Variant → *variantInfo

// infoOf returns what is known of a variant.
func infoOf(v *isa.Variant) *variantInfo {
	if x, ok := variantInfos.Load(v); ok {
		return x.(*variantInfo)
	}
	x := &variantInfo{v: v, mnemonic: v.Mnemonic()}
	x.uncond = slices.Contains(neverPasses, x.mnemonic)
	for i := range v.Template {
		for _, a := range v.Template[i].Alts {
			for _, e := range a {
				x.hasRel = x.hasRel || e.Lit == "" && e.Slot.Kind == isa.KindRel
			}
		}
	}
	y, _ := variantInfos.LoadOrStore(v, x)
	return y.(*variantInfo)
}

// neverPasses are the instructions that control does not pass, unless something makes
// them conditional.
var neverPasses = []string{"BRA", "BRX", "BRXU", "EXIT", "JMP", "JMX", "JMXU", "KILL", "RET", "RTT"}

// alt returns the alternative of piece p that w prints, nil if none.
func alt(p *isa.Piece, w isa.Word) isa.Alt {
	if len(p.Tests) == 0 {
		if len(p.Alts) == 0 {
			return nil
		}
		return p.Alts[0]
	}
	index, shift := uint64(0), uint(0)
	for _, t := range p.Tests {
		index |= t.Outcome(w) << shift
		if t.Kind == isa.TestValue {
			shift += uint(t.Field.Width())
		} else {
			shift++
		}
	}
	if index >= uint64(len(p.Table)) || int(p.Table[index]) >= len(p.Alts) {
		return nil
	}
	return p.Alts[p.Table[index]]
}

// slots calls fn with every slot that w prints, and the literals before and behind it,
// which may be empty.
func (x *variantInfo) slots(w isa.Word, fn func(s *isa.Slot, before, behind string)) {
	before := ""
	var pending *isa.Slot
	pendingBefore := ""
	flush := func(behind string) {
		if pending != nil {
			fn(pending, pendingBefore, behind)
			pending = nil
		}
	}
	for i := range x.v.Template {
		a := alt(&x.v.Template[i], w)
		for j := range a {
			e := &a[j]
			if e.Lit != "" {
				flush(e.Lit)
				before = e.Lit
				continue
			}
			flush("")
			pending, pendingBefore = &e.Slot, before
			before = ""
		}
	}
	flush("")
}

// relative returns the field and the target of the pc-relative operand that w prints at
// the address pc.
func (x *variantInfo) relative(w isa.Word, pc uint64) (f isa.Field, to uint64, ok bool) {
	if !x.hasRel {
		return nil, 0, false
	}
	x.slots(w, func(s *isa.Slot, _, _ string) {
		if s.Kind != isa.KindRel || ok {
			return
		}
		n := uint(s.Field.Width())
		v := s.Field.Get(w) ^ s.Xor
		v = uint64(int64(v<<(64-n))>>(64-n))<<s.Shift + uint64(s.Add)
		f, to, ok = s.Field, pc+isa.WordSize+v, true
	})
	return f, to, ok
}

// immediate returns the 32-bit immediate field of a MOV.
func (x *variantInfo) immediate(w isa.Word) (f isa.Field, ok bool) {
	x.slots(w, func(s *isa.Slot, _, _ string) {
		if (s.Kind == isa.KindHex || s.Kind == isa.KindSHex) && s.Field.Width() == 32 && s.Xor == 0 && s.Shift == 0 && s.Add == 0 {
			f, ok = s.Field, true
		}
	})
	return f, ok
}

// ends reports whether control never passes w.
func (x *variantInfo) ends(w isa.Word) bool {
	if !x.uncond || isa.GuardField.Get(w) != 7 || isa.GuardNot.Get(w) != 0 {
		return false
	}
	always := true
	x.slots(w, func(s *isa.Slot, _, _ string) {
		if s.Kind == isa.KindPred || s.Kind == isa.KindUPred {
			always = false
		}
	})
	return always
}

// registers calls fn with every register that w prints, its guard first.
func (x *variantInfo) registers(w isa.Word, fn func(regSlot)) {
	switch x.v.Guard {
	case isa.GuardP:
		fn(regSlot{slot: &guardSlot, file: fileP})
	case isa.GuardUP:
		fn(regSlot{slot: &guardSlot, file: fileUP})
	}
	x.slots(w, func(s *isa.Slot, before, behind string) {
		r := regSlot{slot: s, pair: strings.HasPrefix(behind, ".64")}
		switch s.Kind {
		case isa.KindReg:
			r.file = fileR
		case isa.KindUReg:
			r.file = fileUR
		case isa.KindPred:
			r.file = fileP
		case isa.KindUPred:
			r.file = fileUP
		case isa.KindDec:
			if !strings.HasSuffix(before, " B") && !strings.HasSuffix(before, ",B") {
				return
			}
			r.file = fileB
		default:
			return
		}
		fn(r)
	})
}

// guardSlot is the guard's register, whose number 7 is PT.
var guardSlot = isa.Slot{Field: isa.GuardField, Kind: isa.KindPred}

// number returns the register's number in w, and whether it is the special register
// (RZ, PT) that is no storage.
func (r regSlot) number(w isa.Word) (n uint64, special bool) {
	s := r.slot
	x := s.Field.Get(w) ^ s.Xor
	if r.file != fileB && x == 1<<s.Field.Width()-1 {
		return 0, true
	}
	return x<<s.Shift + uint64(s.Add), false
}
