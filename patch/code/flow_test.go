package code_test

import (
	"bufio"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/isa/kernel"
	"github.com/cupatch/cupatch/patch/code"
)

const root = "../.."

// A flowCase is a line of testdata/flow.txt: what nvdisasm -bbcfg says of a function.
type flowCase struct {
	cubin, function string
	shown           []uint64            // the addresses that nvdisasm shows
	next            map[uint64][]uint64 // successors that are not just the next address
}

func readFlowCases(t *testing.T) []flowCase {
	t.Helper()
	f, err := os.Open("testdata/flow.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []flowCase
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		if strings.HasPrefix(sc.Text(), "#") {
			continue
		}
		cols := strings.Split(sc.Text(), "\t")
		c := flowCase{cubin: cols[0], function: cols[1], next: map[uint64][]uint64{}}
		for _, run := range strings.Split(cols[2], ",") {
			first, last, _ := strings.Cut(run, "-")
			for pc := hex(t, first); pc <= hex(t, last); pc += isa.WordSize {
				c.shown = append(c.shown, pc)
			}
		}
		for _, item := range strings.Fields(cols[3]) {
			from, to, _ := strings.Cut(item, ":")
			list := []uint64{}
			for _, x := range strings.FieldsFunc(to, func(r rune) bool { return r == ',' }) {
				list = append(list, hex(t, x))
			}
			c.next[hex(t, from)] = list
		}
		out = append(out, c)
	}
	return out
}

func hex(t *testing.T, s string) uint64 {
	t.Helper()
	x, err := strconv.ParseUint(s, 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// TestFlow compares the control flow of every kernel of testdata with what nvdisasm says
// of it, for all instructions that nvdisasm shows: it leaves out most of those that
// nothing leads to.
func TestFlow(t *testing.T) {
	graphs := map[string]map[string]*kernel.Graph{} // by cubin, by function
	cases := readFlowCases(t)
	for _, c := range cases {
		if graphs[c.cubin] == nil {
			graphs[c.cubin] = cubinFlow(t, filepath.Join(root, c.cubin))
		}
		g := graphs[c.cubin][c.function]
		if g == nil {
			t.Errorf("%s: no function %s", c.cubin, c.function)
			continue
		}
		for _, pc := range c.shown {
			want, special := c.next[pc]
			if !special {
				want = []uint64{pc + isa.WordSize}
			}
			if got := successors(g, int(pc/isa.WordSize)); !slices.Equal(got, want) {
				t.Errorf("%s %s: after %#x: %#x, nvdisasm %#x", c.cubin, c.function, pc, got, want)
			}
		}
	}
	if len(cases) < 800 {
		t.Errorf("only %d cases", len(cases))
	}
}

// cubinFlow returns the flow of each function of a cubin by its name.
func cubinFlow(t *testing.T, path string) map[string]*kernel.Graph {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	c, err := elfx.ParseCubin(data)
	if err != nil {
		t.Fatal(err)
	}
	table, err := code.TableOf(c)
	if err != nil {
		t.Fatal(err)
	}
	target := code.Target{Cubin: c, Table: table}
	graphs := map[string]*kernel.Graph{}
	for _, k := range c.Kernels() {
		g := code.NewState(target.Kernel(&k), target.Table).Flow()
		for _, f := range k.Functions() {
			graphs[f.Name] = g
		}
	}
	return graphs
}

// successors returns the addresses at which execution may go on after instruction i.
func successors(g *kernel.Graph, i int) []uint64 {
	b := g.Blocks[g.Block(i)]
	if i+1 < b.End {
		return []uint64{uint64(i+1) * isa.WordSize}
	}
	to := []uint64{}
	for _, e := range b.Succs {
		to = append(to, uint64(g.Blocks[e.Block].Start)*isa.WordSize)
	}
	slices.Sort(to)
	return slices.Compact(to)
}
