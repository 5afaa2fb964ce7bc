package rule

import (
	"strconv"
	"strings"

	"github.com/cupatch/cupatch/patch/internal/ascii"
)

// Limits of what a rule may ask for; real rules stay far below them.
const (
	maxItems   = 64
	maxCount   = 1 << 20
	maxGap     = 4096
	maxChanges = 64
	maxText    = 1 << 16
)

// Parse reads a rule written on one line, `MATCH [if CONDITION] => CHANGES`.
// The name, which may be empty, and the number stand in errors. Errors are of type
// *RuleError.
func Parse(name string, number int, text string) (*Rule, error) {
	r := &Rule{Name: name, Number: number}
	whole := source{text: text, full: text}
	at, bad, msg := splitArrow(text)
	if bad >= 0 {
		return nil, r.errAt(&whole, bad, "%s", msg)
	}
	if at < 0 {
		return nil, r.errAt(&whole, len(text), "no => and changes").hint("a rule reads MATCH [if CONDITION] => CHANGES")
	}
	r.set = source{text: text[at+2:], base: at + 2, full: text}
	r.splitMatch(text[:at], text)
	if err := r.parse(true); err != nil {
		return nil, err
	}
	return r, nil
}

// ParseMatch reads `MATCH [if CONDITION]`, a rule without changes that only finds.
func ParseMatch(text string) (*Rule, error) {
	r := &Rule{Name: "match", Number: 1}
	whole := source{text: text, full: text}
	at, bad, msg := splitArrow(text)
	if bad >= 0 {
		return nil, r.errAt(&whole, bad, "%s", msg)
	}
	if at >= 0 {
		return nil, r.errAt(&whole, at, "a match takes no changes")
	}
	r.splitMatch(text, text)
	if err := r.parse(false); err != nil {
		return nil, err
	}
	return r, nil
}

// Parts is a rule written in three parts, as a recipe gives it.
type Parts struct {
	Name           string
	Number         int
	Last           bool
	Match, If, Set Part
}

// A Part is a part of a rule and where it is written, file:line:column.
type Part struct{ Text, Pos string }

// ParseParts reads a rule written in three parts.
func ParseParts(p Parts) (*Rule, error) {
	part := func(name string, x Part) source { return source{text: x.Text, full: x.Text, part: name, pos: x.Pos} }
	r := &Rule{Name: p.Name, Number: p.Number, Last: p.Last, match: part("match", p.Match), cond: part("if", p.If), set: part("set", p.Set)}
	if err := r.checkBrackets(); err != nil {
		return nil, err
	}
	if at, _, _ := splitArrow(r.match.text); at >= 0 {
		return nil, r.errAt(&r.match, at, "=> belongs in a one-line rule; changes go into set")
	}
	if at := splitIf(r.match.text); at >= 0 {
		return nil, r.errAt(&r.match, at, "the condition goes into if")
	}
	if at, _, _ := splitArrow(r.cond.text); at >= 0 {
		return nil, r.errAt(&r.cond, at, "=> has no place in a condition")
	}
	// A rule without changes keeps its matches from later rules, if it is to.
	if err := r.parse(!p.Last || strings.TrimSpace(r.set.text) != ""); err != nil {
		return nil, err
	}
	return r, nil
}

// splitMatch fills in the match and condition parts from the text before `=>`.
func (r *Rule) splitMatch(text, full string) {
	r.match = source{text: text, full: full}
	if at := splitIf(text); at >= 0 {
		r.match.text = text[:at]
		r.cond = source{text: text[at+2:], base: at + 2, full: full}
	}
}

// parse reads the three parts. What the names in a condition mean is for an architecture
// to say.
func (r *Rule) parse(changes bool) error {
	if err := r.checkBrackets(); err != nil {
		return err
	}
	if err := r.parseItems(); err != nil {
		return err
	}
	if r.cond.base > 0 && strings.TrimSpace(r.cond.text) == "" {
		return r.errAt(&r.cond, 0, "no condition after if")
	}
	if strings.TrimSpace(r.cond.text) != "" {
		ec := &exprCompiler{rule: r, src: &r.cond, text: r.cond.text}
		var err error
		if r.tree, err = ec.parse(); err != nil {
			return err
		}
	}
	if !changes {
		return nil
	}
	return r.parseLists()
}

// checkBrackets sees that quotes and brackets are closed in each part.
func (r *Rule) checkBrackets() error {
	for _, s := range []*source{&r.match, &r.cond, &r.set} {
		if pos, msg := scanTop(s.text, func(int) bool { return true }); pos >= 0 {
			return r.errAt(s, pos, "%s", msg)
		}
		if len(s.text) > maxText {
			return r.errAt(s, 0, "a rule of more than %d bytes", maxText)
		}
	}
	return nil
}

func (r *Rule) parseItems() error {
	parts := splitSemi(r.match.text)
	if len(parts) > maxItems {
		return r.errAt(&r.match, parts[maxItems].pos, "more than %d items", maxItems)
	}
	labels := map[string]bool{}
	for _, p := range parts {
		it, err := r.parseItem(p)
		if err != nil {
			return err
		}
		if it.label != "" {
			if labels[it.label] {
				return r.errAt(&r.match, it.labelPos, "label %s is used twice", it.label)
			}
			labels[it.label] = true
		}
		r.items = append(r.items, it)
	}
	return r.checkGaps()
}

// checkGaps refuses gaps that have nothing to stand between.
func (r *Rule) checkGaps() error {
	for i, it := range r.items {
		switch {
		case !it.gap:
		case i == 0 || i == len(r.items)-1:
			return r.errAt(&r.match, it.pos, "a gap needs an instruction on both sides")
		case r.items[i-1].gap:
			return r.errAt(&r.match, it.pos, "two gaps in a row; write one with the sum of both")
		}
	}
	return nil
}

func (r *Rule) parseItem(p span) (item, error) {
	sc := &scanner{s: r.match.text[:p.pos+len(p.text)], i: p.pos}
	sc.space()
	it := item{pos: sc.i, min: 1, max: 1}
	if sc.has("...") {
		it.gap = true
		return it, r.parseGap(sc, &it)
	}
	if name, ok := sc.label(); ok {
		if reserved(name) {
			return it, r.errAt(&r.match, it.pos, "%s is a field's name and cannot be a label", name)
		}
		it.label, it.labelPos = name, it.pos
		sc.space()
		it.pos = sc.i
	}
	if sc.peek() == '@' {
		g, err := r.parseGuard(&r.match, sc)
		if err != nil {
			return it, err
		}
		it.guard = &g
		sc.space()
	}
	if err := r.parseOpcode(sc, &it); err != nil {
		return it, err
	}
	sc.space()
	if sc.peek() == '{' {
		it.run = true
		if err := r.parseCount(sc, &it, false); err != nil {
			return it, err
		}
		sc.space()
	}
	if !sc.done() {
		return it, r.errAt(&r.match, sc.i, "unexpected %q", sc.wordAt()).
			hint("a pattern reads [label:] [@P0] OPCODE[.ATOM][!.ATOM] [{min,max}]; conditions follow after if")
	}
	return it, nil
}

func (r *Rule) parseGap(sc *scanner, it *item) error {
	sc.space()
	if sc.peek() != '{' {
		return r.errAt(&r.match, sc.i, "a gap needs its bounds: ...{min,max}")
	}
	if err := r.parseCount(sc, it, true); err != nil {
		return err
	}
	sc.space()
	if !sc.done() {
		return r.errAt(&r.match, sc.i, "unexpected %q after a gap", sc.wordAt())
	}
	return nil
}

// parseCount reads `{min}`, `{min,}` or `{min,max}`; a gap takes only the last.
func (r *Rule) parseCount(sc *scanner, it *item, gap bool) error {
	start := sc.i
	sc.i++ // the brace
	sc.space()
	lo, err := r.parseInt(sc)
	if err != nil {
		return err
	}
	it.min, it.max = lo, lo
	sc.space()
	comma := sc.has(",")
	sc.space()
	switch {
	case comma && sc.peek() == '}':
		it.max = -1
	case comma:
		if it.max, err = r.parseInt(sc); err != nil {
			return err
		}
		sc.space()
	}
	if !sc.has("}") {
		return r.errAt(&r.match, sc.i, "want } after the count")
	}
	if gap && (!comma || it.max < 0) {
		return r.errAt(&r.match, start, "a gap needs both bounds: ...{min,max}")
	}
	if it.max >= 0 && it.max < it.min {
		return r.errAt(&r.match, start, "the count's bounds %d,%d are the wrong way round", it.min, it.max)
	}
	if gap && it.max > maxGap {
		return r.errAt(&r.match, start, "a gap spans at most %d instructions", maxGap)
	}
	if !gap && it.max == 0 {
		return r.errAt(&r.match, start, "a run of no instructions matches nothing")
	}
	return nil
}

func (r *Rule) parseInt(sc *scanner) (int, error) {
	start := sc.i
	digits := sc.while(ascii.Digit)
	n, err := strconv.Atoi(digits)
	if err != nil || n > maxCount {
		return 0, r.errAt(&r.match, start, "want a number up to %d", maxCount)
	}
	return n, nil
}

// parseOpcode reads the opcode pattern, which may have alternatives, and its atoms.
func (r *Rule) parseOpcode(sc *scanner, it *item) error {
	start := sc.i
	for {
		at := sc.i
		name := sc.while(isPatternByte)
		if name == "" {
			if sc.done() {
				return r.errAt(&r.match, at, "no opcode").hint("* matches every instruction")
			}
			return r.errAt(&r.match, at, "want an opcode, not %q", sc.wordAt())
		}
		it.opcodes = append(it.opcodes, name)
		if !sc.has("|") {
			break
		}
	}
	it.opcode = r.match.text[start:sc.i]
	for !sc.done() && (sc.peek() == '.' || sc.peek() == '!') {
		a := atomPattern{absent: sc.has("!")}
		if !sc.has(".") {
			return r.errAt(&r.match, sc.i, "want . and a modifier after !")
		}
		a.pos = sc.i
		a.text = sc.while(isPatternByte)
		switch {
		case a.text == "":
			return r.errAt(&r.match, a.pos, "want a modifier after .")
		case strings.Trim(a.text, "*") == "":
			return r.errAt(&r.match, a.pos, ".%s says nothing", a.text).
				hint("modifiers that a pattern does not list are free anyway: write %s", strings.TrimSuffix(r.match.text[start:a.pos], "."))
		}
		it.atoms = append(it.atoms, a)
	}
	return nil
}

// parseGuard reads `@[!]P0`, `@UPT`, `@P*`.
func (r *Rule) parseGuard(src *source, sc *scanner) (guardPattern, error) {
	g := guardPattern{pos: sc.i}
	sc.i++ // the @
	g.not = sc.has("!")
	g.uniform = sc.has("U")
	c := byte(0)
	if sc.has("P") {
		c = sc.peek()
	}
	switch {
	case c == '*':
		g.any = true
	case c == 'T':
		g.index = 7
	case c >= '0' && c <= '6':
		g.index = c - '0'
	default:
		return g, r.errAt(src, g.pos, "want a guard such as @P0, @!P3, @PT, @UP1 or @P*")
	}
	sc.i++
	if ascii.Name(sc.peek()) {
		return g, r.errAt(src, g.pos, "want a guard such as @P0, @!P3, @PT, @UP1 or @P*")
	}
	return g, nil
}
