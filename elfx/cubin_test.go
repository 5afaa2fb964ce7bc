package elfx

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func parse(t testing.TB, data []byte) *Cubin {
	t.Helper()
	c, err := ParseCubin(data)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The values are those that cuobjdump 13.5 prints: -elf for the header, the section
// table and the attributes, -res-usage for the resources.
func TestCubinFacts(t *testing.T) {
	type kernel struct {
		Name                             string
		Entry                            bool
		Offset, Size                     int64
		Regs, Shared, Stack, Constant, N int
	}
	tests := []struct {
		file      string
		arch      string
		virtual   int
		toolkit   string
		layout    Layout
		abi       uint8
		typ       uint16
		mercury   bool
		sections  int
		kernels   []kernel
		functions int
	}{
		{
			"cubin/new/sm_90/calls.cubin", "sm_90", 70, "13.5", LayoutNew, 8, 2, false, 0x1d + 1,
			[]kernel{
				{"calls_indirect", true, 0x1080, 0x280, 24, 0, 0, 540, 40},
				{"calls_direct", true, 0x1300, 0x400, 24, 0, -1, 540, 64},
				{"calls_system", true, 0x1700, 0x480, 24, 0, 8, 540, 72},
			}, 7,
		},
		{
			"cubin/old/sm_90/tensor90.cubin", "sm_90", 90, "12.9", LayoutOld, 7, 2, false, 19,
			[]kernel{
				{"cluster_exchange", true, 0x880, 0x480, 11, 1028, 0, 536, 72},
				{"bulk_copy", true, 0xd00, 0x780, 8, 5128, 0, 704, 120},
			}, 2,
		},
	}
	for _, tt := range tests {
		c := parse(t, mustRead(t, tt.file))
		if c.Arch != tt.arch || c.VirtualSM != tt.virtual || c.Toolkit != tt.toolkit || c.Layout != tt.layout || c.ABI != tt.abi ||
			c.Type != tt.typ || c.HasMercury() != tt.mercury || len(c.Sections()) != tt.sections {
			t.Errorf("%s: %s from compute_%d, CUDA %s, layout %s, ABI %d, type %d, Mercury %v, %d sections", tt.file,
				c.Arch, c.VirtualSM, c.Toolkit, c.Layout, c.ABI, c.Type, c.HasMercury(), len(c.Sections()))
		}
		var got []kernel
		functions := 0
		for _, k := range c.Kernels() {
			got = append(got, kernel{k.Name, k.Entry, k.Offset, k.Size, k.Regs, k.Shared, k.Stack, k.Constant, k.Instructions()})
			functions += len(k.Functions())
		}
		if d := cmp.Diff(tt.kernels, got); d != "" {
			t.Errorf("%s: kernels (-want +got):\n%s", tt.file, d)
		}
		if functions != tt.functions {
			t.Errorf("%s: %d functions, want %d", tt.file, functions, tt.functions)
		}
	}
}

func TestArchOfHeader(t *testing.T) {
	for file, want := range map[string]string{
		"cubin/old/sm_70/lea.cubin":          "sm_70",
		"cubin/old/sm_75/lea.cubin":          "sm_75",
		"cubin/new/sm_75/lea.cubin":          "sm_75",
		"cubin/old/sm_90a/tensor90a.cubin":   "sm_90a",
		"cubin/new/sm_90a/tensor90a.cubin":   "sm_90a",
		"cubin/new/sm_100/loads.cubin":       "sm_100",
		"cubin/new/sm_100a/tensor100a.cubin": "sm_100a",
		"cubin/new/sm_103/loads.cubin":       "sm_103",
		"cubin/new/sm_120a/tensor120a.cubin": "sm_120a",
	} {
		if c := parse(t, mustRead(t, file)); c.Arch != want {
			t.Errorf("%s: %s, want %s", file, c.Arch, want)
		}
	}
}

// An `a` cubin of 12.8 and 12.9 for sm_100 says it in bit 3 of e_flags and has no
// attribute for it. ptxas 12.9 of such a cubin is not among the test data, so one is
// made of a plain one: bit 3 set, .nv.compat out of sight.
func TestAccelFlagOf12(t *testing.T) {
	data := bytes.Clone(mustRead(t, "cubin/new/sm_100/loads.cubin"))
	c := parse(t, data)
	s := c.Section(".nv.compat")
	shoff := le.Uint64(data[40:])
	le.PutUint32(data[shoff+uint64(s.Index)*sectHeaderSize+4:], shtNull)
	data[48] |= newFlagAccel
	if c := parse(t, data); c.Arch != "sm_100a" {
		t.Errorf("%s, want sm_100a", c.Arch)
	}
}

func TestParams(t *testing.T) {
	c := parse(t, mustRead(t, "cubin/new/sm_90/calls.cubin"))
	k := c.Kernels()[0] // calls_indirect
	want := []Param{{0, 0, 8}, {1, 8, 4}}
	if d := cmp.Diff(want, k.ParamList()); d != "" {
		t.Errorf("parameters (-want +got):\n%s", d)
	}
	if k.Params != 12 {
		t.Errorf("%d bytes of parameters, want 12", k.Params)
	}
}

func TestFunctions(t *testing.T) {
	c := parse(t, mustRead(t, "cubin/new/sm_90/calls.cubin"))
	want := []Function{
		{"calls_direct", 0, 0x400, true},
		{"$calls_direct$fibonacci", 0xf0, 0x1f0, false},
		{"$calls_direct$twice", 0x2e0, 0x120, false},
	}
	if d := cmp.Diff(want, c.Kernels()[1].Functions()); d != "" {
		t.Errorf("functions (-want +got):\n%s", d)
	}
}

func TestDeviceFunctionsAreNoKernels(t *testing.T) {
	c := parse(t, mustRead(t, "cubin/new/sm_80/calls_rel.cubin"))
	got := map[string]bool{}
	for _, k := range c.Kernels() {
		got[k.Name] = k.Entry
	}
	for name, entry := range map[string]bool{"fibonacci": false, "thrice": false, "twice": false, "calls_system": true} {
		if e, ok := got[name]; !ok || e != entry {
			t.Errorf("%s: present %v, kernel %v, want kernel %v", name, ok, e, entry)
		}
	}
	if c.Type != etRel {
		t.Errorf("type %d, want relocatable", c.Type)
	}
}

func TestNoKernels(t *testing.T) {
	for _, f := range []string{"cubin/new/sm_80/empty.cubin", "cubin/old/sm_90/nothing.cubin"} {
		if c := parse(t, mustRead(t, f)); len(c.Kernels()) != 0 {
			t.Errorf("%s: %d kernels", f, len(c.Kernels()))
		}
	}
}

// The reader hands out the caller's bytes.
func TestNeverCopies(t *testing.T) {
	data := bytes.Clone(mustRead(t, "cubin/old/sm_80/gemm.cubin"))
	k := parse(t, data).Kernels()[0]
	data[k.Offset] ^= 0xff
	if &k.Data()[0] != &data[k.Offset] {
		t.Error("a kernel's data is not a slice of the input")
	}
}

func TestTruncated(t *testing.T) {
	data := mustRead(t, "cubin/new/sm_100/cache80.cubin")
	for n := range len(data) {
		c, err := ParseCubin(data[:n])
		if err == nil {
			t.Fatalf("%d of %d bytes parse", n, len(data))
		}
		var fe *FormatError
		if c != nil || !errors.As(err, &fe) || !errors.Is(err, ErrFormat) {
			t.Fatalf("%d bytes: %v, %v", n, c, err)
		}
	}
	_, err := ParseCubin(data[:len(data)-5])
	if err == nil || !strings.Contains(err.Error(), "truncated by 5 bytes") {
		t.Errorf("the error does not say how much is missing: %v", err)
	}
}

// mutate returns the cubin with a change to a section header.
func mutate(t *testing.T, file, section string, change func(header []byte)) []byte {
	t.Helper()
	data := bytes.Clone(mustRead(t, file))
	s := parse(t, data).Section(section)
	if s == nil {
		t.Fatalf("%s has no section %s", file, section)
	}
	change(data[le.Uint64(data[40:])+uint64(s.Index)*sectHeaderSize:][:sectHeaderSize])
	return data
}

func TestHostileHeaders(t *testing.T) {
	const file = "cubin/new/sm_80/gemm.cubin"
	name := parse(t, mustRead(t, file)).Kernels()[0].Section
	header := func(change func(b []byte)) []byte {
		b := bytes.Clone(mustRead(t, file))
		change(b)
		return b
	}
	tests := []struct {
		name, want string
		data       []byte
	}{
		{"text beyond the end", "truncated", mutate(t, file, name, func(h []byte) { le.PutUint64(h[32:], 1<<40) })},
		{"offset overflow", "absurd", mutate(t, file, name, func(h []byte) { le.PutUint64(h[24:], 1<<63) })},
		{"sum overflow", "absurd", mutate(t, file, name, func(h []byte) { le.PutUint64(h[24:], 64); le.PutUint64(h[32:], 1<<64-1) })},
		{"text over the header", "overlaps the ELF header", mutate(t, file, name, func(h []byte) { le.PutUint64(h[24:], 0) })},
		{"overlapping sections", "overlaps section", mutate(t, file, name, func(h []byte) { le.PutUint64(h[24:], le.Uint64(h[24:])-0x200) })},
		{"Mercury flag on text", "overlaps the ELF header", mutate(t, file, name, func(h []byte) {
			le.PutUint64(h[8:], le.Uint64(h[8:])|shfMercury)
			le.PutUint64(h[24:], 0)
		})},
		{"compressed text", "compressed", mutate(t, file, name, func(h []byte) { le.PutUint64(h[8:], le.Uint64(h[8:])|shfCompressed) })},
		{"symbols of odd size", "in entries of", mutate(t, file, ".symtab", func(h []byte) { le.PutUint64(h[56:], 23) })},
		{"symbols without names", "string table is section", mutate(t, file, ".symtab", func(h []byte) { le.PutUint32(h[40:], 9999) })},
		{"names in the wrong place", "not a string table", mutate(t, file, ".symtab", func(h []byte) { le.PutUint32(h[40:], 3) })},
		{"name index", "name:", mutate(t, file, name, func(h []byte) { le.PutUint32(h, 1<<30) })},
		{"attributes cut off", "attribute", mutate(t, file, ".nv.info", func(h []byte) { le.PutUint64(h[32:], le.Uint64(h[32:])-1) })},
		{"not an ELF file", "not a 64-bit", header(func(b []byte) { b[4] = 1 })},
		{"another machine", "machine 62", header(func(b []byte) { b[18] = 62 })},
		{"section headers of another size", "section headers of 40", header(func(b []byte) { le.PutUint16(b[58:], 40) })},
		{"section headers beyond the end", "truncated", header(func(b []byte) { le.PutUint64(b[40:], uint64(len(b))) })},
		{"string table index", "string table is section", header(func(b []byte) { le.PutUint16(b[62:], 0xfe00) })},
		{"program headers beyond the end", "truncated", header(func(b []byte) { le.PutUint64(b[32:], uint64(len(b))-8) })},
	}
	for _, tt := range tests {
		c, err := ParseCubin(tt.data)
		var fe *FormatError
		if c != nil || !errors.As(err, &fe) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want one with %q", tt.name, err, tt.want)
		}
	}
}

// Bug 1 of other readers: a cubin without program headers, and one whose segments do
// not fit its sections.
func TestProgramHeadersDoNotMatter(t *testing.T) {
	data := bytes.Clone(mustRead(t, "cubin/old/sm_90/gemm.cubin"))
	want := parse(t, data).Kernels()[0].Offset
	phoff := le.Uint64(data[32:])
	le.PutUint64(data[phoff+8:], 24) // p_offset
	if got := parse(t, data).Kernels()[0].Offset; got != want {
		t.Errorf("segment moved: kernel at 0x%x, want 0x%x", got, want)
	}
	le.PutUint64(data[32:], 0)
	le.PutUint16(data[54:], 0)
	le.PutUint16(data[56:], 0)
	if got := parse(t, data).Kernels()[0].Offset; got != want {
		t.Errorf("no program headers: kernel at 0x%x, want 0x%x", got, want)
	}
}

// Extended numbering: counts and indexes that do not fit 16 bits stand in the first
// section header, and in a section of type SYMTAB_SHNDX. ptxas writes such files for
// more than 0xff00 sections; here a small one is written that way.
func TestExtendedNumbering(t *testing.T) {
	data := bytes.Clone(mustRead(t, "cubin/new/sm_80/gemm.cubin"))
	old := parse(t, data)
	sym := old.Section(".symtab")
	n, shstrndx, phnum := le.Uint16(data[60:]), le.Uint16(data[62:]), le.Uint16(data[56:])
	// The table moves to the end with one header more, for the extended indexes.
	shoff := uint64(len(data))
	table := bytes.Clone(data[le.Uint64(data[40:]):][:int(n)*sectHeaderSize])
	table = append(table, make([]byte, sectHeaderSize)...)
	ext := make([]byte, 4*len(old.Symbols()))
	for i := range old.Symbols() {
		at := sym.Offset + int64(i)*symbolSize + 6
		le.PutUint32(ext[4*i:], uint32(le.Uint16(data[at:])))
		le.PutUint16(data[at:], uint16(shnXindex))
	}
	last := table[int(n)*sectHeaderSize:]
	le.PutUint32(last[4:], shtSymtabShndx)
	le.PutUint64(last[24:], shoff+uint64(len(table)))
	le.PutUint64(last[32:], uint64(len(ext)))
	le.PutUint32(last[40:], uint32(sym.Index))
	le.PutUint64(table[32:], uint64(n)+1)
	le.PutUint32(table[40:], uint32(shstrndx))
	le.PutUint32(table[44:], uint32(phnum))
	le.PutUint64(data[40:], shoff)
	le.PutUint16(data[56:], 0xffff)
	le.PutUint16(data[60:], 0)
	le.PutUint16(data[62:], uint16(shnXindex))
	data = append(append(data, table...), ext...)

	c := parse(t, data)
	if len(c.Sections()) != int(n)+1 {
		t.Errorf("%d sections, want %d", len(c.Sections()), n+1)
	}
	if len(c.Kernels()) != len(old.Kernels()) {
		t.Fatalf("%d kernels, want %d", len(c.Kernels()), len(old.Kernels()))
	}
	for i, k := range c.Kernels() {
		if o := old.Kernels()[i]; k.Name != o.Name || k.Regs != o.Regs || k.Entry != o.Entry || k.Stack != o.Stack {
			t.Errorf("kernel %d: %s, %d registers, %v; want %s, %d, %v", i, k.Name, k.Regs, k.Entry, o.Name, o.Regs, o.Entry)
		}
	}
}

func TestMatchGlob(t *testing.T) {
	for _, tt := range []struct {
		glob, s string
		want    bool
	}{
		{"", "", true}, {"*", "", true}, {"", "a", false}, {"a", "a", true}, {"a", "ab", false}, {"a*", "ab", true},
		{"*b", "ab", true}, {"*a*b", "xaybzb", true}, {"*a*b", "xaybz", false}, {"?b", "ab", true}, {"?", "", false},
		{"f<[2]>(*)", "f<[2]>(int)", true}, {"a**b", "ab", true},
	} {
		if got := MatchGlob(tt.glob, tt.s); got != tt.want {
			t.Errorf("MatchGlob(%q, %q) = %v", tt.glob, tt.s, got)
		}
	}
}

func TestDemangle(t *testing.T) {
	// Spelled as c++filt of binutils 2.40 spells them; the last is a kernel of ours.
	for name, want := range map[string]string{
		"_Z3fooi":                "foo(int)",
		"saxpy":                  "saxpy",
		"_Zbad":                  "_Zbad",
		"_Z5saxpyILi8EEvifPKfPf": "void saxpy<8>(int, float, float const*, float*)",
	} {
		if got := Demangle(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
