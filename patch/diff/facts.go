package diff

import (
	"crypto/sha256"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/cupatch/cupatch/elfx"
)

// A fact is something that a cubin says beside its instructions and that a loader or the
// hardware sees, as text in which the numbers of sections and symbols are replaced by
// what they stand for, and addresses in the code by instructions.
type fact struct {
	kind  Kinds
	group string // the section or table
	name  string // what of it; several facts may have one name
	value string
	whole *elfx.Section // the section whose contents the value stands for
}

// title is what a report calls the fact.
func (f *fact) title() string {
	if f.name == "" {
		return f.group
	}
	return f.group + " " + f.name
}

// Types of sections that the ELF format defines, and flags of sections of cubins.
const (
	shtNull   = uint32(elf.SHT_NULL)
	shtSymtab = uint32(elf.SHT_SYMTAB)
	shtStrtab = uint32(elf.SHT_STRTAB)
	shtRela   = uint32(elf.SHT_RELA)
	shtRel    = uint32(elf.SHT_REL)
	shtNote   = uint32(elf.SHT_NOTE)

	shfInfoLink = uint64(elf.SHF_INFO_LINK)
	barrierBits = uint64(0x7f) << 20 // of sh_flags of code: barriers used
	symbolBits  = 1<<24 - 1          // of sh_info of code: the number of its symbol; above: registers
)

// A factList collects the facts of a kernel, or of what belongs to no kernel.
type factList struct {
	m      *Module
	code   *Code // of the kernel, nil for none
	places bool  // addresses in the code count
	// rename gives the name that kernel i has for this comparison; nil is its own.
	rename func(i int32) string
	list   []fact
}

func (f *factList) add(k Kinds, group, name, format string, args ...any) {
	f.list = append(f.list, fact{kind: k, group: group, name: name, value: fmt.Sprintf(format, args...)})
}

// facts returns what the cubin says of the kernel of c beside its instructions, its
// constants and the numbers that resourceFacts has. With places false, what follows the
// code is left out: addresses and the attributes that list them.
func (c *Code) facts(places bool) []fact {
	m := c.module
	m.parts.Do(m.split)
	f := &factList{m: m, code: c, places: places}
	for _, i := range m.sections[c.number] {
		s := &m.Cubin.Sections()[i]
		if isDebug(s) {
			continue
		}
		f.header(s)
		f.ofKernel(s)
	}
	if places {
		for _, r := range c.stray {
			f.add(Loader, "relocations", "outside instructions", "%s", r)
		}
	}
	for _, i := range m.symbols[c.number] {
		f.symbol(uint32(i))
	}
	for _, a := range m.info[c.number] {
		f.attribute(".nv.info", a)
	}
	return f.list
}

// ofKernel adds what a section of the kernel holds.
func (f *factList) ofKernel(s *elfx.Section) {
	role := f.role(s)
	switch {
	case s.Index == f.code.Kernel.Index:
	case s.Type == shtRela || s.Type == shtRel:
		if int(s.Info) != f.code.Kernel.Index { // those of the code are compared with it
			f.relocations(s)
		}
	case role == ".nv.info":
		for _, a := range f.code.Kernel.Info() {
			f.attribute(role, a)
		}
	case isBank(role), role == ".nv.shared", role == ".nv.local":
	default:
		f.contents(Loader, s)
	}
}

// role returns the name of a section, that of the kernel that is being looked at left out.
func (f *factList) role(s *elfx.Section) string {
	if f.code != nil && f.m.owner[s.Index] == int32(f.code.number) {
		return f.m.role[s.Index]
	}
	return f.sectionName(uint32(s.Index))
}

// sectionName returns what names a section wherever it stands.
func (f *factList) sectionName(i uint32) string {
	if int(i) >= len(f.m.owner) {
		return fmt.Sprintf("section %#x", i)
	}
	k := f.m.owner[i]
	switch {
	case k < 0:
		return StableName(f.m.Cubin.Sections()[i].Name)
	case f.code != nil && k == int32(f.code.number):
		return f.m.role[i] + ".<self>"
	case f.rename != nil:
		return f.m.role[i] + "." + f.rename(k)
	}
	return f.m.role[i] + "." + f.m.kernelName(int(k))
}

// symbolName returns what names a symbol wherever it stands.
func (f *factList) symbolName(i uint32) string {
	if f.code != nil {
		return f.m.anonymous(i, f.code.Kernel.Name)
	}
	if k := f.m.kernelOf(i); k >= 0 && f.rename != nil {
		if name := f.m.anonymous(i, f.m.Cubin.Kernels()[k].Name); strings.Contains(name, "<self>") {
			return strings.Replace(name, "<self>", f.rename(k), 1)
		}
	}
	return f.m.symbolName(i)
}

// header adds the fields of a section header, but for those that say where the section is.
func (f *factList) header(s *elfx.Section) {
	flags, info := s.Flags, fmt.Sprintf("%#x", s.Info)
	switch {
	case f.code != nil && s.Index == f.code.Kernel.Index: // resourceFacts has the rest
		flags &^= barrierBits
		info = f.symbolName(s.Info & symbolBits)
	case s.Type == shtRela, s.Type == shtRel, s.Flags&shfInfoLink != 0:
		info = f.sectionName(s.Info)
	case s.Type == shtSymtab: // the first symbol that is not local
		info = f.symbolName(s.Info)
	}
	f.add(Loader, f.role(s), "header", "type %#x, flags %#x, address %#x, alignment %#x, entries of %#x, link %s, info %s",
		s.Type, flags, s.Addr, s.Align, s.EntrySize, f.sectionName(s.Link), info)
}

// contents adds what a section holds, byte by byte.
func (f *factList) contents(k Kinds, s *elfx.Section) {
	data := f.m.Cubin.SectionData(s)
	f.list = append(f.list, fact{kind: k, group: f.role(s), whole: s, value: fmt.Sprintf("%d bytes", s.Size) + " " + digest(data)})
}

// digest returns what stands for bytes: 128 bits of their SHA-256.
func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:16])
}

// relocations adds what a section of relocations lists.
func (f *factList) relocations(s *elfx.Section) {
	kind := Loader
	if int(s.Info) < len(f.m.Cubin.Sections()) && isData(&f.m.Cubin.Sections()[s.Info]) {
		kind = Data
	}
	for _, r := range f.m.Cubin.Relocs(s) {
		f.add(kind, f.role(s), "", "%#x: type %d, %s%+d", r.Offset, r.Type, f.symbolName(r.SymbolIndex), r.Addend)
	}
}

// isData tells the sections with data that the code reads.
func isData(s *elfx.Section) bool {
	for _, p := range []string{".nv.constant", ".nv.global", ".nv.uft", ".nv.udt"} {
		if strings.HasPrefix(s.Name, p) {
			return true
		}
	}
	return false
}

// symbol adds a symbol. Where it is a place in the code, it is one between instructions.
func (f *factList) symbol(i uint32) {
	s := &f.m.Cubin.Symbols()[i]
	if int(s.Section) < len(f.m.owner) && isDebug(&f.m.Cubin.Sections()[s.Section]) {
		return
	}
	kind, place := Loader, fmt.Sprintf("value %#x, size %#x", s.Value, s.Size)
	switch {
	case f.code != nil && int(s.Section) == f.code.Kernel.Index:
		place = ""
		if f.places {
			place = f.code.place(s.Value) + " to " + f.code.place(s.Value+s.Size)
		}
	case int(s.Section) < len(f.m.owner) && isData(&f.m.Cubin.Sections()[s.Section]) && s.Info&0xf != uint8(elf.STT_SECTION):
		kind = Data
	}
	where := "none"
	if s.Section != 0 {
		where = f.sectionName(s.Section)
	}
	f.add(kind, "symbol", f.symbolName(i), "type %d, binding %d, other %#x, section %s, %s", s.Info&0xf, s.Info>>4, s.Other, where, place)
}

// place names an address in the code by the instruction there.
func (c *Code) place(pc uint64) string {
	if pc == uint64(len(c.data)) {
		return "the end"
	}
	i, ok := c.indexAt(pc)
	switch {
	case ok:
		return fmt.Sprintf("instruction %d", i)
	case pc%16 == 0 && pc < uint64(len(c.data)):
		return fmt.Sprintf("padding before instruction %d", i)
	}
	return fmt.Sprintf("address %#x", pc)
}

// attribute adds a record of .nv.info, unless it says only who made the cubin.
func (f *factList) attribute(group string, a elfx.Attr) {
	name := a.Name()
	if slices.Contains(makerAttrs, name) {
		return
	}
	if len(a.Data) == 0 {
		f.add(Loader, group, name, "%#x (format %d)", a.Value, a.Format)
		return
	}
	var words []string
	for _, w := range a.Words() {
		words = append(words, fmt.Sprintf("%#x", w))
	}
	symbols := 0
	switch {
	case name == "EXTERNS":
		symbols = len(words)
	case name == "PARAM_CBANK", group == ".nv.info" && slices.Contains(symbolAttrs, name):
		symbols = min(1, len(words))
	}
	for i := range symbols {
		words[i] = f.symbolName(binary.LittleEndian.Uint32(a.Data[4*i:]))
	}
	follows := slices.Contains(codeAttrs, name)
	if f.code != nil {
		a.InstrOffsets(func(i int, off uint64) {
			words[i] = f.code.place(off)
			follows = true
		})
	}
	if follows && !f.places {
		return
	}
	f.add(Loader, group, name, "%s% x", strings.Join(words, " "), a.Data[len(a.Data)&^3:])
}

// makerAttrs are the attributes that say who made the code, and how: no loader has
// reason to look at them.
var makerAttrs = []string{"CUDA_API_VERSION", "LANGUAGE", "STATISTICS", "PERF_STATISTICS", "ANNOTATIONS", "PAD"}

// codeAttrs are attributes that follow from the instructions and list no addresses that
// [elfx.Attr.InstrOffsets] knows.
var codeAttrs = []string{"JUMPTABLE_RELOCS", "INSTR_REG_MAP", "PER_REG_TARGET_PERF_STATS", "EXTERNS"}
