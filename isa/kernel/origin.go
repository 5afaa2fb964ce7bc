package kernel

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/cupatch/cupatch/isa"
)

// An OriginKind says what is known of where a value comes from.
type OriginKind uint8

// The kinds of origin.
const (
	OriginUnknown  OriginKind = iota // it may be a pointer, nobody knows which
	OriginNumber                     // a number that is no pointer: an index, a size
	OriginConstant                   // a pointer from a constant bank, with numbers added
	originOpen                       // not found out yet
)

// An Origin is where an address comes from: a word of a constant bank, such as a parameter
// of the kernel, to which only numbers were added on the way.
type Origin struct {
	Kind   OriginKind
	Bank   int // of the constant
	Offset int // of its low word, in bytes
}

// String returns an origin in a constant bank as nvdisasm prints the word, c[0x0][0x210],
// and the names of the other kinds.
func (o Origin) String() string {
	switch o.Kind {
	case OriginConstant:
		return fmt.Sprintf("c[%#x][%#x]", o.Bank, o.Offset)
	case OriginNumber:
		return "number"
	}
	return "unknown"
}

// ParseOrigin reads c[0x0][0x210]. The numbers may be decimal.
func ParseOrigin(s string) (Origin, error) {
	bad := fmt.Errorf("want c[0x0][0x210], not %q", s)
	rest, ok := strings.CutPrefix(s, "c[")
	bank, offset, found := strings.Cut(rest, "][")
	offset, closed := strings.CutSuffix(offset, "]")
	if !ok || !found || !closed {
		return Origin{}, bad
	}
	b, err1 := strconv.ParseUint(bank, 0, 8)
	n, err2 := strconv.ParseUint(offset, 0, 20)
	if err1 != nil || err2 != nil {
		return Origin{}, bad
	}
	return Origin{OriginConstant, int(b), int(n)}, nil
}

// Origins follows values back to where they come from: through copies, sums, products of
// numbers and shifts, uniform registers and loads from constant banks, along every path.
// Where paths bring different pointers, where a pointer may come out of memory, and after
// anything else that is not understood, the answer is OriginUnknown.
//
// It may be used by one goroutine at a time. Answers are kept.
type Origins struct {
	defs    *Defs
	pointer func(bank, offset int) bool
	kernel  bool
	known   map[value]Origin
	of      map[int32][]source // the sources of instructions
	ops     []isa.Operand
}

// Origins returns the origins of values in the graph's code. pointer tells which words of
// constant banks are the low words of pointers; the others are numbers. With kernel, the
// first instruction is that of a kernel, in whose registers nothing is when it starts.
func (g *Graph) Origins(kernel bool, pointer func(bank, offset int) bool) *Origins {
	return &Origins{defs: g.Defs(), pointer: pointer, kernel: kernel, known: map[value]Origin{}, of: map[int32][]source{}}
}

// Register returns where the low word of an address comes from that register n of file f
// has before instruction i.
func (o *Origins) Register(i int, f isa.RegFile, n int) Origin {
	v := o.defs.before(i, regOf(f, n))
	if x, ok := o.known[v]; ok {
		return x
	}
	o.solve(v)
	return o.known[v]
}

// Address returns where the address comes from at which instruction i accesses memory: the
// sum of the registers in the brackets, a descriptor left out. Of an instruction with
// several addresses it is that of the last, for a copy the one in global memory.
func (o *Origins) Address(i int) Origin {
	in := o.defs.g.Inst(i)
	if in.Memory().Op == isa.MemoryNone {
		return Origin{}
	}
	o.ops = in.AppendOperands(o.ops[:0])
	last := -1
	for _, op := range o.ops {
		if op.Kind == isa.OperandAddress {
			last = op.Index
		}
	}
	if last < 0 {
		return Origin{}
	}
	var regs []isa.Operand
	for _, op := range o.ops {
		if op.Index == last && op.Kind == isa.OperandAddress && op.IsReg {
			regs = append(regs, op)
		}
	}
	if len(regs) > 1 && regs[0].File == isa.FileUR && o.described(in, last) {
		regs = regs[1:]
	}
	sum := Origin{Kind: OriginNumber}
	for _, op := range regs {
		if op.First >= 0 {
			sum = add(sum, o.Register(i, op.File, op.First))
		}
	}
	if sum.Kind == OriginNumber { // an address without a pointer is of no known origin
		return Origin{}
	}
	return sum
}

// described reports whether the operand of an instruction can have a descriptor before its
// address: desc[UR4][R2.64]. On sm_80 to sm_89 it does not print.
func (o *Origins) described(in isa.Inst, index int) bool {
	ops := o.defs.g.code.Table.Operands(in.Variant)
	return index < len(ops) && strings.Contains(ops[index].Text, "desc[")
}

// add returns the origin of a sum: a pointer and numbers make the pointer.
func add(a, b Origin) Origin {
	switch {
	case a.Kind == originOpen || b.Kind == originOpen:
		return Origin{Kind: originOpen}
	case a.Kind == OriginNumber:
		return b
	case b.Kind == OriginNumber:
		return a
	}
	return Origin{} // two pointers, or a value that may be one
}

// meet returns the origin of a value that is a or b.
func meet(a, b Origin) Origin {
	switch {
	case a.Kind == originOpen || a == b:
		return b
	case b.Kind == originOpen:
		return a
	}
	return Origin{}
}

// solve finds the origins of v and of all that it depends on: every one is open at first
// and gives way to what its inputs say, until nothing changes.
func (o *Origins) solve(v value) {
	inputs := map[value][]value{}
	users := map[value][]value{}
	for work := []value{v}; len(work) > 0; {
		v := work[len(work)-1]
		work = work[:len(work)-1]
		if _, ok := inputs[v]; ok {
			continue
		}
		if _, ok := o.known[v]; ok {
			continue
		}
		inputs[v] = o.inputs(v)
		for _, x := range inputs[v] {
			users[x] = append(users[x], v)
			work = append(work, x)
		}
	}
	now := map[value]Origin{}
	var work []value
	for v := range inputs {
		now[v] = Origin{Kind: originOpen}
		work = append(work, v)
	}
	get := func(v value) Origin {
		if x, ok := now[v]; ok {
			return x
		}
		return o.known[v]
	}
	for len(work) > 0 {
		v := work[len(work)-1]
		work = work[:len(work)-1]
		x := meet(now[v], o.step(v, get))
		if now[v].Kind == OriginUnknown || x == now[v] {
			continue
		}
		now[v] = x
		work = append(work, users[v]...)
	}
	for v, x := range now {
		if x.Kind == originOpen {
			x = Origin{}
		}
		o.known[v] = x
	}
}

// inputs returns the values that the origin of v depends on.
func (o *Origins) inputs(v value) []value {
	if v.kind != valueDef {
		return o.defs.inputs(v)
	}
	var out []value
	for _, s := range o.sources(v) {
		if s.reg {
			out = append(out, s.value)
		}
	}
	return out
}

// A source is a source operand of an instruction.
type source struct {
	value    value
	reg      bool // value says what it is, else origin does
	origin   Origin
	literal  uint64 // an immediate
	negative bool   // or inverted, or its absolute value
}

// sources returns the sources of the instruction that wrote v in printed order, none where
// the result does not come from them: that of a call and what comes out of memory.
func (o *Origins) sources(v value) []source {
	in := o.defs.g.Inst(int(v.at))
	fx := in.Effects()
	if !v.reg.in(&fx.Writes) || in.Memory().Op != isa.MemoryNone {
		return nil
	}
	if out, ok := o.of[v.at]; ok {
		return out
	}
	table := o.defs.g.code.Table
	named := table.Operands(in.Variant)
	o.ops = in.AppendOperands(o.ops[:0])
	var out []source
	var printed []int // by source: which of the printed operands it is
	n := -1
	for i := 0; i < len(o.ops); {
		index := o.ops[i].Index
		end := i
		for end < len(o.ops) && o.ops[end].Index == index {
			end++
		}
		group := o.ops[i:end]
		i = end
		if index < 0 {
			continue
		}
		n++
		if index < len(named) && strings.HasPrefix(named[index].Name, "dst") || isPredicate(group) {
			continue
		}
		out = append(out, o.source(int(v.at), group))
		printed = append(printed, n)
	}
	texts := table.Split(in, 0).Operands
	for i := range out {
		out[i].negative = n+1 != len(texts) || strings.ContainsAny(texts[printed[i]][:1], "-~|")
	}
	o.of[v.at] = out
	return out
}

func isPredicate(group []isa.Operand) bool {
	return group[0].IsReg && (group[0].File == isa.FileP || group[0].File == isa.FileUP)
}

// source returns what the registers and numbers of one printed operand of instruction i
// say.
func (o *Origins) source(i int, group []isa.Operand) source {
	s := source{origin: Origin{Kind: OriginNumber}, literal: 2}
	var numbers []uint64
	bank := false
	for _, op := range group {
		bank = bank || op.Kind == isa.OperandConstant
		switch {
		case op.IsReg && op.First >= 0:
			s.reg, s.value = true, o.defs.before(i, regOf(op.File, op.First))
		case op.IsReg:
			s.literal = 0
		default:
			numbers = append(numbers, op.Value)
		}
	}
	switch {
	case bank && (s.reg || len(numbers) != 2):
		s.reg, s.origin = false, Origin{}
	case bank:
		s.origin = o.constant(int(numbers[0]), int(numbers[1]))
	case len(numbers) == 1 && !s.reg:
		s.literal = numbers[0]
	}
	return s
}

// constant returns the origin of a word of a constant bank.
func (o *Origins) constant(bank, offset int) Origin {
	switch {
	case o.pointer(bank, offset):
		return Origin{OriginConstant, bank, offset}
	case o.pointer(bank, offset-4):
		return Origin{} // the high word of one
	}
	return Origin{Kind: OriginNumber}
}

// step returns the origin of v as far as those of its inputs say.
func (o *Origins) step(v value, get func(value) Origin) Origin {
	switch v.kind {
	case valueEntry:
		if o.kernel && v.at == 0 {
			return Origin{Kind: originOpen} // no value at all
		}
		return Origin{}
	case valueMaybe, valueJoin:
		out := Origin{Kind: originOpen}
		for _, x := range o.defs.inputs(v) {
			out = meet(out, get(x))
		}
		return out
	}
	in := o.defs.g.Inst(int(v.at))
	fx := in.Effects()
	if !v.reg.in(&fx.Writes) {
		return Origin{} // a call
	}
	if m := in.Memory(); m.Op != isa.MemoryNone {
		return o.loaded(in, m, v.reg)
	}
	list := o.sources(v)
	from := make([]Origin, len(list))
	for i, s := range list {
		from[i] = s.origin
		if s.reg {
			from[i] = get(s.value)
		}
		if s.negative && from[i].Kind == OriginConstant {
			from[i] = Origin{}
		}
	}
	if !o.isFirst(in, v.reg) {
		return mixed(from)
	}
	return result(in, list, from)
}

// isFirst reports whether r is the low word of an instruction's first result.
func (o *Origins) isFirst(in isa.Inst, r reg) bool {
	o.ops = in.AppendOperands(o.ops[:0])
	for _, op := range o.ops {
		if op.IsReg && op.Index >= 0 && (op.File == isa.FileR || op.File == isa.FileUR) {
			return op.First >= 0 && regOf(op.File, op.First) == r
		}
	}
	return false
}

// result returns the origin of an instruction's first result.
func result(in isa.Inst, list []source, from []Origin) Origin {
	switch f := in.Formula(); {
	case f == isa.FormulaNumber:
		return Origin{Kind: OriginNumber}
	case f == isa.FormulaCopy && len(from) == 1:
		return from[0]
	case f == isa.FormulaSum:
		sum := Origin{Kind: OriginNumber}
		for _, x := range from {
			sum = add(sum, x)
		}
		return sum
	case f == isa.FormulaProduct && len(from) == 3:
		return add(product(in, list, from), from[2])
	case f == isa.FormulaScaled && len(from) == 3:
		if list[2].literal == 0 {
			return add(from[0], from[1])
		}
		return from[1]
	case f == isa.FormulaShift && in.HasModifier("L"):
		return Origin{Kind: OriginNumber}
	case f == isa.FormulaSelect && len(from) == 2:
		return meet(from[0], from[1])
	}
	return mixed(from)
}

// product returns the origin of a product, which is that of a factor only where the other
// one is 1 and the factor is not extended to 64 bits.
func product(in isa.Inst, list []source, from []Origin) Origin {
	for i := range 2 {
		if list[i].literal == 1 && !list[i].reg && !in.HasModifier("WIDE") {
			return from[1-i]
		}
	}
	return Origin{Kind: OriginNumber}
}

// mixed returns the origin of a result that comes from values in a way that is not
// understood: numbers give a number.
func mixed(from []Origin) Origin {
	out := Origin{Kind: OriginNumber}
	for _, x := range from {
		switch x.Kind {
		case originOpen:
			out = x
		case OriginNumber:
		default:
			return Origin{}
		}
	}
	return out
}

// loaded returns the origin of register r after a load.
func (o *Origins) loaded(in isa.Inst, m isa.Memory, r reg) Origin {
	if m.Op != isa.MemoryLoad || m.Space != isa.SpaceConstant {
		return Origin{}
	}
	o.ops = in.AppendOperands(o.ops[:0])
	first := -1
	var at []int
	for _, op := range o.ops {
		switch {
		case op.Index < 0:
		case op.Kind == isa.OperandConstant && op.IsReg && op.First >= 0:
			return Origin{}
		case op.Kind == isa.OperandConstant && !op.IsReg:
			at = append(at, int(op.Value))
		case op.IsReg && op.File == isa.RegFile(r>>8) && first < 0:
			first = op.First
		}
	}
	if first < 0 || len(at) != 2 {
		return Origin{}
	}
	return o.constant(at[0], at[1]+4*(int(r&0xff)-first))
}
