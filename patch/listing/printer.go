package listing

import (
	"cmp"

	"github.com/cupatch/cupatch/isa"
)

// A Cache keeps what has been written for words: in real code more than half of all words
// come again. The zero value is ready. It is not safe for concurrent use.
type Cache struct {
	Bytes int // of text to keep at most; 0: 512 KB, which suits lines of a listing

	slots []cacheSlot
	text  []byte
}

type cacheSlot struct {
	word   isa.Word
	at, n  uint32 // of the text; n is 0 for a free slot
	status isa.Status
}

const (
	slotBits          = 13
	defaultCacheBytes = 512 << 10
)

// slotOf returns the slot of a word: the upper bits of a product that mixes all of them.
func slotOf(w isa.Word) uint32 {
	h := (w.Lo ^ w.Hi*0x9e3779b97f4a7c15) * 0xd6e8feb86659fd93
	return uint32(h >> (64 - slotBits))
}

// Append appends what is kept for w to dst and returns the status that it was kept with.
func (c *Cache) Append(dst []byte, w isa.Word) (out []byte, status isa.Status, ok bool) {
	if c.slots == nil {
		return dst, 0, false
	}
	s := &c.slots[slotOf(w)]
	if s.word != w || s.n == 0 {
		return dst, 0, false
	}
	return append(dst, c.text[s.at:s.at+s.n]...), s.status, true
}

// Keep keeps text for the instruction in, unless it depends on the address.
func (c *Cache) Keep(in isa.Inst, text []byte) {
	if !in.Relative() {
		c.KeepFor(in.Word, in.Status, text)
	}
}

// KeepFor keeps text for a word.
func (c *Cache) KeepFor(w isa.Word, status isa.Status, text []byte) {
	limit := cmp.Or(c.Bytes, defaultCacheBytes)
	if len(text) == 0 || len(text) > limit {
		return
	}
	if c.slots == nil {
		c.slots = make([]cacheSlot, 1<<slotBits)
		c.text = make([]byte, 0, limit)
	}
	if len(c.text)+len(text) > limit {
		clear(c.slots)
		c.text = c.text[:0]
	}
	c.slots[slotOf(w)] = cacheSlot{w, uint32(len(c.text)), uint32(len(text)), status}
	c.text = append(c.text, text...)
}

// A Printer writes lines of one style and one table, as [Style.AppendLine] does, only
// faster. It is not safe for concurrent use.
type Printer struct {
	Style Style
	Table *isa.Table
	cache Cache
}

// AppendLine appends the line of w at the address pc, with its newline, and returns what
// the table knows of the word.
func (p *Printer) AppendLine(dst []byte, w isa.Word, pc uint64) ([]byte, isa.Status) {
	dst = appendAddress(dst, pc)
	dst, status, ok := p.cache.Append(dst, w)
	if ok {
		return dst, status
	}
	in := p.Table.Decode(w)
	start := len(dst)
	dst = p.Style.appendRest(dst, p.Table, in, pc)
	p.cache.Keep(in, dst[start:])
	return dst, in.Status
}
