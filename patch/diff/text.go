package diff

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/patch/listing"
)

// A Printer writes results as text. The zero value writes what [Result.String] does.
type Printer struct {
	// A and B are the names of the files for the heads of listings.
	A, B string
	// Count has the kinds of difference that are shown; 0 means all of them.
	Count Kinds
	// Context is the number of equal lines around a difference; 0 means 3, -1 none.
	Context int
	// SideBySide writes the two listings beside each other, in so many columns; 0 is the
	// unified form.
	SideBySide int
	// Brief leaves out the listings.
	Brief bool
	// Paint, if set, marks a piece of text: what is gone, what is new, and in them what
	// changed.
	Paint func(Mark, string) string
	// Demangle, if set, gives the names that are shown.
	Demangle func(string) string
	// Notes, if set, returns what the unified form says before the instructions of a kernel,
	// such as the lines of its source. Before an instruction that both sides have stands what
	// is said of the second one.
	Notes func(*Code) listing.Notes
}

// A Mark is what Printer.Paint is told about a piece of text.
type Mark uint8

// The marks.
const (
	MarkGone    Mark = iota // of the first file only
	MarkNew                 // of the second file only
	MarkField               // the part of a line that changed
	MarkHeading             // names of files and kernels
	MarkPlace               // where a hunk stands
)

func (p *Printer) paint(m Mark, s string) string {
	if p.Paint == nil || s == "" {
		return s
	}
	return p.Paint(m, s)
}

// counts reports whether one of the kinds k is shown.
func (p *Printer) counts(k Kinds) bool { return p.Count == 0 || k&p.Count != 0 }

func (p *Printer) context() int {
	switch {
	case p.Context == 0:
		return 3
	case p.Context < 0:
		return 0
	}
	return p.Context
}

// String returns the whole report.
func (r *Result) String() string {
	p := Printer{A: r.A.Name, B: r.B.Name, Count: r.Count}
	var b []byte
	for _, k := range r.Kernels {
		b = p.AppendKernel(b, k)
	}
	return string(p.AppendEnd(b, r))
}

func (p *Printer) name(k *KernelDiff) string { return pairName(k.NameA, k.NameB, p.Demangle) }

// AppendKernel appends what there is to say about a pair of kernels: nothing where no
// difference was found that is to be shown.
func (p *Printer) AppendKernel(dst []byte, k *KernelDiff) []byte {
	if k.Kinds == 0 || !p.counts(k.Kinds) {
		return dst
	}
	line := fmt.Sprintf("%s %s: %s", k.Arch, p.name(k), k.Class)
	dst = append(dst, p.paint(MarkHeading, line)...)
	dst = append(dst, k.countsText()...)
	dst = append(dst, '\n')
	if k.PairedBy != ByName {
		dst = fmt.Appendf(dst, "  paired by %s", k.PairedBy)
		if k.PairedBy == BySimilarity {
			dst = fmt.Appendf(dst, " (%.0f%%)", 100*k.Similarity)
		}
		dst = append(dst, '\n')
	}
	if p.counts(Modifiers) {
		for _, m := range k.Modifiers {
			dst = fmt.Appendf(dst, "  modifiers: %s\n", m)
		}
	}
	if p.counts(Resources) {
		dst = appendChanges(dst, "resources", k.Resources)
	}
	if p.counts(Data) {
		dst = appendChanges(dst, "data", k.Data)
	}
	if p.counts(Loader) {
		dst = appendChanges(dst, "loader", k.Loader)
	}
	dst = appendChanges(dst, "relocations", k.Relocs)
	dst = appendOpcodes(dst, k.Opcodes)
	if p.Brief || len(k.Ops) == 0 || !p.counts(k.Kinds&codeKinds) {
		return dst
	}
	if p.SideBySide > 0 {
		return p.appendSides(dst, k)
	}
	return p.appendUnified(dst, k)
}

func appendChanges(dst []byte, what string, list []Change) []byte {
	for _, c := range list {
		dst = fmt.Appendf(dst, "  %s: %s\n", what, c)
	}
	return dst
}

// maxOpcodes is how many opcodes the histogram shows.
const maxOpcodes = 12

func appendOpcodes(dst []byte, list []OpcodeDelta) []byte {
	if len(list) == 0 {
		return dst
	}
	dst = append(dst, "  opcodes: "...)
	for i, o := range list {
		if i == maxOpcodes {
			dst = fmt.Appendf(dst, ", and %d more", len(list)-i)
			break
		}
		if i > 0 {
			dst = append(dst, ", "...)
		}
		dst = fmt.Appendf(dst, "%s %d → %d (%+d)", o.Opcode, o.A, o.B, o.B-o.A)
	}
	return append(dst, '\n')
}

// countsText lists how many instructions differ and in what.
func (k *KernelDiff) countsText() string {
	var out []string
	for _, name := range kindNames {
		if n := k.Counts[name]; n > 0 {
			out = append(out, fmt.Sprintf("%s of %d", name, n))
		}
	}
	for _, x := range []struct {
		n    int
		text string
	}{{k.Deleted, "deleted"}, {k.Inserted, "inserted"}, {k.Moved, "moved"}} {
		if x.n > 0 {
			out = append(out, fmt.Sprintf("%d %s", x.n, x.text))
		}
	}
	if n := k.Unknown[0] + k.Unknown[1]; n > 0 {
		out = append(out, fmt.Sprintf("%d unknown words", n))
	}
	s := ""
	if len(out) > 0 {
		s = ": " + strings.Join(out, ", ")
	}
	if k.Instructions[0] == k.Instructions[1] {
		return fmt.Sprintf("%s (%s)", s, plural(k.Instructions[0], "instruction"))
	}
	return fmt.Sprintf("%s (%d → %s)", s, k.Instructions[0], plural(k.Instructions[1], "instruction"))
}

// A line is a line of a listing of both: the indexes, -1 for none, and the difference,
// nil for equal instructions.
type line struct {
	a, b int32
	op   *Op
}

// lines merges the two listings.
func (d *CodeDiff) lines() []line {
	moved := map[int32]*Op{}
	for i := range d.Ops {
		if o := &d.Ops[i]; o.Kind == OpMove {
			moved[o.B] = o
		}
	}
	out := make([]line, 0, d.A.Len()+d.Inserted+d.Moved)
	i, j := int32(0), int32(0)
	upTo := func(a, b int32) {
		for a >= 0 && i < a || b >= 0 && j < b {
			if o := moved[j]; o != nil {
				out = append(out, line{-1, j, o})
				j++
				continue
			}
			out = append(out, line{i, j, nil})
			i++
			j++
		}
		for o := moved[j]; o != nil && (b < 0 || j < b); o = moved[j] {
			out = append(out, line{-1, j, o})
			j++
		}
	}
	for n := range d.Ops {
		o := &d.Ops[n]
		switch o.Kind {
		case OpChange:
			upTo(o.A, o.B)
			out = append(out, line{o.A, o.B, o})
			i, j = o.A+1, o.B+1
		case OpInsert:
			upTo(-1, o.B)
			out = append(out, line{-1, o.B, o})
			j = o.B + 1
		default:
			upTo(o.A, -1)
			out = append(out, line{o.A, -1, o})
			i = o.A + 1
		}
	}
	upTo(int32(d.A.Len()), int32(d.B.Len()))
	return out
}

// lines merges the two listings; changes that are not to be shown count as equal.
func (p *Printer) lines(d *CodeDiff) []line {
	lines := d.lines()
	for i := range lines {
		if o := lines[i].op; o != nil && o.Kind == OpChange && !p.counts(o.Kinds) {
			lines[i].op = nil
		}
	}
	return lines
}

// hunks returns the stretches of lines to show, as bounds.
func hunks(lines []line, context int) [][2]int {
	var out [][2]int
	for n, l := range lines {
		if l.op == nil {
			continue
		}
		lo, hi := max(n-context, 0), min(n+context+1, len(lines))
		if k := len(out) - 1; k >= 0 && lo <= out[k][1] {
			out[k][1] = hi
		} else {
			out = append(out, [2]int{lo, hi})
		}
	}
	return out
}

// Line returns instruction i as a line of a listing.
func (c *Code) Line(i int) string { return string(c.appendLine(nil, i)) }

func (c *Code) appendLine(dst []byte, i int) []byte {
	w, pc := c.Word(i), c.PC(i)
	if c.Table == nil {
		return fmt.Appendf(dst, "/*%04x*/ %s .word %s ;", pc, isa.ControlOf(w), w)
	}
	n := len(dst)
	dst = listing.Style{}.AppendLine(dst, c.Table, w, pc)
	// Without what the listing says after the instruction.
	if at := bytes.LastIndex(dst[n:], []byte(" ;")); at >= 0 {
		dst = dst[:n+at+2]
	}
	return dst
}

// appendUnified appends the differences in the form of diff -u.
func (p *Printer) appendUnified(dst []byte, k *KernelDiff) []byte {
	dst = append(dst, p.paint(MarkHeading, "--- "+p.A+" "+k.NameA)+"\n"...)
	dst = append(dst, p.paint(MarkHeading, "+++ "+p.B+" "+k.NameB)+"\n"...)
	lines := p.lines(k.CodeDiff)
	a, b := p.notesOf(k.A), p.notesOf(k.B)
	for _, h := range hunks(lines, p.context()) {
		dst = append(dst, p.paint(MarkPlace, place(lines, h[0], h[1]))+"\n"...)
		a.hunk()
		b.hunk()
		for n := h[0]; n < h[1]; {
			if lines[n].op == nil {
				a.before(lines[n].a)
				dst = appendNotes(dst, " ", b.before(lines[n].b))
				dst = append(k.A.appendLine(append(dst, ' '), int(lines[n].a)), '\n')
				n++
				continue
			}
			end := n
			for end < h[1] && lines[end].op != nil {
				end++
			}
			dst = p.appendBlock(dst, k, lines[n:end], a, b)
			n = end
		}
	}
	return dst
}

// place returns the line that starts the hunk of lines[lo:hi], as diff -u writes it: the
// number of the first instruction on each side and, unless it is 1, how many there are;
// where there is none the number is that of the one before.
func place(lines []line, lo, hi int) string {
	side := func(index func(line) int32) string {
		first, count := 0, 0
		for _, l := range lines[:lo] {
			if i := index(l); i >= 0 {
				first = int(i) + 1
			}
		}
		for _, l := range lines[lo:hi] {
			i := index(l)
			if i < 0 {
				continue
			}
			if count == 0 {
				first = int(i) + 1
			}
			count++
		}
		if count == 1 {
			return fmt.Sprint(first)
		}
		return fmt.Sprintf("%d,%d", first, count)
	}
	return fmt.Sprintf("@@ -%s +%s @@", side(func(l line) int32 { return l.a }), side(func(l line) int32 { return l.b }))
}

// appendBlock appends a run of differing lines: first what was, then what is.
func (p *Printer) appendBlock(dst []byte, k *KernelDiff, lines []line, a, b *noteReader) []byte {
	dst = appendShared(dst, lines, a, b)
	for _, l := range lines {
		if l.a < 0 {
			continue
		}
		dst = appendNotes(dst, p.paint(MarkGone, "-"), a.before(l.a))
		if p.Paint == nil && l.op.Kind != OpMove {
			dst = append(k.A.appendLine(append(dst, '-'), int(l.a)), '\n')
			continue
		}
		s := k.A.Line(int(l.a))
		switch l.op.Kind {
		case OpChange:
			s = p.marked(MarkGone, s, k.B.Line(int(l.b)))
		case OpMove:
			s = p.paint(MarkGone, fmt.Sprintf("%s // moved to %#x", s, k.B.PC(int(l.op.B))))
		default:
			s = p.paint(MarkGone, s)
		}
		dst = append(dst, p.paint(MarkGone, "-")+s+"\n"...)
	}
	var fields []FieldChange
	for _, l := range lines {
		if l.b < 0 {
			continue
		}
		dst = appendNotes(dst, p.paint(MarkNew, "+"), b.before(l.b))
		if p.Paint == nil && l.op.Kind != OpMove {
			dst = k.B.appendLine(append(dst, '+'), int(l.b))
			fields = k.appendFields(fields[:0], *l.op)
			dst = append(appendFields(dst, fields), '\n')
			continue
		}
		s := k.B.Line(int(l.b))
		switch l.op.Kind {
		case OpChange:
			s = p.marked(MarkNew, s, k.A.Line(int(l.a))) + string(appendFields(nil, k.Fields(*l.op)))
		case OpMove:
			s = p.paint(MarkNew, fmt.Sprintf("%s // moved from %#x", s, k.A.PC(int(l.op.A))))
		default:
			s = p.paint(MarkNew, s)
		}
		dst = append(dst, p.paint(MarkNew, "+")+s+"\n"...)
	}
	return dst
}

// appendFields appends the fields that changed as a comment.
func appendFields(dst []byte, fields []FieldChange) []byte {
	for i, f := range fields {
		sep := "; "
		if i == 0 {
			sep = " // "
		}
		dst = append(append(append(dst, sep...), f.Name...), ": "...)
		dst = append(append(append(dst, f.A...), " → "...), f.B...)
	}
	return dst
}

// marked returns s with the parts marked that other has not.
func (p *Printer) marked(m Mark, s, other string) string {
	if p.Paint == nil {
		return s
	}
	x, y := pieces(s), pieces(other)
	same := shared(x, y)
	var b strings.Builder
	for i := 0; i < len(x); {
		j := i
		for j < len(x) && same[j] == same[i] {
			j++
		}
		mark := m
		if !same[i] {
			mark = MarkField
		}
		b.WriteString(p.Paint(mark, strings.Join(x[i:j], "")))
		i = j
	}
	return b.String()
}

// shared says of each element of x whether y has it, too, in the same order: the longest
// common subsequence. Lines are short and differ in little.
func shared(x, y []string) []bool {
	same := make([]bool, len(x))
	lo := 0
	if len(x) > 0 && len(y) > 0 && x[0] != y[0] {
		lo = 1 // the address
	}
	for lo < min(len(x), len(y)) && x[lo] == y[lo] {
		same[lo] = true
		lo++
	}
	n, m := len(x), len(y)
	for n > lo && m > lo && x[n-1] == y[m-1] {
		n--
		m--
		same[n] = true
	}
	width := m - lo + 1
	best := make([]int, (n-lo+1)*width)
	at := func(i, j int) int { return best[(i-lo)*width+j-lo] }
	for i := n - 1; i >= lo; i-- {
		for j := m - 1; j >= lo; j-- {
			v := max(at(i+1, j), at(i, j+1))
			if x[i] == y[j] {
				v = at(i+1, j+1) + 1
			}
			best[(i-lo)*width+j-lo] = v
		}
	}
	for i, j := lo, lo; i < n && j < m; {
		switch {
		case x[i] == y[j]:
			same[i] = true
			i++
			j++
		case at(i+1, j) >= at(i, j+1):
			i++
		default:
			j++
		}
	}
	return same
}

// pieces cuts a line where something can change: the address is one piece, then names and
// numbers, and the characters between them.
func pieces(s string) []string {
	out := make([]string, 0, 32)
	for s != "" {
		n := 0
		if strings.HasPrefix(s, "/*") {
			n = strings.Index(s, "*/") + 2
		}
		for n < len(s) && (s[n] >= '0' && s[n] <= '9' || s[n] >= 'A' && s[n] <= 'Z' || s[n] >= 'a' && s[n] <= 'z') {
			n++
		}
		n = max(n, 1)
		out = append(out, s[:n])
		s = s[n:]
	}
	return out
}

// appendSides appends the differences as two columns.
func (p *Printer) appendSides(dst []byte, k *KernelDiff) []byte {
	width := max((p.SideBySide-3)/2, 20)
	lines := p.lines(k.CodeDiff)
	for _, h := range hunks(lines, p.context()) {
		dst = append(dst, p.paint(MarkPlace, place(lines, h[0], h[1]))+"\n"...)
		for _, l := range lines[h[0]:h[1]] {
			left, right, sep := "", "", " "
			if l.a >= 0 {
				left = clip(k.A.Line(int(l.a)), width)
			}
			if l.b >= 0 {
				right = clip(k.B.Line(int(l.b)), width)
			}
			pad := strings.Repeat(" ", width-utf8.RuneCountInString(left))
			if l.op != nil {
				sep = []string{"|", "<", ">", "~"}[l.op.Kind]
				left, right = p.sides(l, left, right)
			}
			dst = append(dst, strings.TrimRight(left+pad+" "+sep+" "+right, " ")+"\n"...)
		}
	}
	return dst
}

// sides marks what differs in two columns.
func (p *Printer) sides(l line, left, right string) (string, string) {
	if l.op.Kind == OpChange {
		return p.marked(MarkGone, left, right), p.marked(MarkNew, right, left)
	}
	return p.paint(MarkGone, left), p.paint(MarkNew, right)
}

// clip cuts s to so many columns.
func clip(s string, width int) string {
	if utf8.RuneCountInString(s) <= width {
		return s
	}
	return string([]rune(s)[:width-1]) + "…"
}

// AppendEnd appends what concerns the files as a whole: kernels without partners,
// notes, errors, counts and the verdict.
func (p *Printer) AppendEnd(dst []byte, r *Result) []byte {
	dst = p.appendOnly(dst, "-", r.A.Name, r.OnlyA)
	dst = p.appendOnly(dst, "+", r.B.Name, r.OnlyB)
	for _, n := range r.Notes {
		if n.shown(r) {
			dst = fmt.Appendf(dst, "%s: %s\n", n.Kind, n)
		}
	}
	for _, err := range r.Errors {
		dst = fmt.Appendf(dst, "not compared: %v\n", err)
	}
	return append(append(dst, r.CountsLine()...), '\n')
}

func (p *Printer) appendOnly(dst []byte, sign, file string, list []KernelRef) []byte {
	const show = 20
	for i, k := range list {
		if i == show {
			return fmt.Appendf(dst, "%s %d more kernels only in %s\n", sign, len(list)-show, file)
		}
		name := k.Name
		if p.Demangle != nil {
			name = p.Demangle(name)
		}
		dst = fmt.Appendf(dst, "%s %s %s: only in %s (%s)\n", sign, k.Arch, name, file, plural(k.Instructions, "instruction"))
	}
	return dst
}

// CountsLine returns one line: the verdict, and how many kernels are in which class.
func (r *Result) CountsLine() string {
	var parts []string
	for c, n := range r.Classes {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, Class(c)))
		}
	}
	for _, x := range []struct {
		n    int
		text string
	}{{len(r.OnlyA), "only in the first file"}, {len(r.OnlyB), "only in the second"}} {
		if x.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", x.n, x.text))
		}
	}
	s := fmt.Sprintf("%s: %s compared", r.Verdict(), plural(r.Compared, "kernel"))
	if parts != nil {
		s += ": " + strings.Join(parts, ", ")
	}
	if a, b := r.A.Unknown, r.B.Unknown; a+b > 0 {
		s += fmt.Sprintf("; %d and %s not known, compared by their bits", a, plural(b, "word"))
	}
	return s
}

// plural writes a number of things.
func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
