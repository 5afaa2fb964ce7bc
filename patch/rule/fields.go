package rule

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/patch/code"
	"github.com/expr-lang/expr/ast"
)

// A fieldRef is a name in an expression, resolved.
type fieldRef struct {
	name  string // without label, prev and next: "evict", "reuse.b"
	kind  fieldKind
	def   *field    // nil for bits, groups and operands
	bits  isa.Field // of bits[a..b]
	item  int       // which item's instruction; -1 the one at hand
	delta int       // -1 prev, 1 next, and so on
	full  bool
	scope *nameScope // of a group or an operand
	fast  map[*isa.Variant]registerField
}

// dual reports whether the field is both a number and text: an operand is one for some
// instructions and the other for others.
func (f *fieldRef) dual() bool { return f.kind == fieldOperand || f.kind == fieldEntry }

// fieldExpr compiles a name such as stall, reuse.b, prev.src2, x.dst.
func (c *exprCompiler) fieldExpr(n ast.Node) (*compiledExpr, error) {
	pos := c.leftmost(n)
	if m, ok := n.(*ast.MemberNode); ok {
		if r, ok := m.Property.(*ast.BinaryNode); ok && r.Operator == ".." {
			return c.bitsExpr(m, r, pos)
		}
	}
	path, ok := memberPath(n)
	if !ok {
		return nil, c.errorf(pos, "this form of expression has no meaning here")
	}
	f, err := c.resolve(path, pos)
	if err != nil {
		return nil, err
	}
	x := &compiledExpr{field: f, pos: pos}
	switch {
	case f.def != nil:
		f.def.read(f, x)
	case f.kind == fieldGroup, f.kind == fieldOperand && !isNumberName(f.name):
		x.typ, x.text = typeText, f.textFunc()
	default:
		x.typ = typeInt
	}
	if f.def == nil && f.kind != fieldGroup {
		x.num = f.numFunc()
	}
	return x, nil
}

// isNumberName tells the operands whose value is a number: immediates and targets of
// branches.
func isNumberName(name string) bool { return strings.HasPrefix(name, "imm") || name == "target" }

// bitsExpr compiles bits[a..b], also of another instruction: prev.bits[0..11].
func (c *exprCompiler) bitsExpr(m *ast.MemberNode, r *ast.BinaryNode, pos int) (*compiledExpr, error) {
	path, ok := memberPath(m.Node)
	if !ok || path[len(path)-1] != "bits" {
		return nil, c.errorf(pos, "this form of expression has no meaning here")
	}
	lo, ok1 := r.Left.(*ast.IntegerNode)
	hi, ok2 := r.Right.(*ast.IntegerNode)
	if !ok1 || !ok2 || lo.Value > hi.Value || hi.Value > 127 || hi.Value-lo.Value > 62 {
		return nil, c.errorf(pos, "want bits[a..b] with bit numbers from 0 to 127, the lower one first, at most 63 bits")
	}
	// A group may be called bits too. Every word has a stall count: that name finds the word.
	path[len(path)-1] = "stall"
	f, err := c.resolve(path, pos)
	var re *Error
	if errors.As(err, &re) {
		re.Msg = strings.ReplaceAll(re.Msg, "stall", "bits")
		re.Help = strings.ReplaceAll(re.Help, ".stall", fmt.Sprintf(".bits[%d..%d]", lo.Value, hi.Value))
	}
	if err != nil {
		return nil, err
	}
	f.kind, f.def, f.name, f.bits = fieldBits, nil, "bits", isa.Bits(lo.Value, hi.Value)
	return &compiledExpr{field: f, pos: pos, typ: typeInt, num: f.numFunc()}, nil
}

// leftmost returns the position where a chain of names starts.
func (c *exprCompiler) leftmost(n ast.Node) int {
	for {
		m, ok := n.(*ast.MemberNode)
		if !ok {
			return c.at(n)
		}
		n = m.Node
	}
}

// memberPath returns the names of a chain a.b.c.
func memberPath(n ast.Node) ([]string, bool) {
	switch n := n.(type) {
	case *ast.IdentifierNode:
		return []string{n.Value}, true
	case *ast.MemberNode:
		prop, ok := n.Property.(*ast.StringNode)
		if !ok || n.Optional {
			return nil, false
		}
		path, ok := memberPath(n.Node)
		return append(path, prop.Value), ok
	}
	return nil, false
}

// resolve finds what a chain of names means: an optional label, any number of prev
// and next, and a field.
func (c *exprCompiler) resolve(path []string, pos int) (*fieldRef, error) {
	f := &fieldRef{item: c.self}
	rest := path
	labelled := false
	if i := c.rule.itemOf(rest[0]); i >= 0 && rest[0] != "" {
		f.item, labelled, rest = i, true, rest[1:]
	}
	for len(rest) > 0 && (rest[0] == "prev" || rest[0] == "next") {
		f.delta++
		if rest[0] == "prev" {
			f.delta -= 2
		}
		rest = rest[1:]
	}
	f.name = strings.Join(rest, ".")
	if f.name == "" {
		return nil, c.errorf(pos, "%s is an instruction; name one of its fields", strings.Join(path, "."))
	}
	if d := fieldNames[f.name]; d != nil && (d.of != ofKernel || len(rest) == len(path)) {
		f.def, f.kind = d, d.kind
	}
	switch {
	case f.def == nil:
	case f.def.of == ofKernel:
		f.item = -1
		return f, nil
	case f.def.of == ofRun:
		return c.resolveRun(f, labelled, pos)
	}
	if f.item < 0 {
		return nil, c.errorf(pos, "%s of which instruction?", f.name).hint("put a label before it: %s", c.rule.labelled(f.name))
	}
	return f, c.resolveField(f, pos)
}

// labelled returns `x.name, y.name` for a message.
func (r *Rule) labelled(name string) string {
	var out []string
	for _, it := range r.items {
		if it.label != "" {
			out = append(out, it.label+"."+name)
		}
	}
	if out == nil {
		return "x.PATTERN gives an item the label x; then write x." + name
	}
	return strings.Join(out, ", ")
}

// resolveRun resolves i and n, which speak of a run.
func (c *exprCompiler) resolveRun(f *fieldRef, labelled bool, pos int) (*fieldRef, error) {
	run := c.rule.runItem()
	if run < 0 || f.delta != 0 || labelled && f.item != run {
		return nil, c.errorf(pos, "%s is a position in a run, and the rule has %s", f.name, c.rule.runCount()).
			hint("a run is written PATTERN{min,max}")
	}
	f.item = run
	return f, nil
}

// runItem returns the only item that is a run, or -1.
func (r *Rule) runItem() int {
	run := -1
	for i, it := range r.items {
		if it.run {
			if run >= 0 {
				return -1
			}
			run = i
		}
	}
	return run
}

func (r *Rule) runCount() string {
	n := 0
	for _, it := range r.items {
		if it.run {
			n++
		}
	}
	if n == 0 {
		return "none"
	}
	return "several"
}

// resolveField finds the kind of a field of an instruction.
func (c *exprCompiler) resolveField(f *fieldRef, pos int) error {
	if c.rule.items[f.item].run && c.rule.runItem() < 0 {
		return c.errorf(pos, "the rule has several runs, and %s would mean all their members", f.name)
	}
	if f.def != nil {
		return nil
	}
	scope := c.names.of(f.item, f.delta)
	f.scope = scope
	if scope.groups[f.name] != nil {
		f.kind = fieldGroup
		return nil
	}
	if scope.operands[f.name] {
		f.kind = fieldOperand
		if it := &c.names.items[f.item]; !it.any {
			f.fast = fastRegisters(c.names.table, it.variants, f.name)
		}
		return nil
	}
	return c.unknownName(f, scope, pos)
}

// unknownName explains a name that nothing has.
func (c *exprCompiler) unknownName(f *fieldRef, scope *nameScope, pos int) error {
	who := "instruction"
	if f.item >= 0 && f.delta == 0 {
		who = c.rule.items[f.item].opcode
	}
	arch := c.names.arch
	if strings.ToUpper(f.name) == f.name {
		if g := scope.groupWith(f.name); g != "" {
			return c.errorf(pos, "no %s on %s has a field %s", who, arch, f.name).
				hint("values are text and need quotes: %s == %q", g, f.name)
		}
		if code.IsRegister(f.name) {
			return c.errorf(pos, "no %s on %s has a field %s", who, arch, f.name).
				hint("registers are text and need quotes: %q", f.name)
		}
	}
	return c.errorf(pos, "no %s on %s has a field %s", who, arch, f.name).lacking().hint("fields: %s", strings.Join(scope.all(), " "))
}

// view returns the instruction that the field speaks of, or nil where there is none.
func (f *fieldRef) view(ctx *evalCtx) *code.View {
	idx := ctx.self
	if f.item >= 0 {
		idx = ctx.index(f.item)
	}
	return ctx.code.View(idx + f.delta)
}

// read makes the expression x read the field that f means.
func (d *field) read(f *fieldRef, x *compiledExpr) {
	x.kernel = d.of == ofKernel
	switch {
	case d.num != nil:
		x.typ, x.num = typeInt, reader(f, d.num)
	case d.text != nil:
		x.typ, x.text = typeText, reader(f, d.text)
	case d.regs != nil:
		x.typ, x.text = typeText, f.textFunc()
	default:
		x.typ, x.truth = typeBool, reader(f, d.truth)
	}
}

// reader returns get for the instruction that f speaks of; without one there is no value.
func reader[T any](f *fieldRef, get func(*evalCtx, *code.View) (T, bool)) func(*evalCtx) (T, bool) {
	if f.def != nil && f.def.of != ofInst {
		return func(ctx *evalCtx) (T, bool) { return get(ctx, nil) }
	}
	return func(ctx *evalCtx) (v T, ok bool) {
		view := f.view(ctx)
		if view == nil {
			return v, false
		}
		return get(ctx, view)
	}
}

// numFunc returns the reader of bits or of an operand as a whole number.
func (f *fieldRef) numFunc() func(*evalCtx) (int64, bool) {
	return reader(f, func(_ *evalCtx, v *code.View) (int64, bool) {
		if f.kind == fieldBits {
			return int64(f.bits.Get(v.Inst.Word)), true
		}
		op, ok := v.Operand(f.name)
		if !ok {
			return 0, false
		}
		return op.Integer()
	})
}

// floatFunc returns the reader of an operand as a floating-point number.
func (f *fieldRef) floatFunc() func(*evalCtx) (float64, bool) {
	return reader(f, func(_ *evalCtx, v *code.View) (float64, bool) {
		op, ok := v.Operand(f.name)
		if !ok {
			return 0, false
		}
		return op.Float()
	})
}

// textFunc returns the reader of a text field; fields that are no text have no value.
func (f *fieldRef) textFunc() func(*evalCtx) (string, bool) {
	if f.def != nil && f.def.text != nil {
		return reader(f, f.def.text)
	}
	if f.def != nil && f.def.regs != nil {
		get := reader(f, f.def.regs)
		return func(ctx *evalCtx) (string, bool) {
			set, ok := get(ctx)
			return set.String(), ok
		}
	}
	return reader(f, func(_ *evalCtx, v *code.View) (string, bool) {
		switch f.kind {
		case fieldGroup:
			return v.Group(f.name)
		case fieldOperand:
			return f.operandText(v)
		}
		return "", false
	})
}

// operandText returns an operand as a condition sees it.
func (f *fieldRef) operandText(v *code.View) (string, bool) {
	if r, ok := f.fast[v.Inst.Variant]; ok && !f.full && v.Inst.Status == isa.StatusKnown {
		return r.value(v.Inst.Word), true
	}
	op, ok := v.Operand(f.name)
	if !ok {
		return "", false
	}
	if f.full {
		return op.Plain(), true
	}
	return op.Value(), true
}
