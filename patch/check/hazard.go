package check

import (
	"slices"

	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/isa/schedule"
	"github.com/cupatch/cupatch/patch/code"
	"github.com/cupatch/cupatch/patch/edit"
)

// hazards warns, once for a kernel, of results that the edits let instructions use before they
// are ready. The names of findings are names of warnings, too: what is silenced by name stays so.
func (l *linter) hazards(edits []edit.Edit) {
	if l.silent[WarnHazard] || !l.mayHurry(edits) {
		return
	}
	found := slices.DeleteFunc(Hazards(l.code), func(f schedule.Finding) bool { return l.silent[f.Name] })
	if len(found) == 0 {
		return
	}
	f := &found[0]
	e := edits[0]
	e.PC = uint64(f.Second) * isa.WordSize
	l.warn(e, WarnHazard, "too soon after the instruction at %#x: %s; findings of cupatch check in the kernel that the edits caused: %d",
		f.First*isa.WordSize, f.Message(), len(found))
}

// mayHurry reports whether an edit takes a wait away, or changes what an instruction reads or
// writes.
func (l *linter) mayHurry(edits []edit.Edit) bool {
	for _, e := range edits {
		old, now := isa.ControlOf(e.Old), isa.ControlOf(e.New)
		if now.Stall < old.Stall && now.Stall > 0 || old.Stall == 0 && now.Stall > 0 || old.Wait&^now.Wait != 0 || old.WBar != now.WBar || old.RBar != now.RBar {
			return true
		}
		a, b := l.code.Table.Decode(e.Old), l.code.Table.Decode(e.New)
		if a.Mnemonic() != b.Mnemonic() || a.Effects() != b.Effects() || e.Old.Xor(e.New).And(code.GuardMask) != (isa.Word{}) || a.Flow() != b.Flow() {
			return true
		}
	}
	return false
}

// Hazards returns the results that instructions of the code as planned use before they are
// ready, and that were ready in the code as it was. Where there is no schedule model for the
// architecture it returns none.
func Hazards(c *code.State) []schedule.Finding {
	m, err := schedule.Load(c.Table.Arch())
	if err != nil {
		return nil
	}
	checker := schedule.NewChecker(m, c.Table)
	planned := *c.Kernel // the flow that c keeps may be of older words
	planned.Data = c.Planned()
	now := checker.Check(code.NewState(&planned, c.Table).Flow())
	if len(now) == 0 {
		return nil
	}
	before := map[schedule.Key]bool{}
	old := checker.Check(code.NewState(c.Kernel, c.Table).Flow())
	for i := range old {
		before[old[i].Key()] = true
	}
	var out []schedule.Finding
	for i := range now {
		if !before[now[i].Key()] {
			out = append(out, now[i])
		}
	}
	return out
}
