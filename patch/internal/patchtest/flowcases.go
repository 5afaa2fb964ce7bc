package patchtest

import (
	"bufio"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/cupatch/cupatch/isa"
)

// A FlowCase is what nvdisasm -bbcfg says of a function.
type FlowCase struct {
	Cubin, Function string
	Shown           []uint64            // the addresses that nvdisasm shows
	next            map[uint64][]uint64 // successors that are not just the next address
}

// After returns the addresses at which execution may go on after the instruction at pc, in
// order.
func (c *FlowCase) After(pc uint64) []uint64 {
	if to, ok := c.next[pc]; ok {
		return to
	}
	return []uint64{pc + isa.WordSize}
}

// FlowCases reads patch/code/testdata/flow.txt; root is the folder of the repository.
func FlowCases(tb testing.TB, root string) []FlowCase {
	tb.Helper()
	f, err := os.Open(filepath.Join(root, "patch/code/testdata/flow.txt"))
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	hex := func(s string) uint64 {
		x, err := strconv.ParseUint(s, 16, 64)
		if err != nil {
			tb.Fatal(err)
		}
		return x
	}
	var out []FlowCase
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		if strings.HasPrefix(sc.Text(), "#") {
			continue
		}
		cols := strings.Split(sc.Text(), "\t")
		c := FlowCase{Cubin: cols[0], Function: cols[1], next: map[uint64][]uint64{}}
		for _, run := range strings.Split(cols[2], ",") {
			first, last, _ := strings.Cut(run, "-")
			for pc := hex(first); pc <= hex(last); pc += isa.WordSize {
				c.Shown = append(c.Shown, pc)
			}
		}
		for _, item := range strings.Fields(cols[3]) {
			from, to, _ := strings.Cut(item, ":")
			list := []uint64{}
			for _, x := range strings.FieldsFunc(to, func(r rune) bool { return r == ',' }) {
				list = append(list, hex(x))
			}
			c.next[hex(from)] = list
		}
		out = append(out, c)
	}
	return out
}
