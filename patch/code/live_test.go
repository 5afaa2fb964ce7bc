package code_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/isa/kernel"
	"github.com/cupatch/cupatch/isa/liferange"
)

// moreLife has the sections in which more is needed than nvdisasm says. In bulk_copy it
// takes a write under a uniform guard for one that always happens; lea_64 uses registers
// from UR63 on, which it never marks.
var moreLife = map[string]bool{"bulk_copy": true, "lea_64": true}

// TestLive compares the registers in use at every instruction of testdata with nvdisasm's
// life ranges: nowhere more, and in nine of ten sections the same. Where there are less, a
// write under a guard takes the place of what is only read under that guard, which nvdisasm
// does not see. Sections with calls and returns are not in the record: nvdisasm does not
// look into functions, and takes a call to use what the calling convention may use.
func TestLive(t *testing.T) {
	data, err := os.ReadFile("testdata/life.txt")
	if err != nil {
		t.Fatal(err)
	}
	graphs := map[string]map[string]*kernel.Graph{}
	n, same := 0, 0
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
		want, err := liferange.ParseCounts(cols[3])
		if err != nil {
			t.Fatal(err)
		}
		n++
		got := inUse(g, len(want)) // nvdisasm leaves out the padding
		if got.String() == cols[2] {
			same++
			continue
		}
		for i, c := range got.Counts {
			for f := range c {
				if c[f] > want[i][f] && !moreLife[cols[1]] {
					t.Errorf("%s %s at %#x: %v, nvdisasm %v", cols[0], cols[1], i*isa.WordSize, c, want[i])
				}
			}
		}
	}
	if n < 500 || same < 9*n/10 {
		t.Errorf("%d sections, %d the same", n, same)
	}
	t.Logf("%d sections, %d the same", n, same)
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
