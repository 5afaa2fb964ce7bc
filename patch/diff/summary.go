package diff

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// A SummaryStyle is how a summary is written.
type SummaryStyle uint8

// The styles.
const (
	SummaryText     SummaryStyle = iota
	SummaryMarkdown              // for a comment on a change
)

// maxRows is how many kernels a summary shows.
const maxRows = 40

// maxName is how much of a kernel's name a table for a comment shows: names of C++
// templates can have thousands of characters.
const maxName = 200

// shorten cuts the middle out of a name that has more than maxName characters.
func shorten(s string) string {
	r := []rune(s)
	if len(r) <= maxName {
		return s
	}
	return string(r[:maxName*2/3]) + "…" + string(r[len(r)-maxName/3+1:])
}

// Summary returns a short table of what differs, what differs most first.
func (r *Result) Summary(style SummaryStyle, demangle func(string) string) string {
	if demangle == nil {
		demangle = func(s string) string { return s }
	}
	full := demangle
	if style == SummaryMarkdown {
		demangle = func(s string) string { return shorten(full(s)) }
	}
	head := []string{"class", "changed", "instructions", "registers", "local", "kernel"}
	var rows [][]string
	counting := r.Counting()
	slices.SortStableFunc(counting, func(x, y Row) int {
		return cmp.Or(cmp.Compare(y.Class, x.Class), cmp.Compare(y.touched(), x.touched()))
	})
	for _, row := range counting {
		rows = append(rows, []string{
			row.classText(), row.changedText(), arrow(row.Instructions), arrow(row.Registers), arrow(row.Local), row.Arch + " " + row.Name(demangle),
		})
	}
	more := len(rows) - maxRows
	rows = rows[:min(len(rows), maxRows)]
	var b strings.Builder
	if style == SummaryMarkdown {
		r.markdown(&b, head, rows)
	} else {
		columns(&b, head, rows)
	}
	if more > 0 {
		fmt.Fprintf(&b, "… and %s\n", plural(more, "more kernel"))
	}
	lines := r.unpairedLines(demangle)
	for _, n := range r.Notes {
		if n.shown(r) {
			lines = append(lines, n.Kind.String()+": "+n.String())
		}
	}
	for _, err := range r.Errors {
		lines = append(lines, "not compared: "+err.Error())
	}
	for _, l := range lines {
		if style == SummaryMarkdown {
			l = "- " + escape(l)
		}
		b.WriteString(l + "\n")
	}
	if style == SummaryText {
		b.WriteString(r.CountsLine() + "\n")
	}
	return b.String()
}

// Counting returns the rows of the kernels with a difference that counts.
func (r *Result) Counting() []Row {
	var out []Row
	for _, row := range r.Rows {
		if row.Kinds&r.Count != 0 {
			out = append(out, row)
		}
	}
	return out
}

// classText returns the class, and what differs beside the code.
func (row *Row) classText() string {
	s := row.Class.String()
	if k := row.Kinds & (Resources | Data | Names | Loader); k != 0 {
		s += " (" + k.String() + ")"
	}
	return s
}

// touched is the number of instructions that differ.
func (row *Row) touched() int { return row.Changed + row.Deleted + row.Inserted + row.Moved }

// changedText returns the numbers of instructions changed, new, gone and moved.
func (row *Row) changedText() string {
	var out []string
	for _, x := range []struct {
		sign string
		n    int
	}{{"~", row.Changed}, {"+", row.Inserted}, {"−", row.Deleted}, {"↕", row.Moved}} {
		if x.n > 0 {
			out = append(out, fmt.Sprintf("%s%d", x.sign, x.n))
		}
	}
	return strings.Join(out, " ")
}

func arrow(n [2]int) string {
	if n[0] == n[1] {
		return fmt.Sprint(n[0])
	}
	return fmt.Sprintf("%d → %d (%+d)", n[0], n[1], n[1]-n[0])
}

func (r *Result) unpairedLines(demangle func(string) string) []string {
	var out []string
	for _, x := range []struct {
		file string
		refs []KernelRef
	}{{r.A.Name, r.OnlyA}, {r.B.Name, r.OnlyB}} {
		if len(x.refs) == 0 {
			continue
		}
		var names []string
		for _, k := range x.refs {
			names = append(names, k.Arch+" "+demangle(k.Name))
		}
		out = append(out, fmt.Sprintf("only in %s: %s", x.file, list(names)))
	}
	return out
}

func (r *Result) markdown(b *strings.Builder, head []string, rows [][]string) {
	fmt.Fprintf(b, "**%s**: `%s` → `%s`\n\n", escape(r.CountsLine()), r.A.Name, r.B.Name)
	if len(rows) == 0 {
		return
	}
	b.WriteString("| " + strings.Join(head, " | ") + " |\n|" + strings.Repeat(" --- |", len(head)) + "\n")
	for _, row := range rows {
		for i := range row {
			row[i] = escape(row[i])
		}
		b.WriteString("| " + strings.Join(row, " | ") + " |\n")
	}
	b.WriteString("\n")
}

// escape protects what means something in a Markdown table: names of C++ have it all.
func escape(s string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", ">", "&gt;", "*", `\*`, "_", `\_`, "`", "\\`", "\n", " ").Replace(s)
}

// columns writes a table with its columns in line.
func columns(b *strings.Builder, head []string, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	rows = append([][]string{head}, rows...)
	width := make([]int, len(head))
	for _, row := range rows {
		for i, s := range row {
			width[i] = max(width[i], utf8.RuneCountInString(s))
		}
	}
	for _, row := range rows {
		line := ""
		for i, s := range row {
			line += s + strings.Repeat(" ", width[i]-utf8.RuneCountInString(s)+2)
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}
