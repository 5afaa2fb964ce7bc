package diff

import (
	"slices"
	"strings"

	"github.com/cupatch/cupatch/elfx"
)

// A factChange is a fact, or several of one name, that two cubins state differently.
type factChange struct {
	Kind   Kinds
	Group  string
	Change                  // its name with the group
	Lone   int              // 1 or 2 where only that file has the group, else 0
	wholes [2]*elfx.Section // where contents differ
}

// compareFacts returns how two lists of facts differ. Of a group that only one list has
// there is one change.
func compareFacts(a, b []fact) []factChange {
	if slices.Equal(a, b) {
		return nil
	}
	type entry struct {
		kind   Kinds
		group  string
		values [2][]string
		wholes [2]*elfx.Section
	}
	groups := map[string][2]bool{}
	byTitle := map[string]*entry{}
	var order []string
	for side, list := range [][]fact{a, b} {
		for i := range list {
			f := &list[i]
			g := groups[f.group]
			g[side] = true
			groups[f.group] = g
			title := f.title()
			e := byTitle[title]
			if e == nil {
				e = &entry{group: f.group}
				byTitle[title] = e
				order = append(order, title)
			}
			e.kind |= f.kind
			e.values[side] = append(e.values[side], f.value)
			e.wholes[side] = f.whole
		}
	}
	var out []factChange
	told := map[string]int{} // lone groups: their place in out
	for _, title := range order {
		e := byTitle[title]
		p, q := onlyIn(e.values[0], e.values[1]), onlyIn(e.values[1], e.values[0])
		if len(p)+len(q) == 0 {
			continue
		}
		c := factChange{Kind: e.kind, Group: e.group, wholes: e.wholes}
		if g := groups[c.Group]; !g[0] || !g[1] {
			if at, ok := told[c.Group]; ok {
				out[at].Kind |= c.Kind
				continue
			}
			told[c.Group] = len(out)
			c.Change, c.Lone = Change{c.Group, "none", "there"}, 2
			if g[0] {
				c.Change, c.Lone = Change{c.Group, "there", "none"}, 1
			}
			out = append(out, c)
			continue
		}
		c.Change = Change{title, list(p), list(q)}
		if len(p) == 1 && len(q) == 1 {
			c.A, c.B = differingParts(p[0], q[0])
		}
		out = append(out, c)
	}
	for i := range out {
		if out[i].Kind&Data != 0 { // the graver
			out[i].Kind = Data
		}
	}
	return out
}

// onlyIn returns the elements of x that y has not, or not as often.
func onlyIn(x, y []string) []string {
	if slices.Equal(x, y) {
		return nil
	}
	count := map[string]int{}
	for _, s := range y {
		count[s]++
	}
	var out []string
	for _, s := range x {
		if count[s]--; count[s] < 0 {
			out = append(out, s)
		}
	}
	return out
}

// differingParts returns the parts of two values, separated by commas, that differ.
func differingParts(p, q string) (string, string) {
	x, y := strings.Split(p, ", "), strings.Split(q, ", ")
	if len(x) != len(y) {
		return p, q
	}
	var a, b []string
	for i := range x {
		if x[i] != y[i] {
			a, b = append(a, x[i]), append(b, y[i])
		}
	}
	return strings.Join(a, ", "), strings.Join(b, ", ")
}

// ofKind returns the changes of one kind, apart from those that named says are known by
// another name.
func ofKind(list []factChange, k Kinds, known func(factChange) bool) []Change {
	var out []Change
	for _, c := range list {
		if c.Kind&k != 0 && !known(c) {
			out = append(out, c.Change)
		}
	}
	return out
}
