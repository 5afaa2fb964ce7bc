package oracle

import (
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
)

// Flow is where execution may go on after the instructions of a function, by their
// addresses: nvdisasm's graph of basic blocks taken apart. It lacks what nvdisasm leaves
// out, such as the padding after the last EXIT, and the targets of calls.
type Flow map[uint64][]uint64

// Graphs returns the flow of each function of a cubin by its symbol, from `nvdisasm
// -bbcfg` (nvdisasm12 for cubins in the layout before CUDA 13, whose flow 13.5 refuses to
// analyze).
func Graphs(tool, cubin string) (map[string]Flow, error) {
	path, err := Lookup(tool)
	if err != nil {
		return nil, err
	}
	var stderr strings.Builder
	cmd := exec.Command(path, "-bbcfg", "-poff", cubin)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s -bbcfg %s: %w: %s", tool, cubin, err, strings.TrimSpace(stderr.String()))
	}
	return parseGraphs(string(out)), nil
}

var (
	graphName = regexp.MustCompile(`^"cluster_(.*)" \{`)
	graphNode = regexp.MustCompile(`(?m)^"([^"\n]*)"\n\[label="(.*)"\]`)
	graphInst = regexp.MustCompile(`([0-9a-f]{4,}):\\ ((?:[^\\]|\\[^l])*)\\l`)
	graphEdge = regexp.MustCompile(`(?m)^"([^"\n]*)":\S+ -> "([^"\n]*)":\S+ \[`)
)

// parseGraphs reads the dot text that nvdisasm prints, one cluster a function.
func parseGraphs(dot string) map[string]Flow {
	graphs := map[string]Flow{}
	for _, part := range strings.Split(dot, "subgraph ")[1:] {
		m := graphName.FindStringSubmatch(part)
		if m == nil {
			continue
		}
		flow := Flow{}
		graphs[m[1]] = flow
		first, last := map[string]uint64{}, map[string]uint64{}
		call := map[string]bool{} // blocks that end with a call
		for _, node := range graphNode.FindAllStringSubmatch(part, -1) {
			var pcs []uint64
			insts := graphInst.FindAllStringSubmatch(node[2], -1)
			for _, in := range insts {
				pc, _ := strconv.ParseUint(in[1], 16, 64) // the pattern allows nothing else
				pcs = append(pcs, pc)
			}
			if len(pcs) == 0 {
				continue
			}
			for i, pc := range pcs {
				flow[pc] = nil
				if i > 0 {
					flow[pcs[i-1]] = []uint64{pc}
				}
			}
			first[node[1]], last[node[1]] = pcs[0], pcs[len(pcs)-1]
			call[node[1]] = strings.Contains(insts[len(insts)-1][2], "CALL")
		}
		for _, e := range graphEdge.FindAllStringSubmatch(part, -1) {
			from, ok1 := last[e[1]]
			to, ok2 := first[e[2]]
			if ok1 && ok2 && (!call[e[1]] || to == from+16) {
				flow[from] = append(flow[from], to)
			}
		}
	}
	return graphs
}
