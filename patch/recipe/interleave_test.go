package recipe

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/patch/check"
	"github.com/cupatch/cupatch/patch/code"
	"github.com/cupatch/cupatch/patch/edit"
	"github.com/cupatch/cupatch/patch/internal/patchtest"
	"github.com/cupatch/cupatch/patch/rule"
)

// interleave is the FFMA interleave as people did it by hand, written down directly
// on the words: it knows nothing of rules or tables. In every run of at least 8
// consecutive FFMA, among the first 9/16 of the run, each FFMA with the reuse flag of
// operand B (bit 123) whose operand-B register is new in the run, or repeats that of the
// FFMA before it which is still marked, has the flag cleared and yield (bit 109)
// toggled. It returns how many words it changed.
func interleave(code []byte) int {
	word := func(i int) isa.Word { return isa.LoadWord(code[i*16:]) }
	isFFMA := func(w isa.Word) bool { return w.Lo&0x1ff == 0x023 }
	n, changed := len(code)/16, 0
	for start := 0; start < n; {
		end := start
		for end < n && isFFMA(word(end)) {
			end++
		}
		if length := end - start; length >= 8 {
			seen := map[uint64]bool{}
			lastMarked, lastReg := false, uint64(0)
			for i := 0; i < length*9/16; i++ {
				w := word(start + i)
				reg := w.Lo >> 32 & 0xff
				if form := w.Lo >> 9 & 7; form == 2 || form == 3 {
					reg = w.Hi & 0xff // an immediate or constant C stands where B was
				}
				marked := w.Hi>>59&1 != 0 && w.Hi>>45&1 != 0
				if marked && (!seen[reg] || lastMarked && lastReg == reg) {
					w.Hi ^= 1<<59 | 1<<45
					w.Store(code[(start+i)*16:])
					marked = false
					changed++
				}
				seen[reg], lastMarked, lastReg = true, marked, reg
			}
		}
		start = max(end, start+1)
	}
	return changed
}

// TestInterleave compares the recipe with the direct implementation on cubins of our
// own, word for word.
func TestInterleave(t *testing.T) {
	data, err := os.ReadFile("../../examples/ffma-interleave.toml")
	if err != nil {
		t.Fatal(err)
	}
	rc, err := Parse("ffma-interleave.toml", data)
	if err != nil {
		t.Fatal(err)
	}
	rules, err := rc.Rules(nil)
	if err != nil {
		t.Fatal(err)
	}
	// How many words of ffma.cubin the tuning changes, counted by a program of its own.
	want := map[string]int{"new/sm_80": 91, "new/sm_90": 122, "old/sm_80": 91, "old/sm_90": 122}
	for arch, words := range want {
		files, err := filepath.Glob("../../testdata/cubin/" + arch + "/*.cubin")
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no cubins: %v", arch, err)
		}
		for _, name := range files {
			n := compareInterleave(t, name, rules, rc.Allow())
			if filepath.Base(name) == "ffma.cubin" && n != words {
				t.Errorf("%s: %d words, want %d", name, n, words)
			}
		}
	}
}

// TestInterleaveRandom compares the two on random FFMA code, where registers repeat
// and flags of all kinds stand.
func TestInterleaveRandom(t *testing.T) {
	data, err := os.ReadFile("../../examples/ffma-interleave.toml")
	if err != nil {
		t.Fatal(err)
	}
	rc, err := Parse("ffma-interleave.toml", data)
	if err != nil {
		t.Fatal(err)
	}
	rules, err := rc.Rules(nil)
	if err != nil {
		t.Fatal(err)
	}
	table := patchtest.Table(t, "sm_90")
	p, err := rule.NewPlanner(rules, table, rule.Options{Allow: rc.Allow()})
	if err != nil {
		t.Fatal(err)
	}
	base, err := table.Encode("FFMA R0, R1, R2, R3", 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	for range 200 {
		words := make([]byte, 16*(20+r.IntN(200)))
		for off := 0; off < len(words); off += 16 {
			w := base
			w.Lo = w.Lo&^(0xff<<32) | uint64(16+r.IntN(6))<<32
			if r.IntN(25) == 0 {
				w.Lo = w.Lo&^0xfff | 0x918
			}
			c := isa.Control{Stall: 1, Yield: r.IntN(4) == 0, WBar: isa.NoBar, RBar: isa.NoBar}
			if !c.Yield {
				c.Reuse = uint8(r.IntN(8))
			}
			c.Set(w).Store(words[off:])
		}
		plan, err := p.Kernel(&code.Kernel{Name: "k", Data: bytes.Clone(words)})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		got := bytes.Clone(words)
		if err := edit.Apply(got, plan.Edits); err != nil {
			t.Fatal(err)
		}
		interleave(words)
		if i := edit.FirstDifference(words, got); i >= 0 {
			t.Fatalf("seed %d: byte %#x differs from the direct implementation", seed, i)
		}
	}
}

func compareInterleave(t *testing.T, name string, rules []*rule.Rule, allow check.Allow) int {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	c, err := elfx.ParseCubin(data)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	table := patchtest.Table(t, c.Arch)
	plan, err := rule.Plan(&code.Target{Cubin: c, Table: table}, rules, rule.Options{Allow: allow})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	edits := plan.Edits
	got, want := bytes.Clone(data), bytes.Clone(data)
	if err := edit.Apply(got, edits); err != nil {
		t.Fatal(err)
	}
	n := 0
	for i := range c.Kernels() {
		k := &c.Kernels()[i]
		n += interleave(want[k.Offset : k.Offset+k.Size])
	}
	if n != len(edits) {
		t.Errorf("%s: %d edits, the direct implementation changes %d words", name, len(edits), n)
	}
	if i := edit.FirstDifference(want, got); i >= 0 {
		t.Errorf("%s: byte %#x differs from the direct implementation", name, i)
	}
	return n
}
