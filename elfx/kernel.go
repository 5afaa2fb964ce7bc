package elfx

import (
	"cmp"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/ianlancetaylor/demangle"
)

// A Kernel is a section of code: .text.NAME holds a kernel, or a device function of
// a relocatable cubin.
type Kernel struct {
	Name     string // mangled, as in the section name
	Section  string // .text.NAME
	Index    int    // of the section
	Offset   int64  // of the first instruction, in the cubin
	Size     int64  // in bytes
	Entry    bool   // a kernel that the host can launch; else a device function
	Regs     int    // registers per thread, 0 if not told
	Shared   int    // bytes of static shared memory
	Local    int    // bytes of local memory
	Stack    int    // bytes of stack per thread that the compiler found; -1: no bound, as with recursion
	Frame    int    // bytes of the function's own stack frame
	Barriers int    // named barriers used
	Params   int    // bytes of parameters
	Constant int    // bytes of constant bank 0

	cubin  *Cubin
	info   int32   // index of .nv.info.NAME, 0 if there is none
	relocs []int32 // indexes of the relocation sections of the code
}

// A Reloc is a relocation of an instruction, or of a part of one or of data.
type Reloc struct {
	Offset      uint64 // from the start of the kernel, or of the section
	Type        uint32
	Symbol      string // its name, that of its section where it has none
	SymbolIndex uint32 // in Cubin.Symbols
	Addend      int64
}

// A Param is a parameter of a kernel.
type Param struct {
	Ordinal int
	Offset  int // in the parameter block
	Size    int // in bytes
}

// A Function is a symbol of type function inside a kernel's section.
type Function struct {
	Name   string
	Offset uint64 // from the start of the section
	Size   uint64
	Entry  bool
}

// Kernels returns the code sections in the order of the section header table. The
// caller must not change them.
func (c *Cubin) Kernels() []Kernel { return c.kernels }

// Tables returns the unified function tables, sections .nv.uft, which hold jump
// instructions rather than kernels.
func (c *Cubin) Tables() []Section {
	var out []Section
	for i := range c.sections {
		if s := &c.sections[i]; s.Name == ".nv.uft" && s.HasData() {
			out = append(out, *s)
		}
	}
	return out
}

// InstructionSize returns the distance between instructions in bytes: 16 from sm_70
// on. Older architectures have 8-byte instructions with control words among them.
func (c *Cubin) InstructionSize() int { return instructionSize(c.SM) }

// InstructionSize is that of the entry's cubin, by the architecture that the container gives.
func (e *Entry) InstructionSize() int { return instructionSize(e.SM) }

func instructionSize(sm int) int {
	if sm < 70 {
		return 8
	}
	return 16
}

// isText reports whether a section holds the code of a kernel or function.
func isText(s *Section) bool {
	return s.Type == shtProgbits && s.Flags&shfExec != 0 && (s.Name == ".text" || strings.HasPrefix(s.Name, ".text."))
}

// parseKernels collects the code sections and what the other sections say of them.
func (c *Cubin) parseKernels() error {
	byIndex := make(map[uint32]int)
	byName := make(map[string]int)
	for i := range c.sections {
		s := &c.sections[i]
		if !isText(s) {
			continue
		}
		if s.Flags&shfCompressed != 0 {
			return formatErrorf(quoteName(s.Name, i), s.Offset, "code in a compressed section")
		}
		k := Kernel{
			Name: strings.TrimPrefix(strings.TrimPrefix(s.Name, ".text"), "."), Section: s.Name, Index: i,
			Offset: s.Offset, Size: int64(s.Size), cubin: c, Barriers: int(s.Flags >> 20 & 0x7f),
		}
		if c.Layout == LayoutOld {
			k.Regs = int(s.Info >> 24)
		}
		byIndex[uint32(i)] = len(c.kernels)
		byName[k.Name] = len(c.kernels)
		c.kernels = append(c.kernels, k)
	}
	if len(c.kernels) == 0 {
		return nil
	}
	c.attachSections(byIndex, byName)
	c.attachInfo(c.symbolKernels(byIndex))
	return nil
}

// attachSections finds the sections that belong to a kernel: by sh_info, which holds
// the index of the code section, else by name.
func (c *Cubin) attachSections(byIndex map[uint32]int, byName map[string]int) {
	find := func(s *Section, prefix string) *Kernel {
		if !strings.HasPrefix(s.Name, prefix) {
			return nil
		}
		n, ok := byIndex[s.Info]
		if !ok {
			n, ok = byName[s.Name[len(prefix):]]
		}
		if !ok {
			return nil
		}
		return &c.kernels[n]
	}
	for i := range c.sections {
		s := &c.sections[i]
		switch s.Type {
		case shtRela, shtRel:
			if n, ok := byIndex[s.Info]; ok && s.Size > 0 {
				c.kernels[n].relocs = append(c.kernels[n].relocs, int32(i))
			}
			continue
		case shtCudaInfo:
			if k := find(s, ".nv.info."); k != nil && k.info == 0 {
				k.info = int32(i)
			}
			continue
		}
		if k := find(s, ".nv.shared."); k != nil {
			k.Shared = clampInt(s.Size)
		} else if k := find(s, ".nv.local."); k != nil {
			k.Local = clampInt(s.Size)
		} else if k := find(s, ".nv.constant0."); k != nil {
			k.Constant = clampInt(s.Size)
		}
	}
}

// clampInt turns a declared size into an int.
func clampInt(n uint64) int { return int(min(n, 1<<62)) }

// symbolKernels maps the index of each symbol that stands for a whole kernel to the
// kernel, and marks the kernels that can be launched.
func (c *Cubin) symbolKernels(byIndex map[uint32]int) map[uint32]int {
	out := make(map[uint32]int, len(c.kernels))
	for i := range c.symbols {
		s := &c.symbols[i]
		n, ok := byIndex[s.Section]
		if !ok || !s.Func() {
			continue
		}
		k := &c.kernels[n]
		if s.Name == k.Name && s.Value == 0 {
			out[uint32(i)] = n
			k.Entry = k.Entry || s.Other&stoCudaEntry != 0
		}
	}
	return out
}

// attachInfo reads the attributes that say how a kernel uses the machine.
func (c *Cubin) attachInfo(bySymbol map[uint32]int) {
	c.eachAttr(c.Section(".nv.info"), func(a Attr) {
		if len(a.Data) < 8 {
			return
		}
		n, ok := bySymbol[le.Uint32(a.Data)]
		if !ok {
			return
		}
		k, v := &c.kernels[n], int(int32(le.Uint32(a.Data[4:])))
		switch a.ID {
		case attrRegcount:
			k.Regs = v
		case attrFrameSize:
			k.Frame = v
		case attrMinStackSize:
			k.Stack = v
		}
	})
	for i := range c.kernels {
		k := &c.kernels[i]
		if k.info == 0 {
			continue
		}
		c.eachAttr(&c.sections[k.info], func(a Attr) {
			switch {
			case a.ID == attrCbankParamSize:
				k.Params = int(a.Value)
			case a.ID == attrNumBarriers:
				k.Barriers = int(a.Value & 0xff)
			}
		})
	}
}

// Data returns the kernel's code, a slice of the cubin's data.
func (k *Kernel) Data() []byte {
	return k.cubin.data[k.Offset : k.Offset+k.Size : k.Offset+k.Size]
}

// Instructions returns how many instructions fit the kernel's size.
func (k *Kernel) Instructions() int { return int(k.Size) / k.cubin.InstructionSize() }

// Demangled returns the kernel's name as C++ source spells it, or Name where it is
// not a mangled name.
func (k *Kernel) Demangled() string { return Demangle(k.Name) }

// Demangle returns the C++ spelling of a mangled name, or name itself.
func Demangle(name string) string { return demangled(name) }

// qualifiedName returns the C++ name of a function without return type, parameters and
// template arguments, such as ns::gemm, or name itself where it is not mangled.
func qualifiedName(name string) string {
	return demangled(name, demangle.NoParams, demangle.NoTemplateParams)
}

func demangled(name string, opts ...demangle.Option) string {
	if !strings.HasPrefix(name, "_Z") || len(name) > maxName {
		return name
	}
	if len(opts) == 0 {
		return demangledNames.get(name, demangleOnce)
	}
	return demangleOnce(name, opts...)
}

// demangledNames keeps names: libraries have the same kernels for many architectures.
var demangledNames nameCache

// A nameCache keeps what names stand for. It is safe for concurrent use.
type nameCache struct {
	mu sync.Mutex
	m  map[string]string
}

// maxNames is how many names a nameCache keeps.
const maxNames = 4096

// get returns what is kept for name, or what find says.
func (c *nameCache) get(name string, find func(string, ...demangle.Option) string) string {
	c.mu.Lock()
	s, ok := c.m[name]
	c.mu.Unlock()
	if ok {
		return s
	}
	s = find(name)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.m == nil || len(c.m) == maxNames {
		c.m = map[string]string{}
	}
	c.m[strings.Clone(name)] = s
	return s
}

// demangleOnce returns the C++ spelling of a mangled name.
func demangleOnce(name string, opts ...demangle.Option) string {
	// 1<<20 bounds the length of the result: a short hostile name can stand for an
	// enormous one.
	s, err := demangle.ToString(name, append(opts, demangle.MaxLength(20))...)
	if err != nil {
		return name
	}
	return s
}

// Info returns the attributes of the kernel, section .nv.info.NAME.
func (k *Kernel) Info() []Attr {
	if k.info == 0 {
		return nil
	}
	return k.cubin.attrs(&k.cubin.sections[k.info])
}

// InfoOffsets returns the offsets of the instructions that attributes of the kernel
// list, with the names of those attributes.
func (k *Kernel) InfoOffsets() map[uint64][]string {
	out := make(map[uint64][]string)
	for _, a := range k.Info() {
		a.InstrOffsets(func(_ int, off uint64) {
			if l := out[off]; len(l) == 0 || l[len(l)-1] != a.Name() {
				out[off] = append(l, a.Name())
			}
		})
	}
	return out
}

// BranchTargets returns the offsets that each indirect branch may go to, by the offset of
// the branch, as .nv.info lists them; all are in bytes from the start of the kernel.
func (k *Kernel) BranchTargets() map[uint64][]uint64 {
	out := map[uint64][]uint64{}
	for _, a := range k.Info() {
		if a.ID != attrBranchTargets || a.Format != fmtSized {
			continue
		}
		branchTargets(a.Words(), func(branch uint64, targets []uint32) {
			for _, t := range targets {
				out[branch] = append(out[branch], uint64(t))
			}
		})
	}
	return out
}

// ParamList returns the kernel's parameters by position.
func (k *Kernel) ParamList() []Param {
	var out []Param
	for _, a := range k.Info() {
		// u32 index, u16 ordinal, u16 offset, then a word of bit fields with the size
		// above bit 18, or, in version 2, two words with the size in the low 16 bits.
		if len(a.Data) < 12 || a.ID != attrKparamInfo && a.ID != attrKparamInfoV2 {
			continue
		}
		p := Param{Ordinal: int(le.Uint16(a.Data[4:])), Offset: int(le.Uint16(a.Data[6:]))}
		if a.ID == attrKparamInfo {
			p.Size = int(le.Uint32(a.Data[8:]) >> 18)
		} else {
			p.Size = int(le.Uint16(a.Data[10:]))
		}
		out = append(out, p)
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].Ordinal < out[j].Ordinal })
	return out
}

// ParamBase returns where the parameter block starts in constant bank 0, in bytes, and
// whether the kernel's attribute PARAM_CBANK says so.
func (k *Kernel) ParamBase() (offset int, ok bool) {
	for _, a := range k.Info() {
		// u32 symbol of the bank, u16 offset, u16 size
		if a.ID == attrParamCbank && len(a.Data) >= 8 {
			return int(le.Uint16(a.Data[4:])), true
		}
	}
	return 0, false
}

// Relocs returns the relocations inside the kernel's code by offset.
func (k *Kernel) Relocs() []Reloc {
	var out []Reloc
	for n, i := range k.relocs {
		if list := k.cubin.Relocs(&k.cubin.sections[i]); n == 0 {
			out = list
		} else {
			out = append(out, list...)
		}
	}
	return sortedRelocs(out)
}

// sortedRelocs returns list by offset; those of one offset stay in their order.
func sortedRelocs(list []Reloc) []Reloc {
	type place struct {
		offset uint64
		i      int
	}
	order := make([]place, len(list))
	for i := range list {
		order[i] = place{list[i].Offset, i}
	}
	slices.SortFunc(order, func(x, y place) int { return cmp.Or(cmp.Compare(x.offset, y.offset), x.i-y.i) })
	out := make([]Reloc, len(list))
	for i, p := range order {
		out[i] = list[p.i]
	}
	return out
}

// Relocs returns the relocations that s, a section of type REL or RELA, lists; those of
// REL have no addend of their own.
func (c *Cubin) Relocs(s *Section) []Reloc {
	size := relSize
	switch s.Type {
	case shtRela:
		size = relaSize
	case shtRel:
	default:
		return nil
	}
	b := c.SectionData(s)
	out := make([]Reloc, 0, len(b)/size)
	for ; len(b) >= size; b = b[size:] {
		r := Reloc{Offset: le.Uint64(b), Type: le.Uint32(b[8:]), SymbolIndex: le.Uint32(b[12:])}
		if uint64(r.SymbolIndex) < uint64(len(c.symbols)) {
			r.Symbol = c.symbolName(int(r.SymbolIndex))
		}
		if size == relaSize {
			r.Addend = int64(le.Uint64(b[16:]))
		}
		out = append(out, r)
	}
	return out
}

// symbolName returns a symbol's name; a section symbol has the section's.
func (c *Cubin) symbolName(i int) string {
	s := &c.symbols[i]
	if s.Name == "" && s.Section < uint32(len(c.sections)) {
		return c.sections[s.Section].Name
	}
	return s.Name
}

// Functions returns the function symbols inside the kernel's section by offset.
func (k *Kernel) Functions() []Function {
	var out []Function
	for i := range k.cubin.symbols {
		if s := &k.cubin.symbols[i]; s.Func() && int(s.Section) == k.Index {
			out = append(out, Function{Name: s.Name, Offset: s.Value, Size: s.Size, Entry: s.Other&stoCudaEntry != 0})
		}
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].Offset < out[j].Offset })
	return out
}

// Matches reports whether a glob fits the kernel's mangled name, its C++ name, or the
// bare name of the C++ function, with or without its namespaces: for void
// ns::gemm<float>(int) those are ns::gemm and gemm. In a glob * means any characters, ?
// one; everything else means itself, since names contain brackets.
func (k *Kernel) Matches(glob string) bool {
	if MatchGlob(glob, k.Name) {
		return true
	}
	full := k.Demangled()
	if full == k.Name {
		return false
	}
	if MatchGlob(glob, full) {
		return true
	}
	name := qualifiedName(k.Name)
	return MatchGlob(glob, name) || MatchGlob(glob, lastName(name))
}

// lastName returns a qualified name without its namespaces and classes.
func lastName(name string) string {
	if i := strings.LastIndex(name, "::"); i >= 0 {
		return name[i+len("::"):]
	}
	return name
}

// MatchGlob reports whether a glob of * and ? fits the whole of s.
func MatchGlob(glob, s string) bool {
	star, mark := -1, 0 // the last *, and how far it has eaten
	i, j := 0, 0
	for j < len(s) {
		switch {
		case i < len(glob) && glob[i] == '*':
			star, mark = i, j
			i++
		case i < len(glob) && (glob[i] == '?' || glob[i] == s[j]):
			i++
			j++
		case star >= 0:
			mark++
			i, j = star+1, mark
		default:
			return false
		}
	}
	for i < len(glob) && glob[i] == '*' {
		i++
	}
	return i == len(glob)
}
