package diff

import (
	"debug/elf"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/patch/code"
)

// controlMask has bits 105–124, the control code with reuse flags and batch number.
var controlMask = isa.Word{Hi: (1<<20 - 1) << 41}

// Targets of an instruction that are no index.
const (
	noTarget = -1 // the instruction has none
	outside  = -2 // it lies outside the code; Code.syms says where
)

// A Code is the instructions of one kernel made ready for comparing: padding is left
// out, and addresses that the word contains are replaced by what they mean.
type Code struct {
	Arch    string
	Kernel  *elfx.Kernel
	Table   *isa.Table // nil where the architecture is not known
	Unknown int        // words that the table does not know
	Padding int        // NOPs that are never executed

	module *Module
	number int  // of the kernel, in the cubin
	raw    bool // the architecture's instructions are not 128 bits: bytes are compared
	data   []byte
	pos    []int32 // by index: number of the instruction, address/16
	// By index: the word with relocated and pc-relative fields cleared, the index that
	// it names as target, and what else it refers to (into syms, 0 is none).
	variants []uint16 // number of the variant and 1, 0 for an unknown word
	norm     []isa.Word
	target   []int32
	sym      []uint32
	syms     []string
	stray    []string // relocations of padding and of what is no instruction
	// Memory for what is made of the code.
	buf   []byte
	lines lineList
	// localLoads and localStores count the accesses to local memory: spilled registers,
	// arrays, and the arguments of calls.
	localLoads, localStores int
}

// Len returns the number of instructions without padding.
func (c *Code) Len() int { return len(c.pos) }

// PC returns the address of instruction i.
func (c *Code) PC(i int) uint64 { return uint64(c.pos[i]) * isa.WordSize }

// Word returns instruction i as it stands in the file.
func (c *Code) Word(i int) isa.Word { return isa.LoadWord(c.data[c.PC(i):]) }

// Text returns the text of instruction i, without control code.
func (c *Code) Text(i int) string { return string(c.appendText(nil, c.Word(i), c.PC(i))) }

func (c *Code) appendText(dst []byte, w isa.Word, pc uint64) []byte {
	if c.Table == nil {
		return fmt.Appendf(dst, ".word %s", w)
	}
	return c.Table.AppendText(dst, c.Table.Decode(w), pc)
}

// decode returns instruction w decoded; without a table every word is unknown.
func (c *Code) decode(w isa.Word) isa.Inst {
	if c.Table == nil {
		return isa.Inst{Word: w, Status: isa.StatusUnknown}
	}
	return c.Table.Decode(w)
}

// understand is decode without regard to the control code, which can make a word one
// that the hardware refuses.
func (c *Code) understand(w isa.Word) isa.Inst {
	in := c.decode(neutral(w))
	if in.Status != isa.StatusKnown {
		if plain := c.decode(idle(w)); plain.Status == isa.StatusKnown {
			return plain
		}
	}
	return in
}

// neutral returns w with the control code that a line without one means.
func neutral(w isa.Word) isa.Word { return isa.DefaultControl.Set(w) }

// idle returns w with a control code of which the schedule bits are 0: a few instructions,
// such as BPT.PAUSE, are legal with no other.
func idle(w isa.Word) isa.Word {
	return isa.Control{Yield: true, WBar: isa.NoBar, RBar: isa.NoBar}.Set(w)
}

// TableFor returns the instruction table of a cubin, nil for an architecture that has
// none: words then compare by their bits. A damaged table is an error.
func TableFor(c *elfx.Cubin) (*isa.Table, error) {
	t, err := code.TableOf(c)
	if code.Unsupported(err) {
		return nil, nil
	}
	return t, err
}

// NewCode makes the code of a kernel of c ready. t may be nil. For several kernels of
// one cubin [Module.Code] is the way.
func NewCode(c *elfx.Cubin, k *elfx.Kernel, t *isa.Table) *Code {
	return (&Module{Cubin: c, Table: t}).CodeOf(k)
}

// newCode makes the code of kernel i of m ready.
//
// Code of architectures before sm_70, whose instructions are not 128 bits wide, and bytes
// after the last whole instruction are compared as they are.
func newCode(m *Module, i int) *Code {
	k := &m.Cubin.Kernels()[i]
	c, _ := codePool.Get().(*Code)
	if c == nil {
		c = &Code{}
	}
	*c = Code{
		Arch: m.Cubin.Arch, Kernel: k, Table: m.Table, data: k.Data(), syms: append(c.syms[:0], ""), raw: m.Cubin.InstructionSize() != isa.WordSize,
		module: m, number: i, pos: c.pos, variants: c.variants, norm: c.norm, target: c.target, sym: c.sym, buf: c.buf, lines: c.lines,
	}
	b, _ := builderPool.Get().(*codeBuilder)
	if b == nil {
		b = &codeBuilder{to: map[int32]uint64{}}
	}
	b.Code, b.n = c, len(c.data)/isa.WordSize
	b.scan()
	b.live()
	b.relocations()
	b.resolve()
	b.Code = nil
	clear(b.to)
	builderPool.Put(b)
	return c
}

// Cubin returns the cubin that the code is in.
func (c *Code) Cubin() *elfx.Cubin { return c.module.Cubin }

// Memory that is used again: of codes that are done with, and of builders.
var codePool, builderPool sync.Pool

// Done says that nothing more will be asked of c: its memory becomes that of another.
func (c *Code) Done() {
	clear(c.syms)
	c.Kernel, c.Table, c.module, c.data = nil, nil, nil, nil
	codePool.Put(c)
}

// zeros returns n zero values, in the memory of s if there is enough.
func zeros[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	s = s[:n]
	clear(s)
	return s
}

// A codeBuilder holds what is known by instruction number while a Code is made.
type codeBuilder struct {
	*Code
	n      int
	kinds  []uint16     // as Code.variants
	traits []isa.Traits // of what the control code leaves to be known
	to     map[int32]uint64
	isGoal []bool  // a branch goes there
	index  []int32 // by instruction number: index, -1 for padding
}

// scan decodes every word and collects where branches go.
func (b *codeBuilder) scan() {
	b.kinds, b.traits, b.isGoal = zeros(b.kinds, b.n), zeros(b.traits, b.n), zeros(b.isGoal, b.n)
	if b.Table == nil {
		b.Unknown = b.n
		return
	}
	constants := false
	for i := range b.n {
		in := b.Table.Decode(isa.LoadWord(b.data[i*isa.WordSize:]))
		if in.Status != isa.StatusKnown {
			b.Unknown++
			if in = b.understand(in.Word); in.Status != isa.StatusKnown {
				continue
			}
		}
		if n, ok := in.Number(); ok {
			b.kinds[i] = uint16(n) + 1
		}
		t := in.Traits()
		if t == 0 {
			continue
		}
		b.traits[i] = t
		if t&isa.HasMemory != 0 {
			b.countLocal(in.Memory())
		}
		if t&isa.HasTarget != 0 {
			if to, ok := in.Target(uint64(i) * isa.WordSize); ok {
				b.to[int32(i)] = to
				b.goal(to)
			}
		}
		constants = constants || t&isa.HasConstant != 0
	}
	if constants {
		b.returns()
	}
}

// countLocal counts an access to local memory.
func (b *codeBuilder) countLocal(m isa.Memory) {
	switch {
	case m.Space != isa.SpaceLocal:
	case m.Op == isa.MemoryLoad:
		b.localLoads++
	case m.Op == isa.MemoryStore:
		b.localStores++
	}
}

// inst returns instruction i decoded; the control code may be another.
func (b *codeBuilder) inst(i int) isa.Inst {
	in := b.decode(isa.LoadWord(b.data[i*isa.WordSize:]))
	if in.Status != isa.StatusKnown {
		in = b.understand(in.Word)
	}
	return in
}

// flow says what instruction i does to control.
func (b *codeBuilder) flow(i int) isa.Flow {
	if b.traits[i]&isa.HasFlow == 0 {
		return isa.Flow{}
	}
	return b.inst(i).Flow()
}

// goal notes that control can reach the address to.
func (b *codeBuilder) goal(to uint64) {
	if to%isa.WordSize == 0 && to/isa.WordSize < uint64(b.n) {
		b.isGoal[to/isa.WordSize] = true
	}
}

// returnReach is how many instructions a return address may stand before its call.
const returnReach = 64

// returns finds the return addresses that a MOV puts into a register for a following
// CALL: an immediate that is the address after that CALL.
func (b *codeBuilder) returns() {
	for i, t := range b.traits {
		if t&isa.HasConstant == 0 {
			continue
		}
		in := b.inst(i)
		f, ok := in.Constant()
		if !ok {
			continue
		}
		to := f.Get(in.Word)
		call := int(to/isa.WordSize) - 1
		if to%isa.WordSize != 0 || call <= i || call > i+returnReach || call >= b.n-1 {
			continue
		}
		if b.flow(call).Kind == isa.FlowCall {
			b.to[int32(i)] = to
			b.goal(to)
		}
	}
}

// live lists the instructions that are no padding: NOPs at the end, and those after
// an instruction that control never passes and that no branch goes to.
func (b *codeBuilder) live() {
	n := b.n
	for n > 0 && b.isNOP(n-1) && !b.isGoal[n-1] {
		n--
	}
	b.index, b.pos = zeros(b.index, b.n), zeros(b.pos, b.n)[:0]
	dead := false
	for i := range b.n {
		if i >= n || dead && b.isNOP(i) && !b.isGoal[i] {
			b.index[i] = -1
			b.Padding++
			continue
		}
		b.index[i] = int32(len(b.pos))
		b.pos = append(b.pos, int32(i))
		dead = b.flow(i).NeverPasses()
	}
}

// isNOP reports whether instruction i is a NOP, as far as its opcode tells where the
// word is not known.
func (b *codeBuilder) isNOP(i int) bool {
	switch {
	case b.raw:
		return false
	case b.kinds[i] != 0:
		return b.traits[i]&isa.Padding != 0
	}
	return isa.LoadWord(b.data[i*isa.WordSize:]).IsNOP()
}

// relocations fills norm, target and sym from the relocations of the code.
func (b *codeBuilder) relocations() {
	n := len(b.pos)
	b.norm, b.target, b.sym, b.variants = zeros(b.norm, n), zeros(b.target, n), zeros(b.sym, n), zeros(b.variants, n)
	for at, i := range b.pos {
		b.variants[at] = b.kinds[i]
		b.norm[at] = isa.LoadWord(b.data[int(i)*isa.WordSize:])
		b.target[at] = noTarget
	}
	relocs := b.Kernel.Relocs()
	if len(relocs) == 0 {
		return
	}
	inPlace := hasRel(b.module.Cubin, b.Kernel)
	var buf []byte
	for _, r := range relocs {
		num, at := r.Offset/isa.WordSize, r.Offset%isa.WordSize
		to, own := b.ownAddress(r)
		buf = strconv.AppendUint(append(buf[:0], "reloc "...), uint64(r.Type), 10)
		if at != 0 {
			buf = strconv.AppendUint(append(buf, " at byte "...), at, 10)
		}
		buf = append(buf, ' ')
		if !own {
			to = nowhere
			buf = append(append(buf, b.module.anonymous(r.SymbolIndex, b.number)...), '+')
			buf = appendHex(buf, r.Addend)
		}
		if num >= uint64(b.n) || b.index[num] < 0 {
			if !own {
				to = 0
			}
			b.stray = append(b.stray, fmt.Sprintf("%s to %#x", buf, to))
			continue
		}
		i := b.index[num]
		delete(b.to, int32(num))
		if f := relocFields[r.Type]; f != nil && !inPlace && at == 0 {
			b.norm[i] = f.MustSet(b.norm[i], 0)
		}
		b.refer(i, to, buf)
	}
	slices.Sort(b.stray)
}

// appendHex appends x as %#x of package fmt writes it.
func appendHex(dst []byte, x int64) []byte {
	if x < 0 {
		return appendHexUint(append(dst, '-'), -uint64(x))
	}
	return appendHexUint(dst, uint64(x))
}

func appendHexUint(dst []byte, x uint64) []byte {
	return strconv.AppendUint(append(dst, "0x"...), x, 16)
}

// nowhere is the address of what is no address in the code.
const nowhere = ^uint64(0)

// refer notes that instruction i refers to an address in the code and, or else, to
// what text says.
func (b *codeBuilder) refer(i int32, at uint64, text []byte) {
	if at != nowhere {
		num := at / isa.WordSize
		if b.target[i] >= 0 {
			text = fmt.Appendf(text, "and %d ", b.target[i])
		}
		if at%isa.WordSize == 0 && num < uint64(b.n) && b.index[num] >= 0 {
			b.target[i] = b.index[num]
		} else {
			b.target[i] = outside
			text = fmt.Appendf(text, "at %+d", int64(at)-int64(b.n)*isa.WordSize)
		}
	}
	if old := b.sym[i]; old != 0 {
		text = append([]byte(b.syms[old]+" "), text...)
	}
	if len(text) > 0 {
		b.sym[i] = uint32(len(b.syms))
		b.syms = append(b.syms, string(text))
	}
}

// resolve turns the targets that were found in the words into indexes and clears their
// fields.
func (b *codeBuilder) resolve() {
	for num, to := range b.to {
		i := b.index[num]
		if i < 0 {
			continue
		}
		in := b.inst(int(num))
		f, ok := in.TargetField()
		if !ok {
			f, ok = in.Constant()
		}
		if ok {
			b.norm[i] = f.MustSet(b.norm[i], 0)
			b.refer(i, to, nil)
		}
	}
}

// hasRel reports whether a kernel has relocations of the kind that keep their addend in
// the instruction.
func hasRel(c *elfx.Cubin, k *elfx.Kernel) bool {
	for i := range c.Sections() {
		if s := &c.Sections()[i]; s.Type == shtRel && int(s.Info) == k.Index && s.Size > 0 {
			return true
		}
	}
	return false
}

// ownAddress returns the address in the kernel's code that a relocation means, if it
// means one.
func (c *Code) ownAddress(r elfx.Reloc) (uint64, bool) {
	list := c.module.Cubin.Symbols()
	if uint64(r.SymbolIndex) >= uint64(len(list)) {
		return 0, false
	}
	s := &list[r.SymbolIndex]
	if int(s.Section) != c.Kernel.Index || !s.Func() && s.Info&0xf != uint8(elf.STT_SECTION) {
		return 0, false
	}
	return s.Value + uint64(r.Addend), true
}

// relocFields are the bits that a relocation replaces, by its type; the names of the
// types, which cuobjdump -elf prints, say so: R_CUDA_ABS32_LO_32 has 32 bits from bit 32.
// A type that is not listed leaves the word to be compared as it is.
var relocFields = map[uint32]isa.Field{
	55:  isa.Bits(32, 63), // R_CUDA_ABS32_32
	56:  isa.Bits(32, 63), // R_CUDA_ABS32_LO_32
	57:  isa.Bits(32, 63), // R_CUDA_ABS32_HI_32
	58:  isa.Bits(34, 80), // R_CUDA_ABS47_34
	59:  isa.Bits(32, 47), // R_CUDA_ABS16_32
	60:  isa.Bits(32, 55), // R_CUDA_ABS24_32
	61:  isa.Bits(32, 63), // R_CUDA_FUNC_DESC32_32
	62:  isa.Bits(32, 63), // R_CUDA_FUNC_DESC32_LO_32
	63:  isa.Bits(32, 63), // R_CUDA_FUNC_DESC32_HI_32
	64:  isa.Bits(40, 58), // R_CUDA_CONST_FIELD19_40
	66:  isa.Bits(38, 58), // R_CUDA_CONST_FIELD21_38
	74:  isa.Bits(40, 63), // R_CUDA_ABS24_40
	75:  split(34, 80),    // R_CUDA_ABS55_16_34
	112: isa.Bits(32, 63), // R_CUDA_UNIFIED32_LO_32
	113: isa.Bits(32, 63), // R_CUDA_UNIFIED32_HI_32
	114: split(34, 81),    // R_CUDA_ABS56_16_34
	115: isa.Bits(37, 58), // R_CUDA_CONST_FIELD22_37
}

// split is the field of bits 16–23 and lo–hi.
func split(lo, hi int) isa.Field { return append(isa.Bits(16, 23), isa.Bits(lo, hi)...) }
