package diff

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cupatch/cupatch/elfx"
)

// A cubinField is a field of a structure of a cubin.
type cubinField struct {
	structure string // ELF header, section header, …
	name      string // of the field
	of        string // which of the structures
	at, size  int    // in the file
}

func (f cubinField) String() string {
	return fmt.Sprintf("%s %s of %s (%d bytes at %#x)", f.structure, f.name, f.of, f.size, f.at)
}

// allFields lists every field of every structure of a cubin. The offsets are those of the
// ELF format (System V ABI, chapters 4 and 5).
func allFields(c *elfx.Cubin) []cubinField {
	var out []cubinField
	data := c.Data()
	add := func(structure, of string, base int, fields string) {
		at := base
		for _, f := range strings.Fields(fields) {
			name, size, _ := strings.Cut(f, ":")
			n := int(size[0] - '0')
			out = append(out, cubinField{structure, name, of, at, n})
			at += n
		}
	}
	le := binary.LittleEndian
	for i := range 16 {
		add("ELF header", "the file", i, fmt.Sprintf("e_ident[%d]:1", i))
	}
	add("ELF header", "the file", 16, "e_type:2 e_machine:2 e_version:4 e_entry:8 e_phoff:8 e_shoff:8 e_flags:4 e_ehsize:2 e_phentsize:2 e_phnum:2 e_shentsize:2 e_shnum:2 e_shstrndx:2")
	for i := range int(le.Uint16(data[56:])) {
		add("program header", fmt.Sprint(i), int(le.Uint64(data[32:]))+56*i, "p_type:4 p_flags:4 p_offset:8 p_vaddr:8 p_paddr:8 p_filesz:8 p_memsz:8 p_align:8")
	}
	for i := range c.Sections() {
		s := &c.Sections()[i]
		add("section header", s.Name, int(le.Uint64(data[40:]))+64*i, "sh_name:4 sh_type:4 sh_flags:8 sh_addr:8 sh_offset:8 sh_size:8 sh_link:4 sh_info:4 sh_addralign:8 sh_entsize:8")
		if !s.HasData() {
			continue
		}
		lo, hi := int(s.Offset), int(s.Offset)+int(s.Size)
		switch {
		case s.Type == shtSymtab:
			for at := lo; at < hi; at += 24 {
				add("symbol", c.Symbols()[(at-lo)/24].Name, at, "st_name:4 st_info:1 st_other:1 st_shndx:2 st_value:8 st_size:8")
			}
		case s.Type == shtRel || s.Type == shtRela:
			fields, size := "r_offset:8 r_type:4 r_sym:4", 16
			if s.Type == shtRela {
				fields, size = fields+" r_addend:8", 24
			}
			for at := lo; at < hi; at += size {
				add("relocation", s.Name, at, fields)
			}
		case strings.HasPrefix(s.Name, ".nv.info"), s.Name == ".nv.compat":
			for at := lo; at+4 <= hi; {
				add("attribute", s.Name, at, "format:1 id:1 value:2")
				n := 0
				if data[at] == 4 {
					n = int(le.Uint16(data[at+2:]))
				}
				for i := 0; i+4 <= n; i += 4 {
					add("attribute", s.Name, at+4+i, "data:4")
				}
				at += 4 + n
			}
		case strings.HasPrefix(s.Name, ".text."):
			for at := lo; at < hi; at += 8 {
				add("code", s.Name, at, "word:8")
			}
		default:
			for at := lo; at < hi; at += 4 {
				add("contents", s.Name, at, fmt.Sprintf("bytes:%d", min(4, hi-at)))
			}
		}
	}
	return out
}

// mayChange are the changes of one field of which comparing at the level code may say
// nothing, and why. What docs/diff.md lists is this list.
var mayChange = []struct {
	why string
	ok  func(c *elfx.Cubin, f cubinField, now []byte) bool // now: the field's new bytes
}{
	{"debug information: no loader looks at it", func(c *elfx.Cubin, f cubinField, now []byte) bool {
		name := strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(f.of, ".nv.merc"), ".rela"), ".rel")
		return strings.HasPrefix(name, ".debug_") || strings.HasPrefix(name, ".nv_debug_")
	}},
	{"the note on the toolkit and its options", func(c *elfx.Cubin, f cubinField, now []byte) bool { return f.of == ".note.nv.tkinfo" }},
	{"the version of the toolkit", func(c *elfx.Cubin, f cubinField, now []byte) bool {
		return f.name == "e_version" && c.Layout == elfx.LayoutOld || f.of == ".note.nv.cuinfo" && f.structure == "contents" && f.at == int(c.Section(f.of).Offset)+28
	}},
	{"an attribute that says who made the code", func(c *elfx.Cubin, f cubinField, now []byte) bool {
		return f.structure == "attribute" && slices.Contains(makerAttrs, attributeAt(c, f.at))
	}},
	{"the place of what takes no bytes of the file, or of the same bytes", func(c *elfx.Cubin, f cubinField, now []byte) bool {
		s := sectionOfHeader(c, f)
		if f.name == "e_phoff" {
			return len(c.Segments()) == 0
		}
		if f.name != "sh_offset" || s == nil || !s.HasData() {
			return f.name == "sh_offset"
		}
		at := binary.LittleEndian.Uint64(now)
		return at+s.Size <= uint64(len(c.Data())) && bytes.Equal(c.SectionData(s), c.Data()[at:at+s.Size])
	}},
	{"where a segment without bytes would begin", func(c *elfx.Cubin, f cubinField, now []byte) bool {
		n, err := strconv.Atoi(f.of)
		return f.name == "p_offset" && err == nil && c.Segments()[n].FileSize == 0
	}},
	{"a symbol of a section needs no name", func(c *elfx.Cubin, f cubinField, now []byte) bool {
		return f.name == "st_name" && c.Data()[f.at+4]&0xf == uint8(elf.STT_SECTION)
	}},
	{"another symbol for the same place in the code", func(c *elfx.Cubin, f cubinField, now []byte) bool {
		if f.name != "r_sym" {
			return false
		}
		x, y := c.Symbols()[binary.LittleEndian.Uint32(c.Data()[f.at:])], c.Symbols()[binary.LittleEndian.Uint32(now)]
		return x.Section == y.Section && x.Value == y.Value && isCode(c.Sections()[x.Section].Name)
	}},
	{"names are compared, not where the string table has them", func(c *elfx.Cubin, f cubinField, now []byte) bool {
		return f.structure == "contents" && strings.HasSuffix(f.of, "strtab") || f.name == "sh_size" && strings.HasSuffix(f.of, "strtab")
	}},
	{"padding is never executed", func(c *elfx.Cubin, f cubinField, now []byte) bool {
		k := kernelAt(c, f.at)
		if f.structure != "code" || k == nil {
			return false
		}
		code := NewCode(c, k, tableFor(c))
		_, live := code.indexAt(uint64(f.at-int(k.Offset)) &^ 15)
		return !live
	}},
	{"the linker or the loader replaces a relocated field", func(c *elfx.Cubin, f cubinField, now []byte) bool {
		k := kernelAt(c, f.at)
		return f.structure == "code" && k != nil && slices.ContainsFunc(k.Relocs(), func(r elfx.Reloc) bool {
			return r.Offset/16 == uint64(f.at-int(k.Offset))/16
		})
	}},
}

// sectionOfHeader returns the section whose header f is a field of.
func sectionOfHeader(c *elfx.Cubin, f cubinField) *elfx.Section {
	if f.structure != "section header" {
		return nil
	}
	return &c.Sections()[(f.at-int(binary.LittleEndian.Uint64(c.Data()[40:])))/64]
}

func kernelAt(c *elfx.Cubin, at int) *elfx.Kernel {
	for i := range c.Kernels() {
		if k := &c.Kernels()[i]; int64(at) >= k.Offset && int64(at) < k.Offset+k.Size {
			return k
		}
	}
	return nil
}

// attributeAt returns the name of the attribute whose record has the byte at.
func attributeAt(c *elfx.Cubin, at int) string {
	lists := [][]elfx.Attr{c.Info()}
	for i := range c.Kernels() {
		lists = append(lists, c.Kernels()[i].Info())
	}
	for _, list := range lists {
		for _, a := range list {
			if int64(at) >= a.Offset && int64(at) < a.Offset+4+int64(len(a.Data)) {
				return a.Name()
			}
		}
	}
	return ""
}

// TestEveryField changes every field of every structure of cubins of both layouts, one at
// a time: a comparison must see it, whichever file is the first, unless mayChange says why
// not. Without CUPATCH_LONG it changes some of the fields of each kind.
func TestEveryField(t *testing.T) {
	some, ways, paths := 1, 2, []string{"old/sm_80/calls", "new/sm_80/calls_rel", "new/sm_90/surface", "new/sm_100/surface"}
	if os.Getenv("CUPATCH_LONG") != "" {
		some, ways = 1<<30, 5
		paths = append(paths, "old/sm_75/surface", "old/sm_90/pair", "new/sm_90/control", "new/sm_90/pair_lineinfo", "new/sm_100/calls", "new/sm_120/shared")
	}
	used := make([]bool, len(mayChange))
	for _, path := range paths {
		data := readCubin(t, "../../testdata/cubin/"+path+".cubin")
		c, err := elfx.ParseCubin(data)
		if err != nil {
			t.Fatal(path, err)
		}
		count, total := map[string]int{}, map[string]int{}
		fields := allFields(c)
		kind := func(f cubinField) string { return f.structure + f.name }
		for _, f := range fields {
			total[kind(f)]++
		}
		for _, f := range fields {
			if count[kind(f)]++; count[kind(f)]%max(1, total[kind(f)]/some) != 0 && !mayChange[len(mayChange)-1].ok(c, f, nil) {
				continue
			}
			for _, change := range []func([]byte){
				func(b []byte) { b[0] ^= 1 }, func(b []byte) { b[len(b)-1] ^= 0x40 }, func(b []byte) { b[0]++ },
				func(b []byte) { b[len(b)/2] ^= 8 }, func(b []byte) { clear(b) },
			}[:ways] {
				q := bytes.Clone(data)
				now := q[f.at : f.at+f.size]
				change(now)
				if !bytes.Equal(q, data) && !seen(t, data, q, path+": "+f.String()) && !excused(c, f, now, used) {
					t.Errorf("%s: %s, % x → % x: no difference was seen", path, f, data[f.at:f.at+f.size], now)
				}
			}
		}
	}
	for i, m := range mayChange {
		if !used[i] && os.Getenv("CUPATCH_LONG") != "" {
			t.Errorf("nothing needs the exception: %s", m.why)
		}
	}
}

func excused(c *elfx.Cubin, f cubinField, now []byte, used []bool) bool {
	for i, m := range mayChange {
		if m.ok(c, f, now) {
			used[i] = true
			return true
		}
	}
	return false
}

// seen reports whether comparing p with q says that they differ or that one cannot be
// read, and checks that it says the same of q and p.
func seen(t *testing.T, p, q []byte, what string) bool {
	t.Helper()
	var answers [2]string
	differ := false
	for i, pair := range [][2][]byte{{p, q}, {q, p}} {
		x, err1 := elfx.Open("a", pair[0], nil)
		y, err2 := elfx.Open("b", pair[1], nil)
		if err1 != nil || err2 != nil {
			return true
		}
		r, err := Files(x, y, Options{})
		if err != nil {
			t.Fatal(err)
		}
		differ = r.Different() || r.Err() != nil
		answers[i] = fmt.Sprint(r.Kinds, r.Different(), r.Err() != nil)
	}
	if answers[0] != answers[1] {
		t.Errorf("%s: %s one way, %s the other", what, answers[0], answers[1])
	}
	return differ
}

// TestEveryBit changes single bits of instructions.
func TestEveryBit(t *testing.T) {
	data := readCubin(t, pairs+"sm_90/pair.cubin")
	c, err := elfx.ParseCubin(data)
	if err != nil {
		t.Fatal(err)
	}
	for i := range c.Kernels() {
		k := &c.Kernels()[i]
		code := NewCode(c, k, tableFor(c))
		for n := range code.Len() {
			at := int(k.Offset) + int(code.PC(n))
			for bit := n % 7; bit < 128; bit += 7 {
				q := bytes.Clone(data)
				q[at+bit/8] ^= 1 << (bit % 8)
				if d := Compare(code, recode(t, q, k, code.Table)); d.Class <= SameCode {
					t.Errorf("%s: bit %d of instruction %d: class %s", k.Name, bit, n, d.Class)
				}
			}
		}
	}
}
