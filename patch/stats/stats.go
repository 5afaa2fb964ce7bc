package stats

import (
	"cmp"
	"math/bits"
	"slices"
	"strconv"

	"github.com/cupatch/cupatch/isa"
)

// Stats counts what a kernel is made of.
type Stats struct {
	Instructions   int            `json:"instructions"`
	Unknown        int            `json:"unknown,omitempty"` // words without text
	Opcodes        map[string]int `json:"opcodes"`
	Mnemonics      map[string]int `json:"mnemonics,omitempty"` // with all modifiers; counted where it is not nil
	Loads          map[string]int `json:"loads"`               // by opcode, width, cache hint, prefetch size, order
	Stores         map[string]int `json:"stores"`              // the same
	Atomics        map[string]int `json:"atomics"`             // the same
	LoadsBy        CountsBy       `json:"loads_by"`
	StoresBy       CountsBy       `json:"stores_by"`
	AtomicsBy      CountsBy       `json:"atomics_by"`
	Stall          int            `json:"stall_cycles"`
	Yields         int            `json:"yields"`
	ScoreboardsSet int            `json:"scoreboards_set"`
	Waits          int            `json:"waits"` // scoreboards waited for
	Reuse          int            `json:"reuse_flags"`
	Sources        int            `json:"register_sources"` // of instructions that can keep them for reuse
}

// CountsBy counts memory instructions by what they say about caches, order and size: by
// the name of a property (evict, prefetch, scope, order, width) and its value, "-" for the
// default. An instruction counts for the properties that it has.
type CountsBy map[string]map[string]int

// cacheGroups are the modifier groups that CountsBy has.
var cacheGroups = []string{"evict", "prefetch", "scope", "order"}

func (c CountsBy) add(name, value string, n int) {
	if c[name] == nil {
		c[name] = map[string]int{}
	}
	c[name][value] += n
}

// New returns empty counts.
func New() *Stats {
	return &Stats{Opcodes: map[string]int{}, Loads: map[string]int{}, Stores: map[string]int{}, Atomics: map[string]int{},
		LoadsBy: CountsBy{}, StoresBy: CountsBy{}, AtomicsBy: CountsBy{}}
}

// Count adds the instructions of a kernel.
func (s *Stats) Count(t *isa.Table, data []byte) {
	var variants []int             // by their numbers
	accesses := map[isa.Word]int{} // by the bits that decide the opcode's text
	mnemonics := map[isa.Word]int{}
	for off := 0; off+isa.WordSize <= len(data); off += isa.WordSize {
		w := isa.LoadWord(data[off:])
		s.Instructions++
		c := isa.ControlOf(w)
		s.control(c)
		in := t.Decode(w)
		if in.Status != isa.StatusKnown {
			s.Unknown++
			continue
		}
		s.Reuse += bits.OnesCount8(c.Reuse)
		n, _ := in.Number()
		for n >= len(variants) {
			variants = append(variants, make([]int, n+1)...)
		}
		variants[n]++
		if in.Traits()&isa.HasMemory != 0 {
			accesses[w.And(t.OpcodeBits(w))]++
		}
		if s.Mnemonics != nil {
			mnemonics[w.And(t.OpcodeBits(w))]++
		}
	}
	for w, n := range mnemonics {
		s.Mnemonics[t.Decode(w).Opcode()] += n
	}
	for i, n := range variants {
		if n > 0 {
			v := t.Variant(i)
			s.Opcodes[v.Mnemonic()] += n
			s.Sources += n * bits.OnesCount8(uint8(v.Sched&^isa.SchedUniform))
		}
	}
	for w, n := range accesses {
		s.access(t, t.Decode(w), n)
	}
}

// control counts what a control code says.
func (s *Stats) control(c isa.Control) {
	s.Stall += int(c.Stall)
	if c.Yield {
		s.Yields++
	}
	for _, sb := range [...]uint8{c.WBar, c.RBar} {
		if sb != isa.NoBar {
			s.ScoreboardsSet++
		}
	}
	s.Waits += bits.OnesCount8(c.Wait)
}

// access counts n instructions with the opcode of in that load, store or do atomic
// operations for each thread.
func (s *Stats) access(t *isa.Table, in isa.Inst, n int) {
	var m map[string]int
	var by CountsBy
	memory := in.Memory()
	switch memory.Space {
	case isa.SpaceTexture, isa.SpaceTensor, isa.SpaceAttribute, isa.SpaceMulticast:
		return
	}
	surface := memory.Space == isa.SpaceSurface
	switch memory.Op {
	case isa.MemoryLoad:
		m, by = s.Loads, s.LoadsBy
	case isa.MemoryCopy:
		if memory.Bytes == 0 {
			return // of a block, not of each thread
		}
		m, by = s.Loads, s.LoadsBy
	case isa.MemoryStore:
		m, by = s.Stores, s.StoresBy
	case isa.MemoryAtomic, isa.MemoryReduce:
		m, by, surface = s.Atomics, s.AtomicsBy, false
	}
	if m == nil || surface {
		return
	}
	m[in.Opcode()] += n
	for _, g := range t.Groups(in.Variant) {
		if slices.Contains(cacheGroups, g.Name) {
			if value, ok := g.Text(in.Word); ok {
				by.add(g.Name, value, n)
			}
		}
	}
	if memory.Bytes > 0 {
		by.add("width", strconv.Itoa(8*memory.Bytes), n)
	}
}

// Add adds the counts of another kernel.
func (s *Stats) Add(o *Stats) {
	for _, m := range [][2]map[string]int{{s.Opcodes, o.Opcodes}, {s.Mnemonics, o.Mnemonics}, {s.Loads, o.Loads}, {s.Stores, o.Stores}, {s.Atomics, o.Atomics}} {
		for k, n := range m[1] {
			m[0][k] += n
		}
	}
	for _, c := range [][2]CountsBy{{s.LoadsBy, o.LoadsBy}, {s.StoresBy, o.StoresBy}, {s.AtomicsBy, o.AtomicsBy}} {
		for name, values := range c[1] {
			for value, n := range values {
				c[0].add(name, value, n)
			}
		}
	}
	for _, p := range [][2]*int{
		{&s.Instructions, &o.Instructions}, {&s.Unknown, &o.Unknown}, {&s.Stall, &o.Stall}, {&s.Yields, &o.Yields},
		{&s.ScoreboardsSet, &o.ScoreboardsSet}, {&s.Waits, &o.Waits}, {&s.Reuse, &o.Reuse}, {&s.Sources, &o.Sources},
	} {
		*p[0] += *p[1]
	}
}

// A NameCount is a name and how often it was counted.
type NameCount struct {
	Name  string
	Count int
}

// ByCount returns counts, the largest first.
func ByCount(m map[string]int) []NameCount {
	out := make([]NameCount, 0, len(m))
	for k, n := range m {
		out = append(out, NameCount{k, n})
	}
	slices.SortFunc(out, func(a, b NameCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Name, b.Name))
	})
	return out
}
