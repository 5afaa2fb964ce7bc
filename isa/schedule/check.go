package schedule

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/isa/kernel"
)

// The names of what a finding says.
const (
	Stall      = "stall"      // too few cycles between two instructions
	Waiting    = "wait"       // a scoreboard is set and not waited for
	Scoreboard = "scoreboard" // no scoreboard is set where one is needed
)

// A Finding is a dependence that is not kept.
type Finding struct {
	Name          string // Stall, Waiting or Scoreboard
	Kind          Kind
	First, Second int // instructions, counted from the start of the section
	File          isa.RegFile
	Register      int
	Cycles        int  // there are, from the first to the second; at most 255
	Need          Rule // how many are needed, and what that rests on
}

// A Key is what tells the findings of a kernel apart, before and after an edit too.
type Key struct {
	Name          string
	Kind          Kind
	First, Second int
	File          isa.RegFile
	Register      int
}

// Key returns the key of f.
func (f *Finding) Key() Key { return Key{f.Name, f.Kind, f.First, f.Second, f.File, f.Register} }

// Message says what is wrong, without the addresses.
func (f *Finding) Message() string {
	reg := f.File.Names()[f.Register]
	what := map[Kind]string{
		Read: "reads " + reg, Guard: "is guarded by " + reg, Rewrite: "overwrites " + reg + " before it is written", Overwrite: "overwrites " + reg + " before it is read",
	}[f.Kind]
	switch f.Name {
	case Stall:
		return fmt.Sprintf("%s after %d of %d cycles (%d uses in code of ptxas, none after fewer)", what, f.Cycles, f.Need.Cycles, f.Need.Seen)
	case Waiting:
		return fmt.Sprintf("%s without a wait for the scoreboard (%d uses in code of ptxas, none without)", what, f.Need.Seen)
	}
	return fmt.Sprintf("%s, and no scoreboard says when it may (%d uses in code of ptxas, none without)", what, f.Need.Seen)
}

// A Checker looks for dependences that are not kept. It is not for several goroutines at
// once.
type Checker struct {
	model    *Model
	walker   *walker
	verdicts map[numbered]verdict
	Checked  int // dependences so far
}

// NewChecker returns a checker for code that t decodes.
func NewChecker(m *Model, t *isa.Table) *Checker {
	return &Checker{model: m, walker: &walker{reader: newReader(t, m)}, verdicts: map[numbered]verdict{}}
}

// Check returns the dependences of g that are not kept, in the order of the second
// instructions: of each register of an instruction and kind of dependence the one that is
// kept worst.
func (c *Checker) Check(g *kernel.Graph) []Finding {
	var out []Finding
	c.walker.run(g, func(d *dependence) {
		c.Checked++
		if f, bad := c.judge(d); bad {
			out = append(out, f)
		}
	})
	slices.SortStableFunc(out, func(a, b Finding) int {
		return cmp.Or(a.Second-b.Second, int(a.File)-int(b.File), a.Register-b.Register, int(a.Kind)-int(b.Kind), a.First-b.First)
	})
	return out
}

// judge returns what is wrong with d.
func (c *Checker) judge(d *dependence) (Finding, bool) {
	if d.waited || d.class == noClass {
		return Finding{}, false
	}
	w := c.walker
	file, n := d.reg.file()
	o := &w.ops[d.second]
	key := numbered{d.kind, d.slot, file, d.class, o.class, o.ctrl.WBar < 6 || o.ctrl.RBar < 6}
	v, ok := c.verdicts[key]
	if !ok {
		second := Class{}
		late := key.boards
		if key.second != noClass {
			second = w.classes.List[key.second]
			late = late || c.model.slow[second.Mnemonic]
		}
		v = c.model.verdict(d.kind, file, w.classes.List[d.class], second.Mnemonic, late, d.slot)
		c.verdicts[key] = v
	}
	f := Finding{Kind: d.kind, First: int(d.first), Second: int(d.second), File: file, Register: n, Cycles: int(d.age)}
	switch {
	case d.board && v.mustWait:
		f.Name, f.Need = Waiting, v.wait
	case !d.board && v.mustBoard:
		f.Name, f.Need = Scoreboard, v.board
	case !d.board && v.bounds && int(d.age) < v.least.Cycles:
		f.Name, f.Need = Stall, v.least
	default:
		return f, false
	}
	return f, true
}
