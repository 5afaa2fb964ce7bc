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
	"os"
	"slices"
	"strings"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/scripts/nv/oracle"
)

func main() {
	w := bufio.NewWriter(os.Stdout)
	fmt.Fprintln(w, "# Made by scripts/nv/flowcases from nvdisasm -bbcfg.")
	for _, path := range os.Args[1:] {
		if err := record(w, path); err != nil {
			fmt.Fprintln(os.Stderr, "flowcases:", err)
			os.Exit(1)
		}
	}
	if err := w.Flush(); err != nil {
		fmt.Fprintln(os.Stderr, "flowcases:", err)
		os.Exit(1)
	}
}

func record(w *bufio.Writer, path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	c, err := elfx.ParseCubin(data)
	if err != nil {
		return err
	}
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
