package isa

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cupatch/cupatch/isa/nearest"
)

// A SyntaxError says where a text is no instruction of the table.
type SyntaxError struct {
	Text     string
	Pos      int    // of the first byte that does not fit
	Expected string // what would fit there
	Problem  string // what is wrong with what is there, where it is clear what it should be
	Meant    string // a name that looks like what is there
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("column %d: %s", e.Pos+1, e.Reason()) }

// Reason returns the error without the column, for messages that count columns in a longer
// text.
func (e *SyntaxError) Reason() string {
	if e.Problem != "" {
		return e.Problem
	}
	found := "the end"
	if e.Pos < len(e.Text) {
		found = fmt.Sprintf("%q", foundAt(e.Text, e.Pos))
	}
	msg := fmt.Sprintf("expected %s, found %s", e.Expected, found)
	if e.Meant != "" {
		msg += fmt.Sprintf("; did you mean %s?", e.Meant)
	}
	return msg
}

// foundAt returns the name or number of text that starts at pos.
func foundAt(text string, pos int) string {
	found := text[pos:]
	stops := " ,.[]+"
	c := at(found, 0)
	number := c >= '0' && c <= '9' || c == '-'
	if number {
		stops = " ,.[]"
	}
	for n := 1; n < len(found); n++ {
		if strings.IndexByte(stops, found[n]) >= 0 && (!number || !isFraction(found, n)) {
			return found[:n]
		}
	}
	return found
}

// A failure is the furthest place that reading reached, and what would fit there.
type failure struct {
	far      int
	expected []string
	problem  string // with what stands from start to far, "" if none
	start    int
}

// reach notes that reading failed at pos; it reports whether nothing got further.
func (f *failure) reach(pos int) bool {
	if pos > f.far {
		*f = failure{far: pos}
	}
	return pos == f.far
}

// explain finds out where text fails.
func (t *Table) explain(text string, pc uint64, like *Word, allow Allow) error {
	g, start := parseGuard(text)
	if start < 0 {
		return explainGuard(text)
	}
	name := leadingName(text[start:])
	if len(t.named(name)) == 0 {
		return t.explainName(text, start, name)
	}
	m := matcher{t: t, text: text, pc: pc, trace: true}
	m.loosen(allow)
	m.encode(like)
	e := &SyntaxError{Text: text, Pos: m.far}
	if m.problem != "" {
		e.Pos, e.Problem = m.start, m.problem
	}
	slices.Sort(m.expected)
	e.Expected = strings.Join(m.expected, " or ")
	const most = 6
	if len(m.expected) > most {
		e.Expected = strings.Join(m.expected[:most], " or ") + " or other"
	}
	if e.Expected == "" && e.Problem == "" {
		e.Problem = t.guardProblem(name, g)
	}
	if m.far < len(text) {
		e.Meant = m.meant(foundAt(text, m.far))
	}
	if end := start + len(name); at(text, end) == ' ' && at(text, end+1) == '.' && m.far <= end+1 {
		e.Pos, e.Problem = end, "no blank goes before a modifier"
	}
	if order := t.reorder(text, start, pc, m.far); order != "" {
		e.Problem = "the modifiers go in another order: " + order
	}
	return e
}

// explainGuard says what is wrong with the guard of text.
func explainGuard(text string) error {
	e := &SyntaxError{Text: text, Expected: "a guard @P0 to @PT, @!P0, @UP0 …"}
	guard, _, _ := strings.Cut(text, " ")
	if upper := strings.ToUpper(guard); upper != guard {
		if _, start := parseGuard(upper + " "); start >= 0 {
			e.Meant = upper
		}
	}
	return e
}

// explainName says that name, at start, is no instruction.
func (t *Table) explainName(text string, start int, name string) error {
	e := &SyntaxError{Text: text, Pos: start, Expected: fmt.Sprintf("an instruction of %s", t.arch)}
	token, _, _ := strings.Cut(text[start:], " ")
	switch {
	case strings.Contains(token, ":"):
		e.Problem = "a control code is written like [B01----:R2:W0:Y:S04], before the guard"
	case isGuardName(token):
		e.Problem = fmt.Sprintf("a guard is written with an @, @%s", token)
	default:
		e.Meant = nearest.Name(name, slices.Sorted(maps.Keys(t.names)))
	}
	return e
}

// isGuardName reports whether s is a guard without its @.
func isGuardName(s string) bool {
	_, start := parseGuard("@" + s + " ")
	return start >= 0
}

// guardProblem says that no variant of the instruction takes the guard g.
func (t *Table) guardProblem(name string, g guardText) string {
	takes := map[Guard]bool{}
	for _, c := range t.named(name) {
		takes[c.v.Guard] = true
	}
	switch {
	case takes[GuardUP] && !g.uniform:
		return name + " has guards @UP0 to @UPT, not @P0"
	case takes[GuardP] && g.uniform:
		return name + " has guards @P0 to @PT, not @UP0"
	}
	return name + " has no guard"
}

// maxReorder is the greatest number of modifiers that are tried in every order.
const maxReorder = 5

// reorder returns the name at start with its modifiers in an order that makes text an
// instruction, or "" where far, the place that fails, is not in the name or none does.
func (t *Table) reorder(text string, start int, pc uint64, far int) string {
	name, rest, _ := strings.Cut(text[start:], " ")
	parts := strings.Split(name, ".")
	if far > start+len(name) || len(parts) < 3 || len(parts) > maxReorder+1 {
		return ""
	}
	found := ""
	var permute func(n int)
	permute = func(n int) {
		if n == len(parts) {
			order := strings.Join(parts, ".")
			if m := (matcher{t: t, text: text[:start] + order + " " + rest, pc: pc}); found == "" {
				if m.loosen(nil); m.encode(nil) {
					found = order
				}
			}
			return
		}
		for i := n; i < len(parts); i++ {
			parts[n], parts[i] = parts[i], parts[n]
			permute(n + 1)
			parts[n], parts[i] = parts[i], parts[n]
		}
	}
	permute(1)
	return found
}

// meant returns the literal expected that looks like found, or "".
func (f *failure) meant(found string) string {
	var names []string
	if c := at(found, 0); c >= '0' && c <= '9' {
		return "" // a number is no name
	}
	for _, e := range f.expected {
		if lit := strings.Trim(e, "`"); len(lit) < len(e) && isWordByte(at(lit, 0)) {
			names = append(names, lit)
		}
	}
	return nearest.Name(strings.TrimPrefix(found, "."), names)
}

// fail notes what was expected at pos, if no place further on was reached. What means
// nothing is not worth suggesting.
func (m *matcher) fail(pos int, what string) {
	if !m.trace || isInvalid(what) || !m.reach(pos) || slices.Contains(m.expected, what) {
		return
	}
	m.expected = append(m.expected, what)
}

// failSlot notes that the text at pos is not for s.
func (m *matcher) failSlot(s *Slot, pos int) {
	m.fail(pos, kindHelp[s.Kind])
	p, end := s.problem(m.text, pos, m.pc)
	if p != "" && m.reach(max(pos, end-1)) && m.problem == "" {
		m.problem, m.start = p, pos
	}
}

// failSpelling notes that w has all that the text says, but prints in another way: an
// alias, such as IMAD.MOV.
func (m *matcher) failSpelling(w Word) {
	in := m.t.Decode(w)
	if !m.trace || in.Status != StatusKnown || in.Variant != m.c.v {
		return
	}
	got := m.t.Text(in, m.pc)
	if operandText(got) == operandText(m.text) && m.reach(len(m.text)) && m.problem == "" {
		m.problem, m.start = fmt.Sprintf("with these operands it is written %s", got), len(m.text)
	}
}

// operandText returns the operands of an instruction's text without blanks.
func operandText(s string) string {
	if _, start := parseGuard(s); start > 0 {
		s = s[start:]
	}
	_, s, _ = strings.Cut(s, " ")
	return strings.ReplaceAll(s, " ", "")
}

// problem says what is wrong with the number or register at pos, which is one of s's
// kind that s cannot hold, and where it ends; "" where it is of another kind.
func (s *Slot) problem(text string, pos int, pc uint64) (problem string, end int) {
	switch s.Kind {
	case KindReg, KindUReg, KindPred, KindUPred:
		return s.registerProblem(text, pos)
	case KindF16, KindBF16, KindF32, KindF64, KindF16Q, KindBF16Q, KindF32Q:
		n := uint(s.Field.Width())
		x, end, problem := floatFormats[s.Kind].parse(text, pos, 0, loosely)
		switch {
		case end < 0:
			return "", 0
		case problem != "" && !strings.HasPrefix(problem, "0x"):
			problem += " (--allow round writes it)"
		case problem == "" && n < 64 && x>>n != 0:
			problem = fmt.Sprintf("%s has more than the %d bits of the number here", foundAt(text, pos), n)
		}
		return problem, end
	}
	x, neg, end := scanHex(text, pos, true)
	if end >= 0 {
		token := text[pos:end]
		if n := strings.IndexFunc(text[end:], func(c rune) bool { return !isWordByte(byte(c)) }); n > 0 {
			token = text[pos : end+n] // digits beyond 64 bits
		} else if n < 0 {
			token = text[pos:]
		}
		return s.wholeProblem(token, x, neg, pc), end
	}
	start := pos
	if at(text, pos) == '-' {
		start++
	}
	if end := skipDecimal(text, start, true); end >= 0 && strings.ContainsAny(text[start:end], ".eE") {
		return fmt.Sprintf("%s is no whole number", text[pos:end]), end
	}
	return "", 0
}

// registerProblem is problem for registers.
func (s *Slot) registerProblem(text string, pos int) (problem string, end int) {
	r := &registers[s.Kind]
	num, ok := strings.CutPrefix(text[min(pos, len(text)):], r.prefix)
	_, end = scanDec(num, 0)
	if !ok || end < 0 {
		return "", 0
	}
	last := (uint64(1)<<s.Field.Width()-2)<<s.Shift + uint64(s.Add)
	return fmt.Sprintf("there is no %s here; there are %s%d to %s%d and %s%c",
		foundAt(text, pos), r.prefix, s.Add, r.prefix, last, r.prefix, r.special), pos + len(r.prefix) + end
}

// wholeProblem says why s cannot hold the whole number x, written as token.
func (s *Slot) wholeProblem(token string, x uint64, neg bool, pc uint64) string {
	n := uint(s.Field.Width())
	step := uint64(1) << s.Shift
	if (x-uint64(s.Add))&(step-1) != 0 && s.Kind != KindRel {
		return fmt.Sprintf("%s is no multiple of %d", token, step)
	}
	switch s.Kind {
	case KindHex, KindDec:
		if neg {
			return fmt.Sprintf("%s is negative; the number here goes from %#x to %#x", token, s.Add, (^uint64(0)>>(64-n))<<s.Shift+uint64(s.Add))
		}
		return fmt.Sprintf("%s does not fit; the number here goes from %#x to %#x", token, s.Add, (^uint64(0)>>(64-n))<<s.Shift+uint64(s.Add))
	case KindSHex:
		top := uint64(1) << (n - 1) << s.Shift
		last := top - step
		if n == 32 && s.Shift == 0 {
			last += top // the bits of a register, see parse
		}
		return fmt.Sprintf("%s does not fit; the number here goes from -%#x to %#x", token, top, last)
	case KindRel:
		if (x-pc)&(step-1) != 0 {
			return fmt.Sprintf("the target %s is no multiple of %d away from here", token, step)
		}
		return fmt.Sprintf("the target %s is out of reach", token)
	case KindLog2:
		return fmt.Sprintf("%s is the number of no bit of the field, which has %d", token, n)
	}
	return ""
}

// failLit notes that lit was expected at pos, and returns -1.
func (m *matcher) failLit(pos int, lit string) int {
	if m.trace {
		n := 0
		for n < len(lit) && at(m.text, pos+n) == lit[n] && pos+n < len(m.text) {
			n++
		}
		// A name that is another from some letter on is another from its start.
		if isWordByte(at(lit, n)) || isWordByte(at(m.text, pos+n)) {
			for n > 0 && isWordByte(lit[n-1]) {
				n--
			}
		}
		rest := "`" + strings.TrimLeft(lit[n:], " ") + "`"
		if rest == "``" {
			rest = "a blank"
		}
		m.fail(pos+n, rest)
	}
	return -1
}

var kindHelp = [...]string{
	KindReg: "a register R0 to RZ", KindUReg: "a uniform register UR0 to URZ", KindPred: "a predicate P0 to PT",
	KindUPred: "a uniform predicate UP0 to UPT", KindDec: "a decimal number", KindHex: "a number 0x…", KindSHex: "a number 0x… or -0x…",
	KindRel: "a target address 0x…", KindF16: "a half-precision number", KindBF16: "a bfloat16 number", KindF32: "a number",
	KindF64: "a number", KindF16Q: "a half-precision number", KindBF16Q: "a bfloat16 number", KindF32Q: "a number", KindLog2: "the number of a bit, 0x…",
}
