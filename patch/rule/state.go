package rule

import (
	"slices"

	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/patch/code"
)

// A state is a kernel while rules pass over it.
type state struct {
	*code.State
	arch    string
	touched map[int][]*Rule
	taken   map[int]bool // matched by a rule that said last
	edited  []int32      // the keys of touched, ascending up to sorted
	sorted  int
	journal []savedWord // changes of the window at hand
}

func newState(c *code.Kernel, t *isa.Table) *state { return &state{State: code.NewState(c, t)} }

// set plans a change of instruction i for rule r.
func (c *state) set(i int, w isa.Word, r *Rule) {
	old := c.Word(i)
	if old == w {
		return
	}
	if c.touched == nil {
		c.touched = map[int][]*Rule{}
	}
	if _, ok := c.touched[i]; !ok {
		c.edited = append(c.edited, int32(i))
	}
	c.journal = append(c.journal, savedWord{i, old, slices.Clone(c.touched[i])})
	c.Put(i, w)
	if !slices.Contains(c.touched[i], r) {
		c.touched[i] = append(c.touched[i], r)
	}
}

// changed returns the instructions whose words are to change, in order.
func (c *state) changed() []int {
	out := make([]int, 0, len(c.touched))
	for i := range c.touched {
		if c.Old(i) != c.Word(i) {
			out = append(out, i)
		}
	}
	slices.Sort(out)
	return out
}

// take keeps later rules away from instructions.
func (c *state) take(list []int) {
	if c.taken == nil {
		c.taken = map[int]bool{}
	}
	for _, i := range list {
		c.taken[i] = true
	}
}

// A savedWord is what undo needs of one change.
type savedWord struct {
	i     int
	word  isa.Word
	rules []*Rule
}

// undo takes back the changes that the journal holds.
func (c *state) undo() {
	for k := len(c.journal) - 1; k >= 0; k-- {
		s := c.journal[k]
		c.Put(s.i, s.word)
		c.touched[s.i] = s.rules
	}
	c.journal = c.journal[:0]
}
