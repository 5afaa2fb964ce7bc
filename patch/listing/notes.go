package listing

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/isa/kernel"
	"github.com/cupatch/cupatch/patch/code"
)

// Notes are what a listing says of the instructions of one kernel besides the
// instructions: comments, so that the listing can be applied all the same. The zero value
// says nothing.
type Notes struct {
	Lines  []elfx.LineRow // of the kernel's section: where instructions come from
	Inline bool           // with the calls that the lines were inlined in
	Blocks *kernel.Graph  // where blocks start, their loops and predecessors
	Live   *Liveness      // registers that are needed after each instruction
}

// A Liveness is what is known of the registers of a kernel, by instruction.
type Liveness struct {
	After    []isa.RegSet // the registers whose values are needed after it
	Pressure []kernel.Pressure
}

// NewLiveness returns what g knows.
func NewLiveness(g *kernel.Graph) *Liveness {
	return &Liveness{g.Live().Sets(), g.Live().Pressure()}
}

// A Noter writes the notes of a kernel, in the order of its instructions.
type Noter struct {
	Notes
	file  string // of the line that was written last
	line  int
	block int // that was written last, -1 for none
}

// NewNoter returns a writer that has written nothing.
func NewNoter(n Notes) *Noter { return &Noter{Notes: n, block: -1} }

// AppendBefore appends the lines of comment that come before the instruction at pc.
// Source lines are written as nvdisasm -g and -gi write them, where the file or the line
// changes:
//
//	//## block 4, loop 1 (depth 2), from 3 7
//	//## File "a.cu", line 3
func (n *Noter) AppendBefore(dst []byte, pc uint64) []byte {
	if n.Blocks != nil {
		dst = n.appendBlock(dst, int(pc/isa.WordSize))
	}
	if n.Lines == nil {
		return dst
	}
	r, ok := elfx.LineAt(n.Lines, pc)
	s := r.Source
	if !ok || s == nil || s.File == n.file && s.Line == n.line {
		return dst
	}
	n.file, n.line = s.File, s.Line
	for ; s != nil; s = s.Caller {
		dst = appendSource(append(dst, "//## File "...), s)
		if !n.Inline {
			return append(dst, '\n')
		}
		if s.Caller != nil {
			dst = appendSource(append(dst, " inlined at "...), s.Caller)
		}
		dst = append(dst, '\n')
	}
	return dst
}

// liveColumn is where the comment of AppendAfter starts, unless the line is longer.
const liveColumn = 80

// AppendAfter puts a comment behind the line of the instruction at pc, which starts at
// start and ends dst: the pressure, then the registers that are needed after it.
//
//	// R  14 UR  4 P 1 UP 0: R0-R5 R8 UR4-UR7 P0
func (n *Noter) AppendAfter(dst []byte, start int, pc uint64) []byte {
	if n.Live == nil {
		return dst
	}
	i := pc / isa.WordSize
	dst = dst[:len(dst)-len("\n")]
	for pad := liveColumn - (len(dst) - start); pad > 0; pad-- {
		dst = append(dst, ' ')
	}
	p := n.Live.Pressure[i]
	dst = fmt.Appendf(dst, " // R %3d UR %2d P %d UP %d", p.R, p.UR, p.P, p.UP)
	if live := &n.Live.After[i]; !live.IsEmpty() {
		dst = append(append(dst, ": "...), live.String()...)
	}
	return append(dst, '\n')
}

// appendSource appends `"a.cu", line 3`.
func appendSource(dst []byte, s *elfx.SourceLine) []byte {
	name := elfx.Printable(s.File)
	if name == s.File {
		name = `"` + name + `"`
	}
	dst = append(append(dst, name...), ", line "...)
	return strconv.AppendInt(dst, int64(s.Line), 10)
}

// appendBlock appends a line about the block of instruction i, unless it is the block of
// the line before.
func (n *Noter) appendBlock(dst []byte, i int) []byte {
	g := n.Blocks
	k := g.Block(i)
	if k == n.block {
		return dst
	}
	n.block = k
	b := &g.Blocks[k]
	dst = strconv.AppendInt(append(dst, "//## block "...), int64(k), 10)
	if l := b.Loop; l >= 0 {
		dst = strconv.AppendInt(append(dst, ", loop "...), int64(l), 10)
		dst = strconv.AppendInt(append(dst, " (depth "...), int64(g.Loops[l].Depth), 10)
		if g.Loops[l].Header == k {
			dst = append(dst, ", header"...)
		}
		dst = append(dst, ')')
	}
	for i, e := range b.Preds {
		dst = strconv.AppendInt(append(dst, [...]string{", from ", " "}[min(i, 1)]...), int64(e.Block), 10)
	}
	if _, ok := slices.BinarySearch(g.Entries, k); ok {
		dst = append(dst, ", entry"...)
	} else if !b.Reachable {
		dst = append(dst, ", unreachable"...)
	}
	if b.Open && b.Reachable {
		dst = append(dst, ", goes on to an unknown place"...)
	}
	return append(dst, '\n')
}

// AppendNoted appends the lines of the instructions at the addresses pcs, of all where it
// is nil, with notes.
func (s Style) AppendNoted(dst []byte, t *isa.Table, c *code.Kernel, notes Notes, pcs []int) []byte {
	n := NewNoter(notes)
	var l *labels
	if s.Labels && pcs == nil {
		l = newLabels(t, c)
	}
	each(c, pcs, func(pc uint64) {
		if l != nil {
			dst = l.appendBefore(dst, pc)
		}
		dst = n.AppendBefore(dst, pc)
		w := isa.LoadWord(c.Data[pc:])
		start := len(dst)
		dst = s.AppendLine(dst, t, w, pc)
		if l != nil {
			dst = l.appendAfter(dst, w, pc)
		}
		dst = n.AppendAfter(dst, start, pc)
	})
	return dst
}

// each calls fn with the addresses of the instructions in pcs, of all where it is nil.
func each(c *code.Kernel, pcs []int, fn func(pc uint64)) {
	if pcs == nil {
		for off := 0; off+isa.WordSize <= len(c.Data); off += isa.WordSize {
			fn(uint64(off))
		}
	}
	for _, pc := range pcs {
		fn(uint64(pc))
	}
}
