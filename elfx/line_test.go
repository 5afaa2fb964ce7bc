package elfx

import (
	"bytes"
	"debug/dwarf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// A lineWriter makes line number programs.
type lineWriter struct{ b []byte }

func (w *lineWriter) put(b ...byte) { w.b = append(w.b, b...) }
func (w *lineWriter) u16(v uint16)  { w.b = le.AppendUint16(w.b, v) }
func (w *lineWriter) u32(v uint32)  { w.b = le.AppendUint32(w.b, v) }
func (w *lineWriter) text(s string) { w.b = append(append(w.b, s...), 0) }
func (w *lineWriter) uleb(v uint64) { w.b = binary.AppendUvarint(w.b, v) }
func (w *lineWriter) sleb(v int64) {
	for {
		x := byte(v & 0x7f)
		v >>= 7
		if v == 0 && x&0x40 == 0 || v == -1 && x&0x40 != 0 {
			w.put(x)
			return
		}
		w.put(x | 0x80)
	}
}

// randomUnit makes a unit of a DWARF version with two directories and three files.
func randomUnit(r *rand.Rand, version int) []byte {
	var h lineWriter
	h.put(1)
	if version >= 4 {
		h.put(1)
	}
	h.put(1, 0xfb, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1)
	if version == 5 {
		h.put(1)
		h.uleb(lnctPath)
		h.uleb(formString)
		h.uleb(2)
		h.text("/comp")
		h.text("/dir")
		h.put(3)
		for _, v := range []uint64{lnctPath, formLineStrp, lnctDirectoryIndex, formUdata, 5, formData16} {
			h.uleb(v)
		}
		h.uleb(3)
		for i := range 3 {
			h.u32(uint32(i * 3)) // a, b, c of .debug_line_str
			h.uleb(uint64(i % 2))
			h.put(make([]byte, 16)...)
		}
	} else {
		h.text("/dir")
		h.text("rel")
		h.put(0)
		for i := range 3 {
			h.text(string(rune('a'+i)) + ".cu")
			h.uleb(uint64(i % 3))
			h.uleb(1700000000)
			h.uleb(99)
		}
		h.put(0)
	}
	var p lineWriter
	for range 1 + r.IntN(3) {
		p.put(0, 9, lneSetAddress)
		p.b = le.AppendUint64(p.b, uint64(r.IntN(1<<20)))
		for range r.IntN(40) {
			randomStatement(r, &p, version)
		}
		p.put(0, 1, lneEndSequence)
	}
	var u lineWriter
	u.u16(uint16(version))
	if version == 5 {
		u.put(8, 0)
	}
	u.u32(uint32(len(h.b)))
	u.put(h.b...)
	u.put(p.b...)
	return append(le.AppendUint32(nil, uint32(len(u.b))), u.b...)
}

func randomStatement(r *rand.Rand, p *lineWriter, version int) {
	switch r.IntN(9) {
	case 0:
		p.put(lnsAdvancePC)
		p.uleb(uint64(r.IntN(1000)))
	case 1:
		p.put(lnsAdvanceLine)
		p.sleb(int64(r.IntN(300)))
	case 2:
		p.put(lnsSetFile)
		first := 1
		if version == 5 {
			first = 0
		}
		p.uleb(uint64(first + r.IntN(3)))
	case 3:
		p.put(lnsConstAddPC)
	case 4:
		p.put(lnsFixedAdvancePC)
		p.u16(uint16(r.IntN(1 << 16)))
	case 5:
		p.put(5) // set_column
		p.uleb(uint64(r.IntN(200)))
	case 6:
		p.put(0, 3, 0xab, 1, 2) // an extended opcode that nobody knows
	case 7:
		p.put(lnsCopy)
	default:
		p.put(byte(13 + r.IntN(243)))
	}
}

// lineStrings is a .debug_line_str.
const lineStrings = "a1\x00b2\x00c3\x00"

// goRows reads a unit with debug/dwarf.
func goRows(t *testing.T, unit []byte) []string {
	t.Helper()
	abbrev := []byte{1, 0x11, 0, 0x10, 0x06, 0x1b, 0x08, 0, 0, 0} // compile_unit: stmt_list data4, comp_dir string
	var info lineWriter
	info.u16(3)
	info.u32(0)
	info.put(8, 1)
	info.u32(0)
	info.text("")
	d, err := dwarf.New(abbrev, nil, nil, append(le.AppendUint32(nil, uint32(len(info.b))), info.b...), unit, nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.AddSection(".debug_line_str", []byte(lineStrings)); err != nil {
		t.Fatal(err)
	}
	cu, err := d.Reader().Next()
	if err != nil {
		t.Fatal(err)
	}
	lr, err := d.LineReader(cu)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for {
		var e dwarf.LineEntry
		if err := lr.Next(&e); err == io.EOF {
			return out
		} else if err != nil {
			t.Fatal(err)
		}
		if e.EndSequence {
			out = append(out, fmt.Sprintf("%#x end", e.Address))
			continue
		}
		out = append(out, fmt.Sprintf("%#x %s:%d", e.Address, e.File.Name, e.Line))
	}
}

// program reads line number programs whose addresses are all in section 1.
func program(b []byte) *lineProgram {
	return &lineProgram{cursor: cursor{b: b}, name: ".debug_line", rows: map[int][]lineRow{}, lineStr: []byte(lineStrings),
		address: func(_ int, v uint64) (int, uint64) { return 1, v }}
}

// TestLinesAgainstGo compares random programs of every version with what debug/dwarf
// makes of them.
func TestLinesAgainstGo(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 7))
		unit := randomUnit(r, 2+int(seed%4))
		want := goRows(t, unit)
		p := program(unit)
		if err := p.run(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		var got []string
		for _, row := range p.rows[1] {
			if row.end {
				got = append(got, fmt.Sprintf("%#x end", row.off))
				continue
			}
			got = append(got, fmt.Sprintf("%#x %s:%d", row.off, p.files[row.file], row.line))
		}
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d, version %d:\n got %s\nwant %s", seed, 2+seed%4, strings.Join(got, "\n     "), strings.Join(want, "\n     "))
		}
	}
}

// TestLinesDamaged cuts and changes programs: an error says where, nothing panics, and
// there are never more rows than bytes.
func TestLinesDamaged(t *testing.T) {
	refused := 0
	for seed := range uint64(4000) {
		r := rand.New(rand.NewPCG(seed, 8))
		b := bytes.Join([][]byte{randomUnit(r, 2+int(seed%4)), randomUnit(r, 3)}, nil)
		if r.IntN(2) == 0 {
			b = b[:1+r.IntN(len(b)-1)]
		}
		for range r.IntN(4) {
			b[r.IntN(len(b))] = byte(r.IntN(256))
		}
		p := program(b)
		err := p.run()
		var fe *FormatError
		if err != nil && (!errors.As(err, &fe) || fe.Section != ".debug_line" || fe.Offset > int64(len(b))) {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if err != nil {
			refused++
		}
		if n := len(p.rows[1]); n > len(b) {
			t.Fatalf("seed %d: %d rows of %d bytes", seed, n, len(b))
		}
	}
	if refused < 1000 {
		t.Errorf("only %d programs were refused", refused)
	}
}

// TestInlined reads NVIDIA's opcode for inlined calls: the row of the caller counts from 1
// in its sequence, and a row that is not there yet is none.
func TestInlined(t *testing.T) {
	c := parse(t, mustRead(t, "cubin/new/sm_90/inline.cubin"))
	table, err := c.Lines(SourceLines)
	if err != nil {
		t.Fatal(err)
	}
	k := &c.Kernels()[0]
	rows := table.Rows(k)
	chain := func(off uint64) string {
		r, ok := LineAt(rows, off)
		if !ok || r.Source == nil {
			return "none"
		}
		var out []string
		for s := r.Source; s != nil; s = s.Caller {
			out = append(out, strings.TrimPrefix(fmt.Sprintf("%s %s:%d", s.Function, s.File, s.Line), " "))
		}
		return strings.Join(out, ", ")
	}
	for off, want := range map[uint64]string{ // as in inline.ptx
		0x80:  "src/norms.cu:10",
		0x90:  "src/norms.cu:10",
		0xd0:  "_Z6squaref include/norm.h:5, _Z4normff include/norm.h:12, src/norms.cu:11",
		0xe0:  "_Z6squaref include/norm.h:5, _Z4normff include/norm.h:13, src/norms.cu:11",
		0xf0:  "_Z4normff include/norm.h:14, src/norms.cu:11",
		0x150: "_Z5storePff store.h:2, src/norms.cu:12",
		0x1a0: "src/norms.cu:14", // a function of the compiler's own, without a row
	} {
		if got := chain(off); got != want {
			t.Errorf("%#x: %s, want %s", off, got, want)
		}
	}
	// The same rows with a caller that comes later.
	s := c.Section(".debug_line")
	b := bytes.Clone(c.Data())
	at := bytes.Index(b[s.Offset:], []byte{0, 3, lneInlinedCall})
	if at < 0 {
		t.Fatal("no inlined call")
	}
	b[int(s.Offset)+at+3] = 0x7f
	if table, err = parse(t, b).Lines(SourceLines); err != nil {
		t.Fatal(err)
	}
	if len(table.Rows(k)) != len(rows) {
		t.Errorf("%d rows, want %d", len(table.Rows(k)), len(rows))
	}
}

// TestInlinedDepth sees that a chain of calls has an end, so that what is printed of many
// rows stays linear.
func TestInlinedDepth(t *testing.T) {
	w := lineWriter{b: []byte{0, 9, lneSetAddress, 0, 0, 0, 0, 0, 0, 0, 0}}
	for i := range 5000 {
		var call lineWriter
		call.put(lneInlinedCall)
		call.uleb(uint64(i)) // the row before, from the second on
		call.uleb(0)
		w.put(0, byte(len(call.b)))
		w.put(call.b...)
		w.put(lnsCopy)
	}
	p := program(nil)
	p.cursor = cursor{b: w.b}
	if err := p.statements(&lineUnit{version: 2, addrSize: 8, minInst: 1, maxOps: 1, lineRange: 14, opcodeBase: 13, args: make([]byte, 12)}); err != nil {
		t.Fatal(err)
	}
	deepest := uint16(0)
	for _, r := range p.rows[1] {
		deepest = max(deepest, r.depth)
	}
	if len(p.rows[1]) != 5000 || deepest != maxInlined {
		t.Errorf("%d rows, %d deep", len(p.rows[1]), deepest)
	}
}

// TestNoLines sees that a cubin without a table has an empty one, and that damage is told
// with its place.
func TestNoLines(t *testing.T) {
	c := parse(t, mustRead(t, "cubin/new/sm_90/gemm.cubin"))
	if table, err := c.Lines(SourceLines); err != nil || !table.Empty() || len(table.Rows(&c.Kernels()[0])) > 0 {
		t.Errorf("%v, empty %v", err, table.Empty())
	}
	c = parse(t, mustRead(t, "cubin/new/sm_90/inline.cubin"))
	b := bytes.Clone(c.Data())
	b[c.Section(".debug_line").Offset+4] = 9 // the version
	_, err := parse(t, b).Lines(SourceLines)
	const want = ".debug_line: offset 0x0: line number program of DWARF version 9; versions 2 to 5 are supported"
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// FuzzLines checks that any .debug_line gives rows in order, every one with its chain of
// callers, or an error, and that the memory used is a small multiple of the input.
func FuzzLines(f *testing.F) {
	cubin := mustRead(f, "cubin/new/sm_90/inline.cubin")
	c := parse(f, cubin)
	section := c.Section(".debug_line")
	f.Add(bytes.Clone(c.SectionData(section)))
	for version := 2; version <= 5; version++ {
		f.Add(randomUnit(rand.New(rand.NewPCG(uint64(version), 1)), version))
	}
	k := &c.Kernels()[0]
	f.Fuzz(func(t *testing.T, program []byte) {
		data := bytes.Clone(cubin)
		program = program[:min(len(program), int(section.Size))]
		copy(data[section.Offset:], program)
		n := allocated(func() {
			table, err := parse(t, data).Lines(SourceLines)
			if err != nil {
				if table != nil {
					t.Error("an error and a table")
				}
				return
			}
			last := -1
			for _, r := range table.Rows(k) {
				if int(r.Offset) <= last && r.Offset < 1<<62 {
					t.Fatalf("row %#x after %#x", r.Offset, last)
				}
				last = int(r.Offset)
				depth := 0
				for s := r.Source; s != nil; s = s.Caller {
					depth++
				}
				if depth > maxInlined+1 {
					t.Fatalf("%d callers", depth)
				}
			}
		})
		if limit := int64(100*len(data) + 1<<20); n > limit {
			t.Errorf("%d bytes allocated for an input of %d", n, len(data))
		}
	})
}
