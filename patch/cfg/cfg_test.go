package cfg_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/patch/cfg"
	"github.com/cupatch/cupatch/patch/code"
	"github.com/cupatch/cupatch/patch/internal/patchtest"
)

const root = "../.."

var (
	dotNode = regexp.MustCompile(`(?m)^\t+b(\d+) \[label="(?:[^"]*\\l)?block \d+: ([0-9a-f]+)-([0-9a-f]+)\\l`)
	dotEdge = regexp.MustCompile(`(?m)^\tb(\d+) -> b(\d+) \[label="(fall through|taken|indirect)"`)
)

// flowOf takes the text of a graph apart: where execution may go on after each instruction.
func flowOf(t *testing.T, dot string) map[uint64][]uint64 {
	t.Helper()
	number := func(s string, base int) uint64 {
		x, err := strconv.ParseUint(s, base, 64)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	flow := map[uint64][]uint64{}
	first, last := map[string]uint64{}, map[string]uint64{}
	for _, m := range dotNode.FindAllStringSubmatch(dot, -1) {
		first[m[1]], last[m[1]] = number(m[2], 16), number(m[3], 16)
		for pc := first[m[1]]; pc < last[m[1]]; pc += isa.WordSize {
			flow[pc] = []uint64{pc + isa.WordSize}
		}
		flow[last[m[1]]] = []uint64{}
	}
	for _, m := range dotEdge.FindAllStringSubmatch(dot, -1) {
		from := last[m[1]]
		flow[from] = append(flow[from], first[m[2]])
	}
	for _, to := range flow {
		slices.Sort(to)
	}
	return flow
}

// TestDot compares the text of every graph of testdata with what nvdisasm -bbcfg says.
func TestDot(t *testing.T) {
	flows := map[string]map[uint64][]uint64{} // by cubin and function
	for _, c := range patchtest.FlowCases(t, root) {
		key := c.Cubin + " " + c.Function
		if flows[key] == nil {
			target := patchtest.OpenCubin(t, filepath.Join(root, c.Cubin))
			for i := range target.Cubin.Kernels() {
				k := &target.Cubin.Kernels()[i]
				flow := flowOf(t, string(cfg.New(target.Table, target.Kernel(k)).AppendDot(nil, i%2 == 0)))
				for _, f := range k.Functions() {
					flows[c.Cubin+" "+f.Name] = flow
				}
			}
		}
		for _, pc := range c.Shown {
			if got, want := slices.Compact(flows[key][pc]), c.After(pc); !slices.Equal(got, want) {
				t.Fatalf("%s: after %#x: %#x, nvdisasm %#x", key, pc, got, want)
			}
		}
	}
	if len(flows) < 800 {
		t.Errorf("only %d functions", len(flows))
	}
}

// TestLoops sees that loops are clusters inside one another, that each block stands in
// the cluster of its innermost loop, and that counts add up.
func TestLoops(t *testing.T) {
	table := patchtest.Table(t, "sm_90")
	lines := []string{"NOP", "NOP", "NOP", "@P0 BRA 0x20", "@P1 BRA 0x10", "NOP", "@P2 BRA 0x50", "EXIT"}
	g := graphOf(table, patchtest.Code(t, table, patchtest.Lines(strings.Join(lines, "\n"))), "k")
	want := []cfg.Loop{
		{Loop: 0, Header: 1, Latches: []int{3}, Blocks: []int{1, 3}, Depth: 1, Instructions: 4},
		{Loop: 1, Header: 4, Latches: []int{4}, Blocks: []int{4}, Depth: 1, Instructions: 2},
		{Loop: 2, Header: 2, Latches: []int{2}, Blocks: []int{2}, Depth: 2, Instructions: 2},
	}
	for i, l := range g.Loops {
		if i == 2 {
			if l.Parent == nil || *l.Parent != 0 {
				t.Errorf("loop 2 is in %v, want 0", l.Parent)
			}
			l.Parent = nil
		}
		if got := fmt.Sprintf("%+v", l); got != fmt.Sprintf("%+v", want[i]) {
			t.Errorf("%s, want %+v", got, want[i])
		}
	}
	var cluster []string
	var got []string
	for _, line := range strings.Split(string(g.AppendDot(nil, false)), "\n") {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "subgraph cluster_"); ok {
			cluster = append(cluster, strings.TrimSuffix(name, " {"))
		} else if line == "}" && len(cluster) > 0 {
			cluster = cluster[:len(cluster)-1]
		} else if m := regexp.MustCompile(`^b(\d+) \[`).FindStringSubmatch(line); m != nil {
			got = append(got, m[1]+" in "+strings.Join(cluster, " "))
		}
	}
	slices.Sort(got)
	if s := strings.Join(got, ", "); s != "0 in , 1 in 0, 2 in 0 2, 3 in 0, 4 in 1, 5 in " {
		t.Errorf("blocks: %s", s)
	}
}

// graphOf describes code that is in no file.
func graphOf(table *isa.Table, data []byte, name string) *cfg.Graph {
	return cfg.New(table, &code.Kernel{Name: name, Data: data})
}

// TestHostile makes graphs of random words and of names that would end a string: the
// quotation marks balance, and the same code gives the same text.
func TestHostile(t *testing.T) {
	table := patchtest.Table(t, "sm_90")
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 3))
		data := make([]byte, isa.WordSize*(1+r.IntN(200)))
		for off := 0; off < len(data); off += isa.WordSize {
			w := isa.Word{Lo: r.Uint64(), Hi: r.Uint64()}
			if r.IntN(2) == 0 { // a branch
				w.Lo = w.Lo&0xff0 | 0x7947 | uint64(r.IntN(2000))<<16
			}
			w.Store(data[off:])
		}
		name := []string{`a"b`, `\`, "x\ny", `"];} evil`, "\x00\x1b[2J", `\"`}[seed%6]
		dot := graphOf(table, data, name).AppendDot(nil, true)
		if again := graphOf(table, data, name).AppendDot(nil, true); !bytes.Equal(dot, again) {
			t.Fatal("the text is not the same twice")
		}
		for _, line := range strings.Split(string(dot), "\n") {
			plain := regexp.MustCompile(`"(?:[^"\\]|\\.)*"`).ReplaceAllString(line, "")
			if strings.Contains(plain, `"`) || strings.Contains(plain, "evil") || strings.ContainsFunc(line, func(r rune) bool { return r < ' ' && r != '\t' }) {
				t.Fatalf("%q", line)
			}
		}
	}
}
