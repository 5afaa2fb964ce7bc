package stats

import (
	"testing"

	"github.com/cupatch/cupatch/patch/internal/patchtest"
	"github.com/google/go-cmp/cmp"
)

func TestStats(t *testing.T) {
	table := patchtest.MiniTable(t)
	s := New()
	s.Count(table, patchtest.Code(t, table, patchtest.Lines(`[B01----:R1:W2:Y:S05] LDG.E.EF.128 R4, desc[UR4][R2.64]
		[B------:R-:W-:-:S02] FFMA R0, R1.reuse, R2.reuse, R3
		STG.E desc[UR4][R2.64], R0
		.word 0x0000000000000fff, 0x000fe20000000000
		NOP`)))
	want := &Stats{
		Instructions: 5, Unknown: 1,
		Opcodes: map[string]int{"LDG": 1, "FFMA": 1, "STG": 1, "NOP": 1},
		Loads:   map[string]int{"LDG.E.EF.128": 1}, Stores: map[string]int{"STG.E": 1}, Atomics: map[string]int{},
		LoadsBy:   CountsBy{"evict": {"EF": 1}, "prefetch": {"-": 1}, "scope": {"-": 1}, "width": {"128": 1}},
		StoresBy:  CountsBy{"evict": {"-": 1}, "scope": {"-": 1}, "width": {"32": 1}},
		AtomicsBy: CountsBy{},
		Stall:     10, Yields: 1, ScoreboardsSet: 2, Waits: 2, Reuse: 2, Sources: 3,
	}
	if diff := cmp.Diff(want, s); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	two := New()
	two.Add(s)
	two.Add(s)
	if two.Stall != 20 || two.Opcodes["FFMA"] != 2 || two.LoadsBy["evict"]["EF"] != 2 {
		t.Errorf("twice: %+v", two)
	}
	if got := ByCount(map[string]int{"b": 1, "a": 1, "c": 9}); !cmp.Equal(got, []NameCount{{"c", 9}, {"a", 1}, {"b", 1}}) {
		t.Errorf("order %v", got)
	}
}
