package patch

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cupatch/cupatch/isa"
)

// The kinds of change that a plan refuses unless they are allowed by name.
const (
	RefuseValue     = "value"     // a value that nvdisasm prints as INVALIDn or ???n, or refuses
	RefuseSchedule  = "schedule"  // a stall count, yield and reuse combination that does not exist
	RefuseFootprint = "footprint" // another destination, another width, or registers that the kernel has not
	RefuseHidden    = "hidden"    // text that hides an operand
	RefuseClass     = "class"     // bits that turn the instruction into one of another encoding class
)

var refuseKinds = []string{RefuseValue, RefuseSchedule, RefuseFootprint, RefuseHidden, RefuseClass}

// An Allow holds the names of what a plan does in spite of knowing better.
type Allow map[string]bool

// ParseAllow reads names separated by commas: value, schedule, footprint, hidden,
// class.
func ParseAllow(s string) (Allow, error) {
	a := Allow{}
	for _, name := range strings.Split(s, ",") {
		name = strings.TrimSpace(name)
		if name == "" {
			continue
		}
		if !slices.Contains(refuseKinds, name) {
			return nil, fmt.Errorf("nothing is refused under the name %q; there are %s", name, strings.Join(refuseKinds, ", "))
		}
		a[name] = true
	}
	return a, nil
}

// refuse returns an error for a change that is refused, or nil where it is allowed.
func (ed *editing) refuse(kind string, pos int, format string, args ...any) error {
	if ed.ctx.allow[kind] {
		return nil
	}
	e := ed.errorf(pos, "refused: "+format, args...)
	e.refused = kind
	e.Help = fmt.Sprintf("--allow %s does it all the same; --skip-refused leaves such instructions alone", kind)
	return e
}

// posOf returns the position of the last change that touched bits of mask.
func (ed *editing) posOf(mask isa.Word) int {
	for i := len(ed.steps) - 1; i >= 0; i-- {
		if !ed.steps[i].diff.And(mask).IsZero() {
			return ed.steps[i].pos
		}
	}
	if len(ed.steps) > 0 {
		return ed.steps[len(ed.steps)-1].pos
	}
	return 0
}

var (
	everyBit  = isa.Word{}.Not()
	schedMask = isa.StallField.Mask().Or(isa.YieldField.Mask()).Or(isa.ReuseField.Mask())
	codeMask  = schedMask.Or(isa.WBarField.Mask()).Or(isa.RBarField.Mask()).Or(isa.WaitField.Mask())
	guardMask = isa.GuardField.Mask().Or(isa.GuardNot.Mask())
)

// check refuses what the new word must not be.
func (ed *editing) check() error {
	if ed.word == ed.old.in.Word {
		return nil
	}
	diff := ed.word.Xor(ed.old.in.Word)
	if !diff.And(schedMask).IsZero() {
		if err := ed.checkSchedule(); err != nil {
			return err
		}
	}
	if diff.AndNot(codeMask.Or(guardMask)).IsZero() {
		return ed.checkStillKnown()
	}
	for _, f := range []func(diff isa.Word) error{ed.checkClass, ed.checkValues, ed.checkFootprint} {
		if err := f(diff); err != nil {
			return err
		}
	}
	return nil
}

// checkStillKnown refuses a control code that the instruction cannot have: a branch,
// for one, sets no scoreboard.
func (ed *editing) checkStillKnown() error {
	if ed.old.in.Status == ed.inst().Status {
		return nil
	}
	return ed.refuse(RefuseSchedule, ed.posOf(codeMask), "this instruction cannot have the control code %s", isa.ControlOf(ed.word))
}

// checkSchedule sees that bits 105–109 and 122–124 hold a combination that exists.
func (ed *editing) checkSchedule() error {
	old, now := isa.ControlOf(ed.old.in.Word), isa.ControlOf(ed.word)
	pos := ed.posOf(schedMask)
	if old.Yield != now.Yield && isa.ReuseField.Get(ed.word) != 0 {
		what := "bits 122–124 are reuse flags while yield is - and the batch number while it is Y; they are not 0"
		if err := ed.refuse(RefuseSchedule, ed.posOf(isa.YieldField.Mask()), "%s", what); err != nil {
			return err
		}
	}
	in := ed.inst()
	bad := in.BadSched
	if in.Variant == nil {
		bad = !isa.Sched(7).Legal(ed.word)
	}
	if !bad {
		return nil
	}
	switch {
	case !now.Yield && (now.Stall == 0 || now.Stall > 11):
		return ed.refuse(RefuseSchedule, pos, "stall %d does not exist with yield -, which takes 1 to 11; with yield=Y it takes 0 to 15", now.Stall)
	case !now.Yield:
		return ed.refuse(RefuseSchedule, pos, "reuse flags %s: this instruction reads no register there", reuseNames(now.Reuse))
	}
	return ed.refuse(RefuseSchedule, pos, "batch number %d does not exist here", now.Batch)
}

func reuseNames(bits uint8) string {
	var out []string
	for i := range 3 {
		if bits>>i&1 != 0 {
			out = append(out, string(rune('a'+i)))
		}
	}
	return strings.Join(out, ", ")
}

// checkClass refuses that bits turn one encoding class into another, unless the whole
// instruction was replaced.
func (ed *editing) checkClass(diff isa.Word) error {
	if ed.whole {
		return nil
	}
	old, now := ed.old.in, ed.inst()
	switch {
	case old.Variant == nil && now.Variant == nil:
		if diff.And(isa.Word{Lo: 0xfff, Hi: 1 << 27}).IsZero() {
			return nil
		}
		return ed.refuse(RefuseClass, ed.posOf(everyBit), "the opcode changes")
	case old.Variant == nil || now.Variant == nil:
		return ed.refuse(RefuseClass, ed.posOf(everyBit), "%s becomes %s", className(old), className(now))
	case old.Variant.Class == now.Variant.Class:
		return nil
	}
	return ed.refuse(RefuseClass, ed.posOf(everyBit), "%s becomes %s", className(old), className(now))
}

func className(in isa.Inst) string {
	if in.Variant == nil {
		return "a word that is not known"
	}
	return "class " + in.Variant.Class
}

// checkValues refuses values that mean nothing.
func (ed *editing) checkValues(isa.Word) error {
	msg, mask := meaningless(ed.ctx.code.table, ed.old.in, ed.inst())
	if msg == "" {
		return nil
	}
	return ed.refuse(RefuseValue, ed.posOf(mask), "%s", msg)
}

// meaningless says what in now means nothing and did not stand in old, and which bits
// hold it; "" if there is nothing.
func meaningless(t *isa.Table, old, now isa.Inst) (msg string, mask isa.Word) {
	if now.Status != old.Status && (now.Status == isa.StatusIllegal || now.Status == isa.StatusSilent) {
		return fmt.Sprintf("nvdisasm does not print the result, %s", now.Word), everyBit
	}
	if now.Variant == nil {
		return "", mask
	}
	for _, g := range t.Groups(now.Variant) {
		raw := g.Field.Get(now.Word)
		if raw >= uint64(len(g.Values)) || g.Values[raw].Legal || old.Variant == now.Variant && g.Field.Get(old.Word) == raw {
			continue
		}
		return fmt.Sprintf("%s=%s means nothing; %s: %s", g.Name, g.Values[raw].Text, g.Name, legalTexts(g)), g.Field.Mask()
	}
	return "", mask
}

// A footprint is the registers that an instruction writes, or, for a store, those
// that it takes its data from.
type footprint struct {
	reg   int // number of the first
	file  string
	count int
	text  string // the operand, where it is no register of R or UR
}

func (f footprint) String() string {
	switch {
	case f.file == "":
		return f.text
	case f.reg < 0:
		return f.file + "Z"
	case f.count == 1:
		return f.file + strconv.Itoa(f.reg)
	}
	return fmt.Sprintf("%s%d-%s%d", f.file, f.reg, f.file, f.reg+f.count-1)
}

// footprintOf returns the footprint of an instruction: its destination, or the data
// operand of a memory instruction without one.
func footprintOf(v *view) (footprint, bool) {
	if v.in.Status != isa.StatusKnown {
		return footprint{}, false
	}
	count := (v.code.table.Width(v.in) + 31) / 32
	ops := v.split().Operands
	at := slices.Index(v.split().Names, "dst")
	if at < 0 && count > 0 {
		for i := len(ops) - 1; i >= 0 && at < 0; i-- {
			if _, ok := registerNumber(operandText(ops[i]).value()); ok && operandText(ops[i]).address() < 0 {
				at = i
			}
		}
	}
	if at < 0 {
		return footprint{}, false
	}
	text := operandText(ops[at]).value()
	f := footprint{count: max(count, 1), text: text}
	if n, ok := registerNumber(text); ok {
		f.reg, f.file = n, strings.TrimRight(text, "0123456789Z")
	}
	return f, true
}

// registerNumber returns the number of a register of the files R and UR, -1 for RZ and
// URZ.
func registerNumber(s string) (int, bool) {
	if !isRegister(s) {
		return 0, false
	}
	n, err := strconv.Atoi(strings.TrimLeft(s, "UR"))
	if err != nil {
		return -1, true
	}
	return n, true
}

// checkFootprint refuses another destination, another number of registers, and
// registers beyond those that the kernel has. Neither alignment nor what lives in the
// registers that a wider access takes in is known here.
func (ed *editing) checkFootprint(diff isa.Word) error {
	now := ed.view()
	if f, ok := footprintOf(now); ok {
		if g, had := footprintOf(&ed.old); had && f != g {
			if err := ed.refuse(RefuseFootprint, ed.posOf(everyBit), "footprint %s becomes %s", g, f); err != nil {
				return err
			}
		}
	}
	regs := ed.ctx.code.Regs
	if regs == 0 || now.in.Status != isa.StatusKnown {
		return nil
	}
	was := map[int]bool{}
	if ed.old.in.Status == isa.StatusKnown {
		for _, n := range registersOf(ed.old.split().Operands) {
			was[n] = true
		}
	}
	for _, n := range registersOf(now.split().Operands) {
		if n >= regs && !was[n] {
			return ed.refuse(RefuseFootprint, ed.posOf(everyBit), "R%d is beyond the %d registers of the kernel", n, regs)
		}
	}
	return nil
}

// registersOf returns the numbers of all registers of the file R that operands name.
func registersOf(ops []string) []int {
	var out []int
	for _, op := range ops {
		for i := 0; i < len(op); i++ {
			if op[i] != 'R' || i > 0 && isNameByte(op[i-1]) {
				continue
			}
			j := i + 1
			for j < len(op) && isDigit(op[j]) {
				j++
			}
			if n, err := strconv.Atoi(op[i+1 : j]); err == nil {
				out = append(out, n)
			}
			i = j
		}
	}
	return out
}
