package assign

import (
	"strings"

	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/isa/kernel"
)

// A class is what instructions have in common for the schedule: the opcode with its
// modifiers. Classes are numbered by a reader.
type class struct{ opcode, mnemonic string }

// noClass is the class of a word without text.
const noClass = -1

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

// noGuard says that an instruction has no guard.
const noGuard = 255

// An inst is an instruction as the schedule sees it.
type inst struct {
	class    int32
	from, to int32 // its part of section.accesses
	ctrl     isa.Control
	guard    uint8 // the predicate, P before UP, times two, plus one where negated; or noGuard
	flow     isa.FlowKind
	always   bool // control never goes on after it
}

// A barWait is what a DEPBAR waits for: until at most left of the instructions that set the
// scoreboard are not done.
type barWait struct {
	board uint8
	left  int
}

// A section is the instructions of a kernel.
type section struct {
	graph    *kernel.Graph
	insts    []inst
	accesses []access
	waits    map[int][]barWait // of DEPBARs
}

// A reader turns the instructions of kernels into sections, and numbers their classes.
type reader struct {
	table   *isa.Table
	classes []class
	byBits  map[isa.Word]int32
	byName  map[string]int32
	buf     []isa.Access
}

func newReader(t *isa.Table) *reader {
	return &reader{table: t, byBits: map[isa.Word]int32{}, byName: map[string]int32{}}
}

// classOf returns the class of in.
func (r *reader) classOf(in *isa.Inst) int32 {
	if in.Status != isa.StatusKnown {
		return noClass
	}
	key := in.Word.And(r.table.OpcodeBits(in.Word))
	if c, ok := r.byBits[key]; ok {
		return c
	}
	opcode := in.Opcode()
	c, ok := r.byName[opcode]
	if !ok {
		c = int32(len(r.classes))
		r.classes = append(r.classes, class{opcode, in.Mnemonic()})
		r.byName[opcode] = c
	}
	r.byBits[key] = c
	return c
}

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
		x := inst{class: r.classOf(&in), ctrl: isa.ControlOf(in.Word), guard: guardOf(&in), from: int32(len(c.accesses))}
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
		if x.class != noClass && r.classes[x.class].mnemonic == "DEPBAR" {
			if c.waits == nil {
				c.waits = map[int][]barWait{}
			}
			c.waits[i] = depbar(r.table.Text(in, 0))
		}
		c.insts = append(c.insts, x)
	}
	return c
}

// of returns the accesses of x.
func (c *section) of(x *inst) []access { return c.accesses[x.from:x.to] }

// guardOf returns the guard of in.
func guardOf(in *isa.Inst) uint8 {
	if in.Status != isa.StatusKnown || !in.IsGuarded() {
		return noGuard
	}
	p := uint8(isa.GuardField.Get(in.Word))
	if p == 7 {
		return noGuard
	}
	if in.Variant.Guard == isa.GuardUP {
		p += 8
	}
	return p<<1 | uint8(isa.GuardNot.Get(in.Word))
}

// depbar reads the text of a DEPBAR: `DEPBAR.LE SB0, 0x1 {3,2}`.
func depbar(text string) []barWait {
	var waits []barWait
	head, list, _ := strings.Cut(text, "{")
	if _, s, ok := strings.Cut(head, "SB"); ok && s != "" {
		w := barWait{board: s[0] - '0'}
		if _, n, ok := strings.Cut(s, "0x"); ok {
			for _, c := range strings.TrimRight(n, " ,") {
				w.left = w.left*16 + strings.IndexRune("0123456789abcdef", c)
			}
		}
		waits = append(waits, w)
	}
	for _, c := range list {
		if c >= '0' && c <= '5' {
			waits = append(waits, barWait{board: uint8(c - '0')})
		}
	}
	return waits
}
