package schedule

import (
	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/isa/kernel"
	"github.com/cupatch/cupatch/isa/schedule/internal/insts"
)

// A Class is what instructions have in common for the schedule: the opcode with its
// modifiers.
type Class = insts.Class

// A classNumber counts the classes that a reader has met.
type classNumber = int32

const (
	noClass = insts.NoClass // of a word without text
	noGuard = insts.NoGuard // of an instruction that has none
)

// The register files lie one after another in the numbers of a regID.
type regID uint16

var fileBase = [...]regID{isa.FileR: 0, isa.FileUR: 256, isa.FileP: 512, isa.FileUP: 520, isa.FileB: 528}

const numRegs = 544

// file returns the register's file and its number in it.
func (r regID) file() (isa.RegFile, int) {
	for f := len(fileBase) - 1; ; f-- {
		if base := fileBase[f]; r >= base {
			return isa.RegFile(f), int(r - base)
		}
	}
}

func (r regID) String() string {
	f, n := r.file()
	return f.Names()[n]
}

// An access is a run of registers that an instruction reads or writes.
type access struct {
	first         regID
	count         uint8
	slot          uint8 // the lowest bit of the field that names them, noBit for none
	reads, writes bool
}

const noBit = 255

// A slot is an operand of an instruction: the lowest bit of its field, how many registers it is,
// and whether the one that counts is not the first that its instruction wrote.
type slot struct {
	bit, count uint8
	rest       bool
}

// An op is an instruction as the schedule sees it.
type op struct {
	class    classNumber
	from, to int32 // its part of reader.accesses
	ctrl     isa.Control
	guard    uint8 // the predicate, P before UP, times two, plus one where negated; or noGuard
	pending  bool  // its results count until somebody waits, however long ago it was
	reading  bool  // the same of its sources
}

// A reader turns the instructions of kernels into ops. It keeps what it has learned of
// classes from one kernel to the next, and is not for several goroutines at once.
type reader struct {
	table      *isa.Table
	classes    insts.Classes
	facts      knowledge
	late       [][2]bool // by class, as facts says of results and sources
	pipeOfName map[string]uint8
	pipes      []uint8 // by class

	ops      []op
	accesses []access
	waits    map[int][]insts.BarWait
	buf      []isa.Access
}

// knowledge is what is known of classes beforehand.
type knowledge interface {
	// late says whether the results of a class come late, and whether its sources are read late.
	late(c Class) (results, sources bool)
	// inOrder reports whether instructions of a mnemonic answer in their order.
	inOrder(mnemonic string) bool
}

func newReader(t *isa.Table, k knowledge) *reader {
	return &reader{table: t, facts: k, classes: insts.NewClasses(t), pipeOfName: map[string]uint8{}}
}

// classOf returns the class of in.
func (r *reader) classOf(in *isa.Inst) classNumber {
	n := r.classes.Of(in)
	for len(r.late) < len(r.classes.List) {
		c := r.classes.List[len(r.late)]
		results, sources := r.facts.late(c)
		r.late = append(r.late, [2]bool{results, sources})
		p := uint8(noPipe)
		if results || sources || r.facts.inOrder(c.Mnemonic) {
			p = r.pipeOf(c.Mnemonic)
		}
		r.pipes = append(r.pipes, p)
	}
	return n
}

// read takes in the instructions of g.
func (r *reader) read(g *kernel.Graph) {
	r.ops, r.accesses, r.waits = r.ops[:0], r.accesses[:0], nil
	n := 0
	if len(g.Blocks) > 0 {
		n = g.Blocks[len(g.Blocks)-1].End
	}
	for i := range n {
		in := g.Inst(i)
		o := op{class: r.classOf(&in), ctrl: isa.ControlOf(in.Word), guard: insts.Guard(&in), from: int32(len(r.accesses))}
		r.buf = in.Accesses(r.buf[:0])
		for _, a := range r.buf {
			x := access{first: fileBase[a.File] + regID(a.First), count: uint8(a.Count), slot: noBit, reads: a.Reads, writes: a.Writes}
			if a.Bit >= 0 {
				x.slot = uint8(a.Bit)
			}
			r.accesses = append(r.accesses, x)
		}
		o.to = int32(len(r.accesses))
		if o.class != noClass {
			late := r.late[o.class]
			o.pending, o.reading = late[0] || o.ctrl.WBar < 6, late[1] || o.ctrl.RBar < 6
			if r.classes.List[o.class].Mnemonic == "DEPBAR" {
				if r.waits == nil {
					r.waits = map[int][]insts.BarWait{}
				}
				r.waits[i] = insts.BarWaits(r.table.Text(in, 0))
			}
		}
		r.ops = append(r.ops, o)
	}
}

// The pipes: instructions of one pipe read their sources, or answer, in their order. One
// reads the sources of all, one has the answers of all that are known to keep an order; each
// other mnemonic that answers late has one.
const (
	noPipe = iota
	sourcePipe
	orderedPipe
	firstPipe
	numPipes = 64
)

// pipeOf returns the pipe of the results of a mnemonic.
func (r *reader) pipeOf(mnemonic string) uint8 {
	if r.facts.inOrder(mnemonic) {
		return orderedPipe
	}
	p, ok := r.pipeOfName[mnemonic]
	if !ok && firstPipe+len(r.pipeOfName) < numPipes {
		p = uint8(firstPipe + len(r.pipeOfName))
		r.pipeOfName[mnemonic] = p
	}
	return p
}
