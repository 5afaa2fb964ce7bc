package main

import (
	"fmt"
	"strconv"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/patch/code"
	"github.com/cupatch/cupatch/patch/listing"
	"github.com/spf13/pflag"
)

// Values of --lines.
const (
	linesSource = "source"
	linesInline = "inline"
	linesPTX    = "ptx"
)

// A lining is what a command is asked to say of where instructions come from.
type lining struct{ lines string } // the value of --lines, "" for nothing

func (l *lining) flags(fs *pflag.FlagSet) {
	fs.StringVar(&l.lines, "lines", "", "")
	fs.Lookup("lines").NoOptDefVal = linesSource
}

// check looks at the value.
func (l *lining) check() error {
	switch l.lines {
	case "", linesSource, linesInline, linesPTX:
		return nil
	}
	return fmt.Errorf("--lines=%s: want source, inline or ptx", l.lines)
}

func (l *lining) inline() bool { return l.lines == linesInline }

// lineTable reads the line table that is asked for, nil for none.
func (l *lining) lineTable(read func(elfx.LineKind) (*elfx.LineTable, error)) (*elfx.LineTable, error) {
	switch l.lines {
	case "":
		return nil, nil
	case linesPTX:
		return read(elfx.PTXLines)
	}
	return read(elfx.SourceLines)
}

// A noting is what dis is asked to say of the instructions besides them.
type noting struct {
	lining
	blocks bool
	live   bool
}

func (n *noting) flags(fs *pflag.FlagSet) {
	n.lining.flags(fs)
	fs.BoolVar(&n.blocks, "blocks", false, "")
	fs.BoolVar(&n.live, "live", false, "")
}

// any reports whether there is something to say.
func (n *noting) any() bool { return n.lines != "" || n.blocks || n.live }

// noLines says that --lines has nothing to show.
func (r *disRun) noLines() {
	if r.lines != "" && !r.lined {
		r.notef("no line information; compile with -lineinfo (nvcc, ptxas)")
	}
}

// notes returns what there is to say of a kernel.
func (n *noting) notes(s *disCubin, k *elfx.Kernel, c *code.Kernel) *listing.Notes {
	out := &listing.Notes{Inline: n.inline()}
	if s.lines != nil {
		out.Lines = s.lines.Rows(k)
	}
	if n.blocks || n.live {
		g := code.NewState(c, s.target.Table).Flow()
		if n.blocks {
			out.Blocks = g
		}
		if n.live {
			out.Live = listing.NewLiveness(g)
		}
	}
	return out
}

// appendNotesJSON adds the notes of the instruction in at pc to its JSON, which is at the
// end of dst.
func appendNotesJSON(dst []byte, n *listing.Notes, in isa.Inst, pc int) []byte {
	dst = dst[:len(dst)-len("}")]
	if n.Live != nil {
		dst = appendLiveJSON(dst, n.Live, in, pc/isa.WordSize)
	}
	if g := n.Blocks; g != nil {
		i := pc / isa.WordSize
		dst = strconv.AppendInt(append(dst, `,"block":`...), int64(g.Block(i)), 10)
		dst = strconv.AppendInt(append(dst, `,"loop":`...), int64(g.LoopDepth(i)), 10)
	}
	if r, ok := elfx.LineAt(n.Lines, uint64(pc)); ok && r.Source != nil {
		dst = appendLineJSON(append(dst, ','), r.Source, n.Inline)
		if n.Inline && r.Source.Caller != nil {
			dst = append(dst, `,"inlined_at":[`...)
			for s := r.Source.Caller; s != nil; s = s.Caller {
				dst = append(appendLineJSON(append(dst, '{'), s, true), '}')
				if s.Caller != nil {
					dst = append(dst, ',')
				}
			}
			dst = append(dst, ']')
		}
	}
	return append(dst, '}')
}

// appendLiveJSON appends what instruction i reads and writes, which registers are needed
// after it, and the pressure.
func appendLiveJSON(dst []byte, n *listing.Liveness, in isa.Inst, i int) []byte {
	if in.HasEffects() {
		fx := in.Effects()
		dst = appendRegsJSON(append(dst, `,"reads":`...), &fx.Reads)
		dst = appendRegsJSON(append(dst, `,"writes":`...), &fx.Writes)
	}
	dst = appendRegsJSON(append(dst, `,"live":`...), &n.After[i])
	p := n.Pressure[i]
	return fmt.Appendf(dst, `,"pressure":{"R":%d,"UR":%d,"P":%d,"UP":%d}`, p.R, p.UR, p.P, p.UP)
}

// appendRegsJSON appends the names of registers.
func appendRegsJSON(dst []byte, set *isa.RegSet) []byte {
	dst = append(dst, '[')
	sep := ""
	set.Each(func(f isa.RegFile, n int) {
		dst = append(append(append(dst, sep...), '"'), f.String()...)
		dst = append(strconv.AppendInt(dst, int64(n), 10), '"')
		sep = ","
	})
	return append(dst, ']')
}

// appendLineJSON appends file, line and, if asked, the function of a line.
func appendLineJSON(dst []byte, s *elfx.SourceLine, function bool) []byte {
	dst = appendString(append(dst, `"source":`...), s.File)
	dst = strconv.AppendInt(append(dst, `,"line":`...), int64(s.Line), 10)
	if function && s.Function != "" {
		dst = appendString(append(dst, `,"function":`...), s.Function)
	}
	return dst
}
