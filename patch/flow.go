package patch

import (
	"slices"

	"github.com/cupatch/cupatch/isa"
)

// A flowInfo has the basic block and the loop depth of each instruction, as far as
// the targets of relative branches tell: indirect branches and calls have none.
type flowInfo struct {
	block, loop []int
}

// flow returns the kernel's flow, computed when first asked for.
func (c *codeState) flow() *flowInfo {
	if c.flowed != nil {
		return c.flowed
	}
	f := &flowInfo{block: make([]int, c.n), loop: make([]int, c.n)}
	leader := make([]bool, c.n+1)
	last := map[int]int{} // loop header → last backward branch to it
	for i := range c.n {
		in := c.table.Decode(c.word(i))
		name := c.mnemonicOf(in, i)
		if endsBlock(name) {
			leader[i+1] = true
		}
		target, ok := relTarget(in, uint64(i)*isa.WordSize)
		if !ok || target%isa.WordSize != 0 || target >= uint64(c.n)*isa.WordSize {
			continue
		}
		to := int(target / isa.WordSize)
		leader[to] = true
		// A branch to itself is the end of a kernel, not a loop.
		if to < i && isJump(name) {
			last[to] = max(last[to], i)
		}
	}
	b := 0
	for i := range c.n {
		if i > 0 && leader[i] {
			b++
		}
		f.block[i] = b
	}
	// Loops are counted with a running sum of where they start and end.
	step := make([]int, c.n+1)
	for from, to := range last {
		step[from]++
		step[to+1]--
	}
	depth := 0
	for i := range c.n {
		depth += step[i]
		f.loop[i] = depth
	}
	c.flowed = f
	return f
}

// inFlow reports whether the word says where blocks start or end.
func (c *codeState) inFlow(w isa.Word, i int) bool {
	in := c.table.Decode(w)
	_, ok := relTarget(in, uint64(i)*isa.WordSize)
	return ok || endsBlock(c.mnemonicOf(in, i))
}

// mnemonicOf returns the bare mnemonic of an instruction, "" for an unknown word.
func (c *codeState) mnemonicOf(in isa.Inst, i int) string {
	v := view{code: c, idx: i, in: in}
	m, _ := cutDot(v.mnemonic())
	return string(m)
}

func isJump(name string) bool {
	return name == "BRA" || name == "JMP" || name == "BRX" || name == "JMX"
}

func endsBlock(name string) bool {
	return slices.Contains([]string{"BRA", "BRX", "BRXU", "JMP", "JMX", "JMXU", "EXIT", "RET", "CALL", "KILL", "BREAK", "BSYNC", "RTT"}, name)
}

// relTarget returns the address that an instruction's relative operand means.
func relTarget(in isa.Inst, pc uint64) (uint64, bool) {
	if in.Status != isa.StatusKnown {
		return 0, false
	}
	for i := range in.Variant.Template {
		p := &in.Variant.Template[i]
		for _, alt := range p.Alts {
			for _, e := range alt {
				if e.Lit != "" || e.Slot.Kind != isa.KindRel {
					continue
				}
				n := uint(e.Slot.Field.Width())
				x := e.Slot.Field.Get(in.Word) ^ e.Slot.Xor
				x = uint64(int64(x<<(64-n))>>(64-n))<<e.Slot.Shift + uint64(e.Slot.Add)
				return pc + isa.WordSize + x, true
			}
		}
	}
	return 0, false
}
