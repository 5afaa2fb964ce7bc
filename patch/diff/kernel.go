package diff

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/cupatch/cupatch/isa"
)

// An OpKind is what an [Op] says.
type OpKind uint8

// The kinds of Op.
const (
	OpChange OpKind = iota // A became B
	OpDelete               // A is gone
	OpInsert               // B is new
	OpMove                 // A is found again at B, elsewhere
)

var opNames = [...]string{"change", "delete", "insert", "move"}

func (k OpKind) String() string { return opNames[k] }

// An Op is a difference between two instruction sequences. A and B are indexes into the
// Codes; the one that does not apply is -1.
type Op struct {
	Kind  OpKind
	A, B  int32
	Kinds Kinds // of a change; of a move in a kernel of the class [Reordered]: Control or none
}

// A ModifierChange counts instructions whose modifier changed in the same way.
type ModifierChange struct {
	Count  int    `json:"count"`
	Opcode string `json:"opcode"`
	Group  string `json:"group"`
	A      string `json:"a"`
	B      string `json:"b"`
}

func (m ModifierChange) String() string {
	return fmt.Sprintf("%d %s: %s %s → %s", m.Count, m.Opcode, m.Group, m.A, m.B)
}

// An OpcodeDelta is an opcode that the two kernels have in different numbers.
type OpcodeDelta struct {
	Opcode string `json:"opcode"`
	A      int    `json:"a"`
	B      int    `json:"b"`
}

// A CodeDiff is the result of comparing two Codes.
type CodeDiff struct {
	A, B      *Code
	Class     Class
	Kinds     Kinds          // all kinds that occur
	Counts    map[string]int // changed instructions by kind; one may count in several
	Changed   int            // instructions of a pair that differ
	Deleted   int
	Inserted  int
	Moved     int
	Ops       []Op // by A, insertions where they stand
	Modifiers []ModifierChange
	Opcodes   []OpcodeDelta
	match     []int32 // by index of A: index of B, or -1; nil when they are the same
	back      []int32 // by index of B
}

// Compare compares two kernels' code. The result is symmetric: Compare(b, a) has the
// same class and counts, with a and b exchanged.
func Compare(a, b *Code) *CodeDiff {
	d := &CodeDiff{A: a, B: b}
	switch {
	case a.same(b):
		d.Class = SameCode
		if bytes.Equal(a.data, b.data) {
			d.Class = Identical
		}
		return d
	case a.Len() == b.Len() && d.inPlace():
	case a.Len() == b.Len() && bytes.Equal(a.rest(), b.rest()) && d.reorder():
	default:
		d.Class, d.Kinds = CodeDiffers, Other
		d.align()
	}
	d.count()
	return d
}

// same reports whether the code is the same but for addresses and padding.
func (c *Code) same(o *Code) bool {
	if c.Arch != o.Arch && c.Table != o.Table || c.raw != o.raw || !slices.Equal(c.norm, o.norm) || !slices.Equal(c.target, o.target) ||
		!bytes.Equal(c.rest(), o.rest()) {
		return false
	}
	for i := range c.sym {
		if c.syms[c.sym[i]] != o.syms[o.sym[i]] {
			return false
		}
	}
	return true
}

// rest returns the bytes after the last whole word.
func (c *Code) rest() []byte { return c.data[len(c.data)/isa.WordSize*isa.WordSize:] }

// inPlace compares instruction by instruction. It reports false, and leaves nothing
// after, when something differs that calls for an alignment.
func (d *CodeDiff) inPlace() bool {
	a, b := d.A, d.B
	if !bytes.Equal(a.rest(), b.rest()) {
		return false
	}
	var ops []Op
	all := Kinds(0)
	for i := range a.norm {
		if a.target[i] != b.target[i] || a.syms[a.sym[i]] != b.syms[b.sym[i]] {
			return false
		}
		if k := compare(a, b, i, i); k != 0 {
			if k&Other != 0 {
				return false
			}
			all |= k
			ops = append(ops, Op{OpChange, int32(i), int32(i), k})
		}
	}
	if all&Registers != 0 && !renamed(a, b) {
		return false
	}
	d.Ops, d.Kinds, d.Class = ops, all, classOf(all)
	if all == 0 {
		// The words are the same, so an architecture or a length must differ.
		d.Kinds, d.Class = Other, CodeDiffers
	}
	return true
}

// renamed reports whether one renaming of registers turns each instruction of a into
// that of b, as far as registers go. A renaming is one to one in each register file and
// keeps pairs together.
func renamed(a, b *Code) bool {
	var r renaming
	for i := range a.norm {
		x, y := a.understand(a.norm[i]), b.understand(b.norm[i])
		if x.Status == isa.StatusKnown && y.Status == isa.StatusKnown && !r.add(x, y) {
			return false
		}
	}
	return true
}

// numFiles is the number of register files.
const numFiles = isa.FileB + 1

// A renaming is a partial bijection between the registers of two kernels, by file.
type renaming struct {
	forth, back  [numFiles]map[int]int
	mine, theirs []isa.Operand
}

// add takes in the registers of a pair of instructions; false says that they do not fit
// what is known. A register without a field keeps its number.
func (r *renaming) add(x, y isa.Inst) bool {
	r.mine, r.theirs = x.AppendRegisters(r.mine[:0]), y.AppendRegisters(r.theirs[:0])
	mine, fixed := cutFixed(r.mine)
	theirs, others := cutFixed(r.theirs)
	if len(mine) != len(theirs) {
		return false
	}
	for i := range mine {
		if (mine[i].First < 0) != (theirs[i].First < 0) || mine[i].File != theirs[i].File || !r.run(&mine[i], &theirs[i]) {
			return false
		}
	}
	for _, list := range [][]isa.Operand{fixed, others} {
		for i := range list {
			if !r.run(&list[i], &list[i]) {
				return false
			}
		}
	}
	return true
}

// cutFixed cuts what [isa.Inst.AppendRegisters] returns before the registers that are not
// printed.
func cutFixed(list []isa.Operand) (printed, fixed []isa.Operand) {
	i := slices.IndexFunc(list, func(o isa.Operand) bool { return len(o.Field) == 0 })
	if i < 0 {
		i = len(list)
	}
	return list[:i], list[i:]
}

// run notes that the registers of x are those of y; where a modifier makes them differ in
// number, as many as both have.
func (r *renaming) run(x, y *isa.Operand) bool {
	for more := range min(x.Count, y.Count) {
		if !r.pair(x.File, x.First+more, y.First+more) {
			return false
		}
	}
	return true
}

// pair notes that register n of a file is m in the other kernel.
func (r *renaming) pair(f isa.RegFile, n, m int) bool {
	if r.forth[f] == nil {
		r.forth[f], r.back[f] = map[int]int{}, map[int]int{}
	}
	x, known := r.forth[f][n]
	y, taken := r.back[f][m]
	if known || taken {
		return known && taken && x == m && y == n
	}
	r.forth[f][n], r.back[f][m] = m, n
	return true
}

// count fills in the counts from the list of differences.
func (d *CodeDiff) count() {
	d.Counts = map[string]int{}
	mods := map[ModifierChange]int{}
	for _, o := range d.Ops {
		switch o.Kind {
		case OpDelete:
			d.Deleted++
		case OpInsert:
			d.Inserted++
		case OpMove:
			d.Moved++
		}
		if o.Kinds == 0 {
			continue
		}
		d.Changed++
		for _, name := range o.Kinds.List() {
			d.Counts[name]++
		}
		if o.Kinds&Modifiers != 0 {
			d.countModifiers(o, mods)
		}
	}
	for m, n := range mods {
		m.Count = n
		d.Modifiers = append(d.Modifiers, m)
	}
	slices.SortFunc(d.Modifiers, func(x, y ModifierChange) int {
		return cmp.Or(cmp.Compare(y.Count, x.Count), cmp.Compare(x.String(), y.String()))
	})
	if d.Class == CodeDiffers {
		d.Opcodes = opcodeDeltas(d.A, d.B)
	}
}

func (d *CodeDiff) countModifiers(o Op, mods map[ModifierChange]int) {
	for _, f := range compareWords(nil, d.A, d.B, int(o.A), int(o.B)) {
		if f.Kind == Modifiers {
			mods[ModifierChange{Opcode: d.A.mnemonic(int(o.A)), Group: f.Name, A: f.A, B: f.B}]++
		}
	}
}

// mnemonic returns the bare name of instruction i, .word for an unknown word.
func (c *Code) mnemonic(i int) string { return c.mnemonicOf(c.variants[i]) }

// mnemonicOf returns the bare name of a variant, as Code.variants has it.
func (c *Code) mnemonicOf(n uint16) string {
	if n == 0 {
		return ".word"
	}
	return c.Table.Variant(int(n) - 1).Mnemonic()
}

// opcodeDeltas returns the opcodes that a and b have in different numbers, the largest
// difference first.
func opcodeDeltas(a, b *Code) []OpcodeDelta {
	counts := map[string]*OpcodeDelta{}
	for side, c := range []*Code{a, b} {
		byVariant := []int{0}
		for _, n := range c.variants {
			for int(n) >= len(byVariant) {
				byVariant = append(byVariant, make([]int, n)...)
			}
			byVariant[n]++
		}
		for n, count := range byVariant {
			if count == 0 {
				continue
			}
			name := c.mnemonicOf(uint16(n))
			d := counts[name]
			if d == nil {
				d = &OpcodeDelta{Opcode: name}
				counts[name] = d
			}
			if side == 0 {
				d.A += count
			} else {
				d.B += count
			}
		}
	}
	var out []OpcodeDelta
	for _, d := range counts {
		if d.A != d.B {
			out = append(out, *d)
		}
	}
	slices.SortFunc(out, func(x, y OpcodeDelta) int {
		return cmp.Or(cmp.Compare(abs(y.B-y.A), abs(x.B-x.A)), cmp.Compare(x.Opcode, y.Opcode))
	})
	return out
}

func abs(n int) int { return max(n, -n) }

// Fields returns in which fields the instructions of a change differ.
func (d *CodeDiff) Fields(o Op) []FieldChange { return d.appendFields(nil, o) }

// appendFields appends to dst what Fields returns.
func (d *CodeDiff) appendFields(dst []FieldChange, o Op) []FieldChange {
	if o.Kinds == 0 {
		return dst
	}
	dst = compareWords(dst, d.A, d.B, int(o.A), int(o.B))
	if o.Kind == OpChange && d.targetDiffers(int(o.A), int(o.B)) {
		dst = append(dst, FieldChange{Other, "target", d.A.reference(int(o.A)), d.B.reference(int(o.B))})
	}
	return dst
}

// reference says what instruction i refers to.
func (c *Code) reference(i int) string {
	var out []string
	if t := c.target[i]; t >= 0 {
		out = append(out, fmt.Sprintf("%#x", c.PC(int(t))))
	}
	if s := c.syms[c.sym[i]]; s != "" {
		out = append(out, s)
	}
	return orNone(strings.Join(out, " "))
}
