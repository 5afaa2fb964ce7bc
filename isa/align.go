package isa

import (
	_ "embed"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// An AlignKey names an operand of a class whose number may have to be a multiple: the first
// of several registers, or a number in an address or a constant bank.
type AlignKey struct {
	Kind OperandKind // OperandRegister; OperandConstant, OperandAddress for an offset
	File RegFile     // of a register
	Bit  int         // the lowest bit of the operand's field
	// Count is how many registers the operand takes; of a number how many bytes the
	// instruction moves for each thread, 0 where they are not counted.
	Count int
}

// String returns the key as align.txt has it: R24*2, c38*8 of an offset in a constant bank,
// +40*16 of another one.
func (k AlignKey) String() string { return fmt.Sprintf("%s%d*%d", k.letters(), k.Bit, k.Count) }

func (k AlignKey) letters() string {
	switch k.Kind {
	case OperandConstant:
		return "c"
	case OperandAddress:
		return "+"
	}
	return k.File.String()
}

// Most is the greatest multiple that k's number can have to be.
func (k AlignKey) Most() int {
	if k.Kind == OperandRegister {
		return min(1<<bits.Len(uint(k.Count-1)), maxAlign)
	}
	if k.Count == 0 {
		return 8 // of a constant that is a double
	}
	return min(k.Count, 2*maxAlign)
}

const (
	maxAlign = 8 // registers
	bankBits = 5 // of the number of a constant bank
)

// An AlignPlace is an operand of an instruction that an [AlignKey] names.
type AlignPlace struct {
	AlignKey
	Value uint64 // the number of the first register, or the number
	Field Field
	Short int // how many of the registers are beyond the end of the file
}

// AlignPlaces appends the operands of in whose numbers may have to be multiples, and
// returns the result. Those without a register are left out.
func (in Inst) AlignPlaces(dst []AlignPlace) []AlignPlace {
	if p := in.effectProgram(); p != nil {
		for i := range p.ops {
			dst = p.ops[i].alignPlace(dst, in.Word)
		}
	}
	bytes := in.Memory().Bytes
	var buf [16]Operand
	for _, o := range in.AppendOperands(buf[:0]) {
		constant := o.Kind == OperandConstant && o.Field.Width() > bankBits
		if o.IsReg || !constant && (o.Kind != OperandAddress || bytes == 0) {
			continue
		}
		dst = append(dst, AlignPlace{AlignKey: AlignKey{Kind: o.Kind, Bit: int(o.Field[0].Lo), Count: bytes}, Value: o.Value, Field: o.Field})
	}
	return dst
}

// alignPlace appends the place of a run of several registers.
func (o *effectOp) alignPlace(dst []AlignPlace, w Word) []AlignPlace {
	if o.rule.Mask || len(o.rule.Field) == 0 || o.rule.File != FileR && o.rule.File != FileUR {
		return dst
	}
	first, n := o.run(w)
	wanted := o.fixed
	if wanted == 0 {
		wanted = int(o.counts[o.index.value(w)])
	}
	if n == 0 || wanted < 2 {
		return dst
	}
	return append(dst, AlignPlace{AlignKey: AlignKey{OperandRegister, o.rule.File, int(o.rule.Field[0].Lo), wanted},
		Value: uint64(first), Field: o.rule.Field, Short: wanted - n})
}

// A Misalignment is an operand that stands where ptxas code never has it.
type Misalignment struct {
	AlignPlace
	Want int // the operand's number is a multiple of it in all code of ptxas
}

// String says what is wrong.
func (m Misalignment) String() string {
	switch {
	case m.Short > 0:
		return fmt.Sprintf("%d registers from %s%d on go beyond the end of the register file", m.Count, m.File, m.Value)
	case m.Kind == OperandRegister:
		return fmt.Sprintf("%d registers from %s%d on: in ptxas code the first of so many has a number that is a multiple of %d",
			m.Count, m.File, m.Value, m.Want)
	}
	return fmt.Sprintf("offset %#x: in ptxas code it is a multiple of %d here", m.Value, m.Want)
}

// Misaligned returns the operands of in that stand where ptxas code never has them: a run of
// registers that starts at a number of the wrong kind or goes beyond the end of its file, an
// offset that is no multiple of what it always is. nvdisasm prints such instructions as if
// nothing were wrong.
func (in Inst) Misaligned() []Misalignment { return alignment().Misaligned(in) }

// NewlyMisaligned returns the first operand of in that [Inst.Misaligned] returns and that the
// instruction old does not have there too, or nil.
func (in Inst) NewlyMisaligned(old Inst) *Misalignment {
	var had []Misalignment
	if old.Variant != nil && in.Variant != nil && old.Variant.Class == in.Variant.Class {
		had = old.Misaligned()
	}
	for _, m := range in.Misaligned() {
		if !slices.ContainsFunc(had, func(o Misalignment) bool { return o.AlignKey == m.AlignKey && o.Value == m.Value }) {
			return &m
		}
	}
	return nil
}

// Misaligned is like [Inst.Misaligned], by what t says.
func (t *AlignTable) Misaligned(in Inst) []Misalignment {
	if in.Status != StatusKnown {
		return nil
	}
	var buf [16]AlignPlace
	var out []Misalignment
	for _, p := range in.AlignPlaces(buf[:0]) {
		if want := t.want(in.Variant.Class, p.AlignKey); p.Short > 0 || p.Value&uint64(want-1) != 0 {
			out = append(out, Misalignment{p, want})
		}
	}
	return out
}

// An AlignCount says what code of ptxas showed of an operand.
type AlignCount struct {
	Multiple int // the greatest power of two that all numbers are multiples of, at most what makes sense
	Words    int // different instructions that had it
	Values   int // different numbers
}

// The samples that it takes to believe that a number has to be a multiple of something.
const (
	alignWords  = 40
	alignValues = 6
)

// trusted returns the multiple that c is enough to believe in, 1 for none.
func (c AlignCount) trusted() int {
	if c.Words < alignWords || c.Values < alignValues {
		return 1
	}
	return c.Multiple
}

// An AlignTable says what code of ptxas showed of the operands of each class, all
// architectures together.
type AlignTable struct {
	Classes map[string]map[AlignKey]AlignCount
	pools   map[AlignKey]AlignCount
}

//go:embed align.txt
var alignText string

var alignment = sync.OnceValue(func() *AlignTable {
	t, err := ParseAlign(alignText)
	if err != nil {
		panic(err) // a test reads the file
	}
	return t
})

// want returns what the number of an operand has to be a multiple of: what that of every
// operand like it is, or, of an offset in a constant bank, what it is in the class.
func (t *AlignTable) want(class string, k AlignKey) int {
	if c := t.Classes[class][k]; k.Kind == OperandConstant && c.trusted() > 1 {
		return c.Multiple
	}
	n := t.pools[k.pool()].trusted()
	if k.Kind == OperandAddress {
		return max(n*k.Count/offsetUnit, 1)
	}
	return n
}

// pool returns the key of all operands like k: runs of as many registers of a file, more
// than four counting as four; offsets in a constant bank where as many bytes move; all other
// offsets.
func (k AlignKey) pool() AlignKey {
	k.Bit = 0
	switch k.Kind {
	case OperandRegister:
		k.Count = min(1<<bits.Len(uint(k.Count-1)), 4)
	case OperandAddress:
		k.Count = 0
	}
	return k
}

// offsetUnit is the size to which offsets of accesses of all sizes are brought in their
// pool: that a base is aligned to the half of an access says the same for each size.
const offsetUnit = 2 * maxAlign

// add takes the count of a class into its pool.
func (t *AlignTable) add(k AlignKey, c AlignCount) {
	if k.Kind == OperandAddress {
		c.Multiple = c.Multiple * offsetUnit / k.Count
	}
	p, ok := t.pools[k.pool()]
	if ok {
		c.Multiple = min(c.Multiple, p.Multiple)
	}
	t.pools[k.pool()] = AlignCount{c.Multiple, p.Words + c.Words, max(p.Values, c.Values)}
}

// ParseAlign reads a table in the form of align.txt.
func ParseAlign(text string) (*AlignTable, error) {
	t := &AlignTable{Classes: map[string]map[AlignKey]AlignCount{}, pools: map[AlignKey]AlignCount{}}
	for n, line := range strings.Split(text, "\n") {
		words := strings.Fields(line)
		if len(words) == 0 || words[0][0] == '#' {
			continue
		}
		m := map[AlignKey]AlignCount{}
		for _, w := range words[1:] {
			k, c, err := parseAlign(w)
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", n+1, err)
			}
			m[k] = c
			t.add(k, c)
		}
		t.Classes[words[0]] = m
	}
	return t, nil
}

// parseAlign reads a word such as R24*2=2:840:77.
func parseAlign(s string) (k AlignKey, c AlignCount, err error) {
	key, count, ok := strings.Cut(s, "=")
	file := strings.TrimRight(key, "*0123456789")
	switch file {
	case "c":
		k.Kind = OperandConstant
	case "+":
		k.Kind = OperandAddress
	default:
		f := slices.Index(fileNames[:], file)
		k.Kind, k.File, ok = OperandRegister, RegFile(max(f, 0)), ok && f >= 0
	}
	bit, n, _ := strings.Cut(key[len(file):], "*")
	parts := strings.Split(count, ":")
	if !ok || len(parts) != 3 {
		return k, c, fmt.Errorf("%q is not like R24*2=2:840:77", s)
	}
	for i, x := range []*int{&k.Bit, &k.Count, &c.Multiple, &c.Words, &c.Values} {
		if *x, err = strconv.Atoi([]string{bit, n, parts[0], parts[1], parts[2]}[i]); err != nil || *x < 0 {
			return k, c, fmt.Errorf("%q is not like R24*2=2:840:77", s)
		}
	}
	if c.Multiple < 1 || k.Count < 1 && k.Kind == OperandAddress || c.Multiple&(c.Multiple-1) != 0 || k.Kind == OperandRegister && k.Count < 2 {
		return k, c, fmt.Errorf("%q: %d is no power of two, or %d no number of registers", s, c.Multiple, k.Count)
	}
	return k, c, nil
}
