package diff

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"github.com/cupatch/cupatch/elfx"
)

// differ checks that two files differ at the level code, in the kinds want, whichever is
// the first, and that their hashes do.
func differ(t *testing.T, what string, x, y *elfx.File, want Kinds, says string) {
	t.Helper()
	for range 2 {
		r, err := Files(x, y, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if r.Kinds&want != want || !r.Different() {
			t.Errorf("%s: found %s, want %s among them", what, r.Kinds, want)
		}
		if !strings.Contains(r.String(), says) {
			t.Errorf("%s: no %q in\n%s", what, says, r)
		}
		x, y = y, x
	}
	if fileHash(t, x) == fileHash(t, y) {
		t.Errorf("%s: the files have the same hash", what)
	}
}

// fileHash returns the hash of a file as cupatch hash prints it.
func fileHash(t *testing.T, f *elfx.File) Hash {
	t.Helper()
	var lines []string
	for _, e := range f.Entries() {
		if e.Kind != elfx.KindELF {
			line, err := EntryLine(e)
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, line)
			continue
		}
		c, err := e.Cubin()
		if err != nil {
			t.Fatal(err)
		}
		m := NewModule(c, tableFor(c))
		for i := range c.Kernels() {
			lines = append(lines, m.Code(i).HashLine(HashCode, m.Code(i).Hash(HashCode)))
		}
		lines = append(lines, m.ModuleLine(HashCode))
	}
	return FileHash(HashCode, lines)
}

// TestPrograms compares programs whose kernels have the same code and that do something
// else all the same.
func TestPrograms(t *testing.T) {
	for _, test := range []struct {
		what, a, b string
		kinds      Kinds
		says       string
	}{
		{"another texture", "cubin/new/sm_90/texture_a.cubin", "cubin/new/sm_90/texture_b.cubin", Data, ".rela.nv.constant0"},
		{"another texture", "cubin/old/sm_90/texture_a.cubin", "cubin/old/sm_90/texture_b.cubin", Data, ".rela.nv.constant0"},
		{"values exchanged", "cubin/new/sm_90/values_a.cubin", "cubin/new/sm_90/values_b.cubin", Data, "data: symbol a: value 0x"},
		{"values exchanged", "cubin/old/sm_90/values_a.cubin", "cubin/old/sm_90/values_b.cubin", Data, "data: symbol a: value 0x"},
		{"a constant", "cubin/new/sm_90/bank_a.cubin", "cubin/new/sm_90/bank_b.cubin", Data, "data: .nv.constant3: 1 of 4 bytes differ"},
		{"a constant of one of two cubins", "fatbin/banks_ab.fatbin", "fatbin/banks_ac.fatbin", Data, "data: sm_90 #2 and #2: .nv.constant3: 1 of 4 bytes differ"},
		{"a cubin of data", "fatbin/pair_data.fatbin", "fatbin/pair_stored.fatbin", Unpaired, "unpaired: sm_90 #2: cubin: only the "},
	} {
		differ(t, test.what, open(t, test.a), open(t, test.b), test.kinds, test.says)
	}
}

// TestChangedPrograms changes what the compilers cannot be made to.
func TestChangedPrograms(t *testing.T) {
	put := func(data []byte, at int64, v uint32) { binary.LittleEndian.PutUint32(data[at:], v) }
	for _, test := range []struct {
		what, path string
		kinds      Kinds
		says       string
		change     func(t *testing.T, c *elfx.Cubin, data []byte)
	}{
		{"two symbols that are one without their hashes", "cubin/new/sm_90/internal.cubin", Data, ".rela.nv.constant4", func(t *testing.T, c *elfx.Cubin, data []byte) {
			s := c.Section(".rela.nv.constant4")
			r := c.Relocs(s)
			if len(r) != 2 || StableName(r[0].Symbol) != StableName(r[1].Symbol) || r[0].Symbol == r[1].Symbol {
				t.Fatalf("relocations %v", r)
			}
			put(data, s.Offset+12, r[1].SymbolIndex)
			put(data, s.Offset+24+12, r[0].SymbolIndex)
		}},
		{"registers in a section header", "cubin/new/sm_90/pair.cubin", Resources, "registers in the section header", func(t *testing.T, c *elfx.Cubin, data []byte) {
			data[headerOf(c, ".text.offset")+44+3] += 8
		}},
		{"barriers in a section header", "cubin/new/sm_90/pair.cubin", Resources, "barriers", func(t *testing.T, c *elfx.Cubin, data []byte) {
			data[headerOf(c, ".text.offset")+8+2] ^= 0x10
		}},
		{"registers of the old layout", "cubin/old/sm_90/pair.cubin", Resources, "registers", func(t *testing.T, c *elfx.Cubin, data []byte) {
			data[headerOf(c, ".text.offset")+44+3] += 8
		}},
		{"a relocation moved within its instruction", "cubin/new/sm_90/calls_rel.cubin", Other, "at byte 4", func(t *testing.T, c *elfx.Cubin, data []byte) {
			s := c.Section(".rela.text.calls_system")
			data[s.Offset] += 4
		}},
	} {
		x := open(t, test.path)
		c, err := x.Entries()[0].Cubin()
		if err != nil {
			t.Fatal(err)
		}
		data := slices.Clone(x.Data())
		test.change(t, c, data)
		y, err := elfx.Open("changed", data, nil)
		if err != nil {
			t.Fatal(err)
		}
		differ(t, test.what, x, y, test.kinds, test.says)
	}
}

// headerOf returns where the header of a section stands.
func headerOf(c *elfx.Cubin, name string) int {
	return int(binary.LittleEndian.Uint64(c.Data()[40:])) + 64*c.Section(name).Index
}

// TestLTOIR changes a byte of an entry that is no cubin, of which only the bytes are known.
func TestLTOIR(t *testing.T) {
	x := open(t, "fatbin/stored.fatbin")
	e := x.Entries()[3]
	old := bytes.Clone(x.Data())
	old[e.Offset] = 8 // the kind: LTO IR
	now := bytes.Clone(old)
	now[e.PayloadOffset+200] ^= 1
	a, err := elfx.Open("a", old, nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := elfx.Open("b", now, nil)
	if err != nil {
		t.Fatal(err)
	}
	differ(t, "LTO IR", a, b, Loader, "entries: of kind lto-ir: 1 only in the first file, 1 only in the second")
}

// TestMissingPTX cuts the last entry of a fatbin, PTX, off.
func TestMissingPTX(t *testing.T) {
	x := open(t, "fatbin/stored.fatbin")
	e := x.Entries()[3]
	data := bytes.Clone(x.Data()[:e.Offset])
	binary.LittleEndian.PutUint64(data[8:], uint64(len(data)-16)) // the size of all entries
	y, err := elfx.Open("b", data, nil)
	if err != nil {
		t.Fatal(err)
	}
	differ(t, "PTX", x, y, Loader, "entries: of kind ptx: ")
}

// TestPlainPTX compares PTX as a loader sees it.
func TestPlainPTX(t *testing.T) {
	const src = "// made by 12.4\n.file 1 \"a.cu\", 17, 4\n.global .u32 _ZN36_INTERNAL_2b878043_6_bvh_cu_fc859b201xE;\nadd.s32 %r1, %r2, 7;"
	for _, test := range []struct {
		now  string
		same bool
	}{
		{src, true},
		{strings.Replace(src, "12.4", "13.0", 1), true},
		{strings.ReplaceAll(src, " 17,", " 18,"), true},
		{strings.Replace(src, ";\n", "; /* more */\r\n\t", 1), true},
		{strings.Replace(src, "2b878043", "00c0ffee", 1), true},
		{src + "\n.global .u32 _ZN36_INTERNAL_00c0ffee_6_bvh_cu_fc859b201xE;", false},
		{strings.Replace(src, "%r2, 7", "%r2, 8", 1), false},
		{strings.Replace(src, "a.cu", "b.cu", 1), false},
		{strings.Replace(src, "add.s32", "sub.s32", 1), false},
	} {
		if same := meaningOf(elfx.KindPTX, []byte(src)) == meaningOf(elfx.KindPTX, []byte(test.now)); same != test.same {
			t.Errorf("%q: same %t, want %t", test.now, same, test.same)
		}
	}
}

// TestNamesInFileHash makes the name of a kernel look like the lines of two.
func TestNamesInFileHash(t *testing.T) {
	zero := Hash{}.String()
	forged := "a " + zero + "\nsm_90 b"
	if got := quoteName(forged); strings.ContainsAny(got, " \n") {
		t.Errorf("quoted: %q", got)
	}
	one := FileHash(HashCode, []string{"sm_90 " + quoteName(forged) + " " + zero})
	two := FileHash(HashCode, []string{"sm_90 a " + zero, "sm_90 b " + zero})
	if one == two {
		t.Error("a name with a line feed is two kernels")
	}
	seen := map[string]string{}
	for _, name := range []string{"", `""`, "a", `"a"`, `a\n`, "a\n", "a b", `"a\x20b"`, "\xff", "ÿ", `"\xff"`, "\x1b[2J"} {
		q := quoteName(name)
		if other, ok := seen[q]; ok {
			t.Errorf("%q and %q are both quoted as %s", name, other, q)
		}
		seen[q] = name
	}
}
