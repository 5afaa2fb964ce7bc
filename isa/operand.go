package isa

import (
	"slices"
	"strconv"
	"strings"
)

// An OperandKind says what an operand is.
type OperandKind uint8

// The kinds of operand.
const (
	OperandNumber   OperandKind = iota // a number in the instruction
	OperandRegister                    // registers
	OperandAddress                     // a register or a number that is a part of an address or a descriptor: what stands in brackets
	OperandConstant                    // a register or a number that says where in a constant bank: c[0x0][R4+0x10]
	OperandTarget                      // an address relative to the instruction's
)

var operandKindNames = [...]string{"number", "register", "address", "constant", "target"}

// String returns the kind's name, such as register.
func (k OperandKind) String() string { return operandKindNames[k] }

// An Operand is a register or a number that an instruction prints. What stands between
// two commas may be several: `desc[UR4][R2.64+0x10]` is UR4, R2 and 0x10.
type Operand struct {
	Kind OperandKind
	// IsReg says that it is a register: the next three say which.
	IsReg bool
	File  RegFile
	First int // the number of the first register, -1 for RZ, URZ, PT and UPT
	// Count is the number of consecutive registers from First on, 0 for none: as the text
	// says it, 2 for R2.64, from [Inst.AppendOperands]; all from [Inst.AppendRegisters].
	Count int
	// Value is the number that is no register, without sign or format; that of a target
	// counts from the end of the instruction.
	Value uint64
	// Index is the number of the printed operand, that of [Table.Operands]; -1 for the guard.
	Index int
	// Field has the bits that say the register or the number.
	Field Field
	// Place tells the places in the text of a class apart: operands of two words of one
	// class have the same place where both print the same part of the text.
	Place int
}

// A place is where a class prints a register or a number.
type place struct {
	slot *Slot   // nil where op is complete
	get  gather  // of slot's field
	none uint64  // the value that names no register
	op   Operand // without what depends on the word
	pair bool    // printed as R4.64: the next register belongs to it
}

// guardNumber is the Place of the guard.
const guardNumber = 1 << 30

// guardPlace is the guard, whose register 7 is PT.
func guardPlace(file RegFile) *place {
	return &place{slot: &Slot{Field: GuardField}, get: fieldGather(GuardField), none: 7,
		op: Operand{Kind: OperandRegister, IsReg: true, File: file, Index: -1, Field: GuardField, Place: guardNumber}}
}

var guardPlaces = [...]*place{GuardP: guardPlace(FileP), GuardUP: guardPlace(FileUP), GuardNone: nil}

// AppendOperands appends the operands that in prints, its guard first, if its class has
// one, and returns the result. It allocates nothing beyond dst's growth.
func (in Inst) AppendOperands(dst []Operand) []Operand {
	b := in.behavior()
	if b == nil {
		return dst
	}
	if g := guardPlaces[in.Variant.Guard]; g != nil {
		dst = append(dst, g.in(in.Word))
	}
	b.placesOnce.Do(func() { b.places = placesOf(b.variant) })
	for i := range b.places {
		list, _ := b.places[i].in(in.Word)
		for j := range list {
			dst = append(dst, list[j].in(in.Word))
		}
	}
	return dst
}

// AppendRegisters appends the registers among the operands of in, with as many registers
// as the instruction uses through each if that is known, and returns the result. The
// registers that it uses without printing one of them follow, without a Field.
func (in Inst) AppendRegisters(dst []Operand) []Operand {
	start := len(dst)
	for _, o := range in.AppendOperands(dst)[start:] {
		if o.IsReg {
			dst = append(dst, o)
		}
	}
	printed := dst[start:]
	var buf [16]Access
	for _, a := range in.Accesses(buf[:0]) {
		named := false
		for i := range printed {
			o := &printed[i]
			if o.File != a.File || o.First != a.First || len(o.Field) == 0 {
				continue
			}
			// A slot that holds half the number lacks the lowest bit.
			if lo := int(o.Field[0].Lo); lo == a.Bit || lo == a.Bit+1 {
				o.Count, named = max(o.Count, a.Count), true
			}
		}
		if !named {
			dst = append(dst, Operand{Kind: OperandRegister, IsReg: true, File: a.File, First: a.First, Count: a.Count, Index: -1, Place: -1})
		}
	}
	return dst
}

// in returns the operand that p prints in w.
func (p *place) in(w Word) Operand {
	s, o := p.slot, p.op
	if s == nil {
		return o
	}
	x := p.get.value(w) ^ s.Xor
	if !o.IsReg {
		o.Value = x<<s.Shift + uint64(s.Add)
		return o
	}
	if x == p.none {
		o.First = -1
		return o
	}
	o.First, o.Count = int(x<<s.Shift)+int(s.Add), 1
	if p.pair {
		o.Count = 2
	}
	return o
}

// A textWalk follows the text of a class: which operand it is at, and in which brackets.
type textWalk struct {
	operand  int // -1 in the opcode
	depth    int
	constant bool // the bracket is of a constant bank
	last     string
}

// literal goes over s.
func (t *textWalk) literal(s string) {
	for i := range len(s) {
		switch c := s[i]; {
		case t.operand < 0:
			if c == ' ' {
				t.operand = 0
			}
		case strings.IndexByte("[{(", c) >= 0:
			before := strings.TrimSpace(s[:i])
			t.constant = c == '[' && (strings.HasSuffix(before, "c") && !strings.HasSuffix(before, "desc") ||
				strings.HasSuffix(before, "cx") || t.constant && (before == "" || strings.HasSuffix(before, "]")))
			t.depth++
		case strings.IndexByte("]})", c) >= 0:
			t.depth--
		case c == ',' && t.depth == 0:
			t.operand++
			t.constant = false
		}
	}
	t.last = s
}

// placesOf returns what v prints in each alternative of each of its pieces.
func placesOf(v *Variant) []picked[[]*place] {
	var out []picked[[]*place]
	var walk textWalk
	walk.operand = -1
	number := 0
	for i := range v.Template {
		p := &v.Template[i]
		start, rich := walk, p.richest()
		out = add(out, p, func(a Alt) ([]*place, bool) {
			w := start
			var list []*place
			for j := range a {
				if a[j].Lit != "" {
					for k, lit := range strings.SplitAfter(a[j].Lit, ",") {
						if x := namedPlace(p, lit, w); x != nil {
							x.op.Place = -1 - maxPieces*k - i
							list = append(list, x)
						}
						w.literal(lit)
					}
					w.last = a[j].Lit
					continue
				}
				x := newPlace(&a[j].Slot, w)
				x.op.Place = number
				x.pair = x.op.IsReg && strings.HasPrefix(following(v, i, a, j), ".64")
				number++
				list = append(list, x)
				w.last = ""
			}
			return list, len(list) > 0
		})
		for j := range rich {
			if walk.last = ""; rich[j].Lit != "" {
				walk.literal(rich[j].Lit)
			}
		}
	}
	return out
}

// namedPlace returns the place of a register that a choice names with the literal lit, or
// nil: a field of which one value means something else, such as the address of ATOMS, is a
// choice between names.
func namedPlace(p *Piece, lit string, w textWalk) *place {
	name := strings.Trim(lit, " ,")
	letters := strings.TrimRight(name, "0123456789")
	file := slices.Index(fileNames[:], letters)
	if file < 0 || w.operand < 0 || len(p.Tests) == 0 {
		return nil
	}
	n, err := strconv.Atoi(name[len(letters):])
	if err != nil {
		return nil
	}
	var f Field
	for _, t := range p.Tests {
		f = append(f, t.Field...)
	}
	x := newPlace(&Slot{Field: f}, w)
	x.slot, x.op.IsReg, x.op.File, x.op.First, x.op.Count = nil, true, RegFile(file), n, 1
	if w.depth == 0 {
		x.op.Kind = OperandRegister
	}
	return x
}

// newPlace returns the place of s, which the text reaches in the state w.
func newPlace(s *Slot, w textWalk) *place {
	p := &place{slot: s, get: fieldGather(s.Field), none: 1<<s.Field.Width() - 1, op: Operand{Index: w.operand, Field: s.Field}}
	o := &p.op
	switch s.Kind {
	case KindReg:
		o.IsReg, o.File = true, FileR
	case KindUReg:
		o.IsReg, o.File = true, FileUR
	case KindPred:
		o.IsReg, o.File = true, FileP
	case KindUPred:
		o.IsReg, o.File = true, FileUP
	case KindDec:
		if strings.HasSuffix(w.last, " B") || strings.HasSuffix(w.last, ",B") {
			o.IsReg, o.File, p.none = true, FileB, ^uint64(0)
		}
	case KindRel:
		o.Kind = OperandTarget
	}
	switch {
	case w.depth > 0 && w.constant:
		o.Kind = OperandConstant
	case w.depth > 0:
		o.Kind = OperandAddress
	case o.IsReg:
		o.Kind = OperandRegister
	}
	return p
}

// following returns the literal that follows element j of alternative a of piece i of v, where
// it is always the same.
func following(v *Variant, i int, a Alt, j int) string {
	if j+1 < len(a) {
		return a[j+1].Lit
	}
	if i+1 < len(v.Template) {
		if next := &v.Template[i+1]; len(next.Tests) == 0 && len(next.Alts) == 1 && len(next.Alts[0]) > 0 {
			return next.Alts[0][0].Lit
		}
	}
	return ""
}
