package recipe

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cupatch/cupatch/patch/code"
	"github.com/cupatch/cupatch/patch/edit"
	"github.com/cupatch/cupatch/patch/internal/patchtest"
	"github.com/cupatch/cupatch/patch/rule"
)

// placed is how an error about a recipe starts: with file, line and column.
var placed = regexp.MustCompile(`^r\.toml:[0-9]+:[0-9]+: `)

// TestExampleMutations breaks the examples in many ways and plans them for a cubin. What
// is still a recipe must make edits that can be applied and undone; what is none must say
// where.
func TestExampleMutations(t *testing.T) {
	files, err := filepath.Glob("../../examples/*.toml")
	if err != nil || len(files) < 6 {
		t.Fatalf("%d examples: %v", len(files), err)
	}
	target := patchtest.OpenCubin(t, "../../testdata/cubin/new/sm_90/proof.cubin")
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 11))
	refused := 0
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for range 60 {
			mutated := mutate(r, string(text))
			err := planMutated(t, target, mutated)
			if err == nil {
				continue
			}
			refused++
			if !placed.MatchString(err.Error()) || strings.Contains(err.Error(), "\n") {
				t.Errorf("seed %d: %s: an error without a place: %v\n%s", seed, name, err, mutated)
			}
		}
	}
	if refused < 100 {
		t.Errorf("seed %d: only %d recipes were refused", seed, refused)
	}
	t.Logf("%d of %d refused", refused, 60*len(files))
}

// mutate changes a letter, takes a piece out, puts one in, or drops or doubles a line.
func mutate(r *rand.Rand, s string) string {
	i := r.IntN(len(s))
	lines := strings.SplitAfter(s, "\n")
	n := r.IntN(len(lines))
	const letters = "abzXYZ019=.,;[]{}()\"'#$-+~@ \n"
	c := string(letters[r.IntN(len(letters))])
	switch r.IntN(5) {
	case 0:
		return s[:i] + c + s[i+1:]
	case 1:
		return s[:i] + s[min(len(s), i+1+r.IntN(12)):]
	case 2:
		return s[:i] + c + s[i:]
	case 3:
		return strings.Join(append(append([]string{}, lines[:n]...), lines[n+1:]...), "")
	}
	return strings.Join(append(append(append([]string{}, lines[:n]...), lines[n]), lines[n:]...), "")
}

// planMutated plans a recipe for a cubin as patch does. Errors about the cubin, such as an
// instruction that a rule refuses, are the recipe's too and have its place.
func planMutated(t *testing.T, target *code.Target, text string) error {
	rc, err := Parse("r.toml", []byte(text))
	if err != nil {
		return err
	}
	rules, err := rc.Rules(nil)
	if err != nil {
		return err
	}
	plan, err := rule.Plan(target, rules, rule.Options{Allow: rc.Allow()})
	var re *rule.Error
	if errors.As(err, &re) {
		return re
	}
	if err != nil {
		return err
	}
	out := bytes.Clone(target.Cubin.Data())
	if err := edit.Apply(out, plan.Edits); err != nil {
		t.Error(err)
	}
	if err := edit.CheckApplied(target.Cubin.Data(), out, plan.Edits); err != nil {
		t.Error(err)
	}
	return rule.CheckExpected(rules, &plan.Summary)
}
