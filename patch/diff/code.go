package diff

import (
	"debug/elf"
	"fmt"
	"slices"

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
	variants []*isa.Variant // nil for an unknown word
	norm     []isa.Word
	target   []int32
	sym      []uint32
	syms     []string
	stray    []string // relocations of padding and of what is no instruction
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

// TableFor returns the instruction table of a cubin, nil where there is none: words
// then compare by their bits.
func TableFor(c *elfx.Cubin) *isa.Table {
	t, err := code.TableOf(c)
	if err != nil {
		return nil
	}
	return t
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
	c := &Code{
		Arch: m.Cubin.Arch, Kernel: k, Table: m.Table, data: k.Data(), syms: []string{""}, raw: m.Cubin.InstructionSize() != isa.WordSize,
		module: m, number: i,
	}
	b := &codeBuilder{Code: c, n: len(c.data) / isa.WordSize}
	b.scan()
	b.live()
	b.relocations()
	b.resolve()
	return c
}

// A codeBuilder holds what is known by instruction number while a Code is made.
type codeBuilder struct {
	*Code
	n      int
	all    []isa.Inst // by instruction number; the control code may be another
	to     map[int32]uint64
	isGoal []bool  // a branch goes there
	index  []int32 // by instruction number: index, -1 for padding
}

// scan decodes every word and collects where branches go.
func (b *codeBuilder) scan() {
	b.all = make([]isa.Inst, b.n)
	b.isGoal = make([]bool, b.n)
	b.to = map[int32]uint64{}
	for i := range b.n {
		w := isa.LoadWord(b.data[i*isa.WordSize:])
		in := b.decode(w)
		if in.Status != isa.StatusKnown {
			b.Unknown++
			if in = b.understand(w); in.Status != isa.StatusKnown {
				continue
			}
		}
		b.all[i] = in
		if to, ok := in.Target(uint64(i) * isa.WordSize); ok {
			b.to[int32(i)] = to
			b.goal(to)
		}
	}
	b.returns()
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
	for i, in := range b.all {
		f, ok := in.Constant()
		if !ok {
			continue
		}
		to := f.Get(in.Word)
		call := int(to/isa.WordSize) - 1
		if to%isa.WordSize != 0 || call <= i || call > i+returnReach || call >= b.n-1 {
			continue
		}
		if b.all[call].Flow().Kind == isa.FlowCall {
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
	b.index = make([]int32, b.n)
	b.pos = make([]int32, 0, n)
	dead := false
	for i := range b.n {
		if i >= n || dead && b.isNOP(i) && !b.isGoal[i] {
			b.index[i] = -1
			b.Padding++
			continue
		}
		b.index[i] = int32(len(b.pos))
		b.pos = append(b.pos, int32(i))
		dead = b.all[i].Flow().NeverPasses()
	}
}

// isNOP reports whether instruction i is a NOP, as far as its opcode tells where the
// word is not known.
func (b *codeBuilder) isNOP(i int) bool {
	switch in := b.all[i]; {
	case b.raw:
		return false
	case in.Variant != nil:
		return in.IsPadding()
	}
	return isa.LoadWord(b.data[i*isa.WordSize:]).IsNOP()
}

// relocations fills norm, target and sym from the relocations of the code.
func (b *codeBuilder) relocations() {
	b.norm = make([]isa.Word, 0, len(b.pos))
	b.target = make([]int32, 0, len(b.pos))
	b.sym = make([]uint32, len(b.pos))
	b.variants = make([]*isa.Variant, 0, len(b.pos))
	for _, i := range b.pos {
		b.variants = append(b.variants, b.all[i].Variant)
		if m := b.all[i].Memory(); m.Space == isa.SpaceLocal {
			switch m.Op {
			case isa.MemoryLoad:
				b.localLoads++
			case isa.MemoryStore:
				b.localStores++
			}
		}
		b.norm = append(b.norm, isa.LoadWord(b.data[int(i)*isa.WordSize:]))
		b.target = append(b.target, noTarget)
	}
	relocs := b.Kernel.Relocs()
	if len(relocs) == 0 {
		return
	}
	inPlace := hasRel(b.module.Cubin, b.Kernel)
	for _, r := range relocs {
		num, at := r.Offset/isa.WordSize, r.Offset%isa.WordSize
		to, own := b.ownAddress(r)
		text := fmt.Sprintf("reloc %d ", r.Type)
		if at != 0 {
			text = fmt.Sprintf("reloc %d at byte %d ", r.Type, at)
		}
		name := text
		if !own {
			name = fmt.Sprintf("%s%s+%#x", text, b.module.anonymous(r.SymbolIndex, b.Kernel.Name), r.Addend)
		}
		if num >= uint64(b.n) || b.index[num] < 0 {
			b.stray = append(b.stray, fmt.Sprintf("%s to %#x", name, to))
			continue
		}
		i := b.index[num]
		delete(b.to, int32(num))
		if f := relocFields[r.Type]; f != nil && !inPlace && at == 0 {
			b.norm[i] = f.MustSet(b.norm[i], 0)
		}
		if own {
			b.refer(i, to, text)
		} else {
			b.refer(i, ^uint64(0), name)
		}
	}
	slices.Sort(b.stray)
}

// refer notes that instruction i refers to an address in the code and, or else, to
// what text says.
func (b *codeBuilder) refer(i int32, at uint64, text string) {
	if at != ^uint64(0) {
		num := at / isa.WordSize
		if b.target[i] >= 0 {
			text += fmt.Sprintf("and %d ", b.target[i])
		}
		if at%isa.WordSize == 0 && num < uint64(b.n) && b.index[num] >= 0 {
			b.target[i] = b.index[num]
		} else {
			b.target[i] = outside
			text += fmt.Sprintf("at %+d", int64(at)-int64(b.n)*isa.WordSize)
		}
	}
	if old := b.sym[i]; old != 0 {
		text = b.syms[old] + " " + text
	}
	if text != "" {
		b.sym[i] = uint32(len(b.syms))
		b.syms = append(b.syms, text)
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
		f, ok := b.all[num].TargetField()
		if !ok {
			f, ok = b.all[num].Constant()
		}
		if ok {
			b.norm[i] = f.MustSet(b.norm[i], 0)
			b.refer(i, to, "")
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
