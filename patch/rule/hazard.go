package rule

import (
	"slices"

	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/isa/schedule"
	"github.com/cupatch/cupatch/patch/check"
	"github.com/cupatch/cupatch/patch/edit"
)

// hazards refuses changes that let an instruction use a result before it is ready. What is
// left out of them is left out with the rest of its window.
func (ps *pass) hazards() error {
	opts := &ps.planner.opts
	if opts.Allow[check.RefuseHazard] {
		return nil
	}
	for {
		edits := ps.code.changes()
		found := check.Hazards(ps.code.State, edits)
		if len(found) == 0 {
			return nil
		}
		if !opts.SkipRefused {
			return ps.hazardError(found, edits)
		}
		// What made a finding goes, then the rest is judged again: each round takes a change
		// back, so this ends.
		for i := range found {
			for _, e := range culprits(&found[i], edits) {
				ps.takeBack(int(e.PC / isa.WordSize))
			}
		}
	}
}

// changes returns the words that are to change, by address, as far as hazards depend on them.
func (c *state) changes() []edit.Edit {
	changed := c.changed()
	out := make([]edit.Edit, len(changed))
	for n, i := range changed {
		out[n] = edit.Edit{PC: uint64(i) * isa.WordSize, Old: c.Old(i), New: c.Word(i)}
	}
	return out
}

// culprits returns the edits that made a finding: those of its two instructions and of what is
// between them, in the order of addresses, or around a loop; all if it is none of those.
func culprits(f *schedule.Finding, edits []edit.Edit) []edit.Edit {
	var out []edit.Edit
	for _, e := range edits {
		i := int(e.PC / isa.WordSize)
		between := f.First <= i && i <= f.Second
		if f.Second <= f.First {
			between = i >= f.First || i <= f.Second
		}
		if between {
			out = append(out, e)
		}
	}
	if out == nil {
		return edits
	}
	return out
}

// takeBack undoes what was planned for instruction i, and what was planned together with it.
func (ps *pass) takeBack(i int) {
	if ps.code.Word(i) == ps.code.Old(i) {
		return
	}
	ps.code.Put(i, ps.code.Old(i))
	ps.refused.set(i, ps.code.N)
	for n, c := range ps.planner.rules {
		if slices.Contains(ps.code.touched[i], c.rule) {
			ps.refusedBy[n]++
		}
	}
	for _, group := range ps.together {
		if slices.Contains(group, i) {
			for _, j := range group {
				ps.takeBack(j)
			}
		}
	}
}

// hazardError returns the error of the first finding, at the rule that made it.
func (ps *pass) hazardError(found []schedule.Finding, edits []edit.Edit) error {
	f := &found[0]
	made := culprits(f, edits)[0]
	rules := ps.code.touched[int(made.PC/isa.WordSize)]
	r := rules[len(rules)-1]
	e := r.errAt(&r.set, 0, "refused: %s (kernel %s, %#x: %s)", check.HazardText(found), ps.code.Name, f.Second*isa.WordSize, ps.code.View(f.Second).Text())
	e.refused = check.RefuseHazard
	e.Help = refusedHint(check.RefuseHazard)
	return e
}
