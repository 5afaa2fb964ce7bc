package liferange

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cupatch/cupatch/isa"
)

// The effects tables say of the recorded words what nvdisasm marks there; see
// isa/internal/effectcases.
//
// testdata/known.txt lists the words of which they say something else, by architecture,
// with the instruction: a word that agrees again has to go from that list.
func TestRecorded(t *testing.T) {
	known := knownDisagreements(t)
	cases := 0
	for _, arch := range isa.Arches() {
		table, err := isa.Load(arch)
		if err != nil {
			t.Fatal(err)
		}
		file, err := isa.LoadEffects(arch)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Join("testdata", arch.String()+".txt")
		data, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // all its rules are those of its base
		}
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
			if line == "" {
				continue
			}
			cases++
			c, err := parseCase(line)
			if err != nil {
				t.Fatalf("%s:%d: %v", name, i+1, err)
			}
			if c.String() != line {
				t.Errorf("%s:%d: written again: %s", name, i+1, c)
			}
			in := table.Decode(c.Word)
			if in.Status != isa.StatusKnown {
				t.Errorf("%s:%d: %s is not known", name, i+1, c.Word)
				continue
			}
			p := isa.CompileEffects(in.Variant, withoutFacts(file.Rules[in.Variant.Class]))
			key := arch.String() + " " + c.Word.String()
			_, listed := known[key]
			delete(known, key)
			if got, want := compare(p, c.Word, c.Marks); listed && got == want {
				t.Errorf("%s:%d: agrees, and testdata/known.txt says otherwise", name, i+1)
			} else if !listed && got != want {
				t.Errorf("%s:%d: %s: reads %s writes %s, nvdisasm says %s", name, i+1, table.Text(in, 0), got.Reads, got.Writes, line)
			}
		}
	}
	if cases < 4000 {
		t.Errorf("%d cases", cases)
	}
	for key := range known {
		t.Errorf("testdata/known.txt: %s is not recorded", key)
	}
}

// knownDisagreements returns the instructions of testdata/known.txt by architecture and word.
func knownDisagreements(t *testing.T) map[string]string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "known.txt"))
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]string{}
	for _, line := range strings.Split(string(data), "\n") {
		if f := strings.Fields(line); len(f) == 4 && f[0] != "#" {
			known[f[0]+" "+f[1]+" "+f[2]] = f[3]
		}
	}
	return known
}

// Every class of every architecture has effects, but those that nvdisasm never prints and
// the few that testdata/without.txt names, with the reason.
func TestEveryClassHasEffects(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("testdata", "without.txt"))
	if err != nil {
		t.Fatal(err)
	}
	without := map[string]bool{}
	for _, line := range strings.Split(string(data), "\n") {
		if class, _, _ := strings.Cut(line, " "); class != "" && class[0] != '#' {
			without[class] = false
		}
	}
	for _, arch := range isa.Arches() {
		table, err := isa.Load(arch)
		if err != nil {
			t.Fatal(err)
		}
		file, err := isa.LoadEffects(arch)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range table.Variants() {
			if _, ok := file.Rules[v.Class]; ok {
				continue
			}
			if _, ok := without[v.Class]; !ok {
				t.Errorf("%s: %s (%s) has no effects: learn them, or list it in testdata/without.txt", arch, v.Class, v.Mnemonic())
				continue
			}
			without[v.Class] = true
		}
	}
	for class, used := range without {
		if !used {
			t.Errorf("testdata/without.txt: every architecture has effects of %s", class)
		}
	}
}

// Of a class with a fact, the rule that nvdisasm does not show is there.
func TestFacts(t *testing.T) {
	file, err := isa.LoadEffects(isa.Arch{SM: 90, Suffix: "a"})
	if err != nil {
		t.Fatal(err)
	}
	for class, want := range map[string]string{
		"bssy_": "w:B16:19", "bsync_": "r:B16:19", "p2r__RuIR_RIR": "r:P32:38/mask", "r2p__RIR": "w:P32:38/mask", "r2p__RRR": "w:P=0*7",
	} {
		if got := strings.Split(isa.FormatRules(file.Rules[class]), " "); !slices.Contains(got, want) {
			t.Errorf("%s: %q lacks %s", class, got, want)
		}
	}
}

// parseCase reads what String prints.
func parseCase(line string) (Case, error) {
	var c Case
	words := strings.Fields(line)
	if len(words) < 3 {
		return c, fmt.Errorf("%q is no case", line)
	}
	lo, err1 := strconv.ParseUint(strings.TrimSuffix(words[0], ","), 0, 64)
	hi, err2 := strconv.ParseUint(words[1], 0, 64)
	if err1 != nil || err2 != nil {
		return c, fmt.Errorf("%q is no case", line)
	}
	c.Word = isa.Word{Lo: lo, Hi: hi}
	set := &c.Marks.Reads
	for _, w := range words[2:] {
		if w == "->" {
			set = &c.Marks.Writes
			continue
		}
		if err := addRegisters(set, w); err != nil {
			return c, err
		}
	}
	return c, nil
}

// addRegisters puts a register or a run, such as R4 or R4-R7, into set.
func addRegisters(set *isa.RegSet, s string) error {
	first, last, run := strings.Cut(s, "-")
	if !run {
		last = first
	}
	letters := strings.TrimRight(first, "0123456789")
	for f := isa.FileR; f <= isa.FileB; f++ {
		if f.String() != letters {
			continue
		}
		a, err1 := strconv.Atoi(first[len(letters):])
		b, err2 := strconv.Atoi(strings.TrimPrefix(last, letters))
		if err1 == nil && err2 == nil && a <= b {
			set.Add(f, a, b-a+1)
			return nil
		}
	}
	return fmt.Errorf("%q names no registers", s)
}
