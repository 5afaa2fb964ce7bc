package main

import (
	"fmt"
	"io"
	"os"

	"github.com/cupatch/cupatch/patch"
)

// finish shows the plan and, unless it is a dry run, writes.
func (r *patchRun) finish() error {
	var outs []string
	if !r.dryRun {
		names := make([]string, len(r.files))
		for i, f := range r.files {
			names[i] = f.name
		}
		var err error
		if outs, err = r.target.paths(names); err != nil {
			return err
		}
	}
	report := patch.NewReport(toolName(), r.rules, &r.sum)
	for i, f := range r.files {
		for _, e := range f.entries {
			r.printDiff(e.diff)
			report.AddWarnings(f.name, e.warnings)
			for _, w := range e.warnings {
				r.warnf("%s: %s", f.name, w)
			}
		}
		rf := f.report()
		if !r.dryRun {
			hash, err := r.target.write(r.env, f.change(), outs[i])
			if err != nil {
				return err
			}
			rf.Output = hash
		}
		report.Files = append(report.Files, rf)
		r.summary(f, outs, i)
	}
	if r.report == "" {
		return nil
	}
	return r.saveReport(r.report, report)
}

// summary says in one line what was done to a file.
func (r *patchRun) summary(f *filePlan, outs []string, i int) {
	s := &f.sum
	r.notef("%s: %d instructions in %d kernels: %d matched, %d changed, %d already so, %d refused",
		f.name, s.Seen, s.Kernels, s.Matched, s.Changed, s.Same, s.Refused)
	switch {
	case r.dryRun:
		r.notef("%s: nothing written (dry run)", f.name)
	case s.Changed == 0:
		r.notef("%s: written to %s, identical", f.name, outs[i])
	default:
		r.notef("%s: written to %s; read back: %d words differ, nothing else", f.name, outs[i], s.Changed)
	}
}

func (f *filePlan) change() *change {
	c := &change{input: f.name, data: f.data, edits: map[int][]patch.Edit{}}
	for _, e := range f.entries {
		if len(e.edits) > 0 {
			c.edits[e.number] = e.edits
		}
	}
	return c
}

func (f *filePlan) report() patch.ReportFile {
	rf := patch.ReportFile{File: f.name, Input: f.hash, Edits: []patch.ReportEdit{}}
	for _, e := range f.entries {
		rf.Kernels = append(rf.Kernels, e.kernels...)
		for _, x := range e.edits {
			rf.Edits = append(rf.Edits, patch.NewReportEdit(x))
		}
	}
	return rf
}

// saveReport writes a report to a file, or standard output for -.
func (e *env) saveReport(path string, report *patch.Report) error {
	b, err := report.Marshal()
	if err != nil {
		return err
	}
	if path == "-" {
		_, err := e.stdout.Write(b)
		return err
	}
	return patch.WriteFile(path, patch.WriteOption{}, func(w io.Writer) error { _, err := w.Write(b); return err })
}

// toolName names the program in reports.
func toolName() string {
	v, _ := versionInfo()
	return fmt.Sprintf("cupatch %s", v)
}

// readFile reads a whole file, or standard input for -.
func (e *env) readFile(path string) ([]byte, error) {
	if path == "-" {
		b, err := io.ReadAll(e.stdin)
		if err != nil {
			return nil, fmt.Errorf("standard input: %w", err)
		}
		return b, nil
	}
	return os.ReadFile(path)
}
