package code_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/isa/kernel"
	"github.com/cupatch/cupatch/isa/liferange"
)

// otherLife has the sections whose sets differ. In bulk_copy nvdisasm takes a write under a
// uniform guard for one that always happens, so that what was in the register before is
// not needed.
var otherLife = map[string]bool{"bulk_copy": true, "lea_64": true}

// TestLive compares the registers in use at every instruction of testdata with nvdisasm's
// life ranges. Sections with calls and returns are not in the record: nvdisasm does not
// look into functions, and takes a call to use what the calling convention may use.
func TestLive(t *testing.T) {
	data, err := os.ReadFile("testdata/life.txt")
	if err != nil {
		t.Fatal(err)
	}
	graphs := map[string]map[string]*kernel.Graph{}
	n := 0
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		cols := strings.Split(strings.TrimSpace(line), "\t")
		if graphs[cols[0]] == nil {
			graphs[cols[0]] = cubinFlow(t, filepath.Join(root, cols[0]))
		}
		g := graphs[cols[0]][cols[1]]
		if g == nil {
			t.Errorf("%s: no section %s", cols[0], cols[1])
			continue
		}
		n++
		// nvdisasm leaves out the padding.
		rows, err := strconv.Atoi(strings.Fields(cols[2])[0])
		if err != nil {
			t.Fatal(err)
		}
		if got := inUse(g, rows).String(); got != cols[2] && !otherLife[cols[1]] {
			t.Errorf("%s %s: %s, nvdisasm %s", cols[0], cols[1], got, cols[2])
		}
	}
	if n < 500 {
		t.Errorf("only %d sections", n)
	}
}

// inUse returns the sum of what is in use at each of the first n instructions, R1 aside.
func inUse(g *kernel.Graph, n int) *liferange.Sum {
	var s liferange.Sum
	var r1 isa.RegSet
	r1.Add(isa.FileR, 1, 1)
	for i, set := range usedSets(g, n) {
		s.Add(uint64(i)*isa.WordSize, set.Minus(r1))
	}
	return &s
}

// usedSets returns what is in use at each of the first n instructions: what is needed before
// it, and what it writes.
func usedSets(g *kernel.Graph, n int) []isa.RegSet {
	sets := make([]isa.RegSet, n)
	for k := range g.Blocks {
		g.Live().Each(k, func(i int, in isa.Inst, live *isa.RegSet) {
			if i >= n {
				return
			}
			fx := in.Effects()
			before := *live
			if !in.IsGuarded() {
				before = before.Minus(fx.Writes)
			}
			sets[i] = before.Union(fx.Reads).Union(fx.Writes)
			sets[i].B = 0 // which nvdisasm does not show
		})
	}
	return sets
}
