package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/cupatch/cupatch/patch/stats"
)

// printDetails writes what is known of one kernel.
func printDetails(w io.Writer, j jsonStats) {
	d := j.Details
	fmt.Fprintf(w, "  reuse cache   %d taken from it, %d missed\n", d.Reuse.Taken, d.Reuse.Missed)
	note := ""
	if !d.Banks.Measured {
		note = " by the rule of Volta"
	}
	fmt.Fprintf(w, "  banks         %s%s\n", plural(d.Banks.Conflicts, "conflict", "conflicts"), note)
	var peaks []string
	for _, p := range []struct {
		file string
		stats.Peak
	}{{"R", d.Pressure.R}, {"UR", d.Pressure.UR}, {"P", d.Pressure.P}, {"UP", d.Pressure.UP}} {
		if p.Registers > 0 {
			peaks = append(peaks, fmt.Sprintf("%d %s at %04x", p.Registers, p.file, p.PC))
		}
	}
	if peaks != nil {
		fmt.Fprintf(w, "  pressure      %s\n", strings.Join(peaks, ", "))
	}
	printLocal(w, j)
	for i, l := range d.Loops {
		if i == 0 {
			fmt.Fprintln(w, "  loops")
		}
		fmt.Fprintf(w, "    %7d %s at %04x, depth %d:", l.Instructions, pluralWord(l.Instructions, "instruction", "instructions"), l.Header, l.Depth)
		for k, x := range stats.ByCount(l.Opcodes) {
			fmt.Fprintf(w, "%s %d %s", [...]string{"", ","}[min(k, 1)], x.Count, x.Name)
		}
		fmt.Fprintln(w)
	}
}

// printLocal writes what goes through local memory, if anything does.
func printLocal(w io.Writer, j jsonStats) {
	l := j.Local
	if l.Stores+l.Loads+j.Stack == 0 {
		return
	}
	fmt.Fprintf(w, "  local memory  %d bytes of stack, %d stored, %d loaded; ", j.Stack, l.Stores, l.Loads)
	if l.SpillStores == nil {
		fmt.Fprintln(w, "there is an array or another use of the stack, so spills are not told apart")
		return
	}
	fmt.Fprintf(w, "spill stores %d, spill loads %d\n", *l.SpillStores, *l.SpillLoads)
}
