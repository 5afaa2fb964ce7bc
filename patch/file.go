package patch

import (
	"errors"
	"fmt"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/patch/check"
	"github.com/cupatch/cupatch/patch/code"
	"github.com/cupatch/cupatch/patch/report"
	"github.com/cupatch/cupatch/patch/rule"
)

// A File is an open file with GPU code: a cubin, a fatbin, or whatever holds fatbins.
type File struct{ *elfx.File }

// Open opens a file. It must be closed when nothing made from it is needed any more.
func Open(path string) (*File, error) {
	f, err := elfx.OpenFile(path, nil)
	if err != nil {
		return nil, err
	}
	return &File{f}, nil
}

// OpenBytes reads a file in memory; name stands in errors.
func OpenBytes(name string, data []byte) (*File, error) {
	f, err := elfx.Open(name, data, nil)
	if err != nil {
		return nil, err
	}
	return &File{f}, nil
}

// ErrNoCubin matches the error of a file without a cubin that can be patched.
var ErrNoCubin = errors.New("no cubin that can be patched")

// A Plan is what rules change in a file.
type Plan struct {
	Edits    Edits
	Summary  rule.Summary
	Warnings []check.Warning
	// Skipped says why cubins were left alone: there is no instruction table for their
	// architecture.
	Skipped []error

	file *elfx.File
}

// Plan plans rules for every cubin of the file. Rules that are for other architectures
// than a cubin's are left out, and so are those that name an instruction which that has
// not.
func (f *File) Plan(rules []*rule.Rule, opts rule.Options) (*Plan, error) {
	p := NewPlanner(rules, opts)
	plan := &Plan{Edits: Edits{}, file: f.File}
	planned := false
	for _, e := range f.Entries() {
		if e.Kind != elfx.KindELF {
			continue
		}
		t, err := code.Open(e)
		if err != nil {
			return nil, err
		}
		if code.Unsupported(t.NoTable) {
			plan.Skipped = append(plan.Skipped, fmt.Errorf("%s: %w", e.ID(), t.NoTable))
			continue
		}
		cp, err := p.Cubin(t)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.ID(), err)
		}
		planned = true
		if len(cp.Edits) > 0 {
			plan.Edits[e.Number] = cp.Edits
		}
		plan.Summary.Add(&cp.Summary)
		plan.Warnings = append(plan.Warnings, cp.Warnings...)
		e.Done()
	}
	if !planned {
		return nil, fmt.Errorf("%s: %w", f.Name, ErrNoCubin)
	}
	if err := p.Missing(); err != nil {
		return nil, err
	}
	return plan, rule.CheckExpected(rules, &plan.Summary)
}

// WriteFile writes the file with the plan's edits to path, which may be the file's own,
// and proves that nothing else changed.
func (p *Plan) WriteFile(path string, opt WriteOption) (*report.Hash, error) {
	c, err := Rewrite(p.file, p.Edits, elfx.RewriteOptions{})
	if err != nil {
		return nil, err
	}
	return c.WriteFile(path, opt)
}
