package rule

import (
	"slices"
	"strconv"
	"strings"

	"github.com/cupatch/cupatch/patch/internal/ascii"
)

// parseLists reads the changes and gives each item its own.
func (r *Rule) parseLists() error {
	parts := splitSemi(r.set.text)
	var lists []changeList
	labelled := 0
	for _, p := range parts {
		l, err := r.parseList(p)
		if err != nil {
			return err
		}
		if l.label != "" {
			labelled++
		}
		lists = append(lists, l)
	}
	if !slices.ContainsFunc(lists, func(l changeList) bool { return len(l.changes) > 0 }) {
		at := len(strings.TrimRight(r.set.text, " \t\r\n"))
		return r.errAt(&r.set, at, "no changes").hint(changeHint)
	}
	r.lists = make([]changeList, len(r.items))
	if labelled == 0 {
		return r.placeLists(lists)
	}
	if labelled < len(lists) {
		for _, l := range lists {
			if l.label == "" {
				return r.errAt(&r.set, l.pos, "either all lists of changes have labels or none").
					hint("labels: %s", r.labels())
			}
		}
	}
	given := map[string]bool{}
	for _, l := range lists {
		i := r.itemOf(l.label)
		if i < 0 {
			err := r.errAt(&r.set, l.pos, "no item has the label %s", l.label)
			if all := r.labels(); all != "" {
				err.Help = "labels: " + all
			}
			return err
		}
		if given[l.label] {
			return r.errAt(&r.set, l.pos, "label %s has two lists of changes", l.label)
		}
		given[l.label] = true
		r.lists[i] = l
	}
	return nil
}

// placeLists hands unlabelled lists to the items in order, gaps aside.
func (r *Rule) placeLists(lists []changeList) error {
	k := 0
	for i, it := range r.items {
		if it.gap {
			continue
		}
		if k < len(lists) {
			r.lists[i] = lists[k]
		}
		k++
	}
	if len(lists) > k {
		return r.errAt(&r.set, lists[k].pos, "%d lists of changes, and the match has %d instructions", len(lists), k).
			hint("changes of one instruction are separated by blanks; ; starts those of the next one")
	}
	if len(lists) > 1 || k == 1 {
		return nil
	}
	return r.errAt(&r.set, lists[0].pos, "one list of changes for %d instructions: which one does it mean?", k).
		hint("separate lists with ; or put a label before the list")
}

// labels returns the labels of r's items for a message.
func (r *Rule) labels() string {
	var names []string
	for _, it := range r.items {
		if it.label != "" {
			names = append(names, it.label)
		}
	}
	return strings.Join(names, ", ")
}

// itemOf returns the index of the item with a label, or -1.
func (r *Rule) itemOf(label string) int {
	for i, it := range r.items {
		if it.label == label {
			return i
		}
	}
	return -1
}

func (r *Rule) parseList(p span) (changeList, error) {
	sc := &scanner{s: r.set.text[:p.pos+len(p.text)], i: p.pos}
	sc.space()
	l := changeList{pos: sc.i}
	if name, ok := sc.label(); ok {
		l.label = name
	}
	for {
		sc.space()
		if sc.done() {
			return l, r.checkWhole(&l)
		}
		if len(l.changes) == maxChanges {
			return l, r.errAt(&r.set, sc.i, "more than %d changes for one instruction", maxChanges)
		}
		c, err := r.parseChange(sc)
		if err != nil {
			return l, err
		}
		if !sc.done() && !ascii.Space(sc.peek()) {
			return l, r.errAt(&r.set, sc.i, "want a blank between changes, not %q", sc.wordAt())
		}
		l.changes = append(l.changes, c)
	}
}

// checkWhole sees that a change of the whole instruction stands alone.
func (r *Rule) checkWhole(l *changeList) error {
	for _, c := range l.changes {
		if (c.kind == changeText || c.kind == changeNOP) && len(l.changes) > 1 {
			return r.errAt(&r.set, c.pos, "a whole instruction must be the only change in its list")
		}
	}
	return nil
}

func (r *Rule) parseChange(sc *scanner) (change, error) {
	c := change{pos: sc.i}
	switch ch := sc.peek(); {
	case ch == '"':
		c.kind = changeText
		var err error
		c.value, err = r.parseString(sc)
		return c, err
	case ch == '.':
		c.kind = changeSet
		return c, r.parseAtoms(sc, &c)
	case sc.has("-."):
		sc.i--
		c.kind = changeUnset
		return c, r.parseAtoms(sc, &c)
	case ch == '@':
		c.kind = changeGuard
		return c, r.parseGuardChange(sc, &c)
	case sc.has("~"):
		c.kind = changeToggle
		return c, r.parseField(sc, &c)
	case sc.has("bits["):
		return c, r.parseBits(sc, &c)
	case ascii.NameStart(ch):
		return c, r.parseAssign(sc, &c)
	}
	return c, r.errAt(&r.set, sc.i, "unexpected %q", sc.wordAt()).hint(changeHint)
}

const changeHint = `changes are .EF  -.EF  @P0  @!  @-  field=value  field+=value  field-=value  ~field  bits[a..b]=value  "TEXT"  NOP`

// parseAtoms reads `.A.B`.
func (r *Rule) parseAtoms(sc *scanner, c *change) error {
	for sc.has(".") {
		a := atomPattern{pos: sc.i}
		a.text = sc.while(ascii.Name)
		if a.text == "" {
			return r.errAt(&r.set, sc.i, "want a modifier after .")
		}
		c.atoms = append(c.atoms, a)
	}
	if ch := sc.peek(); ch == '*' || ch == '?' {
		return r.errAt(&r.set, sc.i, "a change names one value; %c works only in a match", ch)
	}
	return nil
}

func (r *Rule) parseGuardChange(sc *scanner, c *change) error {
	rest := sc.s[sc.i+1:]
	alone := func(n int) bool { return len(rest) == n || ascii.Space(rest[n]) }
	switch {
	case strings.HasPrefix(rest, "!") && alone(1):
		c.guard.negate = true
		sc.i += 2
		return nil
	case strings.HasPrefix(rest, "-") && alone(1):
		c.guard.none = true
		sc.i += 2
		return nil
	}
	g, err := r.parseGuard(&r.set, sc)
	if err != nil {
		return err
	}
	if g.any {
		return r.errAt(&r.set, g.pos, "a change names one guard; * works only in a match")
	}
	c.guard.to = g
	return nil
}

// parseField reads `name{.name}`.
func (r *Rule) parseField(sc *scanner, c *change) error {
	start := sc.i
	for {
		if !ascii.NameStart(sc.peek()) {
			return r.errAt(&r.set, sc.i, "want a field's name")
		}
		sc.while(ascii.Name)
		if sc.peek() != '.' {
			break
		}
		sc.i++
	}
	c.field, c.valuePos = sc.s[start:sc.i], start
	return nil
}

func (r *Rule) parseAssign(sc *scanner, c *change) error {
	start := sc.i
	if err := r.parseField(sc, c); err != nil {
		return err
	}
	switch {
	case sc.has("+="):
		c.kind = changeAdd
	case sc.has("-="):
		c.kind = changeSub
	case sc.has("="):
		c.kind = changeAssign
	case c.field == "NOP":
		c.kind = changeNOP
		return nil
	case strings.HasPrefix(strings.TrimLeft(sc.s[sc.i:], " \t+-"), "="):
		return r.errAt(&r.set, sc.i, "no blanks are allowed around = in a change").hint("%s=value", c.field)
	default:
		return r.errAt(&r.set, start, "unexpected %q", sc.s[start:sc.i]).hint(changeHint)
	}
	return r.parseValue(sc, c)
}

// parseValue reads what stands after the operator.
func (r *Rule) parseValue(sc *scanner, c *change) error {
	c.valuePos = sc.i
	if sc.peek() == '"' {
		v, err := r.parseString(sc)
		c.value, c.quoted = v, true
		return err
	}
	c.value = sc.token()
	if c.value == "" {
		return r.errAt(&r.set, sc.i, "no value for %s", c.field)
	}
	return nil
}

func (r *Rule) parseString(sc *scanner) (string, error) {
	start := sc.i
	end := closeQuote(sc.s, start)
	if end < 0 {
		return "", r.errAt(&r.set, start, "quote \" is never closed")
	}
	v, err := strconv.Unquote(sc.s[start : end+1])
	if err != nil {
		return "", r.errAt(&r.set, start, "bad string %s", sc.s[start:end+1])
	}
	sc.i = end + 1
	return v, nil
}

// parseBits reads `a..b]=value`.
func (r *Rule) parseBits(sc *scanner, c *change) error {
	c.kind = changeBits
	num := func() int {
		n, err := strconv.Atoi(sc.while(ascii.Digit))
		if err != nil || n > 127 {
			return -1
		}
		return n
	}
	at := sc.i
	c.lo = num()
	ok := sc.has("..")
	c.hi = num()
	if !ok || c.lo < 0 || c.hi < 0 || !sc.has("]=") {
		return r.errAt(&r.set, at, "want bits[a..b]=value with bit numbers from 0 to 127")
	}
	if c.hi < c.lo || c.hi-c.lo > 63 {
		return r.errAt(&r.set, at, "bits %d..%d: want 1 to 64 bits, the lower number first", c.lo, c.hi)
	}
	c.field = "bits"
	return r.parseValue(sc, c)
}
