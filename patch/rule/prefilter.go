package rule

import (
	"slices"

	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/patch/code"
)

// Most instructions are rejected by their opcode alone, from a table of 8,192 bits.
// For the others the bits that decide whether a rule's first pattern fits, which is
// decided by opcode, modifiers and guard, are looked up in a cache: real code has few
// combinations of them, so that few words are ever decoded and printed.

// A scratch is what a scan needs and keeps from one kernel to the next.
type scratch struct {
	lists [][]int32 // by rule, the instructions that it may start at, ascending
	cache [cacheSize]cacheEntry
	items [][]*itemCache // by rule and item
}

const (
	cacheBits = 11
	cacheSize = 1 << cacheBits
)

// A cacheEntry has the rules that may start at words whose deciding bits are key.
type cacheEntry struct {
	key   isa.Word
	valid bool
	rules []uint16
}

// An itemCache remembers which words fit one item's pattern.
type itemCache [256]struct {
	key         isa.Word
	valid, fits bool
}

func newScratch(rules []*compiled) *scratch {
	sc := &scratch{lists: make([][]int32, len(rules)), items: make([][]*itemCache, len(rules))}
	for i, c := range rules {
		sc.items[i] = make([]*itemCache, len(c.items))
	}
	return sc
}

// slot returns where a key stands in a cache of 2^bits entries.
func slot(key isa.Word, bits int) uint64 {
	return (key.Lo*0x9e3779b97f4a7c15 ^ key.Hi*0xc2b2ae3d27d4eb4f) >> (64 - bits)
}

// matches reports whether instruction i matches item k of the rule at hand.
func (ctx *evalCtx) matches(k, i int) bool {
	it := &ctx.rule.items[k]
	w := ctx.code.Word(i)
	if !it.any && !it.set.Has(w) {
		return false
	}
	if ctx.caches == nil {
		return it.matches(ctx.code, i)
	}
	c := ctx.caches[k]
	if c == nil {
		c = new(itemCache)
		ctx.caches[k] = c
	}
	key := w.And(ctx.planner.deciding(w))
	e := &c[slot(key, 8)]
	if !e.valid || e.key != key {
		e.key, e.valid, e.fits = key, true, it.matches(ctx.code, i)
	}
	return e.fits
}

// filter fills in which opcodes some rule may start with, and which bits decide.
func (p *Planner) filter() {
	for _, c := range p.rules {
		for _, it := range c.items {
			if it.guard != nil {
				p.guards = code.GuardMask
			}
		}
	}
	for op := range 1 << 13 {
		w := isa.Word{Lo: uint64(op & 0xfff), Hi: uint64(op>>12) << 27}
		for _, c := range p.rules {
			if first := &c.items[0]; first.any || first.min == 0 || first.set.Has(w) {
				p.opcodes[op/64] |= 1 << (op % 64)
				p.deciders[op] = p.deciding(w)
				break
			}
		}
	}
}

// deciding returns the bits that decide, for words with the opcode of w, which patterns
// fit.
func (p *Planner) deciding(w isa.Word) isa.Word { return p.table.OpcodeBits(w).Or(p.guards) }

// scan sorts the instructions of a kernel by the rules that may start at them.
func (sc *scratch) scan(p *Planner, b []byte) {
	for i := range sc.lists {
		sc.lists[i] = sc.lists[i][:0]
	}
	opcodes := &p.opcodes
	for off := 0; off+isa.WordSize <= len(b); off += isa.WordSize {
		x := b[off : off+isa.WordSize : off+isa.WordSize]
		op := uint(x[0]) | uint(x[1]&15)<<8 | uint(x[11]>>3&1)<<12
		if opcodes[op>>6]>>(op&63)&1 == 0 {
			continue
		}
		w := isa.LoadWord(x)
		key := w.And(p.deciders[op])
		e := &sc.cache[slot(key, cacheBits)]
		if !e.valid || e.key != key {
			*e = cacheEntry{key, true, p.startingAt(w)}
		}
		for _, r := range e.rules {
			sc.lists[r] = append(sc.lists[r], int32(off/isa.WordSize))
		}
	}
}

// startingAt returns the rules whose first item fits w, whatever stands around it.
func (p *Planner) startingAt(w isa.Word) []uint16 {
	var data [isa.WordSize]byte
	w.Store(data[:])
	c := newState(&code.Kernel{Data: data[:]}, p.table)
	var out []uint16
	for i, r := range p.rules {
		if first := &r.items[0]; first.min == 0 || first.matches(c, 0) {
			out = append(out, uint16(i))
		}
	}
	return out
}

// candidates returns the instructions at which a rule may start: those of the scan,
// and the edited ones, which may have become what the rule wants.
func (c *state) candidates(r *compiled, scanned []int32) []int32 {
	if len(c.edited) == 0 {
		return scanned
	}
	if c.sorted < len(c.edited) {
		slices.Sort(c.edited)
		c.sorted = len(c.edited)
	}
	first := &r.items[0]
	out := make([]int32, 0, len(scanned))
	i := 0
	for _, at := range c.edited {
		for i < len(scanned) && scanned[i] < at {
			out = append(out, scanned[i])
			i++
		}
		if i < len(scanned) && scanned[i] == at {
			i++
		}
		if first.any || first.min == 0 || first.set.Has(c.Word(int(at))) {
			out = append(out, at)
		}
	}
	return append(out, scanned[i:]...)
}
