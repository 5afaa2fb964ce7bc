package elfx

import (
	"cmp"
	"slices"
)

// A LineTable says which lines of source the instructions of a cubin come from.
type LineTable struct {
	program lineProgram
	unnamed string // file of rows whose file has no name
}

// ptxText is the section with the PTX; nvdisasm prints it as the file of PTX lines.
const ptxText = ".nv_debug_ptx_txt"

// A LineKind is one of the line tables that a cubin can have.
type LineKind uint8

// The tables. ptxas writes both where it is given -lineinfo or -g.
const (
	SourceLines LineKind = iota // of .debug_line: of the source that was compiled to PTX
	PTXLines                    // of .nv_debug_line_sass: of the PTX
)

func (k LineKind) section() string {
	if k == PTXLines {
		return ".nv_debug_line_sass"
	}
	return ".debug_line"
}

// A SourceLine is a line of source.
type SourceLine struct {
	// File has its directory, as the table has it; "" for none. The PTX in the cubin is
	// called .nv_debug_ptx_txt.
	File string
	Line int // from 1
	// Function is the mangled name of the function that was inlined, "" where none was
	// or none is told; Caller is the line of the call, nil where none was.
	Function string
	Caller   *SourceLine
}

// A LineRow says where the instructions from Offset to the Offset of the next row come
// from.
type LineRow struct {
	Offset uint64      // in bytes from the start of the kernel's section
	Source *SourceLine // nil where that is not told
}

// Lines reads a line table of the cubin, line number programs of DWARF 2 to 5. A cubin
// without the table gives an empty one. The error is a *[FormatError].
//
// What an address means is told by relocations, also in executable cubins; a sequence
// whose address has none is left out.
func (c *Cubin) Lines(kind LineKind) (*LineTable, error) {
	t := &LineTable{}
	s := c.Section(kind.section())
	if s == nil || !s.HasData() {
		return t, nil
	}
	if kind == PTXLines {
		t.unnamed = ptxText
	}
	places := c.placesIn(s)
	t.program = lineProgram{
		cursor: cursor{b: c.SectionData(s)}, name: s.Name, rows: map[int][]lineRow{},
		str: c.sectionNamed(".debug_str"), lineStr: c.sectionNamed(".debug_line_str"),
		address: func(at int, v uint64) (int, uint64) {
			p, ok := places[uint64(at)]
			if !ok {
				return 0, 0
			}
			return p.section, p.off + v&p.mask
		},
	}
	if err := t.program.run(); err != nil {
		return nil, err
	}
	return t, nil
}

// A place is what a relocated value means: an offset in a section, to which the value
// that stands there is added where it is the addend.
type place struct {
	section int
	off     uint64
	mask    uint64 // all ones where the addend stands at the place, as in REL
}

// placesIn returns what the relocated values of a section mean, by their offsets in it.
func (c *Cubin) placesIn(s *Section) map[uint64]place {
	out := map[uint64]place{}
	for i := range c.sections {
		r := &c.sections[i]
		if int(r.Info) != s.Index {
			continue
		}
		for _, x := range c.Relocs(r) {
			if uint64(x.SymbolIndex) >= uint64(len(c.symbols)) {
				continue
			}
			sym := &c.symbols[x.SymbolIndex]
			p := place{section: int(sym.Section), off: sym.Value + uint64(x.Addend)}
			if r.Type == shtRel {
				p.mask = ^uint64(0)
			}
			out[x.Offset] = p
		}
	}
	return out
}

// sectionNamed returns the data of a section, nil for none.
func (c *Cubin) sectionNamed(name string) []byte {
	if s := c.Section(name); s != nil && s.HasData() {
		return c.SectionData(s)
	}
	return nil
}

// Empty reports whether the table says nothing.
func (t *LineTable) Empty() bool { return len(t.program.rows) == 0 }

// Rows returns what the table says of a kernel, and of the device functions in its
// section, by offset. Where the table names several lines for one offset, the last one
// stands, as in nvdisasm.
func (t *LineTable) Rows(k *Kernel) []LineRow {
	rows := t.program.rows[k.Index]
	order := make([]int32, len(rows))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int {
		x, y := &rows[a], &rows[b]
		switch {
		case x.off != y.off || x.end == y.end:
			return cmp.Compare(x.off, y.off)
		case x.end: // where one sequence ends another may start
			return -1
		}
		return 1
	})
	made := make([]*SourceLine, len(rows))
	var out []LineRow
	for n, i := range order {
		if n+1 < len(order) && rows[order[n+1]].off == rows[i].off {
			continue
		}
		r := LineRow{Offset: rows[i].off}
		if !rows[i].end {
			r.Source = t.source(rows, made, i)
		}
		out = append(out, r)
	}
	return out
}

// source returns the line of row i and those that it was inlined in. made has those that
// were made before: many rows have the same caller.
func (t *LineTable) source(rows []lineRow, made []*SourceLine, i int32) *SourceLine {
	first := &SourceLine{}
	for next := &first; ; {
		if made[i] != nil {
			*next = made[i]
			return first
		}
		r := &rows[i]
		s := &SourceLine{File: t.unnamed, Line: int(r.line)}
		if r.file >= 0 && t.program.files[r.file] != "" {
			s.File = t.program.files[r.file]
		}
		*next, made[i] = s, s
		if r.caller < 0 {
			return first
		}
		s.Function = textAt(t.program.str, uint64(r.function))
		i, next = r.caller, &s.Caller
	}
}

// LineAt returns the row that holds at an offset; ok is false before the first one.
func LineAt(rows []LineRow, off uint64) (r LineRow, ok bool) {
	i, found := slices.BinarySearchFunc(rows, off, func(r LineRow, off uint64) int { return cmp.Compare(r.Offset, off) })
	if !found {
		i--
	}
	if i < 0 {
		return r, false
	}
	return rows[i], true
}
