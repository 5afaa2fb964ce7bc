package main

import (
	"fmt"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/patch/diff"
	"github.com/cupatch/cupatch/patch/listing"
)

// A diffOutput takes the result of a comparison as it comes.
type diffOutput interface {
	kernel(*diff.KernelDiff) error
	end(*diff.Result) error
}

// output returns where the result goes.
func (r *diffRun) output(a, b *diffSide) diffOutput {
	switch {
	case r.json:
		return &diffJSON{diff.NewJSONWriter(r.stdout)}
	case r.quiet:
		return noOutput{}
	case r.summary || r.markdown || r.stat || r.explain:
		return &diffTable{r}
	}
	return &diffText{run: r, printer: r.printer(a, b)}
}

// printer returns the printer that the options ask for.
func (r *diffRun) printer(a, b *diffSide) *diff.Printer {
	p := &diff.Printer{A: a.file.Name, B: b.file.Name, Context: r.context, Count: r.opt.Count}
	if r.context == 0 {
		p.Context = -1
	}
	if r.sides {
		p.SideBySide = r.width
	}
	if p.Demangle = shownName; r.mangled {
		p.Demangle = elfx.Printable
	}
	if r.color() {
		p.Paint = paintDiff
	}
	if r.lines != "" {
		p.Notes = r.lineNotes()
	}
	return p
}

// lineNotes returns a function that gives the source lines of kernels. The table of a cubin is
// read once, those of the cubins before the last ones are forgotten.
func (r *diffRun) lineNotes() func(*diff.Code) listing.Notes {
	tables := map[*elfx.Cubin]*elfx.LineTable{}
	return func(c *diff.Code) listing.Notes {
		x := c.Cubin()
		t, ok := tables[x]
		if !ok {
			var err error
			if t, err = r.lineTable(x.Lines); err != nil {
				r.report(err)
				r.status = worse(r.status, 2)
			}
			if len(tables) > 1 {
				clear(tables)
			}
			tables[x] = t
		}
		if t == nil {
			return listing.Notes{}
		}
		return listing.Notes{Lines: t.Rows(c.Kernel), Inline: r.inline()}
	}
}

// paintDiff colors pieces of the report: fields that changed stand out in a line that
// did.
func paintDiff(m diff.Mark, s string) string {
	color := map[diff.Mark]string{
		diff.MarkGone: ansiRed, diff.MarkNew: ansiGreen, diff.MarkField: ansiBold + ansiYellow, diff.MarkHeading: ansiBold,
		diff.MarkPlace: ansiCyan,
	}[m]
	return color + s + ansiReset
}

// ansiYellow is the color of what changed in a line.
const ansiYellow = "\x1b[33m"

type noOutput struct{}

func (noOutput) kernel(*diff.KernelDiff) error { return nil }
func (noOutput) end(*diff.Result) error        { return nil }

// A diffText prints the report with its listings.
type diffText struct {
	run     *diffRun
	printer *diff.Printer
	buf     []byte
}

func (t *diffText) kernel(k *diff.KernelDiff) error {
	t.buf = t.printer.AppendKernel(t.buf[:0], k)
	_, err := t.run.stdout.Write(t.buf)
	return err
}

func (t *diffText) end(r *diff.Result) error {
	_, err := t.run.stdout.Write(t.printer.AppendEnd(nil, r))
	return err
}

// A diffJSON prints the result as JSON.
type diffJSON struct{ w *diff.JSONWriter }

func (j *diffJSON) kernel(k *diff.KernelDiff) error { return j.w.Kernel(k) }
func (j *diffJSON) end(r *diff.Result) error        { return j.w.End(r) }

// A diffTable prints one of the short forms, for which the end is soon enough.
type diffTable struct{ run *diffRun }

func (t *diffTable) kernel(*diff.KernelDiff) error { return nil }

func (t *diffTable) end(res *diff.Result) error {
	r := t.run
	name := shownName
	if r.mangled {
		name = elfx.Printable
	}
	switch {
	case r.explain:
		for _, line := range res.Explain(name) {
			fmt.Fprintln(r.stdout, printableLine(line))
		}
	case r.stat:
		for _, row := range res.Counting() {
			fmt.Fprintf(r.stdout, "%-14s ~%d +%d -%d  %s %s\n", row.Class, row.Changed, row.Inserted, row.Deleted, row.Arch, row.Name(name))
		}
		fmt.Fprintln(r.stdout, res.CountsLine())
	case r.markdown:
		fmt.Fprint(r.stdout, res.Summary(diff.SummaryMarkdown, name))
	default:
		fmt.Fprint(r.stdout, res.Summary(diff.SummaryText, name))
	}
	return nil
}
