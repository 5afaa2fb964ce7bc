package main

import (
	"bytes"
	"html"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/patch"
	"github.com/cupatch/cupatch/patch/diff"
)

// A diffPage is the report as a web page. It is kept until it is whole.
type diffPage struct {
	run     *diffRun
	printer *diff.Printer
	body    bytes.Buffer
}

// openPage returns the output of --html, or one that does nothing.
func (r *diffRun) openPage(a, b *diffSide) (diffOutput, error) {
	if r.html == "" {
		return noOutput{}, nil
	}
	p := &diffPage{run: r, printer: &diff.Printer{A: a.file.Name, B: b.file.Name, Context: max(r.context, 1), Count: r.opt.Count, Paint: paintHTML}}
	if !r.mangled {
		p.printer.Demangle = elfx.Demangle
	}
	return p, nil
}

// Private characters stand for the beginning and end of a mark until the text around
// them is escaped.
const (
	markStart = '\ue000' // plus the mark
	markEnd   = '\ue010'
)

func paintHTML(m diff.Mark, s string) string {
	return string(rune(markStart)+rune(m)) + s + string(rune(markEnd))
}

// markClasses are the classes of the marks in the page's style.
var markClasses = map[diff.Mark]string{
	diff.MarkGone: "gone", diff.MarkNew: "new", diff.MarkField: "field", diff.MarkHeading: "head", diff.MarkPlace: "place",
}

// escapeMarked turns text with marks into HTML.
func escapeMarked(s string) string {
	var b strings.Builder
	b.Grow(len(s) + len(s)/2)
	from := 0
	for i, c := range s {
		if c < markStart || c > markEnd {
			continue
		}
		b.WriteString(html.EscapeString(s[from:i]))
		from = i + utf8.RuneLen(c)
		if c == markEnd {
			b.WriteString("</span>")
		} else {
			b.WriteString(`<span class="` + markClasses[diff.Mark(c-markStart)] + `">`)
		}
	}
	b.WriteString(html.EscapeString(s[from:]))
	return b.String()
}

func (p *diffPage) kernel(k *diff.KernelDiff) error {
	text := p.printer.AppendKernel(nil, k)
	if len(text) == 0 {
		return nil
	}
	head, rest, _ := strings.Cut(string(text), "\n")
	p.body.WriteString("<details><summary>" + escapeMarked(head) + "</summary><pre>" + escapeMarked(rest) + "</pre></details>\n")
	return nil
}

func (p *diffPage) end(r *diff.Result) error {
	title := html.EscapeString(r.A.Name + " → " + r.B.Name)
	return patch.WriteFile(p.run.html, patch.WriteOption{}, func(w io.Writer) error {
		for _, s := range []string{
			"<!doctype html>\n<html lang=en><meta charset=utf-8><title>", title, "</title><style>", pageStyle, "</style>\n<h1>", title, "</h1>\n<p>",
			html.EscapeString(r.CountsLine()), "</p>\n", p.body.String(), "<pre>", escapeMarked(string(p.printer.AppendEnd(nil, r))),
			"</pre>\n</html>\n",
		} {
			if _, err := io.WriteString(w, s); err != nil {
				return err
			}
		}
		return nil
	})
}

const pageStyle = `body{font-family:sans-serif;margin:2em}pre{font-size:90%;overflow-x:auto}h1{font-size:120%}
.gone{color:#a00}.new{color:#060}.field{background:#fe8;font-weight:bold}.head{font-weight:bold}.place{color:#068}`
