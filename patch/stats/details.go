package stats

import (
	"slices"

	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/isa/kernel"
	"github.com/cupatch/cupatch/patch/code"
)

// Details are what is known of one kernel beyond counts of its instructions.
type Details struct {
	Pressure Peaks   `json:"pressure"`
	Loops    []Loop  `json:"loops"` // by depth, then by address
	Banks    Banks   `json:"register_banks"`
	Reuse    Chances `json:"reuse_cache"`
	Local    Local   `json:"local_memory"`
}

// Peaks are the highest pressures, each file for itself.
type Peaks struct {
	R  Peak `json:"R"`
	UR Peak `json:"UR"`
	P  Peak `json:"P"`
	UP Peak `json:"UP"`
}

// A Peak is how many registers are taken at once at most, as [kernel.Live.Pressure] counts
// them, and the first address where that is so.
type Peak struct {
	Registers int `json:"registers"`
	PC        int `json:"pc"`
}

// A Loop is a natural loop and what it is made of, the loops inside it included.
type Loop struct {
	Depth        int            `json:"depth"`
	Header       int            `json:"header"`           // address of its first block
	Parent       *int           `json:"parent,omitempty"` // place of the loop around it in the list
	Instructions int            `json:"instructions"`
	Opcodes      map[string]int `json:"opcodes"`
}

// Describe returns what is known of a kernel.
func Describe(t *isa.Table, c *code.Kernel) *Details {
	g := code.NewState(c, t).Flow()
	k := &Details{Pressure: peaks(g), Loops: loops(g), Local: countLocal(t, g)}
	k.Banks, k.Reuse = countSources(t, g)
	return k
}

func peaks(g *kernel.Graph) Peaks {
	var out Peaks
	up := func(p *Peak, n, i int) {
		if n > p.Registers {
			*p = Peak{n, i * isa.WordSize}
		}
	}
	for i, p := range g.Live().Pressure() {
		if g.Blocks[g.Block(i)].Reachable {
			up(&out.R, p.R, i)
			up(&out.UR, p.UR, i)
			up(&out.P, p.P, i)
			up(&out.UP, p.UP, i)
		}
	}
	return out
}

func loops(g *kernel.Graph) []Loop {
	out := make([]Loop, len(g.Loops))
	for i := range g.Loops {
		x := &g.Loops[i]
		l := Loop{Depth: x.Depth, Header: g.Blocks[x.Header].Start * isa.WordSize, Opcodes: map[string]int{}}
		if p := x.Parent; p >= 0 {
			l.Parent = &p
		}
		for _, b := range x.Blocks {
			for n := g.Blocks[b].Start; n < g.Blocks[b].End; n++ {
				l.Instructions++
				if in := g.Inst(n); in.Status == isa.StatusKnown {
					l.Opcodes[in.Variant.Mnemonic()]++
				}
			}
		}
		out[i] = l
	}
	for i := range slices.Backward(out) { // a loop comes before those inside it
		l := &out[i]
		if l.Parent == nil {
			continue
		}
		around := &out[*l.Parent]
		around.Instructions += l.Instructions
		for name, n := range l.Opcodes {
			around.Opcodes[name] += n
		}
	}
	return out
}
