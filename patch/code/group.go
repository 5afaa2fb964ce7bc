package code

import (
	"slices"
	"strings"

	"github.com/cupatch/cupatch/isa"
)

// GroupValues returns the legal values of groups of one name, in the order of their
// encoding.
func GroupValues(groups ...*isa.Group) []string {
	var out []string
	for _, g := range groups {
		for _, v := range g.Values {
			if v.Legal && v.Text != "" && !slices.Contains(out, v.Text) {
				out = append(out, v.Text)
			}
		}
	}
	return out
}

// LegalTexts lists the legal values of g.
func LegalTexts(g *isa.Group) string { return strings.Join(GroupValues(g), " ") }
