package rule

import (
	"maps"
	"slices"
	"strings"

	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/isa/nearest"
	"github.com/cupatch/cupatch/patch/code"
)

// A compiledChange is a change ready to run.
type compiledChange struct {
	*change
	relative bool
	apply    func(ed *editing) error
}

// compileChange makes a change of item i ready.
func (c *compiled) compileChange(i int, ch *change) (compiledChange, error) {
	cc := compiledChange{change: ch}
	var err error
	switch ch.kind {
	case changeSet, changeUnset:
		cc.apply, err = c.compileAtoms(i, ch)
	case changeGuard:
		cc.relative = ch.guard.negate
		cc.apply = func(ed *editing) error { return ed.setGuard(ch) }
	case changeToggle:
		cc.relative = true
		cc.apply, err = c.compileToggle(i, ch)
	case changeBits:
		cc.apply, err = c.compileBits(i, ch)
	case changeText:
		cc.apply, err = c.compileText(ch)
	case changeNOP:
		cc.apply, err = c.compileNOP(ch)
	default:
		cc.relative = ch.kind != changeAssign
		cc.apply, err = c.compileAssign(i, ch)
	}
	return cc, err
}

// A groupValue is a group and a raw value of it.
type groupValue struct {
	group *isa.Group
	raw   uint64
}

// compileAtoms makes .A.B and -.A ready. It is an error when no variant that the item
// may match has the values.
func (c *compiled) compileAtoms(i int, ch *change) (func(*editing) error, error) {
	found := map[*isa.Variant][]groupValue{}
	var first *Error
	for _, v := range c.items[i].variants {
		gv, err := c.resolveAtoms(ch, c.table.Groups(v))
		if err == nil {
			found[v] = gv
		} else if first == nil || len(err.Help) > len(first.Help) {
			first = err
		}
	}
	if len(found) == 0 && first != nil {
		name := c.items[i].opcode
		if c.items[i].any {
			name = "no instruction"
		}
		return nil, first.of(name, c.arch, c.items[i].any)
	}
	unset := ch.kind == changeUnset
	return func(ed *editing) error {
		v := ed.inst().Variant
		if v == nil {
			return ed.errorf(ch.pos, "this word is not known, so it has no modifiers to set; control fields, guard and bits[…] work")
		}
		gvs, ok := found[v]
		if !ok {
			var err *Error
			if gvs, err = c.resolveAtoms(ch, c.table.Groups(v)); err != nil {
				err = err.of(ed.name(), c.arch, false)
				err.Msg += ed.where()
				return err
			}
		}
		for _, gv := range gvs {
			raw := gv.raw
			if unset {
				if gv.group.Field.Get(ed.word) != gv.raw {
					continue
				}
				if gv.group.Default < 0 {
					return ed.errorf(ch.pos, "%s has no default; it is one of %s", gv.group.Name, code.LegalTexts(gv.group))
				}
				raw = uint64(gv.group.Default)
			}
			if err := ed.set(gv.group.Field, raw, ch.pos); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

// of completes an error about a missing value with the name of the instruction.
func (e *Error) of(name, arch string, any bool) *Error {
	out := *e
	verb := " has "
	if !strings.HasPrefix(e.Msg, "no ") {
		verb = ": "
	}
	if any && verb == " has " {
		out.Msg = name + " on " + arch + " has " + strings.TrimPrefix(e.Msg, "no ")
	} else {
		out.Msg = name + " on " + arch + verb + e.Msg
	}
	if e.Help != "" && verb == " has " {
		out.Msg += "; " + e.Help
		out.Help = ""
	}
	return &out
}

// resolveAtoms finds the groups that atoms mean: from the left, each time the longest
// value of one group.
func (c *compiled) resolveAtoms(ch *change, groups []*isa.Group) ([]groupValue, *Error) {
	var out []groupValue
	r := c.rule
	for i := 0; i < len(ch.atoms); {
		n, hits := longestValue(ch.atoms[i:], groups)
		at := ch.atoms[i]
		switch {
		case n == 0:
			e := r.errAt(&r.set, at.pos, "no %s", at.text).lacking()
			e.Help = groupsHelp(groups, at.text)
			return nil, e
		case len(hits) > 1:
			var names []string
			for _, h := range hits {
				names = append(names, h.group.Name+"="+h.group.Values[h.raw].Text)
			}
			e := r.errAt(&r.set, at.pos, "%s is a value of %d groups; write %s", at.text, len(hits), strings.Join(names, " or "))
			return nil, e
		}
		if slices.ContainsFunc(out, func(g groupValue) bool { return g.group == hits[0].group }) {
			return nil, r.errAt(&r.set, at.pos, "%s and another value before it belong to the same group %s", at.text, hits[0].group.Name)
		}
		out = append(out, hits[0])
		i += n
	}
	return out, nil
}

// longestValue returns how many of the first atoms form a value, and of which groups.
// Modifiers of operands have names only: group=VALUE.
func longestValue(atoms []atomPattern, groups []*isa.Group) (n int, hits []groupValue) {
	for n = len(atoms); n > 0; n-- {
		text := atoms[0].text
		for _, a := range atoms[1:n] {
			text += "." + a.text
		}
		for _, g := range groups {
			if g.Operand >= 0 {
				continue
			}
			if raw := rawValue(g, text); raw >= 0 {
				hits = append(hits, groupValue{g, uint64(raw)})
			}
		}
		if hits != nil {
			return n, hits
		}
	}
	return 0, nil
}

// rawValue returns the value of g that prints text, a legal one if there are several,
// or -1.
func rawValue(g *isa.Group, text string) int {
	raw := -1
	for i, v := range g.Values {
		if v.Text == text && (raw < 0 || v.Legal && !g.Values[raw].Legal) {
			raw = i
		}
	}
	return raw
}

// groupsHelp lists the values of the group that text most likely means, or those of
// every group.
func groupsHelp(groups []*isa.Group, text string) string {
	var best *isa.Group
	score := 0
	for _, g := range groups {
		for _, v := range g.Values {
			if strings.EqualFold(text, v.Text) {
				return "did you mean " + v.Text + "? " + g.Name + ": " + code.LegalTexts(g)
			}
			if s := likeness(text, v.Text); s > score {
				best, score = g, s
			}
		}
	}
	if best != nil {
		return best.Name + ": " + code.LegalTexts(best)
	}
	var out []string
	for _, g := range groups {
		if t := g.Name + ": " + code.LegalTexts(g); t != g.Name+": " && g.Operand < 0 && !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	return strings.Join(out, "; ")
}

// likeness is the length of the common start of two values, if it is long enough to
// mean something: LTC256B is like LTC64B.
func likeness(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	if n < 2 {
		if d := nearest.Distance(a, b); d == 1 && len(a) > 1 && len(b) > 1 {
			return 1
		}
		return 0
	}
	return n
}

// valueHelp is groupsHelp over a scope.
func valueHelp(s *nameScope, text string) string {
	var all []*isa.Group
	for _, name := range slices.Sorted(maps.Keys(s.groups)) {
		all = append(all, s.groups[name]...)
	}
	if len(all) == 0 {
		return ""
	}
	return groupsHelp(all, text)
}

// compileToggle makes ~field ready: a flag, or a group of two values.
func (c *compiled) compileToggle(i int, ch *change) (func(*editing) error, error) {
	d := fieldNames[ch.field]
	if d != nil && d.flag {
		f := d.bits
		return func(ed *editing) error {
			if strings.HasPrefix(ch.field, "reuse") && isa.YieldField.Get(ed.word) == 0 {
				return ed.errorf(ch.pos, "bits 122–124 are the batch number while yield is Y, not reuse flags")
			}
			return ed.set(f, f.Get(ed.word)^1, ch.pos)
		}, nil
	}
	if d != nil && d.fixed == "" {
		return nil, c.noToggle(ch).hint("%s takes a value: %s=…", ch.field, ch.field)
	}
	if err := c.checkSettable(i, ch); err != nil {
		return nil, err
	}
	if c.names.of(i, 0).groups[ch.field] == nil {
		return nil, c.noToggle(ch)
	}
	return func(ed *editing) error {
		g := ed.group(ch.field)
		if g == nil {
			return ed.errorf(ch.pos, "%s has no field %s to toggle", ed.name(), ch.field)
		}
		if g.Field.Width() != 1 {
			return ed.errorf(ch.pos, "%s has more than two values; assign one: %s", ch.field, code.LegalTexts(g))
		}
		return ed.set(g.Field, g.Field.Get(ed.word)^1, ch.pos)
	}, nil
}

// noToggle returns the error for ~ before a field that has more than two values.
func (c *compiled) noToggle(ch *change) *Error {
	return c.rule.errAt(&c.rule.set, ch.pos, "~ toggles yield, reuse.a, reuse.b, reuse.c and modifiers of two values; %s is none of these", ch.field)
}

// checkTwice refuses two changes of one instruction that set the same modifier group, field
// or guard: the first would do nothing.
func (c *compiled) checkTwice(i int) error {
	list := c.rule.lists[i].changes
	setters := 0
	for k := range list {
		if list[k].kind == changeSet || list[k].kind == changeAssign || list[k].kind == changeGuard {
			setters++
		}
	}
	if setters < 2 {
		return nil
	}
	variants := c.items[i].variants
	if len(variants) == 0 {
		variants = []*isa.Variant{nil}
	}
	for _, v := range variants {
		seen := map[string]bool{}
		for k := range list {
			for _, name := range c.setBy(&list[k], v) {
				if seen[name] {
					return c.rule.errAt(&c.rule.set, list[k].pos, "%s is set twice, here and before", name)
				}
				seen[name] = true
			}
		}
	}
	return nil
}

// setBy returns the names of the fields that a change sets to a value that does not depend
// on what was there, in an instruction of variant v.
func (c *compiled) setBy(ch *change, v *isa.Variant) []string {
	switch {
	case ch.kind == changeAssign:
		return []string{ch.field}
	case ch.kind == changeGuard && !ch.guard.negate:
		return []string{"guard"}
	case ch.kind != changeSet || v == nil:
		return nil
	}
	gvs, err := c.resolveAtoms(ch, c.table.Groups(v))
	if err != nil {
		return nil // another variant has these values
	}
	var out []string
	for _, gv := range gvs {
		out = append(out, gv.group.Name)
	}
	return out
}
