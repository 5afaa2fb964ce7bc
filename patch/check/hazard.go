package check

import (
	"fmt"
	"slices"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/isa/schedule"
	"github.com/cupatch/cupatch/patch/code"
	"github.com/cupatch/cupatch/patch/edit"
)

// hazards warns, once for a kernel, of results that the edits let instructions use before they
// are ready. The names of findings are names of warnings, too: what is silenced by name stays so.
func (l *linter) hazards(edits []edit.Edit) {
	if l.silent[WarnHazard] {
		return
	}
	found := slices.DeleteFunc(Hazards(l.code, edits), func(f schedule.Finding) bool { return l.silent[f.Name] })
	if len(found) == 0 {
		return
	}
	e := edits[0]
	e.PC = uint64(found[0].Second) * isa.WordSize
	l.warn(e, WarnHazard, "%s", HazardText(found))
}

// HazardText says what the first of the findings is, and how many there are.
func HazardText(found []schedule.Finding) string {
	f := &found[0]
	return fmt.Sprintf("too soon after the instruction at %#x: %s; findings of cupatch check in the kernel that the edits caused: %d",
		f.First*isa.WordSize, f.Message(), len(found))
}

// RefuseHazards returns a refusal of edits of a cubin that let instructions use results before
// they are ready, unless that is allowed, and nil where none does.
func RefuseHazards(t *code.Target, edits []edit.Edit, allow Allow) *Refusal {
	if allow[RefuseHazard] {
		return nil
	}
	var out *Refusal
	eachEdited(t, edits, func(c *code.State, list []edit.Edit) bool {
		if found := Hazards(c, list); len(found) > 0 {
			out = &Refusal{Kind: RefuseHazard, Msg: fmt.Sprintf("kernel %s at %#x: %s", elfx.Printable(c.Name), found[0].Second*isa.WordSize, HazardText(found))}
		}
		return out == nil
	})
	return out
}

// mayHurry reports whether an edit takes a wait away, or changes what an instruction reads or
// writes.
func mayHurry(t *isa.Table, edits []edit.Edit) bool {
	for _, e := range edits {
		old, now := isa.ControlOf(e.Old), isa.ControlOf(e.New)
		if now.Stall < old.Stall && now.Stall > 0 || old.Stall == 0 && now.Stall > 0 || old.Wait&^now.Wait != 0 || old.WBar != now.WBar || old.RBar != now.RBar {
			return true
		}
		a, b := t.Decode(e.Old), t.Decode(e.New)
		if a.Mnemonic() != b.Mnemonic() || a.Effects() != b.Effects() || e.Old.Xor(e.New).And(code.GuardMask) != (isa.Word{}) || a.Flow() != b.Flow() {
			return true
		}
	}
	return false
}

// Hazards returns the results that instructions of the code as planned use before they are
// ready, and that were ready in the code as it was, before the edits. Where there is no
// schedule model for the architecture it returns none.
func Hazards(c *code.State, edits []edit.Edit) []schedule.Finding {
	if !mayHurry(c.Table, edits) {
		return nil
	}
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
