// Package insts is what the checker and the scheduler see in instructions alike: their classes,
// their guards, and what a DEPBAR waits for.
package insts

import (
	"strings"

	"github.com/cupatch/cupatch/isa"
)

// A Class is what instructions have in common for the schedule: the opcode with its
// modifiers.
type Class struct{ Opcode, Mnemonic string }

// NoClass is the number of a word without text.
const NoClass int32 = -1

// Classes numbers the classes that it meets. It is not for several goroutines at once.
type Classes struct {
	List   []Class // by number
	table  *isa.Table
	byBits map[isa.Word]int32
	byName map[string]int32
}

// NewClasses returns an empty numbering for instructions that t decodes.
func NewClasses(t *isa.Table) Classes {
	return Classes{table: t, byBits: map[isa.Word]int32{}, byName: map[string]int32{}}
}

// Of returns the number of the class of in.
func (c *Classes) Of(in *isa.Inst) int32 {
	if in.Status != isa.StatusKnown {
		return NoClass
	}
	key := in.Word.And(c.table.OpcodeBits(in.Word))
	if n, ok := c.byBits[key]; ok {
		return n
	}
	opcode := in.Opcode()
	n, ok := c.byName[opcode]
	if !ok {
		n = int32(len(c.List))
		c.List = append(c.List, Class{opcode, in.Mnemonic()})
		c.byName[opcode] = n
	}
	c.byBits[key] = n
	return n
}

// NoGuard says that an instruction has no guard.
const NoGuard = 255

// Guard returns the guard of in: the predicate, P before UP, times two, plus one where it is
// negated; or NoGuard.
func Guard(in *isa.Inst) uint8 {
	if in.Status != isa.StatusKnown || !in.IsGuarded() {
		return NoGuard
	}
	p := uint8(isa.GuardField.Get(in.Word))
	if p == 7 {
		return NoGuard
	}
	if in.Variant.Guard == isa.GuardUP {
		p += 8
	}
	return p<<1 | uint8(isa.GuardNot.Get(in.Word))
}

// A BarWait is what a DEPBAR waits for: until at most Left of the instructions that set the
// scoreboard are not done.
type BarWait struct {
	Board uint8
	Left  int32
}

// BarWaits returns what the text of a DEPBAR says: `DEPBAR.LE SB0, 0x1 {3,2}`.
func BarWaits(text string) []BarWait {
	var waits []BarWait
	head, list, _ := strings.Cut(text, "{")
	if _, s, ok := strings.Cut(head, "SB"); ok && s != "" {
		w := BarWait{Board: s[0] - '0'}
		if _, n, ok := strings.Cut(s, "0x"); ok {
			for _, c := range strings.ToLower(strings.TrimRight(n, " ,")) {
				w.Left = w.Left*16 + int32(strings.IndexRune("0123456789abcdef", c))
			}
		}
		waits = append(waits, w)
	}
	for _, c := range list {
		if c >= '0' && c <= '5' {
			waits = append(waits, BarWait{Board: uint8(c - '0')})
		}
	}
	return waits
}
