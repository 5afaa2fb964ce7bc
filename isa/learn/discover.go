package learn

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/cupatch/cupatch/isa"
)

// A key names a class: the 13-bit opcode and nvdisasm's name.
type key struct {
	op   uint16
	name string
}

// samplesPerClass is the number of words of a class that are tried as its base.
const samplesPerClass = 24

// A pool collects words by class and hands each class out once. It is safe for
// concurrent use.
type pool struct {
	mu      sync.Mutex
	wake    *sync.Cond
	samples map[key][]isa.Word
	queue   []key
	busy    int
	sample  func(class string, w isa.Word) // told of every word that is kept
}

func newPool() *pool {
	p := &pool{samples: map[key][]isa.Word{}}
	p.wake = sync.NewCond(&p.mu)
	return p
}

// add records that w belongs to the class called name.
func (p *pool) add(name string, w isa.Word) {
	if name == "" {
		return
	}
	k := key{uint16(w.Opcode()), name}
	p.mu.Lock()
	defer p.mu.Unlock()
	s, known := p.samples[k]
	if !known {
		p.queue = append(p.queue, k)
		p.wake.Broadcast()
	}
	if len(s) < samplesPerClass {
		p.samples[k] = append(s, w)
		if p.sample != nil {
			p.sample(name, w)
		}
	}
}

// next hands out a class that nobody has had. It waits while others work, since they
// may find more, and returns false when all is done.
func (p *pool) next() (key, []isa.Word, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.queue) == 0 {
		if p.busy == 0 {
			p.wake.Broadcast()
			return key{}, nil, false
		}
		p.wake.Wait()
	}
	k := p.queue[0]
	p.queue = p.queue[1:]
	p.busy++
	return k, append([]isa.Word(nil), p.samples[k]...), true
}

// empty reports whether no class waits.
func (p *pool) empty() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.queue) == 0
}

// again puts a class back into the queue, where it is not there yet.
func (p *pool) again(k key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Contains(p.queue, k) {
		p.queue = append(p.queue, k)
	}
}

// examples returns every word that is kept.
func (p *pool) examples() []isa.Word {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []isa.Word
	for _, ws := range p.samples {
		out = append(out, ws...)
	}
	slices.SortFunc(out, func(a, b isa.Word) int { return cmp.Or(cmp.Compare(a.Lo, b.Lo), cmp.Compare(a.Hi, b.Hi)) })
	return out
}

// finish says that a class handed out by next is done.
func (p *pool) finish() {
	p.mu.Lock()
	p.busy--
	p.mu.Unlock()
	p.wake.Broadcast()
}

// fillings are the upper bits with which the opcodes are tried: nothing set, the
// predicates absent, registers absent, and mixtures that showed further classes.
var fillings = []isa.Word{
	{},
	{Hi: 0x1ff << 17}, // 81–89: three predicates absent
	{Lo: 0xffffffff << 16, Hi: 0xff},
	{Lo: 0xff << 24, Hi: 0x7<<17 | 0xff},
	{Lo: 1 << 60, Hi: 0x3f<<17 | 1<<12 | 1<<26},
	{Lo: 5<<16 | 9<<24 | 13<<32, Hi: 17 | 7<<23 | 1<<8 | 1<<9},
}

// scan asks for the opcodes from to to-1 with all fillings and adds what it finds.
func (p *pool) scan(o *session, from, to int) {
	for bit91 := uint64(0); bit91 < 2; bit91++ {
		for op := from; op < to; op += 256 {
			var ws []isa.Word
			for i := op; i < min(op+256, to); i++ {
				for _, f := range fillings {
					w := f
					w.Lo = w.Lo&^0xfff | uint64(i)
					w.Hi = w.Hi&^(1<<27) | bit91<<27
					ws = append(ws, quieten(w))
				}
			}
			for k, name := range o.ClassOf(ws) {
				p.add(name, ws[k])
			}
		}
	}
}

// find asks for the class of each word and adds what it finds.
func (p *pool) find(o *session, words []isa.Word) {
	for len(words) > 0 {
		n := min(len(words), batch)
		for i, name := range o.ClassOf(words[:n]) {
			p.add(name, words[i])
		}
		words = words[n:]
	}
}

// seed sorts words by opcode and by the shape of their text, and asks for the class of
// a few of each kind, and of all that are refused.
func (p *pool) seed(o *session, words []isa.Word) {
	seen := map[string]int{}
	var pick []isa.Word
	for i, a := range o.Ask(words) {
		if !a.OK {
			pick = append(pick, words[i])
			continue
		}
		k := string(rune(words[i].Opcode())) + shape(a.Text)
		if seen[k]++; seen[k] <= 2 {
			pick = append(pick, words[i])
		}
	}
	p.find(o, pick)
}

// shape is text without numbers and without most modifiers.
func shape(text string) string {
	var b strings.Builder
	for i, t := range tokenize(text) {
		n, ok := readNumber(t)
		switch {
		case ok:
			b.WriteString(n.prefix)
		case i < 4 || t[0] != '.':
			b.WriteString(t)
		}
	}
	return b.String()
}
