package rule

import (
	"strconv"
	"strings"

	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/patch/check"
	"github.com/cupatch/cupatch/patch/code"
)

// compileAssign makes field=value, field+=value and field-=value ready.
func (c *compiled) compileAssign(i int, ch *change) (func(*editing) error, error) {
	switch d := fieldNames[ch.field]; {
	case d == nil || d.fixed != "":
	case d.flag:
		return c.compileFlag(ch, d)
	case d.kind == fieldWait:
		return c.compileWait(ch)
	default:
		return c.compileControl(i, ch, d)
	}
	if err := c.checkSettable(i, ch); err != nil {
		return nil, err
	}
	scope := c.names.of(i, 0)
	if scope.groups[ch.field] != nil {
		return c.compileGroup(scope, ch)
	}
	return c.compileOperand(i, ch)
}

// checkSettable sees that a field exists and can be set.
func (c *compiled) checkSettable(i int, ch *change) error {
	r := c.rule
	if head, _, ok := strings.Cut(ch.field, "."); ok && (head == "prev" || head == "next") {
		return r.errAt(&r.set, ch.pos, "only the matched instruction can be changed, not the one before or after").
			hint("a window matches both: x:* ; LDG => x: stall=4")
	}
	if d := fieldNames[ch.field]; d != nil && d.fixed != "" {
		e := r.errAt(&r.set, ch.pos, "%s", strings.ReplaceAll(d.fixed, "%s", d.name))
		e.Help = d.instead
		return e
	}
	scope := c.names.of(i, 0)
	if scope.groups[ch.field] != nil || scope.operands[ch.field] {
		return nil
	}
	if r.itemOf(strings.SplitN(ch.field, ".", 2)[0]) >= 0 {
		return r.errAt(&r.set, ch.pos, "%s: a label goes before the list of changes: x: field=value", ch.field)
	}
	return r.errAt(&r.set, ch.pos, "no %s on %s has a field %s", c.items[i].opcode, c.arch, ch.field).lacking().
		hint("fields: %s", strings.Join(scope.all(), " "))
}

// intValue compiles the value of a change as a whole number.
func (c *compiled) intValue(i int, ch *change) (*compiledExpr, error) {
	r := c.rule
	if ch.quoted {
		return nil, r.errAt(&r.set, ch.valuePos, "%s takes a number, not text", ch.field)
	}
	ec := &exprCompiler{rule: r, src: &r.set, offset: ch.valuePos, text: ch.value, names: c.names, self: i}
	x, err := ec.compile()
	if err != nil {
		return nil, err
	}
	if x.typ != typeInt {
		return nil, r.errAt(&r.set, ch.valuePos, "%s takes a whole number, not %s", ch.field, x.typ)
	}
	return x, nil
}

// eval evaluates a numeric value for the instruction at hand.
func (ed *editing) eval(x *compiledExpr, ch *change) (int64, error) {
	ed.ctx.divided = false
	v, ok := x.num(ed.ctx)
	if !ok && ed.ctx.divided {
		return 0, ed.errorf(ch.valuePos, "%s divides by 0 here", ch.value)
	}
	if !ok {
		return 0, ed.errorf(ch.valuePos, "%s has no value here: the instruction lacks a field it names", ch.value)
	}
	return v, nil
}

// combine applies = += -=.
func (ch *change) combine(old, v int64) int64 {
	switch ch.kind {
	case changeAdd:
		return old + v
	case changeSub:
		return old - v
	}
	return v
}

// compileControl makes an assignment to stall, batch, wbar or rbar ready.
func (c *compiled) compileControl(i int, ch *change, d *field) (func(*editing) error, error) {
	f, most, bar := d.bits, d.most, d.kind == fieldBar
	if ch.value == "-" && ch.kind == changeAssign {
		none := uint64(0)
		if bar {
			none = isa.NoBar
		}
		if ch.field == "stall" {
			return nil, c.rule.errAt(&c.rule.set, ch.valuePos, "stall is a number from 0 to 15")
		}
		return func(ed *editing) error { return ed.set(f, none, ch.pos) }, nil
	}
	x, err := c.intValue(i, ch)
	if err != nil {
		return nil, err
	}
	return func(ed *editing) error {
		v, err := ed.eval(x, ch)
		if err != nil {
			return err
		}
		if ch.field == "batch" && isa.YieldField.Get(ed.word) != 0 {
			return ed.errorf(ch.pos, "bits 122–124 are reuse flags while yield is -, not the batch number")
		}
		v = ch.combine(int64(f.Get(ed.word)), v)
		if bar && v == isa.NoBar && ch.kind == changeAssign {
			return ed.set(f, isa.NoBar, ch.pos)
		}
		if v < 0 || v > most {
			return ed.errorf(ch.pos, "%s would be %d; it goes from 0 to %d", ch.field, v, most)
		}
		return ed.set(f, uint64(v), ch.pos)
	}, nil
}

// compileWait makes wait=0,1 wait+=2 wait-=B01---- ready.
func (c *compiled) compileWait(ch *change) (func(*editing) error, error) {
	mask, err := parseWait(ch.value)
	if err != nil {
		return nil, c.rule.errAt(&c.rule.set, ch.valuePos, "%v", err)
	}
	return func(ed *editing) error {
		v := isa.WaitField.Get(ed.word)
		switch ch.kind {
		case changeAssign:
			v = uint64(mask)
		case changeAdd:
			v |= uint64(mask)
		case changeSub:
			v &^= uint64(mask)
		}
		return ed.set(isa.WaitField, v, ch.pos)
	}, nil
}

func errWait(s string) error {
	return &valueError{"wait", s, "write scoreboards as 0,1 or B01----, or - for none"}
}

// A valueError is a value that a field cannot take.
type valueError struct{ field, value, want string }

func (e *valueError) Error() string {
	return e.field + ": " + strconv.Quote(e.value) + " is no value; " + e.want
}

// compileFlag makes yield=Y and reuse.b=- ready.
func (c *compiled) compileFlag(ch *change, d *field) (func(*editing) error, error) {
	r := c.rule
	if ch.kind != changeAssign {
		return nil, r.errAt(&r.set, ch.pos, "%s is a flag: assign it or toggle it with ~%s", ch.field, ch.field)
	}
	f := d.bits
	bit := uint64(0)
	switch {
	case ch.field == "yield" && ch.value == "Y":
	case ch.field == "yield" && ch.value == "-":
		bit = 1
	case ch.field == "yield":
		return nil, r.errAt(&r.set, ch.valuePos, "yield takes Y or -, not %s", ch.value)
	case ch.value == "-" || ch.value == "0" || ch.value == "false":
	case ch.value == "1" || ch.value == "true":
		bit = 1
	default:
		return nil, r.errAt(&r.set, ch.valuePos, "%s takes 1 or -, not %s", ch.field, ch.value)
	}
	return func(ed *editing) error {
		if ch.field != "yield" && isa.YieldField.Get(ed.word) == 0 {
			if bit == 0 {
				return nil // no reuse flags while bit 109 is 0
			}
			if err := ed.refuse(check.RefuseSchedule, ch.pos, "bits 122–124 are the batch number while yield is Y, not reuse flags"); err != nil {
				return err
			}
		}
		return ed.set(f, bit, ch.pos)
	}, nil
}

// compileGroup makes group=VALUE ready.
func (c *compiled) compileGroup(scope *nameScope, ch *change) (func(*editing) error, error) {
	r := c.rule
	if ch.kind != changeAssign {
		return nil, r.errAt(&r.set, ch.pos, "%s takes a value by name: %s", ch.field, strings.Join(scope.values(ch.field), " "))
	}
	want := strings.TrimPrefix(ch.value, ".")
	if ch.value == "-" {
		want = ""
	}
	if want != "" && !scope.has(ch.field, want) {
		return nil, r.errAt(&r.set, ch.valuePos, "no %s on %s has %s=%s; %s: %s", c.items[c.itemOfChange(ch)].opcode, c.arch,
			ch.field, want, ch.field, strings.Join(scope.values(ch.field), " ")).lacking()
	}
	return func(ed *editing) error {
		g := ed.group(ch.field)
		if g == nil {
			return ed.errorf(ch.pos, "%s on %s has no field %s", ed.name(), c.arch, ch.field)
		}
		raw := g.Default
		if want != "" {
			raw = rawValue(g, want)
		}
		if raw < 0 {
			return ed.errorf(ch.valuePos, "%s on %s has no %s=%s; %s: %s", ed.name(), c.arch, ch.field, ch.value, g.Name, code.LegalTexts(g))
		}
		return ed.set(g.Field, uint64(raw), ch.pos)
	}, nil
}

// itemOfChange returns the item whose list has the change.
func (c *compiled) itemOfChange(ch *change) int {
	for i := range c.rule.lists {
		for k := range c.rule.lists[i].changes {
			if &c.rule.lists[i].changes[k] == ch {
				return i
			}
		}
	}
	return 0
}

// compileOperand makes an assignment to an operand ready: text as nvdisasm writes it,
// a bare register, which replaces the register alone, or, for a whole number, an
// expression.
func (c *compiled) compileOperand(i int, ch *change) (func(*editing) error, error) {
	r := c.rule
	if ch.value == "-" && !ch.quoted {
		return nil, r.errAt(&r.set, ch.valuePos, "%s has no default", ch.field)
	}
	_, number := code.ParseInteger(ch.value)
	if ch.kind != changeAssign || isNumberName(ch.field) && !ch.quoted && !number && c.isExpr(ch.value) {
		x, err := c.intValue(i, ch)
		if err != nil {
			return nil, err
		}
		return func(ed *editing) error {
			v, err := ed.eval(x, ch)
			if err != nil {
				return err
			}
			return ed.setInteger(ch, v)
		}, nil
	}
	if j, field, ok := c.labelled(ch); ok {
		ec := &exprCompiler{rule: r, src: &r.set, offset: ch.valuePos, text: ch.value, names: c.names, self: i}
		f, err := ec.resolve([]string{r.items[j].label, field}, 0)
		if err != nil {
			return nil, err
		}
		text := f.textFunc()
		return func(ed *editing) error {
			s, ok := text(ed.ctx)
			if !ok {
				return ed.errorf(ch.valuePos, "%s has no value here", ch.value)
			}
			return ed.setOperand(ch, s)
		}, nil
	}
	if n, ok := code.ParseInteger(ch.value); ok && isNumberName(ch.field) && !ch.quoted {
		return func(ed *editing) error { return ed.setNumber(ch, n) }, nil
	}
	return func(ed *editing) error { return ed.setOperand(ch, ch.value) }, nil
}

// isExpr reports whether a value looks like an expression rather than the text of an
// operand: it starts with a name in lower case, or computes.
func (c *compiled) isExpr(s string) bool {
	return s[0] >= 'a' && s[0] <= 'z' || strings.ContainsAny(s, "()*/%")
}

// labelled splits a value such as x.dst into the item and the field.
func (c *compiled) labelled(ch *change) (item int, field string, ok bool) {
	label, field, ok := strings.Cut(ch.value, ".")
	if !ok || ch.quoted || label == "" {
		return 0, "", false
	}
	item = c.rule.itemOf(label)
	return item, field, item >= 0
}

// setInteger computes and sets a whole-number operand.
func (ed *editing) setInteger(ch *change, v int64) error {
	if ch.kind != changeAssign {
		op, ok := ed.view().Operand(ch.field)
		if !ok {
			return ed.errorf(ch.pos, "%s has no field %s", ed.name(), ch.field)
		}
		old, ok := op.Integer()
		if !ok {
			return ed.errorf(ch.pos, "%s is %s, no whole number", ch.field, op)
		}
		v = ch.combine(old, v)
	}
	return ed.setNumber(ch, v)
}

// setNumber sets an immediate, or the constant offset of an address.
func (ed *editing) setNumber(ch *change, v int64) error {
	view := ed.view()
	op, ok := view.Operand(ch.field)
	if !ok {
		return ed.errorf(ch.pos, "%s has no field %s", ed.name(), ch.field)
	}
	if s, ok := op.WithOffset(v); ok {
		return ed.putOperand(view, ch, s)
	}
	if v < 0 {
		if _, err := ed.tryOperand(view, ch, "-0x"+strconv.FormatUint(uint64(-v), 16)); err == nil {
			return ed.putOperand(view, ch, "-0x"+strconv.FormatUint(uint64(-v), 16))
		}
		v &= 0xffffffff
	}
	return ed.putOperand(view, ch, "0x"+strconv.FormatUint(uint64(v), 16))
}

// setOperand replaces a named operand by a text; a bare register replaces the
// register and leaves sign, selector, reuse flag and offset.
func (ed *editing) setOperand(ch *change, s string) error {
	view := ed.view()
	op, ok := view.Operand(ch.field)
	if !ok {
		return ed.errorf(ch.pos, "%s has no field %s", ed.name(), ch.field)
	}
	if code.IsRegister(s) {
		if t, ok := op.WithRegister(s); ok {
			s = t
		}
	}
	return ed.putOperand(view, ch, s)
}

func (ed *editing) tryOperand(v *code.View, ch *change, s string) (isa.Word, error) {
	i, _ := v.OperandIndex(ch.field)
	return v.State.Table.WithOperand(v.Inst, i, s, v.PC())
}

func (ed *editing) putOperand(v *code.View, ch *change, s string) error {
	w, err := ed.tryOperand(v, ch, s)
	if err != nil {
		off, why := reason(err)
		if s != ch.value {
			off = 0 // the value is a part of s, or computed
		} else if ch.quoted {
			off++
		}
		return ed.errorf(ch.valuePos+off, "%s=%s: %s", ch.field, s, why)
	}
	ed.word = w
	return nil
}
