package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/patch/code"
	"github.com/cupatch/cupatch/patch/edit"
)

// The names of warnings. A name silences its kind.
const (
	WarnMercury    = "mercury"    // the cubin has another form of the code that stays as it was
	WarnRelocation = "relocation" // a relocated word was edited
	WarnInfo       = "info"       // attributes of the kernel list the instruction, which became another
	WarnWait       = "wait"       // a wait removed for a scoreboard still pending
	WarnScoreboard = "scoreboard" // a scoreboard no longer set that someone waits for
	WarnStall      = "stall"      // a stall lower than its class has anywhere in the kernel
	WarnReuse      = "reuse"      // a reuse flag whose register is written before it is used
	WarnHazard     = "hazard"     // results that are used before they are ready
)

var warnNames = []string{WarnMercury, WarnRelocation, WarnInfo, WarnWait, WarnScoreboard, WarnStall, WarnReuse, WarnHazard}

// ParseSilent reads names of warnings separated by commas; "all" is every name.
func ParseSilent(s string) (map[string]bool, error) {
	out := map[string]bool{}
	for _, name := range strings.Split(s, ",") {
		name = strings.TrimSpace(name)
		switch {
		case name == "":
		case name == "all":
			for _, n := range warnNames {
				out[n] = true
			}
		case !slices.Contains(warnNames, name):
			return nil, fmt.Errorf("no warning has the name %q; there are %s", name, strings.Join(warnNames, ", "))
		default:
			out[name] = true
		}
	}
	return out, nil
}

// A Warning is something that a plan does and that deserves a look.
type Warning struct {
	Name   string // silences it
	Entry  string
	Kernel string // "" for the whole cubin
	PC     uint64
	Msg    string
}

func (w Warning) String() string {
	s := w.Msg
	if w.Kernel != "" {
		s = fmt.Sprintf("kernel %s at %#x: %s", w.Kernel, w.PC, w.Msg)
	}
	if w.Entry != "" {
		s = w.Entry + ": " + s
	}
	return s + " [" + w.Name + "]"
}

// Lint returns the warnings for edits of a cubin, wherever they come from; looking at the
// kernels at the offsets of edits. A plan has its warnings already.
func Lint(t *code.Target, edits []edit.Edit, allow Allow, silent map[string]bool) []Warning {
	var out []Warning
	eachEdited(t, edits, func(cs *code.State, list []edit.Edit) bool {
		out = append(out, LintKernel(cs, list, allow, silent)...)
		return true
	})
	if w := Mercury(t); len(edits) > 0 && w != nil && !silent[WarnMercury] {
		out = append(out, *w)
	}
	return out
}

// eachEdited calls fn with each kernel that edits change, as it is planned, and its edits, until
// fn returns false.
func eachEdited(t *code.Target, edits []edit.Edit, fn func(*code.State, []edit.Edit) bool) {
	by := map[uint64][]edit.Edit{} // by the kernel's offset
	for _, e := range edits {
		by[e.Offset-e.PC] = append(by[e.Offset-e.PC], e)
	}
	for i := range t.Cubin.Kernels() {
		k := &t.Cubin.Kernels()[i]
		list := by[uint64(k.Offset)]
		if len(list) == 0 || t.Table == nil {
			continue
		}
		cs := code.NewState(t.Kernel(k), t.Table)
		for _, e := range list {
			cs.Put(int(e.PC/isa.WordSize), e.New)
		}
		if !fn(cs, list) {
			return
		}
	}
}

// Mercury returns the warning for a cubin that carries its code in another form too, or
// nil.
func Mercury(t *code.Target) *Warning {
	if !t.Cubin.HasMercury() {
		return nil
	}
	return &Warning{Name: WarnMercury, Entry: t.Entry,
		Msg: "the cubin also carries its kernels as Mercury code, which this patch does not reach; a driver may use it for another GPU of the family"}
}

// lintReach is how far the schedule lint looks around an edit, in instructions.
const lintReach = 4096

// A linter looks at the edits of one kernel.
type linter struct {
	code     *code.State
	silent   map[string]bool
	out      []Warning
	minStall map[string]uint64 // by class, in the words as they were
}

// LintKernel looks at what a plan touches. It reads the code in order of addresses, as if
// no branch were taken: it may miss a hazard, and it never forbids anything.
func LintKernel(c *code.State, edits []edit.Edit, allow Allow, silent map[string]bool) []Warning {
	l := &linter{code: c, silent: silent}
	for _, e := range edits {
		l.place(e)
		l.schedule(e)
	}
	if allow[RefuseHazard] { // else they were refused before
		l.hazards(edits)
	}
	return l.out
}

func (l *linter) warn(e edit.Edit, name, format string, args ...any) {
	if !l.silent[name] {
		l.out = append(l.out, Warning{Name: name, Entry: e.Entry, Kernel: e.Kernel, PC: e.PC, Msg: fmt.Sprintf(format, args...)})
	}
}

// place warns of edits where something else refers to the instruction.
func (l *linter) place(e edit.Edit) {
	if sym, ok := l.code.Relocations()[e.PC]; ok {
		l.warn(e, WarnRelocation, "the word is relocated (symbol %s): a loader writes into it", sym)
	}
	diff := e.Old.Xor(e.New).AndNot(code.ControlMask)
	if names := l.code.Attributes()[e.PC]; len(names) > 0 && !diff.IsZero() {
		l.warn(e, WarnInfo, "the kernel's attributes list this instruction: %s", strings.Join(names, ", "))
	}
}

// schedule warns of edits that may break the order in which results are ready.
func (l *linter) schedule(e edit.Edit) {
	i := int(e.PC / isa.WordSize)
	old, now := isa.ControlOf(e.Old), isa.ControlOf(e.New)
	for sb := range uint8(6) {
		if old.Wait&^now.Wait>>sb&1 != 0 {
			if j := l.pending(i, sb); j >= 0 {
				l.warn(e, WarnWait, "no longer waits for scoreboard %d, which the instruction at %#x sets", sb, j*isa.WordSize)
			}
		}
	}
	l.cleared(e, i, old.WBar, now)
	l.cleared(e, i, old.RBar, now)
	if now.Stall < old.Stall {
		l.stall(e, now)
	}
	if now.Reuse&^old.Reuse != 0 {
		l.reuse(e, i, now.Reuse&^old.Reuse)
	}
	if !e.Old.Xor(e.New).AndNot(code.ControlMask.Or(code.GuardMask)).IsZero() {
		l.overwritten(e, i)
	}
}

// pending returns the instruction before i that sets scoreboard sb with nobody
// waiting for it in between, or -1.
func (l *linter) pending(i int, sb uint8) int {
	for j := i - 1; j >= 0 && j >= i-lintReach; j-- {
		c := isa.ControlOf(l.code.Word(j))
		if c.WBar == sb || c.RBar == sb {
			return j
		}
		if c.Wait>>sb&1 != 0 {
			return -1
		}
	}
	return -1
}

// cleared warns when scoreboard sb, which instruction i set, is waited for although
// nobody sets it any more.
func (l *linter) cleared(e edit.Edit, i int, sb uint8, now isa.Control) {
	if sb > 5 || now.WBar == sb || now.RBar == sb {
		return
	}
	for j := i + 1; j < l.code.N && j <= i+lintReach; j++ {
		c := isa.ControlOf(l.code.Word(j))
		if c.Wait>>sb&1 != 0 {
			l.warn(e, WarnScoreboard, "no longer sets scoreboard %d, for which the instruction at %#x waits", sb, j*isa.WordSize)
			return
		}
		if c.WBar == sb || c.RBar == sb {
			return
		}
	}
}

// stall warns when a stall count goes below the least that the instruction's class
// had anywhere in the kernel.
func (l *linter) stall(e edit.Edit, now isa.Control) {
	if l.minStall == nil {
		l.minStall = map[string]uint64{}
		for i := range l.code.N {
			w := l.code.Old(i)
			if v := l.code.Table.Decode(w).Variant; v != nil {
				s := isa.StallField.Get(w)
				if m, ok := l.minStall[v.Class]; !ok || s < m {
					l.minStall[v.Class] = s
				}
			}
		}
	}
	v := l.code.Table.Decode(e.New).Variant
	if v == nil {
		return
	}
	if m, ok := l.minStall[v.Class]; ok && uint64(now.Stall) < m {
		l.warn(e, WarnStall, "stall %d is below %d, the least that this kind of instruction has in the kernel", now.Stall, m)
	}
}

// reuseReach is how far after a reuse flag the lint looks for its reader, in
// instructions.
const reuseReach = 8

// reuse warns when the register of a new reuse flag is written before the next
// instruction that reads it.
func (l *linter) reuse(e edit.Edit, i int, flags uint8) {
	for slot := range 3 {
		if flags>>slot&1 == 0 {
			continue
		}
		reg := l.reused(e.New, e.PC, slot)
		if reg < 0 {
			continue
		}
		for j := i; j < l.code.N && j < i+reuseReach; j++ {
			does := effectsOf(l.code.View(j))
			if does.Writes.Has(isa.FileR, reg) {
				l.warn(e, WarnReuse, "R%d is kept for reuse and written at %#x", reg, j*isa.WordSize)
				break
			}
			if j > i && does.Reads.Has(isa.FileR, reg) {
				break
			}
		}
	}
}

// overwritten warns when the edited instruction writes a register that it did not write
// before, and that an instruction above keeps for reuse with nobody reading it in between.
func (l *linter) overwritten(e edit.Edit, i int) {
	now, was := effectsOf(l.code.View(i)).Writes, effectsOf(l.code.ViewOf(i, e.Old)).Writes
	if now.R == [4]uint64{} {
		return
	}
	for j := i - 1; j >= 0 && j > i-reuseReach; j-- {
		w := l.code.Word(j)
		flags := isa.ControlOf(w).Reuse
		for slot := range 3 {
			if flags>>slot&1 == 0 {
				continue
			}
			reg := l.reused(w, uint64(j)*isa.WordSize, slot)
			if reg >= 0 && now.Has(isa.FileR, reg) && !was.Has(isa.FileR, reg) && !l.readBetween(reg, j, i) {
				l.warn(e, WarnReuse, "R%d is written here and kept for reuse by the instruction at %#x", reg, j*isa.WordSize)
				return
			}
		}
	}
}

// readBetween reports whether an instruction between from and to reads a register.
func (l *linter) readBetween(reg, from, to int) bool {
	for j := from + 1; j <= to; j++ {
		if does := effectsOf(l.code.View(j)); does.Reads.Has(isa.FileR, reg) {
			return true
		}
	}
	return false
}

// reused returns the register that reuse flag slot of w keeps, or -1: the operand
// that prints .reuse when no other flag is set.
func (l *linter) reused(w isa.Word, pc uint64, slot int) int {
	w, err := isa.ReuseField.Set(w, 1<<slot)
	if err != nil {
		return -1
	}
	for _, op := range l.code.Table.Split(l.code.Table.Decode(w), pc).Operands {
		if strings.Contains(op, ".reuse") {
			if n, ok := registerNumber(code.Operand(op).Value()); ok {
				return n
			}
		}
	}
	return -1
}
