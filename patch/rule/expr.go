package rule

import (
	"errors"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
)

// Conditions and values are written in the language of expr-lang/expr, whose parser
// reads them. They are compiled here, into closures, for two reasons: a comparison
// with a field that an instruction lacks must be false, whatever the operator, and
// names and literals must be checked against the tables of the architecture.

// A valueType is the static type of an expression.
type valueType uint8

const (
	typeInt valueType = iota
	typeFloat
	typeText
	typeBool
)

func (t valueType) String() string {
	return [...]string{"a number", "a number with a fraction", "text", "a truth value"}[t]
}

// A compiledExpr is an expression ready to run. Of the functions those that fit typ are
// set; ok is false where a field that the expression needs is missing.
type compiledExpr struct {
	typ   valueType
	num   func(*evalCtx) (v int64, ok bool)
	flt   func(*evalCtx) (v float64, ok bool)
	text  func(*evalCtx) (v string, ok bool)
	truth func(*evalCtx) (v, ok bool)

	field  *fieldRef       // the expression is a field and nothing else
	lit    bool            // the expression is a literal, or computed from nothing else
	zero   bool            // the expression is 0 wherever it has a value: stall-stall
	kernel bool            // the expression depends on the kernel alone, not on the instruction
	pos    int             // byte position in the source
	and    []*compiledExpr // the two sides of an `and`
}

// An exprCompiler turns expressions of one rule into compiledExprs.
type exprCompiler struct {
	rule   *Rule
	src    *source
	offset int // of the expression in src
	text   string
	names  *names
	self   int       // item that a bare field means, -1: it must be said
	owner  *compiled // takes the fields that seen counts; nil where seen has no place
}

// compile compiles the expression.
func (c *exprCompiler) compile() (*compiledExpr, error) {
	n, err := c.parse()
	if err != nil {
		return nil, err
	}
	return c.expr(n)
}

// parse reads the expression.
func (c *exprCompiler) parse() (ast.Node, error) {
	cfg := conf.CreateNew()
	cfg.DisableIfOperator = true
	cfg.MaxNodes = 2000
	tree, err := parser.ParseWithConfig(c.text, cfg)
	if err != nil {
		var fe *file.Error
		if errors.As(err, &fe) {
			e := c.errorf(c.bytePos(fe.From), "%s", fe.Message)
			if strings.Contains(fe.Message, `Operator("=")`) {
				e.Help = "== compares; text matches a regular expression with: kernel matches \"^gemm\""
			}
			return nil, e
		}
		return nil, c.errorf(0, "%v", err)
	}
	return tree.Node, nil
}

// bytePos turns expr's position, counted in characters, into bytes.
func (c *exprCompiler) bytePos(runes int) int {
	for i := range c.text {
		if runes == 0 {
			return i
		}
		runes--
	}
	return len(c.text)
}

func (c *exprCompiler) at(n ast.Node) int { return c.bytePos(n.Location().From) }

func (c *exprCompiler) errorf(pos int, format string, args ...any) *Error {
	return c.rule.errAt(c.src, c.offset+pos, format, args...)
}

func (c *exprCompiler) expr(n ast.Node) (*compiledExpr, error) {
	pos := c.at(n)
	switch n := n.(type) {
	case *ast.IntegerNode:
		return intLit(int64(n.Value), pos), nil
	case *ast.FloatNode:
		v := n.Value
		return &compiledExpr{typ: typeFloat, lit: true, kernel: true, pos: pos, flt: func(*evalCtx) (float64, bool) { return v, true }}, nil
	case *ast.StringNode:
		return textLit(n.Value, pos), nil
	case *ast.BoolNode:
		v := n.Value
		return &compiledExpr{typ: typeBool, lit: true, kernel: true, pos: pos, truth: func(*evalCtx) (bool, bool) { return v, true }}, nil
	case *ast.IdentifierNode, *ast.MemberNode:
		return c.fieldExpr(n)
	case *ast.UnaryNode:
		return c.unary(n)
	case *ast.BinaryNode:
		return c.binary(n)
	case *ast.ConditionalNode:
		return c.conditional(n)
	case *ast.BuiltinNode:
		return c.call(n.Name, n.Arguments, pos)
	case *ast.CallNode:
		if id, ok := n.Callee.(*ast.IdentifierNode); ok {
			return c.call(id.Value, n.Arguments, pos)
		}
	}
	return nil, c.errorf(pos, "this form of expression has no meaning here")
}

func intLit(v int64, pos int) *compiledExpr {
	return &compiledExpr{typ: typeInt, lit: true, kernel: true, pos: pos, num: func(*evalCtx) (int64, bool) { return v, true }}
}

func textLit(v string, pos int) *compiledExpr {
	return &compiledExpr{typ: typeText, lit: true, kernel: true, pos: pos, text: func(*evalCtx) (string, bool) { return v, true }}
}

// asFloat returns x as a floating-point expression.
func (x *compiledExpr) asFloat() func(*evalCtx) (float64, bool) {
	if x.typ == typeFloat {
		return x.flt
	}
	num := x.num
	return func(ctx *evalCtx) (float64, bool) {
		v, ok := num(ctx)
		return float64(v), ok
	}
}

// holds evaluates a condition: a missing field makes it false.
func (x *compiledExpr) holds(ctx *evalCtx) bool {
	v, ok := x.truth(ctx)
	return v && ok
}

func (c *exprCompiler) truthOf(n ast.Node) (*compiledExpr, error) {
	x, err := c.expr(n)
	if err != nil {
		return nil, err
	}
	if x.typ != typeBool {
		e := c.errorf(x.pos, "want a condition here, not %s", x.typ)
		if x.field != nil {
			e.Help = "compare it: " + x.field.name + " == …"
		}
		return nil, e
	}
	return x, nil
}

func (c *exprCompiler) unary(n *ast.UnaryNode) (*compiledExpr, error) {
	pos := c.at(n)
	switch n.Operator {
	case "not", "!":
		x, err := c.truthOf(n.Node)
		if err != nil {
			return nil, err
		}
		// `a not in b` is one comparison and stays false for a missing field; `not
		// (a in b)` is a statement about it and turns it round.
		bin, _ := n.Node.(*ast.BinaryNode)
		infix := bin != nil && bin.Location().From == n.Location().From
		f := x.truth
		return &compiledExpr{typ: typeBool, kernel: x.kernel, pos: pos, truth: func(ctx *evalCtx) (bool, bool) {
			v, ok := f(ctx)
			if infix {
				return ok && !v, ok
			}
			return !(v && ok), true
		}}, nil
	case "-", "+":
		x, err := c.expr(n.Node)
		if err != nil {
			return nil, err
		}
		if x.typ > typeFloat {
			return nil, c.errorf(x.pos, "%s takes a number, not %s", n.Operator, x.typ)
		}
		if n.Operator == "+" {
			return x, nil
		}
		y := &compiledExpr{typ: x.typ, lit: x.lit, kernel: x.kernel, pos: pos}
		if num := x.num; x.typ == typeInt {
			y.num = func(ctx *evalCtx) (int64, bool) { v, ok := num(ctx); return -v, ok }
		} else {
			flt := x.flt
			y.flt = func(ctx *evalCtx) (float64, bool) { v, ok := flt(ctx); return -v, ok }
		}
		return y, nil
	}
	return nil, c.errorf(pos, "operator %s has no meaning here", n.Operator)
}

func (c *exprCompiler) binary(n *ast.BinaryNode) (*compiledExpr, error) {
	switch n.Operator {
	case "and", "&&", "or", "||":
		return c.logical(n)
	case "==", "!=", "<", "<=", ">", ">=":
		return c.compare(n)
	case "in":
		return c.in(n)
	case "matches", "contains", "startsWith", "endsWith":
		return c.textOp(n)
	case "+", "-", "*", "/", "%":
		return c.arith(n)
	}
	return nil, c.errorf(c.at(n), "operator %s has no meaning here", n.Operator)
}

func (c *exprCompiler) logical(n *ast.BinaryNode) (*compiledExpr, error) {
	x, err := c.truthOf(n.Left)
	if err != nil {
		return nil, err
	}
	y, err := c.truthOf(n.Right)
	if err != nil {
		return nil, err
	}
	r := &compiledExpr{typ: typeBool, kernel: x.kernel && y.kernel, pos: c.at(n)}
	if n.Operator == "and" || n.Operator == "&&" {
		r.and = []*compiledExpr{x, y}
		r.truth = func(ctx *evalCtx) (bool, bool) { return x.holds(ctx) && y.holds(ctx), true }
	} else {
		r.truth = func(ctx *evalCtx) (bool, bool) { return x.holds(ctx) || y.holds(ctx), true }
	}
	return r, nil
}

func (c *exprCompiler) conditional(n *ast.ConditionalNode) (*compiledExpr, error) {
	cond, err := c.truthOf(n.Cond)
	if err != nil {
		return nil, err
	}
	x, err := c.expr(n.Exp1)
	if err != nil {
		return nil, err
	}
	y, err := c.expr(n.Exp2)
	if err != nil {
		return nil, err
	}
	if x.typ != y.typ {
		return nil, c.errorf(c.at(n), "one side is %s, the other %s", x.typ, y.typ)
	}
	r := &compiledExpr{typ: x.typ, kernel: cond.kernel && x.kernel && y.kernel, pos: c.at(n)}
	pick := func(ctx *evalCtx) *compiledExpr {
		if cond.holds(ctx) {
			return x
		}
		return y
	}
	r.num = func(ctx *evalCtx) (int64, bool) { return pick(ctx).num(ctx) }
	r.flt = func(ctx *evalCtx) (float64, bool) { return pick(ctx).flt(ctx) }
	r.text = func(ctx *evalCtx) (string, bool) { return pick(ctx).text(ctx) }
	r.truth = func(ctx *evalCtx) (bool, bool) { return pick(ctx).truth(ctx) }
	return r, nil
}

// arith compiles + - * / %. Numbers are whole unless a literal or / makes them
// otherwise; division by 0 has no value, and is an error where it is known.
func (c *exprCompiler) arith(n *ast.BinaryNode) (*compiledExpr, error) {
	x, y, err := c.numbers(n.Left, n.Right, n.Operator)
	if err != nil {
		return nil, err
	}
	r := &compiledExpr{kernel: x.kernel && y.kernel, lit: x.lit && y.lit, pos: c.at(n)}
	r.zero = n.Operator == "-" && n.Left.String() == n.Right.String()
	if (n.Operator == "/" || n.Operator == "%") && y.isZero() {
		return nil, c.errorf(y.pos, "division by 0")
	}
	if n.Operator == "/" || x.typ == typeFloat || y.typ == typeFloat {
		if n.Operator == "%" {
			return nil, c.errorf(r.pos, "%% takes whole numbers")
		}
		r.typ = typeFloat
		fx, fy, op := x.asFloat(), y.asFloat(), n.Operator[0]
		r.flt = func(ctx *evalCtx) (float64, bool) {
			a, ok1 := fx(ctx)
			b, ok2 := fy(ctx)
			v := floatOp(op, a, b)
			return v, ok1 && ok2 && !math.IsNaN(v)
		}
		return r, nil
	}
	r.typ = typeInt
	ix, iy, op := x.num, y.num, n.Operator[0]
	r.num = func(ctx *evalCtx) (int64, bool) {
		a, ok1 := ix(ctx)
		b, ok2 := iy(ctx)
		if !ok1 || !ok2 {
			return 0, false
		}
		if op == '%' && b == 0 {
			ctx.divided = true
			return 0, false
		}
		return intOp(op, a, b), true
	}
	return r, nil
}

// isZero reports whether x is known to be 0.
func (x *compiledExpr) isZero() bool {
	if x.zero || !x.lit {
		return x.zero
	}
	v, ok := x.asFloat()(nil)
	return ok && v == 0
}

func floatOp(op byte, a, b float64) float64 {
	switch op {
	case '+':
		return a + b
	case '-':
		return a - b
	case '*':
		return a * b
	}
	if b == 0 {
		return math.NaN()
	}
	return a / b
}

func intOp(op byte, a, b int64) int64 {
	switch op {
	case '+':
		return a + b
	case '-':
		return a - b
	case '*':
		return a * b
	}
	return a % b
}

// numbers compiles both operands of a numeric operator.
func (c *exprCompiler) numbers(l, r ast.Node, op string) (x, y *compiledExpr, err error) {
	if x, err = c.expr(l); err != nil {
		return nil, nil, err
	}
	if y, err = c.expr(r); err != nil {
		return nil, nil, err
	}
	for _, z := range []*compiledExpr{x, y} {
		if z.typ > typeFloat {
			return nil, nil, c.errorf(z.pos, "%s takes numbers, not %s", op, z.typ)
		}
	}
	return x, y, nil
}

// call compiles min, max, abs, reg and seen.
func (c *exprCompiler) call(name string, args []ast.Node, pos int) (*compiledExpr, error) {
	switch {
	case name == "seen":
		return c.seen(args, pos)
	case name == "reg":
		return c.reg(args, pos)
	case (name == "max" || name == "min") && len(args) >= 2 && len(args) <= 16, name == "abs" && len(args) == 1:
	case name == "max" || name == "min" || name == "abs":
		return nil, c.errorf(pos, "%s takes another number of arguments", name)
	default:
		return nil, c.errorf(pos, "no function %s; there are max, min, abs, reg and seen", name)
	}
	r := &compiledExpr{typ: typeInt, lit: true, kernel: true, pos: pos}
	var nums []func(*evalCtx) (int64, bool)
	for _, a := range args {
		x, err := c.expr(a)
		if err != nil {
			return nil, err
		}
		if x.typ != typeInt {
			return nil, c.errorf(x.pos, "%s takes whole numbers, not %s", name, x.typ)
		}
		r.kernel, r.lit = r.kernel && x.kernel, r.lit && x.lit
		nums = append(nums, x.num)
	}
	r.num = func(ctx *evalCtx) (int64, bool) {
		best, ok := nums[0](ctx)
		for _, f := range nums[1:] {
			v, ok2 := f(ctx)
			ok = ok && ok2
			if name == "max" && v > best || name == "min" && v < best {
				best = v
			}
		}
		if name == "abs" && best < 0 {
			best = -best
		}
		return best, ok
	}
	return r, nil
}

// reg compiles reg(src1): the number of the register that an operand is, and no value where
// it is none, or one that is always zero or true.
func (c *exprCompiler) reg(args []ast.Node, pos int) (*compiledExpr, error) {
	if len(args) != 1 {
		return nil, c.errorf(pos, "reg takes one operand")
	}
	x, err := c.expr(args[0])
	if err != nil {
		return nil, err
	}
	if x.field == nil || x.field.kind != fieldOperand {
		return nil, c.errorf(x.pos, "reg takes an operand such as dst or src1")
	}
	text := x.asText().text
	return &compiledExpr{typ: typeInt, pos: pos, num: func(ctx *evalCtx) (int64, bool) {
		s, ok := text(ctx)
		if !ok {
			return 0, false
		}
		_, n, ok := splitRegister(s)
		return int64(n), ok
	}}, nil
}

// textOp compiles matches, contains, startsWith and endsWith.
func (c *exprCompiler) textOp(n *ast.BinaryNode) (*compiledExpr, error) {
	x, err := c.expr(n.Left)
	if err != nil {
		return nil, err
	}
	x = x.asText()
	if x.field != nil && x.field.kind == fieldRegs {
		return nil, c.errorf(x.pos, "%s has registers; %s takes text", x.field.name, n.Operator).
			hint(`== asks whether a register is in the set: %s == "R4"`, x.field.name)
	}
	lit, ok := n.Right.(*ast.StringNode)
	if x.typ != typeText {
		return nil, c.errorf(x.pos, "%s takes text, not %s", n.Operator, x.typ)
	}
	if !ok {
		return nil, c.errorf(c.at(n.Right), "%s wants text in quotes on its right", n.Operator)
	}
	var test func(string) bool
	switch want := lit.Value; n.Operator {
	case "matches":
		re, err := regexp.Compile(want)
		if err != nil {
			return nil, c.errorf(c.at(n.Right), "%v", err)
		}
		test = re.MatchString
	case "contains":
		test = func(s string) bool { return strings.Contains(s, want) }
	case "startsWith":
		test = func(s string) bool { return strings.HasPrefix(s, want) }
	default:
		test = func(s string) bool { return strings.HasSuffix(s, want) }
	}
	if err := c.checkTextOp(x, n.Operator, lit.Value, c.at(n.Right), test); err != nil {
		return nil, err
	}
	return c.textTest(x, c.at(n), test, false), nil
}

// textTest applies test to x. A kernel has two names, and a positive test needs one
// of them, a negative one both.
func (c *exprCompiler) textTest(x *compiledExpr, pos int, test func(string) bool, negative bool) *compiledExpr {
	f := x.text
	r := &compiledExpr{typ: typeBool, kernel: x.kernel, pos: pos}
	if x.field != nil && x.field.kind == fieldKernel {
		r.truth = func(ctx *evalCtx) (bool, bool) {
			a, b := test(ctx.code.Name), test(ctx.code.Demangled())
			if negative {
				return a && b, true
			}
			return a || b, true
		}
		return r
	}
	r.truth = func(ctx *evalCtx) (bool, bool) {
		s, ok := f(ctx)
		return ok && test(s), ok
	}
	return r
}

// in compiles `x in ["A", "B"]` and `2 in wait`.
func (c *exprCompiler) in(n *ast.BinaryNode) (*compiledExpr, error) {
	arr, ok := n.Right.(*ast.ArrayNode)
	if !ok {
		return c.inWait(n)
	}
	var tests []*compiledExpr
	for _, el := range arr.Nodes {
		eq := &ast.BinaryNode{Operator: "==", Left: n.Left, Right: el}
		eq.SetLocation(el.Location())
		t, err := c.compare(eq)
		if err != nil {
			return nil, err
		}
		tests = append(tests, t)
	}
	if len(tests) == 0 {
		return nil, c.errorf(c.at(n.Right), "nothing is in an empty list")
	}
	r := &compiledExpr{typ: typeBool, pos: c.at(n)}
	r.kernel = !slices.ContainsFunc(tests, func(t *compiledExpr) bool { return !t.kernel })
	r.truth = func(ctx *evalCtx) (bool, bool) {
		all := true
		for _, t := range tests {
			v, ok := t.truth(ctx)
			if v && ok {
				return true, true
			}
			all = all && ok
		}
		return false, all
	}
	return r, nil
}

func (c *exprCompiler) inWait(n *ast.BinaryNode) (*compiledExpr, error) {
	if set, err := c.expr(n.Right); err == nil && set.field != nil && set.field.kind == fieldRegs {
		return nil, c.errorf(set.pos, `in wants a list such as ["EF", "EL"], or wait, on its right`).
			hint(`== asks whether a register is in the set: %s == "R4"`, set.field.name)
	}
	x, y, err := c.numbers(n.Left, n.Right, "in")
	if err != nil {
		return nil, err
	}
	if y.field == nil || y.field.kind != fieldWait {
		return nil, c.errorf(y.pos, `in wants a list such as ["EF", "EL"], or wait, on its right`)
	}
	if x.typ != typeInt {
		return nil, c.errorf(x.pos, "a scoreboard is a whole number")
	}
	if x.lit {
		if v, _ := x.num(nil); v < 0 || v > 5 {
			return nil, c.errorf(x.pos, "%d is never in wait; scoreboards go from 0 to 5", v)
		}
	}
	return &compiledExpr{typ: typeBool, pos: c.at(n), truth: func(ctx *evalCtx) (bool, bool) {
		bit, ok1 := x.num(ctx)
		mask, ok2 := y.num(ctx)
		return bit >= 0 && bit < 6 && mask>>uint(bit)&1 != 0, ok1 && ok2
	}}, nil
}
