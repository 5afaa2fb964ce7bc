package diff

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cupatch/cupatch/isa"
)

// A FieldChange is a part of an instruction that differs.
type FieldChange struct {
	Kind Kinds  // one kind
	Name string // stall, evict, src1, bits 64–69, target
	A, B string
}

func (f FieldChange) String() string { return f.Name + ": " + f.A + " → " + f.B }

// compare says in which kinds instruction i of a differs from j of b, apart from where
// they branch to.
func compare(a, b *Code, i, j int) Kinds {
	if a.norm[i] == b.norm[j] {
		return 0
	}
	c := comparison{a: a, b: b}
	c.words(a.norm[i], b.norm[j])
	return c.kinds
}

// comparison compares one pair of instructions.
type comparison struct {
	a, b   *Code
	x, y   isa.Inst // with the same control bits
	kinds  Kinds
	list   bool
	fields []FieldChange
	own    int // fields before it are of other pairs
}

func (c *comparison) add(k Kinds, name, a, b string) {
	c.kinds |= k
	if c.list {
		c.fields = append(c.fields, FieldChange{k, name, a, b})
	}
}

// compareWords appends to dst in which fields the words of instruction i of a and j of b
// differ.
func compareWords(dst []FieldChange, a, b *Code, i, j int) []FieldChange {
	c := comparison{a: a, b: b, list: true, fields: dst, own: len(dst)}
	c.words(a.norm[i], b.norm[j])
	return c.fields
}

// words compares the instructions p of a and q of b.
func (c *comparison) words(p, q isa.Word) {
	a, b := c.a, c.b
	if a.raw || b.raw || a.Arch != b.Arch && a.Table != b.Table {
		if p != q {
			c.add(Other, "word", p.String(), q.String())
		}
		return
	}
	if !p.Xor(q).And(controlMask).IsZero() {
		c.kinds |= Control
		if c.list {
			c.control(isa.ControlOf(p), isa.ControlOf(q))
		}
	}
	// The control bits also decide whether a reuse flag prints.
	p, q = neutral(p), neutral(q)
	if p == q {
		return
	}
	c.x, c.y = a.decode(p), b.decode(q)
	if c.x.Status != isa.StatusKnown || c.y.Status != isa.StatusKnown {
		p, q = idle(p), idle(q)
		c.x, c.y = a.decode(p), b.decode(q)
	}
	switch {
	case c.x.Status != isa.StatusKnown || c.y.Status != isa.StatusKnown:
		c.bits(Other, p.Xor(q))
	case c.x.Variant == c.y.Variant:
		c.sameVariant()
	default:
		c.texts()
	}
}

// control lists the differences of two control codes.
func (c *comparison) control(p, q isa.Control) {
	add := func(name string, a, b uint8, text func(uint8) string) {
		if a != b {
			c.add(Control, name, text(a), text(b))
		}
	}
	add("stall", p.Stall, q.Stall, number)
	add("yield", boolByte(p.Yield), boolByte(q.Yield), yieldText)
	add("wbar", p.WBar, q.WBar, barText)
	add("rbar", p.RBar, q.RBar, barText)
	add("wait", p.Wait, q.Wait, waitText)
	add("reuse", p.Reuse, q.Reuse, reuseText)
	add("batch", p.Batch, q.Batch, number)
}

func number(n uint8) string { return strconv.Itoa(int(n)) }

func boolByte(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}

func yieldText(y uint8) string { return "-Y"[y : y+1] }

// barText writes the number of a scoreboard.
func barText(n uint8) string {
	if n == isa.NoBar {
		return "-"
	}
	return number(n)
}

// waitText lists the scoreboards of a wait mask.
func waitText(mask uint8) string { return bitText(mask, "0", "1", "2", "3", "4", "5") }

// reuseText lists the operands of a reuse mask.
func reuseText(mask uint8) string { return bitText(mask, "a", "b", "c") }

func bitText(mask uint8, names ...string) string {
	if mask == 0 {
		return "-"
	}
	s := ""
	for i, name := range names {
		if mask>>i&1 != 0 {
			if s != "" {
				s += ","
			}
			s += name
		}
	}
	return s
}

// bits adds the ranges of bits that d has.
func (c *comparison) bits(k Kinds, d isa.Word) {
	c.kinds |= k
	if !c.list {
		return
	}
	for i := 0; i < 128; i++ {
		if d.Bit(i) == 0 {
			continue
		}
		hi := i
		for hi+1 < 128 && d.Bit(hi+1) != 0 && hi-i < 63 {
			hi++
		}
		f := isa.Bits(i, hi)
		name := fmt.Sprintf("bits %d–%d", i, hi)
		if i == hi {
			name = fmt.Sprintf("bit %d", i)
		}
		c.add(k, name, fmt.Sprintf("%#x", f.Get(c.x.Word)), fmt.Sprintf("%#x", f.Get(c.y.Word)))
		i = hi
	}
}

// sameVariant compares two words of one variant field by field.
func (c *comparison) sameVariant() {
	p, q := c.x.Word, c.y.Word
	rest := c.registers(p.Xor(q))
	if rest.IsZero() {
		return
	}
	for _, g := range c.a.Table.Groups(c.x.Variant) {
		m := g.Field.Mask()
		if g.Operand >= 0 || rest.And(m).IsZero() {
			continue
		}
		old, now := groupText(g, p), groupText(g, q)
		if old == now {
			continue
		}
		rest = rest.AndNot(m)
		c.add(Modifiers, g.Name, old, now)
	}
	if rest.IsZero() {
		return
	}
	// What is left and does not change the text is hidden.
	var bufs [3][lineRoom]byte
	with := c.a.decode(p.AndNot(rest).Or(q.And(rest)))
	old, mixed := c.a.Table.AppendText(bufs[0][:0], c.x, 0), c.a.Table.AppendText(bufs[1][:0], with, 0)
	if with.Status == isa.StatusKnown && bytes.Equal(old, mixed) {
		c.bits(Hidden, rest)
		return
	}
	if !c.list {
		c.kinds |= Other
		return
	}
	before := len(c.fields)
	now := c.b.Table.AppendText(bufs[2][:0], c.y, 0)
	if with.Status != isa.StatusKnown {
		mixed = now
	}
	c.operands(old, mixed, now)
	if len(c.fields) == before {
		c.bits(Other, rest)
	}
}

// lineRoom is more than the text of an instruction needs.
const lineRoom = 256

// registers appends to dst every register that in prints, its guard first.
func registers(dst []isa.Operand, in isa.Inst) []isa.Operand {
	n := len(dst)
	for _, o := range in.AppendOperands(dst)[n:] {
		if o.IsReg {
			dst = append(dst, o)
		}
	}
	return dst
}

// registers adds the registers that differ and returns d without their bits. A change
// between a register and none (RZ, PT) is left in d, like everything that is not the
// same slot in both words.
func (c *comparison) registers(d isa.Word) isa.Word {
	var bufs [2][16]isa.Operand
	mine, theirs := registers(bufs[0][:0], c.x), registers(bufs[1][:0], c.y)
	rest := d
	for i, s := range mine {
		m := s.Field.Mask()
		if rest.And(m).IsZero() || i >= len(theirs) || theirs[i].Place != s.Place {
			continue
		}
		old, now := s.First, theirs[i].First
		if old < 0 || now < 0 || old == now {
			continue
		}
		rest = rest.AndNot(m)
		c.kinds |= Registers
		if c.list {
			names := s.File.Names()
			f := FieldChange{Registers, "register", names[old], names[now]}
			if !slices.Contains(c.fields[c.own:], f) {
				c.fields = append(c.fields, f)
			}
		}
	}
	return rest
}

// groupText returns what a modifier group prints in w, `none` for nothing.
func groupText(g *isa.Group, w isa.Word) string {
	raw := g.Field.Get(w)
	if raw >= uint64(len(g.Values)) {
		return fmt.Sprintf("%#x", raw)
	}
	if t := g.Values[raw].Text; t != "" {
		return t
	}
	return "none"
}

// texts compares two words of different variants by their text.
func (c *comparison) texts() {
	var bufs [2][lineRoom]byte
	p, q := c.a.Table.AppendText(bufs[0][:0], c.x, 0), c.b.Table.AppendText(bufs[1][:0], c.y, 0)
	if bytes.Equal(p, q) {
		c.bits(Hidden, c.x.Word.Xor(c.y.Word))
		return
	}
	_, op1, _ := cutOpcode(p)
	_, op2, _ := cutOpcode(q)
	name1, mods1, _ := bytes.Cut(op1, dot)
	name2, mods2, _ := bytes.Cut(op2, dot)
	if !bytes.Equal(name1, name2) {
		c.add(Other, "opcode", string(name1), string(name2))
		return
	}
	before := c.kinds &^ Control
	if !bytes.Equal(mods1, mods2) {
		x, y := strings.Split(string(mods1), "."), strings.Split(string(mods2), ".")
		if old, now := differing(x, y), differing(y, x); old != now {
			c.add(Modifiers, c.modifierName(old, now), orNone(old), orNone(now))
		}
	}
	c.operands(p, q, q)
	if c.kinds&^Control == before {
		c.bits(Other, c.x.Word.Xor(c.y.Word))
	}
}

// operands adds the guard and the operands that differ in the texts p and q; they are
// written as in shown, which may differ from q in registers.
func (c *comparison) operands(p, q, shown []byte) {
	guard, _, p := cutOpcode(p)
	other, _, q := cutOpcode(q)
	now, _, shown := cutOpcode(shown)
	if !bytes.Equal(guard, other) {
		c.add(Other, "guard", orNone(string(guard)), orNone(string(now)))
	}
	n := countOperands(p)
	if n != countOperands(q) || n != countOperands(shown) {
		c.add(Other, "operands", string(p), string(shown))
		return
	}
	var names []string
	for i := range n {
		var x, y, z []byte
		x, p = nextOperand(p)
		y, q = nextOperand(q)
		z, shown = nextOperand(shown)
		if bytes.Equal(x, y) {
			continue
		}
		if !c.list {
			c.kinds |= Other
			return
		}
		if names == nil {
			names = c.a.Table.Split(c.x, 0).Names
		}
		c.add(Other, names[i], string(x), string(z))
	}
}

var dot, blank = []byte("."), []byte(" ")

// cutOpcode cuts the text of an instruction into its guard, its opcode with modifiers,
// and its operands.
func cutOpcode(text []byte) (guard, opcode, operands []byte) {
	if len(text) > 0 && text[0] == '@' {
		guard, text, _ = bytes.Cut(text, blank)
	}
	opcode, operands, _ = bytes.Cut(text, blank)
	return guard, opcode, bytes.TrimSpace(operands)
}

// nextOperand cuts off the first operand: up to a comma that no bracket encloses.
func nextOperand(s []byte) (op, rest []byte) {
	depth := 0
	for i, x := range s {
		switch x {
		case '[', '{', '(':
			depth++
		case ']', '}', ')':
			depth--
		case ',':
			if depth == 0 {
				return bytes.TrimSpace(s[:i]), bytes.TrimSpace(s[i+1:])
			}
		}
	}
	return bytes.TrimSpace(s), nil
}

func countOperands(s []byte) int {
	n := 0
	for len(s) > 0 {
		_, s = nextOperand(s)
		n++
	}
	return n
}

// differing returns the modifiers of p that q has not.
func differing(p, q []string) string {
	var out []string
	for _, m := range p {
		if !slices.Contains(q, m) {
			out = append(out, m)
		}
	}
	return strings.Join(out, ".")
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// modifierName returns the name of the group that has one of two values.
func (c *comparison) modifierName(old, now string) string {
	for _, in := range []isa.Inst{c.x, c.y} {
		for _, g := range c.a.Table.Groups(in.Variant) {
			for _, v := range g.Values {
				if g.Operand < 0 && v.Text != "" && (v.Text == old || v.Text == now) {
					return g.Name
				}
			}
		}
	}
	return "modifiers"
}
