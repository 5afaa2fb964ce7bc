package main

import (
	"fmt"
	"slices"

	"github.com/cupatch/cupatch/patch"
	"github.com/cupatch/cupatch/patch/check"
	"github.com/cupatch/cupatch/patch/report"
)

// finish shows the plan and, unless it is a dry run, writes.
func (r *patchRun) finish() error {
	defer func() {
		for _, f := range r.files {
			f.change().close()
		}
	}()
	outs, err := r.prepare()
	if err != nil {
		return err
	}
	return r.target.keeping(r.env, r.report, func() (*report.Report, error) { return r.writeAll(outs) })
}

// prepare returns the output path of each file, none for a dry run.
func (r *patchRun) prepare() ([]string, error) {
	used := &pathSet{}
	if r.file != "" {
		used.reads("recipe", r.file)
	}
	r.target.beside(used, r.report)
	names := make([]string, len(r.files))
	for i, f := range r.files {
		names[i] = f.name
	}
	for _, name := range r.visited {
		if r.dryRun || !slices.Contains(names, name) {
			used.reads(inputFile, name)
		}
	}
	if r.dryRun {
		return nil, used.check()
	}
	outs, err := r.target.prepare(used, names)
	if err != nil || len(r.files) == 1 {
		return outs, err // a single file is written as a whole or not at all
	}
	return outs, r.tryPacking()
}

// tryPacking finds out whether the outputs can be made, which is in doubt where compressed
// cubins may not fit their places. What it makes is kept, to be written.
func (r *patchRun) tryPacking() error {
	for _, f := range r.files {
		if f.packs() {
			if err := f.change().make(&r.target); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeAll writes every file and returns the report.
func (r *patchRun) writeAll(outs []string) (*report.Report, error) {
	report := report.New(toolName(), r.rules, &r.sum)
	for i, f := range r.files {
		var warnings []check.Warning
		for _, e := range f.entries {
			r.printDiff(e.diff)
			warnings = append(warnings, e.warnings...)
		}
		report.AddWarnings(f.name, warnings)
		r.warnEach(f.name, warnings)
		rf := f.report()
		if !r.dryRun {
			hash, err := r.target.write(r.env, f.change(), outs[i])
			if err != nil {
				return report, err
			}
			rf.Output = hash
		}
		report.Files = append(report.Files, rf)
		r.summary(f, outs, i)
	}
	return report, nil
}

// summary says in one line what was done to a file.
func (r *patchRun) summary(f *filePlan, outs []string, i int) {
	s := &f.sum
	r.notef("%s: %s in %s: %d matched, %d changed, %d already so, %d refused", f.name,
		plural(s.Seen, "instruction", "instructions"), plural(s.Kernels, "kernel", "kernels"), s.Matched, s.Changed, s.Same, s.Refused)
	switch {
	case r.dryRun:
		r.notef("%s: nothing written (dry run)", f.name)
	case s.Changed == 0:
		r.notef("%s: written to %s, identical", f.name, outs[i])
	default:
		r.notef("%s: written to %s; read back: %s, nothing else", f.name, outs[i], wordsDiffer(s.Changed))
	}
}

// wordsDiffer says how many words differ.
func wordsDiffer(n int) string { return plural(n, "word differs", "words differ") }

// change returns the change of the file, always the same one.
func (f *filePlan) change() *change {
	if f.todo == nil {
		f.todo = &change{input: f.name, data: f.data, edits: f.edits()}
	}
	return f.todo
}

func (f *filePlan) edits() patch.Edits {
	out := patch.Edits{}
	for _, e := range f.entries {
		if len(e.edits) > 0 {
			out[e.number] = e.edits
		}
	}
	return out
}

// packs reports whether cubins are compressed to write the file.
func (f *filePlan) packs() bool {
	return slices.ContainsFunc(f.entries, func(e *entryPlan) bool { return e.packed && len(e.edits) > 0 })
}

func (f *filePlan) report() report.File {
	rf := report.File{File: f.name, Input: f.hash, Edits: []report.Edit{}}
	for _, e := range f.entries {
		rf.Kernels = append(rf.Kernels, e.kernels...)
		rf.Add(e.edits)
	}
	return rf
}

// toolName names the program in reports.
func toolName() string {
	v, _ := versionInfo()
	return fmt.Sprintf("cupatch %s", v)
}
