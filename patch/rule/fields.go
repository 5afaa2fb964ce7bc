package rule

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/patch/code"
	"github.com/expr-lang/expr/ast"
)

// A fieldKind tells what a name in a condition reads.
type fieldKind uint8

const (
	fieldStall fieldKind = iota
	fieldYield
	fieldWBar
	fieldRBar
	fieldWait
	fieldBatch
	fieldReuse
	fieldGroup
	fieldOperand
	fieldWidth
	fieldGuard
	fieldPC
	fieldBlock
	fieldLoop
	fieldKernel
	fieldArch
	fieldEntry
	fieldFile
	fieldI
	fieldN
	fieldBits

	fieldBar = fieldWBar // stands for both scoreboard indices in messages and checks
)

// controlFields are the names that every instruction has.
var controlFields = map[string]fieldKind{
	"stall": fieldStall, "yield": fieldYield, "wbar": fieldWBar, "rbar": fieldRBar, "wait": fieldWait,
	"batch": fieldBatch, "reuse.a": fieldReuse, "reuse.b": fieldReuse, "reuse.c": fieldReuse,
	"width": fieldWidth, "guard": fieldGuard, "pc": fieldPC, "block": fieldBlock, "loop": fieldLoop,
}

// kernelFields are the names that do not depend on the instruction.
var kernelFields = map[string]fieldKind{
	"kernel": fieldKernel, "arch": fieldArch, "entry": fieldEntry, "file": fieldFile,
}

// A fieldRef is a name in an expression, resolved.
type fieldRef struct {
	name  string // without label, prev and next: "evict", "reuse.b"
	kind  fieldKind
	index int       // of a reuse flag: 0–2
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
	switch f.kind {
	case fieldYield, fieldGroup, fieldGuard:
		x.typ, x.text = typeText, f.textFunc()
	case fieldKernel, fieldArch, fieldFile:
		x.typ, x.text, x.kernel = typeText, f.textFunc(), true
	case fieldEntry:
		x.typ, x.num, x.kernel = typeInt, f.numFunc(), true
	case fieldReuse:
		x.typ, x.truth = typeBool, f.reuseFunc()
	case fieldOperand:
		x.typ, x.num = typeInt, f.numFunc()
		if !isNumberName(f.name) {
			x.typ, x.text = typeText, f.textFunc()
		}
	default:
		x.typ, x.num = typeInt, f.numFunc()
	}
	if f.kind == fieldRBar {
		f.kind = fieldBar
		x.num = (&fieldRef{name: f.name, kind: fieldRBar, item: f.item, delta: f.delta}).numFunc()
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
	f.kind, f.name, f.bits = fieldBits, "bits", isa.Bits(lo.Value, hi.Value)
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
	if k, ok := kernelFields[f.name]; ok && len(rest) == len(path) {
		f.kind, f.item = k, -1
		return f, nil
	}
	if f.name == "i" || f.name == "n" {
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
	f.kind = fieldI
	if f.name == "n" {
		f.kind = fieldN
	}
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
	if k, ok := controlFields[f.name]; ok {
		f.kind = k
		if k == fieldReuse {
			f.index = int(f.name[len(f.name)-1] - 'a')
		}
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

// numFunc returns the reader of a numeric field.
func (f *fieldRef) numFunc() func(*evalCtx) (int64, bool) {
	switch f.kind {
	case fieldI:
		return func(ctx *evalCtx) (int64, bool) { return int64(ctx.runPos()), true }
	case fieldN:
		return func(ctx *evalCtx) (int64, bool) { return int64(ctx.runLen()), true }
	case fieldEntry:
		return func(ctx *evalCtx) (int64, bool) {
			n, err := strconv.ParseInt(ctx.code.Entry, 10, 64) // "" for a bare cubin
			return n, err == nil
		}
	case fieldBlock, fieldLoop:
		return func(ctx *evalCtx) (int64, bool) {
			v := f.view(ctx)
			if v == nil {
				return 0, false
			}
			if f.kind == fieldBlock {
				return int64(ctx.code.Flow().Block(v.Index)), true
			}
			return int64(ctx.code.Flow().LoopDepth(v.Index)), true
		}
	}
	return func(ctx *evalCtx) (int64, bool) {
		v := f.view(ctx)
		if v == nil {
			return 0, false
		}
		switch f.kind {
		case fieldStall:
			return int64(isa.StallField.Get(v.Inst.Word)), true
		case fieldWBar:
			return int64(isa.WBarField.Get(v.Inst.Word)), true
		case fieldRBar:
			return int64(isa.RBarField.Get(v.Inst.Word)), true
		case fieldWait:
			return int64(isa.WaitField.Get(v.Inst.Word)), true
		case fieldBatch:
			c := isa.ControlOf(v.Inst.Word)
			return int64(c.Batch), c.Yield
		case fieldPC:
			return int64(v.PC()), true
		case fieldBits:
			return int64(f.bits.Get(v.Inst.Word)), true
		case fieldWidth:
			n := v.Inst.Memory().Bytes
			return int64(n) * 8, n > 0
		case fieldOperand:
			op, ok := v.Operand(f.name)
			if !ok {
				return 0, false
			}
			return op.Integer()
		}
		return 0, false
	}
}

// reuseFunc returns the reader of a reuse flag: bits 122–124 where bit 109 is 1.
func (f *fieldRef) reuseFunc() func(*evalCtx) (v, ok bool) {
	return func(ctx *evalCtx) (bool, bool) {
		v := f.view(ctx)
		if v == nil {
			return false, false
		}
		return isa.ControlOf(v.Inst.Word).Reuse>>f.index&1 != 0, true
	}
}

// floatFunc returns the reader of an operand as a floating-point number.
func (f *fieldRef) floatFunc() func(*evalCtx) (float64, bool) {
	return func(ctx *evalCtx) (float64, bool) {
		v := f.view(ctx)
		if v == nil {
			return 0, false
		}
		op, ok := v.Operand(f.name)
		if !ok {
			return 0, false
		}
		return op.Float()
	}
}

// textFunc returns the reader of a text field.
func (f *fieldRef) textFunc() func(*evalCtx) (string, bool) {
	switch f.kind {
	case fieldKernel:
		return func(ctx *evalCtx) (string, bool) { return ctx.code.Name, true }
	case fieldArch:
		return func(ctx *evalCtx) (string, bool) { return ctx.code.arch, true }
	case fieldEntry:
		return func(ctx *evalCtx) (string, bool) { return ctx.code.Entry, ctx.code.Entry != "" }
	case fieldFile:
		return func(ctx *evalCtx) (string, bool) { return ctx.code.File, true }
	}
	return func(ctx *evalCtx) (string, bool) {
		v := f.view(ctx)
		if v == nil {
			return "", false
		}
		switch f.kind {
		case fieldYield:
			if isa.ControlOf(v.Inst.Word).Yield {
				return "Y", true
			}
			return "-", true
		case fieldGuard:
			return v.Guard(), true
		case fieldGroup:
			return v.Group(f.name)
		case fieldOperand:
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
		return "", false
	}
}
