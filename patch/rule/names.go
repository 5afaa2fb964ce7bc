package rule

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/patch/code"
)

// A nameScope has the names that a set of variants gives to its fields.
type nameScope struct {
	groups   map[string][]*isa.Group
	operands map[string]bool
	other    map[string]bool // names of operands that are not always addresses
}

// names finds the scope of each item of a rule.
type names struct {
	table *isa.Table
	arch  string
	items []compiledItem
	cache []*nameScope
}

// of returns the scope of an item's instruction, or of one that many steps away, which
// may be anything.
func (n *names) of(item, delta int) *nameScope {
	if delta != 0 || n.items[item].any {
		return allNames(n.table)
	}
	if n.cache == nil {
		n.cache = make([]*nameScope, len(n.items))
	}
	if n.cache[item] == nil {
		n.cache[item] = newScope(n.table, n.items[item].variants)
	}
	return n.cache[item]
}

// scopes holds the scope of all variants of each table that was asked for.
var scopes sync.Map

func allNames(t *isa.Table) *nameScope {
	if s, ok := scopes.Load(t); ok {
		return s.(*nameScope)
	}
	s, _ := scopes.LoadOrStore(t, newScope(t, t.Variants()))
	return s.(*nameScope)
}

func newScope(t *isa.Table, vs []*isa.Variant) *nameScope {
	s := &nameScope{groups: map[string][]*isa.Group{}, operands: map[string]bool{}, other: map[string]bool{}}
	for _, v := range vs {
		for _, g := range t.Groups(v) {
			s.groups[g.Name] = append(s.groups[g.Name], g)
		}
		for _, o := range t.Operands(v) {
			s.operands[o.Name] = true
			if code.Operand(o.Text).Address() >= 0 {
				s.operands["imm"] = true
			} else {
				s.other[o.Name] = true
			}
		}
	}
	return s
}

// onlyAddress reports whether an operand is an address in every variant.
func (s *nameScope) onlyAddress(name string) bool { return !s.other[name] }

// values returns the legal values of a group, in the order of their encoding.
func (s *nameScope) values(group string) []string {
	return code.GroupValues(s.groups[group]...)
}

// has reports whether a group has a value, legal or not.
func (s *nameScope) has(group, text string) bool {
	for _, g := range s.groups[group] {
		for _, v := range g.Values {
			if v.Text == text {
				return true
			}
		}
	}
	return false
}

// groupWith returns the name of a group that has the value, or "".
func (s *nameScope) groupWith(text string) string {
	for _, name := range slices.Sorted(maps.Keys(s.groups)) {
		if s.has(name, text) {
			return name
		}
	}
	return ""
}

// all returns every name for a message: those of all instructions first.
func (s *nameScope) all() []string {
	out := listedFields()
	out = append(out, slices.Sorted(maps.Keys(s.operands))...)
	for _, g := range slices.Sorted(maps.Keys(s.groups)) {
		if !strings.HasPrefix(g, "mod") {
			out = append(out, g)
		}
	}
	return out
}
