package rule

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/isa/kernel"
	"github.com/cupatch/cupatch/isa/nearest"
	"github.com/cupatch/cupatch/patch/code"
	"github.com/expr-lang/expr/ast"
)

// compare compiles == != < <= > >=.
func (c *exprCompiler) compare(n *ast.BinaryNode) (*compiledExpr, error) {
	x, err := c.expr(n.Left)
	if err != nil {
		return nil, err
	}
	y, err := c.expr(n.Right)
	if err != nil {
		return nil, err
	}
	if x, y, err = c.reconcile(x, y); err != nil {
		return nil, err
	}
	if err := c.checkNumber(n.Operator, x, y); err != nil {
		return nil, err
	}
	test := orderTest(n.Operator)
	r := &compiledExpr{typ: typeBool, kernel: x.kernel && y.kernel, pos: c.at(n)}
	switch {
	case x.typ == typeText && y.typ == typeText:
		return c.compareText(n, x, y)
	case x.typ == typeBool && y.typ == typeBool:
		if n.Operator != "==" && n.Operator != "!=" {
			return nil, c.errorf(r.pos, "truth values have no order")
		}
		r.truth = func(ctx *evalCtx) (bool, bool) {
			a, ok1 := x.truth(ctx)
			b, ok2 := y.truth(ctx)
			ok := ok1 && ok2
			return ok && (a == b) == (n.Operator == "=="), ok
		}
	case x.typ == typeInt && y.typ == typeInt:
		r.truth = func(ctx *evalCtx) (bool, bool) {
			a, ok1 := x.num(ctx)
			b, ok2 := y.num(ctx)
			ok := ok1 && ok2
			return ok && test(cmp.Compare(a, b)), ok
		}
	case x.typ <= typeFloat && y.typ <= typeFloat:
		fx, fy := x.asFloat(), y.asFloat()
		r.truth = func(ctx *evalCtx) (bool, bool) {
			a, ok1 := fx(ctx)
			b, ok2 := fy(ctx)
			ok := ok1 && ok2
			return ok && test(cmp.Compare(a, b)), ok
		}
	default:
		e := c.errorf(r.pos, "%s is compared with %s", x.typ, y.typ)
		for _, z := range []*compiledExpr{x, y} {
			if z.field != nil && z.field.kind == fieldGroup {
				e.Help = z.field.name + " is text: " + strings.Join(z.field.scope.values(z.field.name), " ")
			}
		}
		return nil, e
	}
	return r, nil
}

func orderTest(op string) func(int) bool {
	switch op {
	case "==":
		return func(o int) bool { return o == 0 }
	case "!=":
		return func(o int) bool { return o != 0 }
	case "<":
		return func(o int) bool { return o < 0 }
	case "<=":
		return func(o int) bool { return o <= 0 }
	case ">":
		return func(o int) bool { return o > 0 }
	}
	return func(o int) bool { return o >= 0 }
}

func (c *exprCompiler) compareText(n *ast.BinaryNode, x, y *compiledExpr) (*compiledExpr, error) {
	pos := c.at(n)
	if n.Operator != "==" && n.Operator != "!=" {
		return nil, c.errorf(pos, "text has no order; use == or !=")
	}
	negative := n.Operator == "!="
	if y.field != nil && y.field.kind == fieldKernel {
		x, y = y, x
	}
	if y.field != nil && y.field.kind == fieldRegs {
		x, y = y, x
	}
	if x.field != nil && x.field.kind == fieldRegs {
		return c.inRegs(x, y, pos, negative)
	}
	if x.field != nil && x.field.kind == fieldKernel && y.lit {
		want, _ := y.text(nil)
		return c.textTest(x, pos, func(s string) bool { return (s == want) != negative }, negative), nil
	}
	fx, fy := x.text, y.text
	return &compiledExpr{typ: typeBool, kernel: x.kernel && y.kernel, pos: pos, truth: func(ctx *evalCtx) (bool, bool) {
		a, ok1 := fx(ctx)
		b, ok2 := fy(ctx)
		ok := ok1 && ok2
		return ok && (a == b) != negative, ok
	}}, nil
}

// inRegs compiles reads == "R4": whether the register is in the set.
func (c *exprCompiler) inRegs(x, y *compiledExpr, pos int, negative bool) (*compiledExpr, error) {
	if y.field != nil && y.field.kind == fieldRegs {
		return nil, c.errorf(pos, "%s and %s are sets of registers; compare each with a register", x.field.name, y.field.name)
	}
	get := reader(x.field, x.field.def.regs)
	has := func(set *isa.RegSet, name string) bool {
		file, n, ok := splitRegister(name)
		return ok && set.Has(file, n)
	}
	return &compiledExpr{typ: typeBool, pos: pos, truth: func(ctx *evalCtx) (bool, bool) {
		set, ok1 := get(ctx)
		name, ok2 := y.text(ctx)
		ok := ok1 && ok2
		return ok && has(&set, name) != negative, ok
	}}, nil
}

// registerFiles has the files by the letters before the numbers of their registers.
var registerFiles = map[string]isa.RegFile{"R": isa.FileR, "UR": isa.FileUR, "P": isa.FileP, "UP": isa.FileUP, "B": isa.FileB}

// splitRegister returns the file and the number of a register: UR and 6 of UR6.
func splitRegister(s string) (file isa.RegFile, n int, ok bool) {
	digits := strings.TrimLeft(s, "URPB")
	file, ok = registerFiles[s[:len(s)-len(digits)]]
	n, err := strconv.Atoi(digits)
	return file, n, ok && err == nil
}

// lastRegister is the highest register of each file on any architecture. What follows it
// is RZ, URZ, PT or UPT, which hold no value.
var lastRegister = [...]int{isa.FileR: 254, isa.FileUR: 254, isa.FileP: 6, isa.FileUP: 6, isa.FileB: 15}

// reconcile gives the two sides of a comparison types that go together: it checks
// literals against the field on the other side and turns fields that are both number
// and text into what the other side is.
func (c *exprCompiler) reconcile(x, y *compiledExpr) (*compiledExpr, *compiledExpr, error) {
	var err error
	if x.field != nil && y.lit {
		y, err = c.literal(x.field, y)
	} else if y.field != nil && x.lit {
		x, err = c.literal(y.field, x)
	}
	if err != nil {
		return nil, nil, err
	}
	both := x.field != nil && y.field != nil && x.field.dual() && y.field.dual()
	if y.typ == typeText || both {
		x = x.asText()
	}
	if x.typ == typeText || both {
		y = y.asText()
	}
	if y.typ == typeFloat {
		x = x.asNumber()
	}
	if x.typ == typeFloat {
		y = y.asNumber()
	}
	return x, y, nil
}

// asText returns the text of an operand that is number and text; other expressions
// as they are.
func (x *compiledExpr) asText() *compiledExpr {
	if x.field == nil || !x.field.dual() || x.typ == typeText {
		return x
	}
	z := *x
	z.typ, z.text = typeText, x.field.textFunc()
	return &z
}

// asNumber returns the floating-point value of an operand that is number and text.
func (x *compiledExpr) asNumber() *compiledExpr {
	if x.field == nil || x.field.kind != fieldOperand {
		return x
	}
	z := *x
	z.typ, z.flt = typeFloat, x.field.floatFunc()
	return &z
}

// literal checks a literal that is compared with a field and returns it in the
// form in which the field's value comes.
func (c *exprCompiler) literal(f *fieldRef, y *compiledExpr) (*compiledExpr, error) {
	if y.typ != typeText {
		switch {
		case f.kind == fieldYield:
			return nil, c.errorf(y.pos, `yield is "Y" or "-"`)
		case f.kind == fieldOperand && y.typ == typeInt && !isNumberName(f.name):
			return nil, c.errorf(y.pos, "%s is never a number", f.name).
				hint("registers are text and need quotes; a number among the operands, or the offset of an address, is called imm")
		}
		return y, nil
	}
	s, _ := y.text(nil)
	switch f.kind {
	case fieldYield:
		if s != "Y" && s != "-" {
			return nil, c.errorf(y.pos, `yield is "Y" or "-", not %q`, s)
		}
	case fieldBar:
		if s != "-" {
			return nil, c.errorf(y.pos, `%s is a number from 0 to 5, or "-"`, f.name)
		}
		return intLit(isa.NoBar, y.pos), nil
	case fieldWait:
		mask, err := parseWait(s)
		if err != nil {
			return nil, c.errorf(y.pos, "%v", err)
		}
		return intLit(int64(mask), y.pos), nil
	case fieldGuard:
		g, ok := normalGuard(s)
		if !ok {
			return nil, c.errorf(y.pos, `%q is no guard; write "P0", "!P3", "PT" or "UP1"`, s)
		}
		return textLit(g, y.pos), nil
	case fieldOpcode:
		return y, c.checkOpcode(s, y.pos)
	case fieldRegs:
		file, n, ok := splitRegister(s)
		if !ok {
			return nil, c.errorf(y.pos, `%s has registers; write one: "R4", "UR6", "P0", "UP1", "B0"`, f.name)
		}
		if last := lastRegister[file]; n < 0 || n > last {
			return nil, c.errorf(y.pos, "%s is never %q; the registers go from %s0 to %s%d", f.name, s, file, file, last)
		}
	case fieldFrom:
		o, err := kernel.ParseOrigin(s)
		if err != nil {
			return nil, c.errorf(y.pos, "%s is a place in a constant bank: %v", f.name, err)
		}
		return textLit(o.String(), y.pos), nil
	case fieldEntry:
		if _, err := strconv.ParseUint(s, 10, 31); err != nil {
			return nil, c.errorf(y.pos, "entry is a number, not %q", s)
		}
	case fieldArch:
		a, err := TargetArch(s)
		if err != nil {
			return nil, c.errorf(y.pos, "%v", err)
		}
		return textLit(a.String(), y.pos), nil
	case fieldGroup:
		return c.groupLiteral(f, s, y)
	case fieldOperand:
		// A literal that says more than a register is compared with all that prints.
		f.full = !code.IsRegister(s)
		return y, c.checkOperand(f, s, y.pos)
	}
	return y, nil
}

// checkOpcode sees that the architecture has an instruction of that name.
func (c *exprCompiler) checkOpcode(name string, pos int) error {
	known := c.names.table.Mnemonics()
	if slices.Contains(known, name) {
		return nil
	}
	if head, _, dot := strings.Cut(name, "."); dot && slices.Contains(known, head) {
		return c.errorf(pos, "opcode is the name without modifiers: %q", head)
	}
	e := c.errorf(pos, "%s has no instruction %s", c.names.arch, name).lacking()
	if near := nearest.Name(name, known); near != "" {
		e.Help = "did you mean " + near + "?"
	}
	return e
}

func (c *exprCompiler) groupLiteral(f *fieldRef, s string, y *compiledExpr) (*compiledExpr, error) {
	if s == "" || s == "-" {
		return textLit("-", y.pos), nil
	}
	values := f.scope.values(f.name)
	for _, v := range values {
		if v == s {
			return y, nil
		}
	}
	if f.scope.has(f.name, s) {
		return y, nil
	}
	return nil, c.errorf(y.pos, "%s is never %q; %s: %s", f.name, s, f.name, strings.Join(values, " ")).lacking()
}

// parseWait reads a wait mask: digits such as 0,1, a mask such as B01----, or -.
func parseWait(s string) (uint8, error) {
	if s == "-" {
		return 0, nil
	}
	if len(s) == 7 && s[0] == 'B' {
		var m uint8
		for i := range 6 {
			switch s[1+i] {
			case byte('0' + i):
				m |= 1 << i
			case '-':
			default:
				return 0, errWait(s)
			}
		}
		return m, nil
	}
	var m uint8
	for _, d := range strings.Split(s, ",") {
		if len(d) != 1 || d[0] < '0' || d[0] > '5' {
			return 0, errWait(s)
		}
		m |= 1 << (d[0] - '0')
	}
	return m, nil
}

// normalGuard returns the spelling of a guard that the field has: without @, PT for
// none.
func normalGuard(s string) (string, bool) {
	s = strings.TrimPrefix(s, "@")
	if s == "" || s == "-" {
		return "PT", true
	}
	t := strings.TrimPrefix(s, "!")
	t = strings.TrimPrefix(t, "U")
	if len(t) != 2 || t[0] != 'P' || t[1] != 'T' && (t[1] < '0' || t[1] > '6') {
		return "", false
	}
	return s, true
}
