package rule

import (
	"maps"
	"slices"
	"strings"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/isa/nearest"
	"github.com/cupatch/cupatch/patch/code"
	"github.com/expr-lang/expr/ast"
)

// A compiled is a rule made ready for one architecture.
type compiled struct {
	rule  *Rule
	table *isa.Table
	arch  string
	names *names
	items []compiledItem
	cond  *compiledExpr // nil: always
	// kernelCond is the part of the condition that depends on the kernel alone.
	kernelCond []*compiledExpr
	seen       []func(*evalCtx) (string, bool)
	lists      [][]compiledChange // by item
	run        int                // the only item that is a run, or -1
	relative   bool               // applying it twice may differ from once
	changes    bool
}

// A compiledItem is an item with the variants that it may match.
type compiledItem struct {
	item
	any      bool // the opcode is *
	literal  bool // the opcode has no * or ?
	set      *isa.OpcodeSet
	variants []*isa.Variant
}

// compileRule checks a rule against an architecture's table and makes it ready. Errors
// are of type *RuleError.
func compileRule(r *Rule, t *isa.Table, arch string) (*compiled, error) {
	c := &compiled{rule: r, table: t, arch: arch, run: r.runItem(), names: &names{table: t, arch: arch}}
	for _, it := range r.items {
		ci, err := c.compileItem(it)
		if err != nil {
			return nil, err
		}
		c.items = append(c.items, ci)
	}
	c.names.items = c.items
	if err := c.compileCond(); err != nil {
		return nil, err
	}
	c.lists = make([][]compiledChange, len(c.items))
	for i, l := range r.lists {
		for k := range l.changes {
			cc, err := c.compileChange(i, &l.changes[k])
			if err != nil {
				return nil, err
			}
			c.lists[i] = append(c.lists[i], cc)
			c.changes = true
			c.relative = c.relative || cc.relative
		}
		if err := c.checkTwice(i); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (c *compiled) compileItem(it item) (compiledItem, error) {
	r, t := c.rule, c.table
	ci := compiledItem{item: it}
	if it.gap {
		return ci, nil
	}
	ci.literal = !strings.ContainsAny(it.opcode, "*?|")
	ci.any = slices.ContainsFunc(it.opcodes, func(s string) bool { return strings.Trim(s, "*") == "" })
	ci.set = t.MayMatch(ci.fits)
	if ci.any {
		ci.variants = t.Variants()
		return ci, c.checkAtoms(&ci)
	}
	ci.variants = t.WithOpcodes(ci.set)
	known := t.Mnemonics()
	var missing *Error
	found := false
	for _, name := range it.opcodes {
		if slices.ContainsFunc(known, func(m string) bool { return elfx.MatchGlob(name, m) }) {
			found = true
			continue
		}
		missing = r.errAt(&r.match, it.pos, "%s has no instruction %s", c.arch, name)
		if near := nearest.Name(name, known); near != "" {
			missing.Help = "did you mean " + near + "?"
		}
		missing.unknownOpcode = true
	}
	// An architecture need not have every alternative, but a name that none has is a slip.
	if missing != nil && (!found || missing.Help != "") {
		return ci, missing
	}
	return ci, c.checkAtoms(&ci)
}

// fits reports whether one of the alternatives of the pattern takes a mnemonic.
func (it *item) fits(mnemonic string) bool {
	for _, p := range it.opcodes {
		if elfx.MatchGlob(p, mnemonic) {
			return true
		}
	}
	return false
}

// checkAtoms sees that some variant can print each modifier of a pattern.
func (c *compiled) checkAtoms(ci *compiledItem) error {
	r, t := c.rule, c.table
	if len(ci.atoms) == 0 {
		return nil
	}
	words := modifierWords(ci.variants)
	for _, a := range ci.atoms {
		if slices.ContainsFunc(words, func(w string) bool { return elfx.MatchGlob(a.text, w) }) {
			continue
		}
		e := r.errAt(&r.match, a.pos, "%s on %s has no modifier %s", ci.opcode, c.arch, a.text).lacking()
		if near := nearest.Name(a.text, words); near != "" {
			e.Help = "did you mean " + near + "?"
		} else if g := valueHelp(newScope(t, ci.variants), a.text); g != "" {
			e.Help = g
		}
		return e
	}
	return nil
}

// modifierWords returns every word that may stand between dots in the mnemonics of vs.
func modifierWords(vs []*isa.Variant) []string {
	seen := map[string]bool{}
	for _, v := range vs {
		for _, w := range v.Modifiers() {
			seen[w] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// matches reports whether instruction i fits the item's pattern.
func (ci *compiledItem) matches(c *state, i int) bool {
	w := c.Word(i)
	if !ci.any && !ci.set.Has(w) {
		return false
	}
	if ci.any && ci.guard == nil && len(ci.atoms) == 0 {
		return true
	}
	v := c.View(i)
	if ci.guard != nil && !ci.guard.matches(v) {
		return false
	}
	if ci.any && len(ci.atoms) == 0 {
		return true
	}
	name, rest := code.CutDot(v.Mnemonic())
	if len(name) == 0 {
		return false
	}
	if ci.literal && string(name) != ci.opcode || !ci.literal && !ci.any && !ci.fits(string(name)) {
		return false
	}
	for k := range ci.atoms {
		if !ci.atomFits(k, rest) {
			return false
		}
	}
	return true
}

// atomFits reports whether modifier k of the pattern is there, or absent, in the
// dotted list mods. A modifier written twice must be there twice.
func (ci *compiledItem) atomFits(k int, mods []byte) bool {
	a := &ci.atoms[k]
	need := 1
	for j := range k {
		if !a.absent && !ci.atoms[j].absent && ci.atoms[j].text == a.text {
			need++
		}
	}
	for len(mods) > 0 {
		var m []byte
		m, mods = code.CutDot(mods)
		if string(m) == a.text || strings.ContainsAny(a.text, "*?") && elfx.MatchGlob(a.text, string(m)) {
			if a.absent {
				return false
			}
			if need--; need == 0 {
				return true
			}
		}
	}
	return a.absent
}

// matches compares a guard pattern with an instruction's guard.
func (g *guardPattern) matches(v *code.View) bool {
	if v.Inst.Variant != nil && v.Inst.Variant.Guard == isa.GuardNone {
		return false
	}
	if v.UniformGuard() != g.uniform {
		return false
	}
	index := uint8(isa.GuardField.Get(v.Inst.Word))
	not := isa.GuardNot.Get(v.Inst.Word) != 0
	if g.any {
		return index < 7 && (not || !g.not)
	}
	return index == g.index && not == g.not
}

// meansArch reports whether the rule may apply on an architecture, as far as its condition
// asks for the architecture and nothing else: `arch == "sm_90" and …`. Where it may not, the
// rule need not make sense there.
func (r *Rule) meansArch(t *isa.Table, arch string) (bool, error) {
	if !r.appliesTo(arch) {
		return false, nil
	}
	if r.tree == nil {
		return true, nil
	}
	ec := &exprCompiler{rule: r, src: &r.cond, text: r.cond.text, names: &names{table: t, arch: arch}, self: -1}
	ctx := &evalCtx{code: &state{State: code.NewState(&code.Kernel{}, t), arch: arch}}
	for _, part := range conjunctsOf(r.tree) {
		if only, some := archOnly(part); !only || !some {
			continue
		}
		x, err := ec.truthOf(part)
		if err != nil {
			return false, err
		}
		if !x.holds(ctx) {
			return false, nil
		}
	}
	return true, nil
}

// conjunctsOf returns the parts of n that must all hold.
func conjunctsOf(n ast.Node) []ast.Node {
	if b, ok := n.(*ast.BinaryNode); ok && (b.Operator == "and" || b.Operator == "&&") {
		return append(conjunctsOf(b.Left), conjunctsOf(b.Right)...)
	}
	return []ast.Node{n}
}

// archOnly reports whether n asks for nothing but the architecture, and whether it does.
func archOnly(n ast.Node) (only, some bool) {
	parts := []ast.Node{}
	switch n := n.(type) {
	case *ast.IdentifierNode:
		return n.Value == "arch", n.Value == "arch"
	case *ast.StringNode, *ast.BoolNode:
		return true, false
	case *ast.UnaryNode:
		parts = append(parts, n.Node)
	case *ast.BinaryNode:
		parts = append(parts, n.Left, n.Right)
	case *ast.ArrayNode:
		parts = n.Nodes
	default:
		return false, false
	}
	for _, p := range parts {
		o, s := archOnly(p)
		if !o {
			return false, false
		}
		some = some || s
	}
	return true, some
}

// compileCond compiles the condition and splits off what depends on the kernel alone.
func (c *compiled) compileCond() error {
	if c.rule.tree == nil {
		return nil
	}
	ec := &exprCompiler{rule: c.rule, src: &c.rule.cond, text: c.rule.cond.text, names: c.names, self: c.self(), owner: c}
	x, err := ec.expr(c.rule.tree)
	if err != nil {
		return err
	}
	if x.typ != typeBool {
		return ec.errorf(x.pos, "a condition is true or false; this is %s", x.typ)
	}
	c.cond = x
	for _, part := range x.conjuncts() {
		if part.kernel {
			c.kernelCond = append(c.kernelCond, part)
		}
	}
	return nil
}

// self returns the item that a bare field means, or -1 where there are several.
func (c *compiled) self() int {
	if len(c.items) == 1 {
		return 0
	}
	return -1
}

// conjuncts returns the parts of x that must all hold.
func (x *compiledExpr) conjuncts() []*compiledExpr {
	if x.and == nil {
		return []*compiledExpr{x}
	}
	return append(x.and[0].conjuncts(), x.and[1].conjuncts()...)
}
