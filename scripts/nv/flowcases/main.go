// Command flowcases prints, for each function of cubins, where control goes according to
// nvdisasm: the cases of patch/code/testdata/flow.txt.
//
//	go run ./scripts/nv/flowcases testdata/cubin/*/*/*.cubin > patch/code/testdata/flow.txt
//
// A line has the cubin, the function, the addresses that nvdisasm shows as FIRST-LAST and,
// for the instructions that do not just go on to the next address, ADDRESS:SUCCESSORS.
package main

import (
	"bufio"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/scripts/nv/cases"
	"github.com/cupatch/cupatch/scripts/nv/oracle"
)

func main() { cases.OfCubins("flowcases", "nvdisasm -bbcfg.", record) }

func record(w *bufio.Writer, path string, c *elfx.Cubin) error {
	tool := "nvdisasm"
	if c.Layout == elfx.LayoutOld {
		tool = "nvdisasm12"
	}
	graphs, err := oracle.Graphs(tool, path)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(graphs)) {
		flow := graphs[name]
		pcs := slices.Sorted(maps.Keys(flow))
		fmt.Fprintf(w, "%s\t%s\t%s\t", path, name, runs(pcs))
		for _, pc := range pcs {
			if to := flow[pc]; len(to) != 1 || to[0] != pc+16 {
				slices.Sort(to)
				fmt.Fprintf(w, " %x:%s", pc, join(to))
			}
		}
		fmt.Fprintln(w)
	}
	return nil
}

// runs returns the runs of adjacent instructions in pcs, which is in order.
func runs(pcs []uint64) string {
	var s []string
	for i := 0; i < len(pcs); i++ {
		first := pcs[i]
		for i+1 < len(pcs) && pcs[i+1] == pcs[i]+16 {
			i++
		}
		s = append(s, fmt.Sprintf("%x-%x", first, pcs[i]))
	}
	return strings.Join(s, ",")
}

func join(to []uint64) string {
	var s []string
	for _, x := range slices.Compact(to) {
		s = append(s, fmt.Sprintf("%x", x))
	}
	return strings.Join(s, ",")
}
