package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/patch"
	"github.com/cupatch/cupatch/patch/check"
	"github.com/cupatch/cupatch/patch/code"
	"github.com/cupatch/cupatch/patch/diff"
	"github.com/cupatch/cupatch/patch/edit"
	"github.com/cupatch/cupatch/patch/recipe"
	"github.com/cupatch/cupatch/patch/report"
	"github.com/cupatch/cupatch/patch/rule"
)

// A filePlan is what will be done to one file.
type filePlan struct {
	name    string
	data    []byte       // of standard input, else nil
	hash    *report.Hash // nil without a report
	entries []*entryPlan
	sum     rule.Summary
	todo    *change
}

// An entryPlan is what will be done to one cubin.
type entryPlan struct {
	number   int
	packed   bool // compressed in the file
	arch     string
	edits    []edit.Edit
	warnings []check.Warning
	kernels  []report.Kernel
	diff     []byte
	sum      rule.Summary
	wanted   bool  // by the recipe's arch
	skipped  error // why the cubin is left alone, nil for one that is planned
	err      error
}

// cubins returns the entries of a file that hold the cubins that the options leave;
// selected are those that the file's name chooses, nil for all.
func (n *narrowing) cubins(f *elfx.File, selected map[*elfx.Entry]bool) []*elfx.Entry {
	var out []*elfx.Entry
	for _, e := range f.Entries() {
		if (selected == nil || selected[e]) && n.archWanted(e) && e.Kind == elfx.KindELF {
			out = append(out, e)
		}
	}
	return out
}

// plan plans one file.
func (r *patchRun) plan(f *elfx.File, selected map[*elfx.Entry]bool) error {
	r.visited = append(r.visited, f.Name)
	if err := f.Damage(); err != nil {
		return err
	}
	if why := f.ReadOnly(); why != "" && !r.dryRun {
		return fmt.Errorf("%s: %s", f.Name, why)
	}
	fp := &filePlan{name: f.Name}
	if r.report != "" {
		fp.hash = report.HashOf(f.Data())
	}
	if f.Name == "-" || f.Streamed() {
		fp.data = f.Data()
	}
	todo := r.cubins(f, selected)
	if len(todo) == 0 {
		r.missed(f, selected)
		return nil
	}
	if err := r.checkGuard(f, todo); err != nil {
		return err
	}
	fp.entries = make([]*entryPlan, len(todo))
	inParallel(len(todo), r.jobs, func(i int) { fp.entries[i] = r.planEntry(f, fp, todo[i]) })
	skipped := &skipping{}
	for _, ep := range fp.entries {
		if ep.err != nil {
			return r.entryError(f, ep)
		}
		skipped.done = !skipped.add(ep.skipped) || skipped.done
		fp.sum.Add(&ep.sum)
	}
	r.warnMissing(fp)
	if err := skipped.end(r.env, f.Name, "patched"); err != nil {
		return err
	}
	if fp.sum.Seen == 0 {
		n := r.narrowing
		if !slices.ContainsFunc(fp.entries, func(ep *entryPlan) bool { return ep.wanted }) {
			n.kernels = nil // the recipe's arch is what does not fit
		}
		n.missed(f, selected)
		r.miss = n.miss
	}
	r.sum.Add(&fp.sum)
	r.files = append(r.files, fp)
	return nil
}

// warnMissing tells which rules --skip-refused leaves out for which architectures of a
// file. Rules without their instruction are left out in silence.
func (r *patchRun) warnMissing(fp *filePlan) {
	seen := map[string]bool{}
	for _, ep := range fp.entries {
		if !ep.wanted || seen[ep.arch] {
			continue
		}
		seen[ep.arch] = true
		for _, m := range r.planner.LeftOut(ep.arch) {
			if !m.NoInstruction() {
				r.warnf("%s: left out for %s: %v", fp.name, ep.arch, m)
			}
		}
	}
}

// checkGuard sees that the recipe, if it has a guard, was made for these cubins.
func (r *patchRun) checkGuard(f *elfx.File, entries []*elfx.Entry) error {
	if r.recipe == nil || r.ignoreGuard || !r.recipe.HasGuard() {
		return nil
	}
	var cubins []*elfx.Cubin
	for _, e := range entries {
		c, err := e.Cubin()
		if err != nil {
			return err
		}
		if r.recipe.Wants(c) {
			cubins = append(cubins, c)
		}
	}
	err := r.recipe.CheckGuard(cubins, guardHash)
	var guard *recipe.GuardError
	if errors.As(err, &guard) {
		return &exitError{code: 1, err: fmt.Errorf("%s: %w", f.Name, err), hint: "--ignore-guard applies the recipe anyway"}
	}
	if err != nil {
		return stop(err)
	}
	return nil
}

// guardHash hashes a kernel by a scheme of cupatch hash for a recipe's guard.
func guardHash(c *elfx.Cubin, k *elfx.Kernel, scheme string) (string, error) {
	table, err := diff.TableFor(c)
	if err != nil {
		return "", err
	}
	h, err := diff.NewCode(c, k, table).HashBy(scheme)
	if err != nil {
		return "", err
	}
	return h.String(), nil
}

// entryError is the error of one cubin. Where the file has several architectures, a
// rule that fits only some of them is the likely reason.
func (r *patchRun) entryError(f *elfx.File, ep *entryPlan) error {
	err := stop(planError(ep.err))
	var re *rule.Error
	if x, ok := err.(*exitError); ok && x.hint == "" && errors.As(ep.err, &re) && len(f.Targets()) > 1 {
		x.hint = `-a ARCH takes one architecture of the file; if arch == "…", or arch in a recipe, restricts a rule to some; --skip-refused leaves it out where it does not fit`
	}
	return err
}

// newPlanner returns what makes the rules ready for each architecture.
func (r *patchRun) newPlanner() *patch.Planner {
	return patch.NewPlanner(r.rules, rule.Options{Kernel: r.kernelFilter(), Allow: r.allow, SkipRefused: r.skipRefused, Silent: r.silent})
}

// kernelFilter returns what chooses kernels, nil for all.
func (r *patchRun) kernelFilter() func(*elfx.Kernel) bool {
	if len(r.kernels) == 0 {
		return nil
	}
	return func(k *elfx.Kernel) bool { return r.kernelWanted(k) }
}

// planEntry plans one cubin.
func (r *patchRun) planEntry(f *elfx.File, fp *filePlan, e *elfx.Entry) *entryPlan {
	ep := &entryPlan{number: e.Number, packed: !e.Stored()}
	t, err := code.Open(e)
	if err != nil {
		ep.err = err
		return ep
	}
	ep.arch = t.Cubin.Arch
	if r.recipe != nil && !r.recipe.Wants(t.Cubin) {
		return ep
	}
	ep.wanted = true
	if code.Unsupported(t.NoTable) {
		ep.skipped = t.NoTable
		return ep
	}
	if err := r.timing.Supports(t); err != nil {
		ep.skipped = err
		return ep
	}
	cubin := r.planner.Cubin
	if r.timing != nil {
		cubin = r.timing.Cubin
	}
	plan, err := cubin(t)
	if err != nil {
		ep.err = fmt.Errorf("%s: %w", e.Where(), err)
		return ep
	}
	ep.edits, ep.sum, ep.warnings = plan.Edits, plan.Summary, plan.Warnings
	if len(ep.edits) > 0 {
		r.describe(ep, t)
	}
	return ep
}

// describe makes the diff and the report's kernels while the cubin is at hand.
func (r *patchRun) describe(ep *entryPlan, t *code.Target) {
	after := append([]byte(nil), t.Cubin.Data()...)
	if ep.err = edit.Apply(after, ep.edits); ep.err != nil {
		return
	}
	ep.kernels = report.Kernels(t, ep.edits, after)
	if showsDiff(r.env, &r.target, r.report) {
		ep.diff = diffOf(t, ep.edits, int(r.context))
	}
}
