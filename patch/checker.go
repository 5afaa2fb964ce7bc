package patch

import (
	"fmt"

	"github.com/cupatch/cupatch/isa"
)

// A checker judges the change of one word, wherever it comes from: a rule or the line of
// an edited listing.
type checker struct {
	allow    Allow
	old, now *view // of the same place in the same kernel
	whole    bool  // the whole instruction is replaced, so that its class may change
}

// A refusal says why a change is refused.
type refusal struct {
	kind string
	msg  string
	mask isa.Word // bits that hold what is wrong
}

// Error is the refusal as a message.
func (r *refusal) Error() string { return "refused: " + r.msg }

// Hint returns how it is done all the same.
func (r *refusal) Hint() string { return allowHint(r.kind) }

// refuse returns a refusal, or nil where it is allowed.
func (ck *checker) refuse(kind string, mask isa.Word, format string, args ...any) *refusal {
	if ck.allow[kind] {
		return nil
	}
	return &refusal{kind, fmt.Sprintf(format, args...), mask}
}

// diff returns the bits that change.
func (ck *checker) diff() isa.Word { return ck.now.in.Word.Xor(ck.old.in.Word) }

// check returns the first thing that the new word must not be and that is not allowed, or
// nil.
func (ck *checker) check() *refusal {
	diff := ck.diff()
	if diff.IsZero() {
		return nil
	}
	if !diff.And(schedMask).IsZero() {
		if r := ck.schedule(); r != nil {
			return r
		}
	}
	if diff.AndNot(codeMask.Or(guardMask)).IsZero() {
		return ck.stillKnown()
	}
	for _, f := range []func() *refusal{ck.class, ck.values, ck.footprint, ck.target} {
		if r := f(); r != nil {
			return r
		}
	}
	return nil
}

// stillKnown refuses a control code that the instruction cannot have: a branch, for one,
// sets no scoreboard.
func (ck *checker) stillKnown() *refusal {
	if ck.old.in.Status == ck.now.in.Status {
		return nil
	}
	return ck.refuse(RefuseSchedule, codeMask, "this instruction cannot have the control code %s", isa.ControlOf(ck.now.in.Word))
}

// schedule sees that bits 105–109 and 122–124 hold a combination that exists.
func (ck *checker) schedule() *refusal {
	in := ck.now.in
	old, now := isa.ControlOf(ck.old.in.Word), isa.ControlOf(in.Word)
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
		return ck.refuse(RefuseSchedule, schedMask, "stall %d does not exist with yield -, which takes 1 to 11; with yield=Y it takes 0 to 15", now.Stall)
	case !now.Yield:
		return ck.refuse(RefuseSchedule, schedMask, "reuse flags %s: this instruction reads no register there", reuseNames(now.Reuse))
	}
	return ck.refuse(RefuseSchedule, schedMask, "batch number %d does not exist here", now.Batch)
}

// newReuse refuses reuse flags that keep no register. That nvdisasm prints an instruction
// with such a flag says nothing: it prints EXIT with all three. A flag that means a
// register shows in the text.
func (ck *checker) newReuse(flags uint8) *refusal {
	if ck.now.in.Status != isa.StatusKnown {
		return nil
	}
	idle := uint8(0)
	for slot := range 3 {
		if flags>>slot&1 != 0 && !ck.now.printsReuse(slot) {
			idle |= 1 << slot
		}
	}
	if idle == 0 {
		return nil
	}
	return ck.refuse(RefuseSchedule, isa.ReuseField.Mask(), "reuse flags %s: this instruction reads no register there", reuseNames(idle))
}

// printsReuse reports whether the reuse flag of a slot, set alone, shows in the text.
func (v *view) printsReuse(slot int) bool {
	none, err1 := isa.ReuseField.Set(v.in.Word, 0)
	flag, err2 := isa.ReuseField.Set(v.in.Word, 1<<slot)
	if err1 != nil || err2 != nil {
		return false
	}
	t := v.code.table
	return t.Text(t.Decode(none), v.pc()) != t.Text(t.Decode(flag), v.pc())
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
func (ck *checker) class() *refusal {
	if ck.whole {
		return nil
	}
	old, now := ck.old.in, ck.now.in
	switch {
	case old.Variant == nil && now.Variant == nil:
		if old.Word.Opcode() == now.Word.Opcode() {
			return nil
		}
		return ck.refuse(RefuseClass, everyBit, "the opcode changes")
	case old.Variant != nil && now.Variant != nil && old.Variant.Class == now.Variant.Class:
		return nil
	}
	return ck.refuse(RefuseClass, everyBit, "%s becomes %s", className(old), className(now))
}

func className(in isa.Inst) string {
	if in.Variant == nil {
		return "a word that is not known"
	}
	return "class " + in.Variant.Class
}

// values refuses values that mean nothing.
func (ck *checker) values() *refusal {
	msg, mask := meaningless(ck.now.code.table, ck.old.in, ck.now.in)
	if msg == "" {
		return nil
	}
	return ck.refuse(RefuseValue, mask, "%s", msg)
}

// footprint refuses another destination, another number of registers, and registers
// beyond those that the kernel has. Neither alignment nor what lives in the registers that
// a wider access takes in is known here.
func (ck *checker) footprint() *refusal {
	now := ck.now
	if f, ok := footprintOf(now); ok {
		if g, had := footprintOf(ck.old); had && f != g {
			if r := ck.refuse(RefuseFootprint, everyBit, "footprint %s becomes %s", g, f); r != nil {
				return r
			}
		}
	}
	regs := now.code.Regs
	if regs == 0 || now.in.Status != isa.StatusKnown {
		return nil
	}
	was := map[int]bool{}
	if ck.old.in.Status == isa.StatusKnown {
		for _, n := range registersOf(ck.old.split().Operands) {
			was[n] = true
		}
	}
	for _, n := range registersOf(now.split().Operands) {
		if n >= regs && !was[n] {
			return ck.refuse(RefuseFootprint, everyBit, "R%d is beyond the %d registers of the kernel", n, regs)
		}
	}
	return nil
}

// target refuses that a relative branch leads to where the kernel has no instruction.
func (ck *checker) target() *refusal {
	to, ok := ck.now.in.Target(ck.now.pc())
	if !ok {
		return nil
	}
	if was, had := ck.old.in.Target(ck.old.pc()); had && was == to {
		return nil
	}
	size := uint64(ck.now.code.n) * isa.WordSize
	switch {
	case to%isa.WordSize != 0:
		return ck.refuse(RefuseTarget, everyBit, "the target %s is no multiple of %d", signedHex(int64(to)), isa.WordSize)
	case to >= size:
		return ck.refuse(RefuseTarget, everyBit, "the target %s is outside the kernel's %#x bytes", signedHex(int64(to)), size)
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
