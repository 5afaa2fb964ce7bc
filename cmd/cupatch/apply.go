package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/patch"
	"github.com/cupatch/cupatch/patch/check"
	"github.com/cupatch/cupatch/patch/code"
	"github.com/cupatch/cupatch/patch/edit"
	"github.com/cupatch/cupatch/patch/listing"
	"github.com/cupatch/cupatch/patch/report"
	"github.com/cupatch/cupatch/patch/rule"
	"github.com/spf13/pflag"
)

const applyUsage = `usage: cupatch apply REPORT FILE -o OUT | -i [OPTIONS]
       cupatch apply LISTING FILE -o OUT | -i [OPTIONS]

Applies edits to FILE. REPORT is JSON, written by cupatch patch --report or by any other
program (docs/report.schema.json). LISTING is the edited output of cupatch dis: lines
that differ from FILE become edits. All old words are checked first; if one differs from
the report, nothing is written.

  -o, --output OUT     write the result to OUT; - is standard output
  -i, --in-place       replace FILE itself
      --backup SUFFIX  with -i, keep the old file as FILE+SUFFIX: --backup .orig
  -n, --dry-run        write nothing, show what would change
  -U, --context N      lines around each change in the diff (default 3)
      --relocate       find kernels that are at another offset or in another entry, if
                       their code has the hash that the report gives
      --report FILE    write the edits as a report
      --keep-original  with --report FILE: keep the overwritten bytes in FILE.original,
                       so that revert restores the file byte for byte
      --allow NAMES    permit what is refused otherwise: hazard; in the lines of a listing
                       also align, footprint, hidden, schedule, target, value
      --no-warn NAMES  silence warnings, as for patch
      --no-grow        fail if the file would grow

If a report covers several files, the one with FILE's hash or name is used. - is standard
input, for REPORT, LISTING or FILE.

exit status: 0 done; 1 an edit does not fit, or there is none; 2 trouble.

examples:
  cupatch apply tune.json kernel.cubin -o tuned.cubin
  cupatch dis kernel.cubin > k.sass; vi k.sass; cupatch apply k.sass kernel.cubin -i
`

const revertUsage = `usage: cupatch revert REPORT FILE -o OUT | -i [OPTIONS]

Undoes the edits of a report in the patched FILE. All new words are checked first; if one
differs from the report, nothing is written. Stored cubins get their old bytes back.
Compressed ones are compressed again, unless REPORT.original, written by patch
--keep-original, has the old bytes.

  -o, --output OUT     write the result to OUT; - is standard output
  -i, --in-place       replace FILE itself
      --backup SUFFIX  with -i, keep the old file as FILE+SUFFIX: --backup .orig
  -n, --dry-run        write nothing, show what would change
  -U, --context N      lines around each change in the diff (default 3)
      --relocate       as for apply
      --no-grow        fail if the file would grow

exit status: 0 done; 1 an edit does not fit; 2 trouble.

example:
  cupatch revert tune.json tuned.cubin -o kernel.cubin
`

func init() {
	register(&command{"apply", "replay edits from a report or a listing", applyUsage, runApply})
	register(&command{"revert", "undo the edits of a report", revertUsage, runRevert})
}

// An applyRun is one run of apply or revert.
type applyRun struct {
	*env
	target   destination
	dryRun   bool
	relocate bool
	context  contextLines
	revert   bool
	report   string
	allow    check.Allow
	silent   map[string]bool
	edits    *editsFile // report or listing
	source   string     // its name
}

func runApply(e *env, args []string) error { return (&applyRun{env: e}).run(args) }

func runRevert(e *env, args []string) error { return (&applyRun{env: e, revert: true}).run(args) }

func (r *applyRun) run(args []string) error {
	fs := r.flags()
	r.target.flags(fs)
	fs.BoolVarP(&r.dryRun, "dry-run", "n", false, "")
	fs.BoolVar(&r.relocate, "relocate", false, "")
	r.context.flag(fs)
	var allow, noWarn string
	if !r.revert {
		fs.StringVar(&noWarn, "no-warn", "", "")
		r.target.keepFlag(fs)
		outFlag(fs, &r.report, "report", "")
		fs.StringVar(&allow, "allow", "", "")
	}
	files, err := r.parseTwo(fs, args)
	if err != nil {
		return err
	}
	if r.allow, err = check.ParseAllow(allow); err != nil {
		return r.usageError(err)
	}
	if r.silent, err = check.ParseSilent(noWarn); err != nil {
		return r.usageError(fmt.Errorf("--no-warn: %w", err))
	}
	if err := oneStream(r.env, &r.target, r.report); err != nil {
		return err
	}
	r.source = files[0]
	edits, err := r.openEdits(files[0])
	if err != nil {
		return err
	}
	defer edits.Close()
	if r.edits = edits; notEdits(edits.head) {
		return r.explainEdits()
	}
	f, sel, err := r.openOne(files[1], nil)
	if err != nil {
		return err
	}
	defer f.Close()
	return r.file(f, sel)
}

// parseTwo reads options and two file arguments.
func (r *applyRun) parseTwo(fs *pflag.FlagSet, args []string) ([]string, error) {
	files, err := r.parse(fs, args)
	if err != nil {
		return nil, err
	}
	if len(files) != 2 {
		return nil, r.usagef("%s needs two files", r.cmd.name)
	}
	if files[0] == "-" && files[1] == "-" {
		return nil, r.usagef("only one of the files can be standard input")
	}
	if err := r.context.check(r.env); err != nil {
		return nil, err
	}
	if err := r.target.check(r.env, r.dryRun); err != nil {
		return nil, err
	}
	return files, r.target.checkKeep(r.env, r.report)
}

// targetsOf returns the cubins of a file that can be read, and the first error of
// those that cannot.
func targetsOf(f *elfx.File, entries []*elfx.Entry) ([]*code.Target, error) {
	var out []*code.Target
	var first error
	for _, e := range entries {
		if e.Kind != elfx.KindELF {
			continue
		}
		t, err := code.Open(e)
		if err != nil {
			if first == nil {
				first = err
			}
			continue
		}
		out = append(out, t)
	}
	if len(out) == 0 && first == nil {
		first = fmt.Errorf("%s: no cubin", f.Name)
	}
	return out, first
}

func (r *applyRun) file(f *elfx.File, entries []*elfx.Entry) error {
	n := &narrowing{}
	if len(n.cubins(f, asSet(entries))) == 0 {
		n.missed(f, asSet(entries))
		return n.nothing("cubin")
	}
	targets, terr := targetsOf(f, entries)
	if len(targets) == 0 {
		return terr
	}
	var located []report.Located
	var err error
	if listing.IsListing(r.edits.head) && !r.revert {
		located, err = r.fromListing(targets)
	} else {
		located, err = r.fromReport(f, targets)
	}
	if err != nil {
		return planMismatch(err)
	}
	if len(located) == 0 && !r.revert {
		return answerNo("%s changes nothing in %s", r.source, f.Name)
	}
	return r.finish(f, located)
}

// notEdits reports whether a file is neither report nor listing because it is binary.
func notEdits(head []byte) bool {
	return bytes.IndexByte(head[:min(len(head), 1024)], 0) >= 0
}

// explainEdits says what a file is that is neither report nor listing.
func (r *applyRun) explainEdits() error {
	what := "is a binary file"
	data, err := io.ReadAll(r.edits)
	if err != nil {
		return err
	}
	if f, err := elfx.Open(r.source, data, nil); err == nil {
		what = "holds GPU code (" + f.Kind.String() + ")"
		if f.Kind == elfx.FileCubin {
			what = "is a cubin"
		}
	}
	x := usagef("%s %s; want a report or a listing", r.source, what)
	x.hint = "the edits come first: cupatch apply EDITS FILE"
	return x
}

// planMismatch gives edits that do not fit a file their exit status.
func planMismatch(err error) error {
	var x *exitError
	if errors.Is(err, edit.ErrMismatch) && !errors.As(err, &x) {
		return &exitError{code: 1, err: err, hint: hintOf(err)}
	}
	return err
}

// editsByEntry returns edits by the number of their entry, in order, and how many
// there are.
func editsByEntry(located []report.Located) (patch.Edits, int) {
	out, n := patch.Edits{}, 0
	for _, l := range located {
		slices.SortFunc(l.Edits, func(a, b edit.Edit) int { return cmp.Compare(a.Offset, b.Offset) })
		out[elfx.NumberOf(l.Target.Entry)] = l.Edits
		n += len(l.Edits)
	}
	return out, n
}

// fromReport finds the places of a report's edits.
func (r *applyRun) fromReport(f *elfx.File, targets []*code.Target) ([]report.Located, error) {
	rep, err := report.Read(r.edits)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.source, err)
	}
	rf, err := rep.ForFile(f.Name, report.HashOf(f.Data()), r.revert)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.source, err)
	}
	want := rf.Input
	if r.revert {
		want = rf.Output
	}
	if want != nil && *want != *report.HashOf(f.Data()) {
		r.warnf("%s is not the file that %s was made for; every old word is still checked", f.Name, r.source)
	}
	loc, err := rf.Locate(targets, r.relocate, r.revert)
	var old *edit.OldWordError
	if errors.As(err, &old) && old.Done {
		word := "applied"
		if r.revert {
			word = "undone"
		}
		return nil, &exitError{code: 1, err: err, hint: "it looks as if the edits were " + word + " already"}
	}
	var le *report.LocateError
	if errors.As(err, &le) && le.Moved && !r.relocate {
		return nil, &exitError{code: 1, err: err, hint: "--relocate finds a kernel at another place when its code is the same"}
	}
	return loc, err
}

// fromListing turns an edited listing into edits.
func (r *applyRun) fromListing(targets []*code.Target) ([]report.Located, error) {
	list, err := listing.Parse(r.source, r.edits)
	if err != nil {
		return nil, err
	}
	by := map[string][]listing.Inst{}
	for _, in := range list {
		by[in.Entry] = append(by[in.Entry], in)
	}
	var out []report.Located
	used := 0
	for _, t := range targets {
		lines := by[t.Entry]
		if t.Entry != "" && len(targets) == 1 && len(lines) == 0 {
			lines = by[""]
		}
		if len(lines) == 0 {
			continue
		}
		used += len(lines)
		if t.Table == nil {
			return nil, fmt.Errorf("no instruction table for %s", t.Cubin.Arch)
		}
		edits, err := patch.ListingEdits(r.source, lines, t, r.allow)
		if err != nil {
			return nil, err
		}
		if len(edits) > 0 {
			out = append(out, report.Located{Target: t, Edits: edits})
		}
	}
	if used < len(list) {
		return nil, fmt.Errorf("%s: %s to no entry of the file", r.source, plural(len(list)-used, "line belongs", "lines belong"))
	}
	return out, nil
}

// finish shows the edits, and writes the output and the report.
func (r *applyRun) finish(f *elfx.File, located []report.Located) error {
	out, err := r.prepare(f)
	if err != nil {
		return err
	}
	c := &change{input: f.Name}
	if f.Name == "-" {
		c.data = f.Data()
	}
	var n int
	c.edits, n = editsByEntry(located)
	return r.target.keeping(r.env, r.report, func() (*report.Report, error) {
		rep := report.New(toolName(), nil, &rule.Summary{Matched: n, Changed: n})
		rf, err := r.describe(f, located, rep)
		if err != nil {
			return nil, err
		}
		if r.dryRun {
			r.notef("%s: %s would change; nothing written (dry run)", f.Name, plural(n, "word", "words"))
		} else if err := r.write(f, c, out, &rf, n); err != nil {
			return nil, err
		}
		rep.Files = append(rep.Files, rf)
		return rep, nil
	})
}

// prepare returns the output path, "" for a dry run.
func (r *applyRun) prepare(f *elfx.File) (string, error) {
	used := &pathSet{}
	used.reads("edits", r.source)
	if _, err := os.Stat(originalName(r.source)); r.revert && err == nil {
		used.reads("old bytes", originalName(r.source))
	}
	r.target.beside(used, r.report)
	if r.dryRun {
		used.reads(inputFile, f.Name)
		return "", used.check()
	}
	outs, err := r.target.prepare(used, []string{f.Name})
	if err != nil {
		return "", err
	}
	return outs[0], nil
}

// describe prints the diff and the warnings, and returns what a report says of the file.
func (r *applyRun) describe(f *elfx.File, located []report.Located, rep *report.Report) (report.File, error) {
	rf := report.File{File: f.Name, Input: report.HashOf(f.Data()), Edits: []report.Edit{}}
	var warnings []check.Warning
	for _, l := range located {
		rf.Add(l.Edits)
		after := append([]byte(nil), l.Target.Cubin.Data()...)
		if err := edit.Apply(after, l.Edits); err != nil {
			return rf, err
		}
		rf.Kernels = append(rf.Kernels, report.Kernels(l.Target, l.Edits, after)...)
		if l.Target.Table == nil {
			continue
		}
		if showsDiff(r.env, &r.target, r.report) {
			r.printDiff(diffOf(l.Target, l.Edits, int(r.context)))
		}
		if r.revert {
			continue // back to what was there
		}
		if no := check.RefuseHazards(l.Target, l.Edits, r.allow); no != nil {
			return rf, fmt.Errorf("%s: %w", f.Name, no)
		}
		warnings = append(warnings, check.Lint(l.Target, l.Edits, r.allow, r.silent)...)
	}
	rep.AddWarnings(f.Name, warnings)
	r.warnEach(f.Name, warnings)
	return rf, nil
}

// write writes the output.
func (r *applyRun) write(f *elfx.File, c *change, out string, rf *report.File, n int) error {
	var err error
	if r.revert {
		if c.undo, err = r.originalOf(r.source, f); err != nil {
			return err
		}
	}
	if rf.Output, err = r.target.write(r.env, c, out); err != nil {
		return err
	}
	r.notef("%s: written to %s; read back: %s, nothing else", f.Name, out, wordsDiffer(n))
	if c.undo != nil {
		r.notef("%s: byte for byte the file that was patched", out)
	}
	return nil
}
