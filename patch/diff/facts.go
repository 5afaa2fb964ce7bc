package diff

import (
	"crypto/sha256"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
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
	lines  *lineList // takes the facts instead of list
	buf    []byte
}

func (f *factList) add(k Kinds, group, name, format string, args ...any) {
	f.put(k, group, name, fmt.Appendf(nil, format, args...))
}

// put is add for a value that is text already.
func (f *factList) put(k Kinds, group, name string, value []byte) {
	f.of(k, group, name, nil, value)
}

// of is put for the contents of a section, or for what is of none.
func (f *factList) of(k Kinds, group, name string, whole *elfx.Section, value []byte) {
	switch {
	case f.lines == nil:
		f.list = append(f.list, fact{kind: k, group: group, name: name, whole: whole, value: string(value)})
	case k&f.lines.kinds != 0:
		f.lines.add(group, name, value)
	}
}

// facts returns what the cubin says of the kernel of c beside its instructions, its
// constants and the numbers that resourceFacts has. With places false, what follows the
// code is left out: addresses and the attributes that list them.
func (c *Code) facts(places bool) []fact {
	f := &factList{m: c.module, code: c, places: places}
	f.ofCode()
	return f.list
}

// ofCode adds what the cubin says of the kernel.
func (f *factList) ofCode() {
	m, n := f.m, f.code.number
	m.parts.Do(m.split)
	for _, i := range m.sections[n] {
		s := &m.Cubin.Sections()[i]
		if isDebug(s) {
			continue
		}
		f.header(s)
		f.ofKernel(s)
	}
	if f.places {
		for _, r := range f.code.stray {
			f.put(Loader, "relocations", "outside instructions", []byte(r))
		}
	}
	for _, i := range m.symbols[n] {
		f.symbol(uint32(i))
	}
	for _, a := range m.info[n] {
		f.attribute(".nv.info", a)
	}
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
		return f.m.anonymous(i, f.code.number)
	}
	if k := f.m.kernelOf(i); k >= 0 && f.rename != nil {
		if name := f.m.anonymous(i, int(k)); strings.Contains(name, "<self>") {
			return strings.Replace(name, "<self>", f.rename(k), 1)
		}
	}
	return f.m.symbolName(i)
}

// header adds the fields of a section header, but for those that say where the section is.
func (f *factList) header(s *elfx.Section) {
	flags, info := s.Flags, ""
	switch {
	case f.code != nil && s.Index == f.code.Kernel.Index: // resourceFacts has the rest
		flags &^= barrierBits
		info = f.symbolName(s.Info & symbolBits)
	case s.Type == shtRela, s.Type == shtRel, s.Flags&shfInfoLink != 0:
		info = f.sectionName(s.Info)
	case s.Type == shtSymtab: // the first symbol that is not local
		info = f.symbolName(s.Info)
	default:
		info = string(appendHex(nil, int64(s.Info)))
	}
	f.buf = f.buf[:0]
	for _, x := range [...]struct {
		what  string
		value uint64
	}{{"type ", uint64(s.Type)}, {", flags ", flags}, {", address ", s.Addr}, {", alignment ", s.Align}, {", entries of ", s.EntrySize}} {
		f.buf = appendHexUint(append(f.buf, x.what...), x.value)
	}
	f.buf = append(append(f.buf, ", link "...), f.sectionName(s.Link)...)
	f.buf = append(append(f.buf, ", info "...), info...)
	f.put(Loader, f.role(s), "header", f.buf)
}

// contents adds what a section holds, byte by byte.
func (f *factList) contents(k Kinds, s *elfx.Section) {
	data := f.m.Cubin.SectionData(s)
	f.of(k, f.role(s), "", s, fmt.Appendf(nil, "%d bytes %s", s.Size, digest(data)))
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
		f.buf = append(appendHexUint(f.buf[:0], r.Offset), ": type "...)
		f.buf = append(strconv.AppendUint(f.buf, uint64(r.Type), 10), ", "...)
		if f.buf = append(f.buf, f.symbolName(r.SymbolIndex)...); r.Addend >= 0 {
			f.buf = append(f.buf, '+')
		}
		f.buf = strconv.AppendInt(f.buf, r.Addend, 10)
		f.put(kind, f.role(s), "", f.buf)
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
	kind := Loader
	where := "none"
	if s.Section != 0 {
		where = f.sectionName(s.Section)
	}
	b := strconv.AppendUint(append(f.buf[:0], "type "...), uint64(s.Info&0xf), 10)
	b = strconv.AppendUint(append(b, ", binding "...), uint64(s.Info>>4), 10)
	b = appendHexUint(append(b, ", other "...), uint64(s.Other))
	b = append(append(append(b, ", section "...), where...), ", "...)
	switch {
	case f.code == nil || int(s.Section) != f.code.Kernel.Index:
		if int(s.Section) < len(f.m.owner) && isData(&f.m.Cubin.Sections()[s.Section]) && s.Info&0xf != uint8(elf.STT_SECTION) {
			kind = Data
		}
		b = appendHexUint(append(b, "value "...), s.Value)
		b = appendHexUint(append(b, ", size "...), s.Size)
	case f.places:
		b = f.code.appendPlace(b, s.Value)
		b = f.code.appendPlace(append(b, " to "...), s.Value+s.Size)
	}
	f.buf = b
	f.put(kind, "symbol", f.symbolName(i), b)
}

// appendPlace names an address in the code by the instruction there.
func (c *Code) appendPlace(dst []byte, pc uint64) []byte {
	if pc == uint64(len(c.data)) {
		return append(dst, "the end"...)
	}
	i, ok := c.indexAt(pc)
	switch {
	case ok:
		return strconv.AppendInt(append(dst, "instruction "...), int64(i), 10)
	case pc%16 == 0 && pc < uint64(len(c.data)):
		return strconv.AppendInt(append(dst, "padding before instruction "...), int64(i), 10)
	}
	return appendHexUint(append(dst, "address "...), pc)
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
	words := len(a.Data) / 4
	symbols := 0
	switch {
	case name == "EXTERNS":
		symbols = words
	case name == "PARAM_CBANK", group == ".nv.info" && slices.Contains(symbolAttrs, name):
		symbols = min(1, words)
	}
	follows := slices.Contains(codeAttrs, name)
	var places []uint64 // by word: the address in the code that it is
	if f.code != nil {
		a.InstrOffsets(func(i int, off uint64) {
			if places == nil {
				places = slices.Repeat([]uint64{nowhere}, words)
			}
			places[i] = off
			follows = true
		})
	}
	if follows && !f.places {
		return
	}
	b := f.buf[:0]
	for i := range words {
		if i > 0 {
			b = append(b, ' ')
		}
		switch w := binary.LittleEndian.Uint32(a.Data[4*i:]); {
		case places != nil && places[i] != nowhere:
			b = f.code.appendPlace(b, places[i])
		case i < symbols:
			b = append(b, f.symbolName(w)...)
		default:
			b = appendHexUint(b, uint64(w))
		}
	}
	f.buf = fmt.Appendf(b, "% x", a.Data[len(a.Data)&^3:])
	f.put(Loader, group, name, f.buf)
}

// makerAttrs are the attributes that say who made the code, and how: no loader has
// reason to look at them.
var makerAttrs = []string{"CUDA_API_VERSION", "LANGUAGE", "STATISTICS", "PERF_STATISTICS", "ANNOTATIONS", "PAD"}

// codeAttrs are attributes that follow from the instructions and list no addresses that
// [elfx.Attr.InstrOffsets] knows.
var codeAttrs = []string{"JUMPTABLE_RELOCS", "INSTR_REG_MAP", "PER_REG_TARGET_PERF_STATS", "EXTERNS"}
