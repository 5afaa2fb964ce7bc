package check

import (
	"fmt"

	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/patch/code"
)

// A Change judges the change of one word, wherever it comes from: a rule or the line of
// an edited listing.
type Change struct {
	Allow    Allow
	Old, Now *code.View // of the same place in the same kernel
	Whole    bool       // the whole instruction is replaced, so that its class may change
}

// A Refusal says why a change is refused.
type Refusal struct {
	Kind string
	Msg  string
	Mask isa.Word // bits that hold what is wrong
}

// Error is the refusal as a message.
func (r *Refusal) Error() string { return "refused: " + r.Msg }

// Hint returns how to permit it.
func (r *Refusal) Hint() string { return AllowHint(r.Kind) }

// refuse returns a refusal, or nil where it is allowed.
func (ck *Change) refuse(kind string, mask isa.Word, format string, args ...any) *Refusal {
	if ck.Allow[kind] {
		return nil
	}
	return &Refusal{kind, fmt.Sprintf(format, args...), mask}
}

// diff returns the bits that change.
func (ck *Change) diff() isa.Word { return ck.Now.Inst.Word.Xor(ck.Old.Inst.Word) }

// Check returns the first thing that the new word must not be and that is not allowed, or
// nil.
func (ck *Change) Check() *Refusal {
	diff := ck.diff()
	if diff.IsZero() {
		return nil
	}
	if !diff.And(code.ScheduleMask).IsZero() {
		if r := ck.schedule(); r != nil {
			return r
		}
	}
	if diff.AndNot(code.ControlMask.Or(code.GuardMask)).IsZero() {
		return ck.stillKnown()
	}
	for _, f := range []func() *Refusal{ck.class, ck.values, ck.footprint, ck.align, ck.target} {
		if r := f(); r != nil {
			return r
		}
	}
	return nil
}

// stillKnown refuses a control code that the instruction cannot have: a branch, for one,
// sets no scoreboard.
func (ck *Change) stillKnown() *Refusal {
	if ck.Old.Inst.Status == ck.Now.Inst.Status {
		return nil
	}
	return ck.refuse(RefuseSchedule, code.ControlMask, "this instruction cannot have the control code %s", isa.ControlOf(ck.Now.Inst.Word))
}

// schedule sees that bits 105–109 and 122–124 hold a combination that exists.
func (ck *Change) schedule() *Refusal {
	in := ck.Now.Inst
	old, now := isa.ControlOf(ck.Old.Inst.Word), isa.ControlOf(in.Word)
	if old.Yield != now.Yield && isa.ReuseField.Get(in.Word) != 0 {
		r := ck.refuse(RefuseSchedule, isa.YieldField.Mask(),
			"bits 122–124 are reuse flags while yield is - and the batch number while it is Y; they are not 0")
		if r != nil {
			return r
		}
	}
	bad := in.BadSched
	if in.Variant == nil {
		bad = !isa.Sched(7).Legal(in.Word)
	}
	switch {
	case !bad:
		return ck.newReuse(now.Reuse &^ old.Reuse)
	case !now.Yield && (now.Stall == 0 || now.Stall > 11):
		return ck.refuse(RefuseSchedule, code.ScheduleMask, "stall %d does not exist with yield -, which takes 1 to 11; with yield=Y it takes 0 to 15", now.Stall)
	case !now.Yield:
		return ck.refuse(RefuseSchedule, code.ScheduleMask, "reuse flags %s: this instruction reads no register there", reuseNames(now.Reuse))
	}
	return ck.refuse(RefuseSchedule, code.ScheduleMask, "batch number %d does not exist here", now.Batch)
}

// newReuse refuses reuse flags that keep no register. That nvdisasm prints an instruction
// with such a flag says nothing: it prints EXIT with all three. A flag that means a
// register shows in the text.
func (ck *Change) newReuse(flags uint8) *Refusal {
	if ck.Now.Inst.Status != isa.StatusKnown {
		return nil
	}
	idle := uint8(0)
	for slot := range 3 {
		if flags>>slot&1 != 0 && !printsReuse(ck.Now, slot) {
			idle |= 1 << slot
		}
	}
	if idle == 0 {
		return nil
	}
	return ck.refuse(RefuseSchedule, isa.ReuseField.Mask(), "reuse flags %s: this instruction reads no register there", reuseNames(idle))
}

// printsReuse reports whether the reuse flag of a slot, set alone, shows in the text.
func printsReuse(v *code.View, slot int) bool {
	none, err1 := isa.ReuseField.Set(v.Inst.Word, 0)
	flag, err2 := isa.ReuseField.Set(v.Inst.Word, 1<<slot)
	if err1 != nil || err2 != nil {
		return false
	}
	t := v.State.Table
	return t.Text(t.Decode(none), v.PC()) != t.Text(t.Decode(flag), v.PC())
}

func reuseNames(bits uint8) string {
	s := ""
	for i := range 3 {
		if bits>>i&1 != 0 {
			if s != "" {
				s += ", "
			}
			s += string(rune('a' + i))
		}
	}
	return s
}

// class refuses that bits turn one encoding class into another, unless the whole
// instruction was replaced.
func (ck *Change) class() *Refusal {
	if ck.Whole {
		return nil
	}
	old, now := ck.Old.Inst, ck.Now.Inst
	switch {
	case old.Variant == nil && now.Variant == nil:
		if old.Word.Opcode() == now.Word.Opcode() {
			return nil
		}
		return ck.refuse(RefuseClass, code.EveryBit, "the opcode changes")
	case old.Variant != nil && now.Variant != nil && old.Variant.Class == now.Variant.Class:
		return nil
	}
	return ck.refuse(RefuseClass, code.EveryBit, "%s becomes %s", className(old), className(now))
}

func className(in isa.Inst) string {
	if in.Variant == nil {
		return "a word that is not known"
	}
	return "class " + in.Variant.Class
}

// values refuses values that mean nothing.
func (ck *Change) values() *Refusal {
	msg, mask := meaningless(ck.Now.State.Table, ck.Old.Inst, ck.Now.Inst)
	if msg == "" {
		return nil
	}
	return ck.refuse(RefuseValue, mask, "%s", msg)
}

// footprint refuses another destination, another number of registers, and registers
// beyond those that the kernel has. What lives in the registers that a wider access takes
// in is not known here.
func (ck *Change) footprint() *Refusal {
	now := ck.Now
	if f, ok := footprintOf(now); ok {
		if g, had := footprintOf(ck.Old); had && f != g {
			if r := ck.refuse(RefuseFootprint, code.EveryBit, "footprint %s becomes %s", g, f); r != nil {
				return r
			}
		}
	}
	regs := now.State.Regs
	if regs == 0 || now.Inst.Status != isa.StatusKnown {
		return nil
	}
	was, is := effectsOf(ck.Old), effectsOf(now)
	for n := regs; n < 255; n++ {
		if uses(&is, n) && !uses(&was, n) {
			return ck.refuse(RefuseFootprint, code.EveryBit, "R%d is beyond the %d registers of the kernel", n, regs)
		}
	}
	return nil
}

// uses reports whether register n of the file R is read or written.
func uses(e *isa.Effects, n int) bool { return e.Reads.Has(isa.FileR, n) || e.Writes.Has(isa.FileR, n) }

// align refuses an operand that is not aligned as in code of ptxas.
func (ck *Change) align() *Refusal {
	if m := ck.Now.Inst.NewlyMisaligned(ck.Old.Inst); m != nil {
		return ck.refuse(RefuseAlign, m.Field.Mask(), "%s", m)
	}
	return nil
}

// target refuses that a relative branch leads to where the kernel has no instruction.
func (ck *Change) target() *Refusal {
	to, ok := ck.Now.Inst.Target(ck.Now.PC())
	if !ok {
		return nil
	}
	if was, had := ck.Old.Inst.Target(ck.Old.PC()); had && was == to {
		return nil
	}
	size := uint64(ck.Now.State.N) * isa.WordSize
	switch {
	case to%isa.WordSize != 0:
		return ck.refuse(RefuseTarget, code.EveryBit, "the target %s is no multiple of %d", signedHex(int64(to)), isa.WordSize)
	case to >= size:
		return ck.refuse(RefuseTarget, code.EveryBit, "the target %s is outside the kernel's %#x bytes", signedHex(int64(to)), size)
	}
	return nil
}

// signedHex writes an address as nvdisasm does, -0x10 if it is below 0.
func signedHex(v int64) string {
	if v < 0 {
		return fmt.Sprintf("-%#x", uint64(-v))
	}
	return fmt.Sprintf("%#x", v)
}
