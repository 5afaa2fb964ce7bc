package patch_test

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/isa/schedule"
	"github.com/cupatch/cupatch/isa/schedule/assign"
	"github.com/cupatch/cupatch/patch"
	"github.com/cupatch/cupatch/patch/code"
	"github.com/cupatch/cupatch/patch/edit"
)

// A tally is what came of the kernels of an architecture.
type tally struct {
	kernels, insts, same, over int
	ours, theirs, worst        float64
	name                       string // of the kernel that is the worst
}

// reschedule makes the control codes of all kernels of a file anew, and again of what that gives,
// and counts what comes of it.
func reschedule(t *testing.T, path string, profile assign.Profile, into map[string]*tally) {
	err := elfx.Walk(path, nil, func(name string, f *elfx.File, err error) error {
		if err != nil {
			return nil // not all that a package holds is code
		}
		r := &patch.Rescheduler{Profile: profile}
		for _, x := range f.Entries() {
			if x.Kind != elfx.KindELF {
				continue
			}
			target, err := code.Open(x)
			if err != nil || target.NoTable != nil {
				continue
			}
			plan, err := r.Cubin(target)
			if errors.Is(err, schedule.ErrNoModel) {
				continue
			} else if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			count(t, target, plan.Edits, into)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// count adds up what edits do to the kernels of a cubin.
func count(t *testing.T, target *code.Target, edits []edit.Edit, into map[string]*tally) {
	at := map[string]map[uint64]isa.Word{}
	for _, e := range edits {
		if at[e.Kernel] == nil {
			at[e.Kernel] = map[uint64]isa.Word{}
		}
		at[e.Kernel][e.PC] = e.New
		if e.OldText != e.NewText && strings.ReplaceAll(e.OldText, ".reuse", "") != strings.ReplaceAll(e.NewText, ".reuse", "") {
			t.Errorf("%s at %#x: %s became %s", e.Kernel, e.PC, e.OldText, e.NewText)
		}
		if in := target.Table.Decode(e.New); !in.Variant.Sched.Legal(e.New) {
			t.Errorf("%s at %#x: nvdisasm does not accept %s", e.Kernel, e.PC, isa.ControlOf(e.New))
		}
	}
	sm := target.Table.Arch()
	sm.Suffix = ""
	sum := into[sm.String()]
	if sum == nil {
		sum = &tally{}
		into[sm.String()] = sum
	}
	for i := range target.Cubin.Kernels() {
		k := &target.Cubin.Kernels()[i]
		s := code.NewState(target.Kernel(k), target.Table)
		g := s.Flow()
		n := len(s.Data) / isa.WordSize
		var ours, theirs float64
		if drained(s, n) {
			continue
		}
		for i := range n {
			old := s.Old(i)
			now, ok := at[k.Name][uint64(i)*isa.WordSize]
			if !ok {
				now = old
			}
			a, b := isa.ControlOf(now).Stall, isa.ControlOf(old).Stall
			weight := math.Pow(10, float64(g.LoopDepth(i)))
			ours, theirs = ours+weight*float64(a), theirs+weight*float64(b)
			if a == b {
				sum.same++
			}
		}
		sum.kernels, sum.insts = sum.kernels+1, sum.insts+n
		sum.ours, sum.theirs = sum.ours+ours, sum.theirs+theirs
		if ratio := ours / theirs; n > 50 && theirs > 0 {
			if ratio > 1.10 {
				sum.over++
			}
			if ratio > sum.worst {
				sum.worst, sum.name = ratio, k.Name
			}
		}
	}
}

// drained reports whether a kernel was compiled for a debugger: its instructions wait for each
// other, which is no time that can be compared.
func drained(s *code.State, n int) bool {
	drains := 0
	for i := range n {
		if w := s.Old(i); isa.ControlOf(w).Stall == 0 && !w.IsNOP() {
			drains++
		}
	}
	return drains > 5 && drains*10 > n
}

func logTallies(t *testing.T, profile string, sums map[string]*tally) {
	for _, a := range isa.Arches() {
		if s := sums[a.String()]; s != nil {
			t.Logf("%s %s: %d kernels, %d instructions: %.4f of ptxas's issue cycles, %.1f %% of the stalls its own; over 1.10: %d kernels of more than 50 instructions, worst %.2f",
				a, profile, s.kernels, s.insts, s.ours/s.theirs, 100*float64(s.same)/float64(s.insts), s.over, s.worst)
		}
	}
}

// TestReschedule throws away the control codes of all kernels of testdata and makes them anew. The
// checker has to find nothing; ptxas's own codes say how good they are.
func TestReschedule(t *testing.T) {
	sums := map[string]*tally{}
	reschedule(t, "../testdata/cubin", assign.Ptxas, sums)
	logTallies(t, "ptxas", sums)
	if len(sums) < 8 {
		t.Errorf("%d architectures", len(sums))
	}
	for arch, s := range sums {
		if ratio := s.ours / s.theirs; ratio > 1.03 {
			t.Errorf("%s: %.3f of ptxas's issue cycles", arch, ratio)
		}
		if same := float64(s.same) / float64(s.insts); same < 0.85 {
			t.Errorf("%s: %.3f of the stalls are ptxas's", arch, same)
		}
	}
}

// TestRescheduleCorpus is TestReschedule with the corpus, in both profiles.
func TestRescheduleCorpus(t *testing.T) {
	folder := corpusFolder()
	if _, err := os.Stat(folder); os.Getenv("CUPATCH_LONG") == "" || err != nil {
		t.Skip("CUPATCH_LONG=1 and scripts/corpus")
	}
	for name, p := range map[string]assign.Profile{"ptxas": assign.Ptxas, "tight": assign.Tight} {
		sums := map[string]*tally{}
		reschedule(t, folder, p, sums)
		logTallies(t, name, sums)
	}
}

func corpusFolder() string {
	if dir := os.Getenv("CUPATCH_CACHE"); dir != "" {
		return filepath.Join(dir, "corpus")
	}
	dir, _ := os.UserCacheDir()
	return filepath.Join(dir, "cupatch", "corpus")
}
