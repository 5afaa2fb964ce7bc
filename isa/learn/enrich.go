package learn

import (
	"sort"
	"strings"

	"github.com/cupatch/cupatch/isa"
)

// score says how much a text shows: longer is better, hidden or invalid parts worse.
func score(text string) int {
	n := 0
	for _, t := range tokenize(text) {
		switch {
		case strings.Contains(t, "???"), strings.Contains(t, "INVALID"):
			n -= 40
		case t == "RZ" || t == "URZ" || t == "PT" || t == "UPT":
			n -= 15
		case special(t):
			n -= 4
		case strings.HasSuffix(t, "INF"), strings.HasSuffix(t, "NAN"), t == "-0.0":
			n -= 25
		case t == ".reuse":
			n += 8
		default:
			n += 10
		}
	}
	return n
}

// special reports whether tok is an integer that may well be printed in a way of its
// own: a small one, or a power of two.
func special(tok string) bool {
	n, ok := readNumber(tok)
	return ok && n.prefix == "0x" && (n.value < 8 && n.value >= 0 || isPow2(uint64(n.value)))
}

// ask is Ask for words of the class. Where targets are relative, texts are made to be
// those of address 0.
func (c *class) ask(ws []isa.Word) []Answer {
	var as []Answer
	if c.relative {
		as = c.o.AskAtZero(ws)
	} else {
		as = c.o.Ask(ws)
	}
	if c.admitted.IsZero() {
		return as
	}
	// What prints as another class says nothing of this one.
	var accepted []int
	var asked []isa.Word
	for i, a := range as {
		if a.OK && !ws[i].Xor(c.base).And(c.admitted).IsZero() {
			accepted, asked = append(accepted, i), append(asked, ws[i])
		}
	}
	for k, name := range c.o.ClassOf(asked) {
		if name != c.name {
			as[accepted[k]] = Answer{Class: name, PC: as[accepted[k]].PC}
		}
	}
	return as
}

// enrich looks for the word of the class that prints most: the best of the samples,
// improved by flips as long as the text grows.
func (c *class) enrich(samples []isa.Word) bool {
	best := -1 << 30
	if !c.pickBase(samples, &best) && !c.silent {
		// Perhaps the class has no schedule but 0.
		c.drain = true
		if !c.pickBase(samples, &best) && !c.silent {
			return false
		}
	}
	if c.silent {
		return true
	}
	refused := map[int]bool{}
	for round := 0; round < 10; round++ {
		if !c.grow(&best, refused) {
			break
		}
	}
	return true
}

// pickBase takes the sample with the best text. Where none has a text, it looks among
// their neighbors, and where those have none either but are accepted, the class is
// silent.
func (c *class) pickBase(samples []isa.Word, best *int) bool {
	var words []isa.Word
	for _, w := range samples {
		words = append(words, c.quieten(w.AndNot(reuseMask)))
	}
	if c.pick(words, best) {
		return true
	}
	near := neighbours(words[0])
	names := c.o.ClassOf(near)
	words = words[:0]
	for i, w := range near {
		if names[i] == c.name {
			words = append(words, w)
		}
	}
	return c.pick(words, best)
}

// pick takes the word with the best text for the base and reports whether there is one.
func (c *class) pick(words []isa.Word, best *int) bool {
	silent := -1
	for i, a := range c.ask(words) {
		if s := score(a.Text); a.OK && a.Text != "" && s > *best {
			*best, c.base, c.text = s, words[i], a.Text
		} else if a.Silent() && silent < 0 {
			silent = i
		}
	}
	c.silent = c.text == "" && silent >= 0
	if c.silent {
		c.base = words[silent]
	}
	return c.text != ""
}

// neighbors returns the words that differ from w in one or two bits.
func neighbours(w isa.Word) []isa.Word {
	var ws []isa.Word
	for b := 16; b < 105; b++ {
		for d := b; d < 105; d++ {
			x := w.Xor(isa.BitWord(b))
			if d > b {
				x = x.Xor(isa.BitWord(d))
			}
			if b != 91 && d != 91 {
				ws = append(ws, x)
			}
		}
	}
	return ws
}

// quieten gives w the control code of a base word.
func (c *class) quieten(w isa.Word) isa.Word {
	if c.drain {
		return quieten(w.AndNot(reuseMask)).AndNot(schedMask)
	}
	return quieten(w)
}

// grow tries every single flip and keeps as many of those that improve the text as
// stay within the class. It reports whether the base changed.
func (c *class) grow(best *int, refused map[int]bool) bool {
	var bs []int
	var ws []isa.Word
	for b := 16; b < 125; b++ {
		if b == 91 || b >= 105 && b < 122 || refused[b] {
			continue
		}
		bs = append(bs, b)
		ws = append(ws, c.base.Xor(isa.BitWord(b)))
	}
	type gain struct{ bit, score int }
	var gains []gain
	for i, a := range c.ask(ws) {
		if !a.OK {
			refused[bs[i]] = true
			if a.Class != c.name {
				c.outside[bs[i]] = a
			}
			continue
		}
		if s := score(a.Text); a.Text != "" && s > *best {
			gains = append(gains, gain{bs[i], s})
		}
	}
	if len(gains) == 0 {
		return false
	}
	sort.SliceStable(gains, func(i, j int) bool { return gains[i].score > gains[j].score })
	gains = gains[:min(len(gains), 12)]
	single := make([]isa.Word, len(gains))
	for i, g := range gains {
		single[i] = c.base.Xor(isa.BitWord(g.bit))
	}
	// Try the gains one upon the other, and take the best of the words on the way.
	w := c.base
	var steps []isa.Word
	for i, name := range c.o.ClassOf(single) {
		if name != c.name {
			c.found = append(c.found, single[i])
			refused[gains[i].bit] = true
			continue
		}
		w = w.Xor(isa.BitWord(gains[i].bit))
		steps = append(steps, w, single[i])
	}
	names := c.o.ClassOf(steps)
	changed := false
	for i, a := range c.ask(steps) {
		if s := score(a.Text); a.OK && s > *best && names[i] == c.name {
			c.base, c.text, *best, changed = steps[i], a.Text, s, true
		}
	}
	return changed
}
