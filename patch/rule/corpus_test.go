package rule

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/patch/check"
	"github.com/cupatch/cupatch/patch/code"
	"github.com/cupatch/cupatch/patch/edit"
	"github.com/cupatch/cupatch/patch/internal/patchtest"
	"github.com/cupatch/cupatch/scripts/nv/oracle"
)

// TestRandomRules plans, applies and undoes random sequences of rules that change
// modifiers, control fields and guards, on every cubin of testdata and, where it was
// fetched, of the public corpus, one cubin in ten of it unless CUPATCH_LONG is set: exactly
// the planned words may differ, and undoing must give the original back.
func TestRandomRules(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 7))
	files, err := filepath.Glob("../../testdata/cubin/*/*/*.cubin")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, name := range files {
		n += randomRules(t, r, patchtest.OpenCubin(t, name), name)
	}
	root := filepath.Join(oracle.CacheDir(), "corpus")
	if _, err := os.Stat(root); err != nil || testing.Short() {
		t.Logf("%d edits; no corpus, run scripts/corpus; or -short", n)
		return
	}
	all := os.Getenv("CUPATCH_LONG") != ""
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		f, err := elfx.OpenFile(path, nil)
		if err != nil {
			return nil // no GPU code
		}
		defer f.Close()
		for _, e := range f.Entries() {
			if !all && r.IntN(10) > 0 {
				continue
			}
			c, err := e.Cubin()
			if err != nil || c.InstructionSize() != isa.WordSize {
				continue
			}
			a, err := isa.ParseArch(c.Arch)
			if err != nil {
				continue
			}
			if table, err := isa.Load(a); err == nil {
				n += randomRules(t, r, &code.Target{Cubin: c, Table: table}, e.ID())
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	t.Logf("%d edits", n)
}

// randomRules makes a few rules and returns how many words they changed.
func randomRules(t *testing.T, r *rand.Rand, target *code.Target, name string) int {
	t.Helper()
	var rules []*Rule
	for i := range 1 + r.IntN(4) {
		text := randomRule(r, target.Table)
		rule, err := Parse("", i+1, text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		rules = append(rules, rule)
	}
	opts := Options{SkipRefused: true, LaxOpcodes: true, Allow: check.Allow{}}
	if r.IntN(2) == 0 {
		opts.Allow[check.RefuseSchedule] = true
	}
	data := target.Cubin.Data()
	plan, err := Plan(target, rules, opts)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return 0
	}
	edits, sum := plan.Edits, plan.Summary
	if sum.Changed != len(edits) || sum.Same < 0 || sum.Matched > sum.Seen {
		t.Errorf("%s: %+v for %d edits", name, sum, len(edits))
	}
	out := bytes.Clone(data)
	if err := edit.Apply(out, edits); err != nil {
		t.Errorf("%s: %v", name, err)
		return 0
	}
	if err := edit.CheckApplied(data, out, edits); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	for _, e := range edits {
		if len(opts.Allow) == 0 {
			checkEdit(t, target.Table, name, e)
		}
	}
	if err := edit.Apply(out, edit.Inverted(edits)); err != nil || !bytes.Equal(out, data) {
		t.Errorf("%s: undoing does not give the original back: %v", name, err)
	}
	return len(edits)
}

// checkEdit sees that an edit is of the kind that the rules ask for: the opcode stays,
// the word still has text, and what is no modifier stays.
func checkEdit(t *testing.T, table *isa.Table, name string, e edit.Edit) {
	t.Helper()
	old, now := table.Decode(e.Old), table.Decode(e.New)
	if e.Old.Opcode() != e.New.Opcode() || old.Status != now.Status {
		t.Errorf("%s: %s+%#x: %q became %q", name, e.Kernel, e.PC, e.OldText, e.NewText)
		return
	}
	a, b := table.Split(old, e.PC), table.Split(now, e.PC)
	if a.Mnemonic != b.Mnemonic {
		t.Errorf("%s: %s+%#x: %q became %q", name, e.Kernel, e.PC, e.OldText, e.NewText)
	}
}

// randomRule returns a rule that changes modifiers, control fields or a guard.
func randomRule(r *rand.Rand, table *isa.Table) string {
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	match := pick("LDG.E", "LDG", "STG", "LD*", "FFMA", "IMAD", "*", "@P* *", "@!P0 BRA", "IADD3", "MOV", "*.RM", "LDG.E.64!.EF")
	cond := pick("", "pc % 48 == 0", "stall > 2", "loop > 0", "prev.stall == stall", "wait != \"-\" and yield == \"-\"", "reuse.a",
		"kernel contains \"a\"", "block == 1", "width >= 64")
	change := pick("stall=max(stall,4)", "stall+=1", "~yield", "yield=Y", "wait+=0,3", "wait-=1", "wbar=-", "rbar=5", "reuse.b=-",
		"@!", "@P2", "@-", "stall-=1 yield=Y", "batch=0", "~reuse.a")
	if match == "LDG.E" || match == "LDG" || match == "LDG.E.64!.EF" {
		change = pick(".EF", "-.EF", "evict=EL", ".EL .STRONG.GPU", "prefetch=LTC128B", "evict=- stall=9", ".NA ~yield")
		if table.Arch().SM < 75 && strings.HasPrefix(change, "prefetch") { // Volta's loads have no such field
			change = "evict=LU"
		}
	}
	if r.IntN(6) == 0 {
		match, cond = match+"{2,}", pick("i % 2 == 0", "seen(stall) == 0 and i < n-1", "prev.reuse.a or i == 0")
	}
	if cond != "" {
		match = fmt.Sprintf("%s if %s", match, cond)
	}
	return match + " => " + change
}
