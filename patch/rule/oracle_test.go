package rule

import (
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/patch/code"
	"github.com/cupatch/cupatch/patch/edit"
	"github.com/cupatch/cupatch/patch/internal/patchtest"
	"github.com/cupatch/cupatch/scripts/nv/oracletest"
)

// TestEditsOracle asks nvdisasm about the words that random rules make without any
// permission: it must accept every one, and print what we print.
func TestEditsOracle(t *testing.T) {
	for _, arch := range []string{"sm_75", "sm_80", "sm_90", "sm_100"} {
		t.Run(arch, func(t *testing.T) {
			a, err := isa.ParseArch(arch)
			if err != nil {
				t.Fatal(err)
			}
			table, err := isa.Load(a)
			if err != nil {
				t.Skip(err)
			}
			files, err := filepath.Glob("../../testdata/cubin/new/" + arch + "/*.cubin")
			if err != nil || len(files) == 0 {
				t.Fatalf("%d cubins: %v", len(files), err)
			}
			seed := rand.Uint64()
			r := rand.New(rand.NewPCG(seed, 9))
			var words []isa.Word
			seen := map[isa.Word]bool{}
			for range 4 {
				for _, name := range files {
					for _, e := range randomEdits(t, r, patchtest.OpenCubin(t, name)) {
						if known := table.Decode(e.New).Status == isa.StatusKnown; known && !seen[e.New] && len(words) < 4000 {
							seen[e.New] = true
							words = append(words, e.New)
						}
					}
				}
			}
			bad := 0
			for i, x := range oracletest.Disassemble(t, arch, words) {
				if got := table.Text(table.Decode(words[i]), x.PC); got != x.Text && bad < 10 {
					bad++
					t.Errorf("seed %d: %v %s: %q, nvdisasm prints %q %s", seed, words[i], isa.ControlOf(words[i]), got, x.Text, x.Refused)
				}
			}
			t.Logf("%d words", len(words))
		})
	}
}

// randomEdits plans a few random rules.
func randomEdits(t *testing.T, r *rand.Rand, target *code.Target) []edit.Edit {
	t.Helper()
	var rules []*Rule
	for i := range 4 {
		rule, err := Parse("", i+1, randomRule(r, target.Table))
		if err != nil {
			t.Fatal(err)
		}
		rules = append(rules, rule)
	}
	plan, err := Plan(target, rules, Options{SkipRefused: true, LaxOpcodes: true})
	if err != nil {
		t.Fatal(err)
	}
	edits := plan.Edits
	return edits
}
