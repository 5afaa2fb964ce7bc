package isa

import (
	"errors"
	"fmt"
	"strings"
	"sync"
)

// A FlowKind says what an instruction does to control.
type FlowKind uint8

// The kinds of flow.
const (
	FlowNone     FlowKind = iota
	FlowBranch            // goes on at an address in the instruction: BRA, JMP
	FlowIndirect          // goes on at an address from a register or a constant: BRX, JMX
	FlowCall              // CALL
	FlowReturn            // RET, RTT
	FlowExit              // the thread ends: EXIT, KILL
	FlowReserve           // BSSY: says where the threads of a barrier meet again
	FlowSync              // BSYNC: waits for the threads of a barrier
	FlowBreak             // BREAK: takes threads off a barrier
	FlowWarpSync          // WARPSYNC: waits for threads of the warp
)

var flowNames = [...]string{"", "branch", "indirect", "call", "return", "exit", "reserve", "sync", "break", "warpsync"}

// String returns the kind's name, such as branch.
func (k FlowKind) String() string { return flowNames[k] }

// Flow says what an instruction does to control.
type Flow struct {
	Kind FlowKind
	// Conditional says that control may also go on after the instruction because of its
	// guard, of a predicate that it reads, or of the state of the warp (BRA.DIV).
	Conditional bool
}

// EndsBlock reports whether a basic block ends with the instruction.
func (f Flow) EndsBlock() bool {
	return f.Kind != FlowNone && f.Kind != FlowReserve && f.Kind != FlowWarpSync
}

// NeverPasses reports whether control never goes on after the instruction, not even
// after a return.
func (f Flow) NeverPasses() bool {
	switch f.Kind {
	case FlowBranch, FlowIndirect, FlowReturn, FlowExit:
		return !f.Conditional
	}
	return false
}

// A MemoryOp says what an instruction does with memory.
type MemoryOp uint8

// The operations on memory.
const (
	MemoryNone     MemoryOp = iota
	MemoryLoad              // into registers
	MemoryStore             // from registers
	MemoryAtomic            // reads and writes, and returns the old value
	MemoryReduce            // reads and writes, and returns nothing
	MemoryPrefetch          // into a cache
	MemoryCopy              // from memory to memory, done later
	MemoryControl           // of a cache
	MemorySync              // on a barrier in memory
	MemoryMatrix            // reads matrices from memory, by descriptors
	MemoryQuery             // asks about an address, a texture or a surface
	MemoryFence             // orders other accesses
)

var memoryOpNames = [...]string{"", "load", "store", "atomic", "reduce", "prefetch", "copy", "control", "sync", "matrix", "query", "fence"}

// String returns the operation's name, such as load.
func (o MemoryOp) String() string { return memoryOpNames[o] }

// A Space is a kind of memory.
type Space uint8

// The spaces. That of a copy is where the instruction's address is that is not in shared
// memory, or shared memory.
const (
	SpaceNone Space = iota
	SpaceGeneric
	SpaceGlobal
	SpaceShared
	SpaceLocal
	SpaceConstant
	SpaceTexture
	SpaceSurface
	SpaceAttribute // of vertices and primitives
	SpaceTensor    // tensor memory
	SpaceMulticast // one address for the memory of several GPUs
)

var spaceNames = [...]string{"", "generic", "global", "shared", "local", "constant", "texture", "surface", "attribute", "tensor", "multicast"}

// String returns the space's name, such as global.
func (s Space) String() string { return spaceNames[s] }

// Memory says what an instruction does with memory.
type Memory struct {
	Op    MemoryOp
	Space Space
	// Bytes is how many bytes move for each thread; 0 where they are not counted by
	// thread (matrices, textures, bulk copies) and where none move.
	Bytes int
}

// behavior is what a variant does, made ready for questions about a word.
type behavior struct {
	*facts
	traits   Traits
	mnemonic string
	relative []picked[*Slot]
	preds    []picked[bool]   // does the alternative print a predicate?
	sizes    []picked[uint16] // the size in bits, 0 for none
	constant []picked[*Slot]  // of a move: the number of 32 bits
	mods     []picked[[]string]

	variant    *Variant
	placesOnce sync.Once
	places     []picked[[]*place] // the registers and numbers that it prints
}

// picked has what each alternative of a piece means for some question.
type picked[T any] struct {
	index gather
	table []uint16 // nil: the first of by
	by    []T
}

// in returns what holds for w; ok is false where w chooses no alternative.
func (p *picked[T]) in(w Word) (x T, ok bool) {
	i := uint16(0)
	if p.table != nil {
		i = p.table[p.index.value(w)]
	}
	if int(i) >= len(p.by) {
		return x, false
	}
	return p.by[i], true
}

// pick asks about each alternative of p; some is false if none has an answer.
func pick[T any](p *Piece, ask func(a Alt) (T, bool)) (out picked[T], some bool) {
	out = picked[T]{by: make([]T, len(p.Alts))}
	if len(p.Tests) > 0 {
		out.index, out.table = indexGather(p), p.Table
	}
	for i, a := range p.Alts {
		x, ok := ask(a)
		out.by[i], some = x, some || ok
	}
	return out, some
}

// add appends to list what ask says of p's alternatives, unless it says nothing.
func add[T any](list []picked[T], p *Piece, ask func(a Alt) (T, bool)) []picked[T] {
	if x, some := pick(p, ask); some {
		list = append(list, x)
	}
	return list
}

// newBehavior returns what v does.
func newBehavior(v *Variant) *behavior {
	b := &behavior{mnemonic: v.Mnemonic(), variant: v}
	b.facts = factsOf(b.mnemonic)
	for i := range v.Template {
		b.relative = add(b.relative, &v.Template[i], relativeSlot)
		b.preds = add(b.preds, &v.Template[i], printsPredicate)
		if b.move {
			b.constant = add(b.constant, &v.Template[i], constantSlot)
		}
	}
	for i := range opcodePieces(v) {
		b.mods = add(b.mods, &v.Template[i], opcodeWords)
		b.sizes = add(b.sizes, &v.Template[i], sizeIn)
	}
	for _, x := range []struct {
		trait Traits
		has   bool
	}{{HasFlow, b.flow != FlowNone}, {HasMemory, b.memory.Op != MemoryNone}, {HasTarget, b.relative != nil},
		{HasConstant, b.constant != nil}, {Padding, b.pad}} {
		if x.has {
			b.traits |= x.trait
		}
	}
	return b
}

// Traits say which questions about an instruction may have an answer, so that they need
// not be asked about the many that have none.
type Traits uint8

// The traits.
const (
	HasFlow     Traits = 1 << iota // Flow may say something
	HasMemory                      // Memory
	HasTarget                      // Target
	HasConstant                    // Constant
	Padding                        // IsPadding is true
)

// Traits returns the traits of the instruction, none for a word without text.
func (in *Inst) Traits() Traits {
	if in.Status != StatusKnown || in.prog == nil {
		return 0
	}
	return in.prog.behavior().traits
}

func relativeSlot(a Alt) (*Slot, bool) {
	for i := range a {
		if a[i].Lit == "" && a[i].Slot.Kind == KindRel {
			return &a[i].Slot, true
		}
	}
	return nil, false
}

func constantSlot(a Alt) (*Slot, bool) {
	for i := range a {
		s := &a[i].Slot
		if a[i].Lit == "" && (s.Kind == KindHex || s.Kind == KindSHex) && s.Field.Width() == 32 && s.Xor == 0 && s.Shift == 0 && s.Add == 0 {
			return s, true
		}
	}
	return nil, false
}

func printsPredicate(a Alt) (yes, ok bool) {
	for i := range a {
		yes = yes || a[i].Lit == "" && (a[i].Slot.Kind == KindPred || a[i].Slot.Kind == KindUPred)
	}
	return yes, yes
}

// opcodePieces returns how many of v's pieces, from the first on, may print a part of the
// opcode: what stands before the first blank.
func opcodePieces(v *Variant) int {
	for i := range v.Template {
		ends := len(v.Template[i].Alts) > 0
		for _, a := range v.Template[i].Alts {
			ends = ends && endsOpcode(a)
		}
		if ends {
			return i + 1
		}
	}
	return len(v.Template)
}

func endsOpcode(a Alt) bool {
	for _, e := range a {
		if strings.Contains(e.Lit, " ") {
			return true
		}
	}
	return false
}

// OpcodeBits returns, for words with the opcode of w, the bits that decide the variant,
// what the opcode prints, modifiers included, and whether there is any text. With the other
// bits changed a word has the same.
func (t *Table) OpcodeBits(w Word) Word {
	op := w.Opcode()
	if m := t.opcodeBits[op].Load(); m != nil {
		return *m
	}
	m := opcodeMask
	for i := t.first[op]; i < t.first[op+1]; i++ {
		t.cands[i].complete()
		m = m.Or(opcodeBits(t.cands[i].v))
	}
	t.opcodeBits[op].Store(&m)
	return m
}

// opcodeBits returns the bits that decide whether a word is of v, and those that may change
// the opcode's text, or whether there is text at all.
func opcodeBits(v *Variant) Word {
	m := v.Mask
	n := opcodePieces(v)
	for i := range v.Template {
		p := &v.Template[i]
		if i >= n && !p.hasHoles() {
			continue
		}
		for _, t := range p.Tests {
			m = m.Or(t.Field.Mask())
		}
		if i < n {
			for _, a := range p.Alts {
				m = m.Or(opcodeSlots(a))
			}
		}
	}
	return m
}

// hasHoles reports whether some words have no text because of p.
func (p *Piece) hasHoles() bool {
	for _, x := range p.Table {
		if x >= PieceOther {
			return true
		}
	}
	return false
}

// opcodeSlots returns the bits of the slots that a prints before a blank.
func opcodeSlots(a Alt) Word {
	var m Word
	for _, e := range a {
		if e.Lit == "" {
			m = m.Or(e.Slot.Field.Mask())
		} else if strings.Contains(e.Lit, " ") {
			break
		}
	}
	return m
}

// opcodeWords returns the modifiers that a prints in the opcode.
func opcodeWords(a Alt) ([]string, bool) {
	var words []string
	for _, e := range a {
		lit, _, end := strings.Cut(e.Lit, " ")
		if parts := strings.Split(lit, "."); len(parts) > 1 {
			words = append(words, parts[1:]...)
		}
		if end {
			break
		}
	}
	return words, len(words) > 0
}

// sizes are the modifiers that give a size in bits.
var sizes = map[string]uint16{
	"U8": 8, "S8": 8, "8": 8, "U16": 16, "S16": 16, "16": 16, "F16": 16, "BF16": 16, "32": 32, "U32": 32, "S32": 32, "F32": 32,
	"F16x2": 32, "BF16x2": 32, "64": 64, "U64": 64, "S64": 64, "F64": 64, "96": 96, "128": 128, "256": 256,
}

func sizeIn(a Alt) (uint16, bool) {
	words, _ := opcodeWords(a)
	for _, w := range words {
		if n := sizes[w]; n > 0 {
			return n, true
		}
	}
	return 0, false
}

// behavior returns what the instruction does, or nil for a word without text.
func (in *Inst) behavior() *behavior {
	if in.Status != StatusKnown || in.prog == nil {
		return nil
	}
	return in.prog.behavior()
}

// behavior returns what p's variant does, which is found out when it is first asked for.
func (p *program) behavior() *behavior {
	b := p.does.Load()
	if b == nil {
		b = newBehavior(p.v)
		p.does.Store(b)
	}
	return b
}

// hasMod reports whether w has one of the modifiers in its opcode.
func (b *behavior) hasMod(w Word, mods []string) bool {
	for i := range b.mods {
		words, _ := b.mods[i].in(w)
		for _, x := range words {
			for _, m := range mods {
				if x == m {
					return true
				}
			}
		}
	}
	return false
}

// Mnemonic returns the name of the instruction without modifiers, LDG, or "" for a word
// without text. It makes no text.
func (in Inst) Mnemonic() string {
	if b := in.behavior(); b != nil {
		return b.mnemonic
	}
	return ""
}

// Opcode returns the name of the instruction with its modifiers, LDG.E.64, or "" for a
// word without text.
func (in Inst) Opcode() string {
	b := in.behavior()
	if b == nil {
		return ""
	}
	name := b.mnemonic
	for i := range b.mods {
		words, _ := b.mods[i].in(in.Word)
		for _, w := range words {
			name += "." + w
		}
	}
	return name
}

// HasModifier reports whether one of the words of the instruction's opcode after the
// mnemonic is name: WIDE of IMAD.WIDE.U32.
func (in Inst) HasModifier(name string) bool {
	b := in.behavior()
	return b != nil && b.hasMod(in.Word, []string{name})
}

// Flow says what the instruction does to control.
func (in Inst) Flow() Flow {
	b := in.behavior()
	if b == nil || b.flow == FlowNone {
		return Flow{}
	}
	f := Flow{Kind: b.flow, Conditional: GuardField.Get(in.Word) != 7 || GuardNot.Get(in.Word) != 0}
	for i := range b.preds {
		yes, _ := b.preds[i].in(in.Word)
		f.Conditional = f.Conditional || yes
	}
	f.Conditional = f.Conditional || len(b.cond) > 0 && b.hasMod(in.Word, b.cond)
	return f
}

// IsGuarded reports whether the instruction has a guard that is not PT: a predicate may
// keep it from doing anything.
func (in Inst) IsGuarded() bool {
	return in.Variant != nil && in.Variant.Guard != GuardNone && (GuardField.Get(in.Word) != 7 || GuardNot.Get(in.Word) != 0)
}

// Memory says what the instruction does with memory.
func (in Inst) Memory() Memory {
	b := in.behavior()
	if b == nil {
		return Memory{}
	}
	m := b.memory
	if b.sized {
		m.Bytes = 4
		for i := range b.sizes {
			if n, _ := b.sizes[i].in(in.Word); n > 0 {
				m.Bytes = int(n) / 8
				break
			}
		}
	}
	if len(b.prefetch) > 0 && b.hasMod(in.Word, b.prefetch) {
		m.Op = MemoryPrefetch
	}
	return m
}

// IsPadding reports whether the instruction does nothing but wait as its control code
// says: NOP.
func (in Inst) IsPadding() bool {
	b := in.behavior()
	return b != nil && b.pad
}

// Target returns the address that the operand relative to the instruction's own address
// pc means, if it prints one: that of a branch, mostly.
func (in Inst) Target(pc uint64) (to uint64, ok bool) {
	s := in.relativeSlot()
	if s == nil {
		return 0, false
	}
	n := uint(s.Field.Width())
	x := s.Field.Get(in.Word) ^ s.Xor
	x = uint64(int64(x<<(64-n))>>(64-n))<<s.Shift + uint64(s.Add)
	return pc + WordSize + x, true
}

// WithTarget returns the word of the instruction with another target, seen from the address
// pc. An address that the field cannot hold is an error.
func (in Inst) WithTarget(pc, to uint64) (Word, error) {
	s := in.relativeSlot()
	if s == nil {
		return in.Word, errors.New("the instruction has no target")
	}
	n := uint(s.Field.Width())
	x := int64(to - pc - WordSize - uint64(s.Add))
	v := uint64(x>>s.Shift)&(1<<n-1) ^ s.Xor
	now := in
	var err error
	if now.Word, err = s.Field.Set(in.Word, v); err == nil {
		if got, _ := now.Target(pc); got == to {
			return now.Word, nil
		}
	}
	return in.Word, fmt.Errorf("a target at %#x is too far from %#x, or no address", to, pc)
}

// TargetField returns the field that Target reads.
func (in Inst) TargetField() (f Field, ok bool) {
	if s := in.relativeSlot(); s != nil {
		return s.Field, true
	}
	return nil, false
}

func (in Inst) relativeSlot() *Slot {
	b := in.behavior()
	if b == nil {
		return nil
	}
	for i := range b.relative {
		if s, _ := b.relative[i].in(in.Word); s != nil {
			return s
		}
	}
	return nil
}

// nopOpcode is the opcode of NOP, bits 0–11, on every architecture from sm_70 on.
const nopOpcode = 0x918

// IsNOP reports whether w has the opcode of NOP, for words that no table knows.
func (w Word) IsNOP() bool { return w.Lo&0xfff == nopOpcode }

// Constant returns the field of the 32-bit number that the instruction, a move, puts into
// a register.
func (in Inst) Constant() (f Field, ok bool) {
	b := in.behavior()
	if b == nil {
		return nil, false
	}
	for i := range b.constant {
		if s, _ := b.constant[i].in(in.Word); s != nil {
			return s.Field, true
		}
	}
	return nil, false
}
