package stats

import (
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/isa/kernel"
)

// Banks counts instructions whose sources collide in the register file.
//
// The rule is that of Volta: registers are in two banks by the lowest bit of their number,
// and a bank, 64 bits wide, gives two registers at a time; an instruction waits if it reads
// three different registers of one bank, none of them from the reuse cache. Sources of 64 bits are in both banks and never collide. Source: Z. Jia, M.
// Maggioni, B. Staiger, D. P. Scarpazza, "Dissecting the NVIDIA Volta GPU Architecture via
// Microbenchmarking", arXiv:1804.06826; the same authors find it on Turing,
// arXiv:1903.07486. For later architectures no rule is published that fits all
// measurements: R. Huerta et al., "Analyzing Modern NVIDIA GPU Cores", arXiv:2503.20481,
// find two banks on Ampere too.
type Banks struct {
	Conflicts int `json:"conflicts"`
	// Measured says that the rule has been measured on the architecture.
	Measured bool `json:"measured"`
}

// Chances counts operands that could have come from the reuse cache.
type Chances struct {
	// Taken counts operands that come from it: the last instruction of the block that read
	// the same slot and bank had a reuse flag for the same register, which has not been
	// written since (Huerta et al., section 5.3).
	Taken int `json:"taken"`
	// Missed counts operands that could: the instruction before, in the same block, reads
	// the same register in the same slot, does not write it, does not yield, and has no
	// reuse flag for it.
	Missed int `json:"missed"`
}

// slots are the registers that an instruction reads in its slots a, b and c.
type slots struct {
	reg   [3]int16 // -1 for none
	count [3]uint8 // registers in a row
}

// A slotReader finds the slots of instructions. Which field of the word names the register
// of a slot depends on the class: the text, which prints the reuse flag behind its
// operand, tells.
type slotReader struct {
	table  *isa.Table
	fields map[*isa.Variant][3]int // lowest bit of the field, -1 for none
	buf    []isa.Access
}

func newSlotReader(t *isa.Table) *slotReader {
	return &slotReader{table: t, fields: map[*isa.Variant][3]int{}}
}

// read returns the slots of an instruction.
func (r *slotReader) read(in isa.Inst) slots {
	s := slots{reg: [3]int16{-1, -1, -1}}
	if in.Status != isa.StatusKnown || in.Variant.Sched&7 == 0 {
		return s
	}
	fields, ok := r.fields[in.Variant]
	if !ok {
		fields = r.find(in)
		r.fields[in.Variant] = fields
	}
	r.buf = in.Accesses(r.buf[:0])
	for _, a := range r.buf {
		if a.File != isa.FileR || !a.Reads {
			continue
		}
		for i, bit := range fields {
			if bit >= 0 && a.Bit == bit {
				s.reg[i], s.count[i] = int16(a.First), uint8(min(a.Count, 255))
			}
		}
	}
	return s
}

// sourceBits are the lowest bits of the fields that name registers which may be kept.
var sourceBits = [...]int{24, 32, 64}

// find finds the fields of the slots of in's class: each source gets a register of its
// own, whatever in has there, and each flag, alone, shows behind one of them.
func (r *slotReader) find(in isa.Inst) [3]int {
	w := in.Word
	names := map[string]int{}
	for n, bit := range sourceBits {
		reg := 8 * (n + 1) // aligned for any width
		try, err := isa.Bits(bit, bit+7).Set(w, uint64(reg))
		if err != nil {
			continue
		}
		r.buf = r.table.Decode(try).Accesses(r.buf[:0])
		if slices.ContainsFunc(r.buf, func(a isa.Access) bool { return a.File == isa.FileR && a.Reads && a.Bit == bit && a.First == reg }) {
			w = try
			names["R"+strconv.Itoa(reg)] = bit
		}
	}
	fields := [3]int{-1, -1, -1}
	for slot := range fields {
		if in.Variant.Sched>>slot&1 == 0 {
			continue
		}
		c := isa.Control{Stall: 1, WBar: isa.NoBar, RBar: isa.NoBar, Reuse: 1 << slot}
		for _, op := range r.table.Split(r.table.Decode(c.Set(w)), 0).Operands {
			before, _, ok := strings.Cut(op, ".reuse")
			if !ok {
				continue
			}
			if bit, ok := names[strings.TrimLeft(before, "-|~!")]; ok {
				fields[slot] = bit
			}
		}
	}
	return fields
}

// countSources counts conflicts, and the operands that come from the reuse cache or could.
func countSources(t *isa.Table, g *kernel.Graph) (Banks, Chances) {
	banks, chances := Banks{Measured: t.Arch().TwoBanks()}, Chances{}
	r := newSlotReader(t)
	for b := range g.Blocks {
		var cache reuseCache
		var last isa.Inst
		before := slots{reg: [3]int16{-1, -1, -1}}
		for i := g.Blocks[b].Start; i < g.Blocks[b].End; i++ {
			in := g.Inst(i)
			now := r.read(in)
			taken := cache.read(&now)
			chances.Taken += bits.OnesCount8(taken)
			chances.Missed += bits.OnesCount8(missed(last, &before, &now) &^ taken)
			if taken == 0 && now.collide() {
				banks.Conflicts++
			}
			cache.keep(in, &now)
			last, before = in, now
		}
	}
	return banks, chances
}

// A reuseCache is the registers that are kept, plus one, by slot and bank; 0 for none.
type reuseCache [3][2]int16

// read returns the slots whose register is kept. What an instruction reads in a slot takes
// the place of what was kept of that bank.
func (c *reuseCache) read(s *slots) (taken uint8) {
	for i, reg := range s.reg {
		if reg < 0 {
			continue
		}
		kept := &c[i][reg&1]
		if *kept == reg+1 {
			taken |= 1 << i
		}
		*kept = 0
	}
	return taken
}

// keep keeps the registers that the reuse flags of an instruction name, and forgets those
// that it writes.
func (c *reuseCache) keep(in isa.Inst, s *slots) {
	flags := isa.ControlOf(in.Word).Reuse
	fx := in.Effects()
	for i := range c {
		if reg := s.reg[i]; reg >= 0 && flags>>i&1 != 0 {
			c[i][reg&1] = reg + 1
		}
		for bank, kept := range c[i] {
			if kept > 0 && fx.Writes.Has(isa.FileR, int(kept-1)) {
				c[i][bank] = 0
			}
		}
	}
}

// missed returns the slots of now whose register the instruction last, with the slots
// before, reads too and could have kept.
func missed(last isa.Inst, before, now *slots) (slots uint8) {
	c := isa.ControlOf(last.Word)
	for s, reg := range now.reg {
		if reg < 0 || c.Yield || reg != before.reg[s] || now.count[s] != before.count[s] || c.Reuse>>s&1 != 0 {
			continue
		}
		if fx := last.Effects(); !fx.Writes.Has(isa.FileR, int(reg)) {
			slots |= 1 << s
		}
	}
	return slots
}

// collide reports whether all three slots read different registers of one bank.
func (s *slots) collide() bool {
	a, b, c := s.reg[0], s.reg[1], s.reg[2]
	return a >= 0 && b >= 0 && c >= 0 && s.count == [3]uint8{1, 1, 1} && a&1 == b&1 && b&1 == c&1 && a != b && b != c && a != c
}
