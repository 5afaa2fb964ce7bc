package diff

import (
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
	k, _ := compareWords(a, b, i, j, false)
	return k
}

// comparison compares one pair of instructions.
type comparison struct {
	a, b   *Code
	x, y   isa.Inst // with the same control bits
	kinds  Kinds
	list   bool
	fields []FieldChange
}

func (c *comparison) add(k Kinds, name, a, b string) {
	c.kinds |= k
	if c.list {
		c.fields = append(c.fields, FieldChange{k, name, a, b})
	}
}

// compareWords says in which kinds the words of instruction i of a and j of b differ
// and, with list, in which fields.
func compareWords(a, b *Code, i, j int, list bool) (Kinds, []FieldChange) {
	p, q := a.norm[i], b.norm[j]
	c := &comparison{a: a, b: b, list: list}
	if a.raw || b.raw || a.Arch != b.Arch && a.Table != b.Table {
		if p != q {
			c.add(Other, "word", p.String(), q.String())
		}
		return c.kinds, c.fields
	}
	if !p.Xor(q).And(controlMask).IsZero() {
		c.kinds |= Control
		if list {
			c.control(isa.ControlOf(p), isa.ControlOf(q))
		}
	}
	// The control bits also decide whether a reuse flag prints.
	p, q = neutral(p), neutral(q)
	if p == q {
		return c.kinds, c.fields
	}
	c.x, c.y = a.decode(p), b.decode(q)
	switch {
	case c.x.Status != isa.StatusKnown || c.y.Status != isa.StatusKnown:
		c.bits(Other, p.Xor(q))
	case c.x.Variant == c.y.Variant:
		c.sameVariant()
	default:
		c.texts()
	}
	return c.kinds, c.fields
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
	v := infoOf(c.x.Variant)
	rest := c.registers(v, p.Xor(q))
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
	with := c.a.decode(p.AndNot(rest).Or(q.And(rest)))
	if with.Status == isa.StatusKnown && c.a.Table.Text(with, 0) == c.a.Table.Text(c.x, 0) {
		c.bits(Hidden, rest)
		return
	}
	before := c.kinds
	c.operands(c.a.Table.Split(c.x, 0), c.b.Table.Split(c.y, 0), Other)
	if c.kinds == before || c.kinds&Other == 0 {
		c.bits(Other, rest)
	}
}

// registers adds the registers that differ and returns d without their bits. A change
// between a register and none (RZ, PT) is left in d, like everything that is not the
// same slot in both words.
func (c *comparison) registers(v *variantInfo, d isa.Word) isa.Word {
	var bufs [2][16]regSlot
	mine, theirs := v.registers(bufs[0][:0], c.x.Word), v.registers(bufs[1][:0], c.y.Word)
	rest := d
	for i, s := range mine {
		m := s.slot.Field.Mask()
		if rest.And(m).IsZero() || i >= len(theirs) || theirs[i].slot != s.slot || theirs[i].pair != s.pair {
			continue
		}
		old, none1 := s.number(c.x.Word)
		now, none2 := s.number(c.y.Word)
		if none1 || none2 || old == now {
			continue
		}
		rest = rest.AndNot(m)
		c.kinds |= Registers
		if c.list {
			name := fileNames[s.file]
			c.add(Registers, "register", name+strconv.FormatUint(old, 10), name+strconv.FormatUint(now, 10))
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
	if c.a.Table.Text(c.x, 0) == c.b.Table.Text(c.y, 0) {
		c.bits(Hidden, c.x.Word.Xor(c.y.Word))
		return
	}
	p, q := c.a.Table.Split(c.x, 0), c.b.Table.Split(c.y, 0)
	if p.Mnemonic != q.Mnemonic {
		c.add(Other, "opcode", p.Mnemonic, q.Mnemonic)
		return
	}
	old, now := differing(p.Mods, q.Mods), differing(q.Mods, p.Mods)
	if old != now {
		c.add(Modifiers, c.modifierName(old, now), orNone(old), orNone(now))
	}
	before := len(c.fields)
	k := c.kinds
	c.operands(p, q, Other)
	if len(c.fields) == before && c.kinds == k && old == now {
		c.bits(Other, c.x.Word.Xor(c.y.Word))
	}
}

// operands adds the guard and the operands whose text differs.
func (c *comparison) operands(p, q isa.Parts, k Kinds) {
	if p.Guard != q.Guard && c.kinds&Registers == 0 {
		c.add(k, "guard", orNone(p.Guard), orNone(q.Guard))
	}
	if len(p.Operands) != len(q.Operands) {
		c.add(k, "operands", strings.Join(p.Operands, ", "), strings.Join(q.Operands, ", "))
		return
	}
	for i, s := range p.Operands {
		if s != q.Operands[i] {
			c.add(k, p.Names[i], s, q.Operands[i])
		}
	}
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
