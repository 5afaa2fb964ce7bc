package liferange

import (
	"strings"

	"github.com/cupatch/cupatch/isa"
)

// A fact is a rule that nvdisasm does not show: what its texts say of barriers of
// convergence (B), and of the predicates that P2R, R2P and their uniform forms move, which
// an immediate number selects as a mask. Where the mask is in a register or a constant, all
// may be read or written.
type fact struct {
	class string // how the names of the classes start
	rules string
}

var facts = []fact{
	{"bssy_", "w:B16:19"},
	{"bsync_", "r:B16:19"},
	{"break_", "rw:B16:19"},
	{"bmov_clear__Rd", "r:B24:29 w:B24:29{84 0 1}"},
	{"bmov_clear_bd_", "w:B16:19"},
	{"bmov_clear_barrier_", "w:B16:19 rw:B24:29"},
	{"bmov_pquad_bar_", "w:B24:29 r:B16:19"},
	{"bmov_pquad_", "w:B24:29"},
	{"p2r__RuIR", "r:P32:38/mask"},
	{"p2r__RsIR", "r:P32:38/mask"},
	{"p2r_", "r:P=0*7"},
	{"r2p__RIR", "w:P32:38/mask"},
	{"r2p_", "w:P=0*7"},
	{"up2ur__Imm", "r:UP32:38/mask"},
	{"up2ur_", "r:UP=0*7"},
	{"ur2up__Imm", "w:UP32:38/mask"},
	{"ur2up_", "w:UP=0*7"},
}

// addFacts adds to every class what nvdisasm does not show of it.
func addFacts(f *isa.EffectsFile) error {
	for class, rules := range f.Rules {
		for _, x := range facts {
			if !strings.HasPrefix(class, x.class) {
				continue
			}
			more, err := isa.ParseRules(x.rules)
			if err != nil {
				return err
			}
			f.Rules[class] = append(rules, more...)
			break
		}
	}
	return nil
}

// isFact reports whether r is one of a kind that nvdisasm does not show.
func isFact(r *isa.AccessRule) bool { return r.Mask || r.File == isa.FileB || len(r.Field) == 0 }

// withoutFacts returns the rules that nvdisasm shows.
func withoutFacts(rules []isa.AccessRule) []isa.AccessRule {
	var out []isa.AccessRule
	for i := range rules {
		if !isFact(&rules[i]) {
			out = append(out, rules[i])
		}
	}
	return out
}

// formRules returns the rules of a class that nvdisasm does not answer for: every register
// that its text has is read.
func formRules(v *isa.Variant, arch isa.Arch) []isa.AccessRule {
	rules := []isa.AccessRule{}
	for _, c := range candidates(v, arch) {
		if c.printed {
			rules = append(rules, isa.AccessRule{Reads: true, File: c.file, Field: c.field, Invert: c.invert, Add: c.add, Counts: []uint8{1}})
		}
	}
	return rules
}
