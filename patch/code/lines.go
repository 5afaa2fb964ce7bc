package code

import (
	"sync"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/isa"
)

// lineTables are the line tables of a cubin, read when they are first asked for.
type lineTables struct {
	source, ptx func() (*elfx.LineTable, error)
}

func newLineTables(c *elfx.Cubin) *lineTables {
	read := func(kind elfx.LineKind) func() (*elfx.LineTable, error) {
		return sync.OnceValues(func() (*elfx.LineTable, error) { return c.Lines(kind) })
	}
	return &lineTables{source: read(elfx.SourceLines), ptx: read(elfx.PTXLines)}
}

// Lines returns a line table of the cubin, read once.
func (t *Target) Lines(kind elfx.LineKind) (*elfx.LineTable, error) {
	if t.lines == nil {
		return t.Cubin.Lines(kind)
	}
	if kind == elfx.PTXLines {
		return t.lines.ptx()
	}
	return t.lines.source()
}

// Line returns the line of source that instruction i comes from, nil where the cubin does
// not say, or has a damaged table.
func (c *State) Line(i int) *elfx.SourceLine {
	if !c.lined {
		c.lined = true
		if c.target != nil && c.kernel != nil {
			if table, err := c.target.Lines(elfx.SourceLines); err == nil {
				c.lines = table.Rows(c.kernel)
			}
		}
	}
	r, _ := elfx.LineAt(c.lines, uint64(i)*isa.WordSize)
	return r.Source
}
