package assign

import "github.com/cupatch/cupatch/isa"

// latencies are the cycles that results are taken to need where a scoreboard says when they
// are there. Nothing but the choice of scoreboards and the estimate of cycles rests on them: a
// cache hit in L2 for what goes to memory.
var latencies = map[string]int{
	"LD": 250, "LDG": 250, "LDL": 100, "ATOM": 300, "ATOMG": 300, "TEX": 350, "TLD": 350, "TLD4": 350, "SULD": 350,
	"LDS": 28, "LDSM": 32, "ATOMS": 60, "LDC": 40, "LDCU": 40, "SHFL": 24, "S2R": 24, "S2UR": 24, "MUFU": 22,
	"ST": 12, "STG": 12, "STS": 12, "STL": 12, "RED": 12, "REDG": 12,
}

// otherLatency is the latency of what has none in latencies, and readLatency when
// sources are taken to be read.
const (
	otherLatency = 24
	readLatency  = 12
)

func latencyOf(mnemonic string) int {
	if n, ok := latencies[mnemonic]; ok {
		return n
	}
	return otherLatency
}

// pace is how many cycles an instruction is taken to need where nothing is known yet.
const pace = 2

// startBoards takes in the scoreboards that are set at the start of block k.
func (p *plan) startBoards(k int) {
	p.busy = [numBoards]busy{}
	for i := range p.in[k] {
		e := &p.in[k][i]
		if e.reg >= firstBoard || e.board >= numBoards {
			continue
		}
		latency, touch := int32(readLatency), p.starts[k].touch[e.reg]
		if e.source {
			touch = p.starts[k].write[e.reg]
		} else if e.class != noClass {
			latency = int32(p.traits[e.class].latency)
		}
		p.occupy(e.board, busy{true, e.time + latency, int32(touch) * pace, int32(touch)})
	}
}

// occupy notes that scoreboard b is set.
func (p *plan) occupy(b uint8, y busy) {
	x := &p.busy[b]
	if !x.set {
		*x = y
		return
	}
	x.ready = max(x.ready, y.ready)
	if y.touch < x.touch {
		x.touch, x.user = y.touch, y.user
	}
}

// chooseBoards chooses the scoreboards that instruction i sets.
func (p *plan) chooseBoards(i int, x *inst, start int) {
	if x.class == noClass {
		return
	}
	t := &p.traits[x.class]
	now := p.state.now
	n := p.needs[i]
	at := int32(i - start)
	result := busy{true, now + int32(t.latency), now + int32(n.touch)*pace, at + int32(n.touch)}
	source := busy{true, now + readLatency, now + int32(n.write)*pace, at + int32(n.write)}
	c := &p.ctrl[i]
	if p.chosen[i] {
		if c.WBar < numBoards {
			p.occupy(c.WBar, result)
		}
		if c.RBar < numBoards {
			p.occupy(c.RBar, source)
		}
		return
	}
	p.chosen[i] = true
	if b, ok := p.counts[int32(i)]; ok {
		if p.reader.classes.List[x.class].Mnemonic == "LDGDEPBAR" {
			c.WBar = b
		} else {
			c.RBar = b
		}
		return
	}
	writes := p.c.writes(x)
	if t.results && (writes && n.touch != never || t.always || writes && p.forced[int32(i)]) {
		c.WBar = p.choose(&result)
		p.occupy(c.WBar, result)
	}
	if !t.sources || n.write == never && !p.forced[int32(i)] {
		return
	}
	if c.WBar < numBoards && (!t.reads || n.touch <= n.write && int(n.touch) < p.c.graph.Blocks[p.c.graph.Block(i)].End-i) {
		return // who waits for the result waits for the sources
	}
	c.RBar = p.choose(&source)
	p.occupy(c.RBar, source)
}

// choose returns the scoreboard with which the least time is lost for y.
func (p *plan) choose(y *busy) uint8 {
	best, least := uint8(isa.NoBar), int32(1<<30)
	for b := range uint8(numBoards) {
		if p.reserved>>b&1 != 0 {
			continue
		}
		x := &p.busy[b]
		cost := int32(1) // a scoreboard that is free may be wanted later
		switch {
		case !x.set:
		case x.user == y.user:
			cost = 0
		case x.user < y.user:
			cost = 2 + max(y.ready-x.touch, 0)
		default:
			cost = 2 + max(x.ready-y.touch, 0)
		}
		if cost < least {
			best, least = b, cost
		}
	}
	return best
}
