package assign

import (
	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/isa/kernel"
	"github.com/cupatch/cupatch/isa/schedule/internal/insts"
)

const (
	noClass = insts.NoClass // of a word without text
	noGuard = insts.NoGuard // of an instruction that has none
)

// A reg numbers the registers of all files, and behind them the scoreboards.
type reg uint16

var fileBase = [...]reg{isa.FileR: 0, isa.FileUR: 256, isa.FileP: 512, isa.FileUP: 520, isa.FileB: 528}

const (
	firstBoard = reg(544)
	numRegs    = 550
	numBoards  = 6
)

// file returns the file that r is in.
func (r reg) file() isa.RegFile {
	f := isa.FileB
	for r < fileBase[f] {
		f--
	}
	return f
}

// An access is a run of registers that an instruction reads or writes.
type access struct {
	first         reg
	count         uint8
	slot          uint8 // the lowest bit of the field that names them, noBit for none
	reads, writes bool
}

const noBit = 255

// An inst is an instruction as the schedule sees it.
type inst struct {
	class    int32
	from, to int32 // its part of section.accesses
	ctrl     isa.Control
	guard    uint8 // the predicate, P before UP, times two, plus one where negated; or noGuard
	flow     isa.FlowKind
	always   bool // control never goes on after it
}

// A section is the instructions of a kernel.
type section struct {
	graph    *kernel.Graph
	insts    []inst
	accesses []access
	waits    map[int][]insts.BarWait // of DEPBARs
}

// A reader turns the instructions of kernels into sections, and numbers their classes.
type reader struct {
	table   *isa.Table
	classes insts.Classes
	buf     []isa.Access
}

func newReader(t *isa.Table) *reader { return &reader{table: t, classes: insts.NewClasses(t)} }

// read returns the instructions of g.
func (r *reader) read(g *kernel.Graph) *section {
	c := &section{graph: g}
	n := 0
	if len(g.Blocks) > 0 {
		n = g.Blocks[len(g.Blocks)-1].End
	}
	c.insts = make([]inst, 0, n)
	for i := range n {
		in := g.Inst(i)
		x := inst{class: r.classes.Of(&in), ctrl: isa.ControlOf(in.Word), guard: insts.Guard(&in), from: int32(len(c.accesses))}
		if in.Status == isa.StatusKnown {
			flow := in.Flow()
			x.flow, x.always = flow.Kind, flow.NeverPasses()
		}
		r.buf = in.Accesses(r.buf[:0])
		for _, a := range r.buf {
			y := access{first: fileBase[a.File] + reg(a.First), count: uint8(a.Count), slot: noBit, reads: a.Reads, writes: a.Writes}
			if a.Bit >= 0 {
				y.slot = uint8(a.Bit)
			}
			c.accesses = append(c.accesses, y)
		}
		x.to = int32(len(c.accesses))
		if x.class != noClass && r.classes.List[x.class].Mnemonic == "DEPBAR" {
			if c.waits == nil {
				c.waits = map[int][]insts.BarWait{}
			}
			c.waits[i] = insts.BarWaits(r.table.Text(in, 0))
		}
		c.insts = append(c.insts, x)
	}
	return c
}

// of returns the accesses of x.
func (c *section) of(x *inst) []access { return c.accesses[x.from:x.to] }
