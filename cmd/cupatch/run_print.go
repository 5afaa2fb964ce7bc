package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cupatch/cupatch/patch/gpu"
)

// A runReport is what run --json prints.
type runReport struct {
	Format string      `json:"format"`
	Tool   string      `json:"tool"`
	Device *gpu.Device `json:"device"`
	Launch runLaunch   `json:"launch"`
	*gpu.Result
	Error string `json:"error,omitempty"` // why a kernel did not run to its end
}

// A runLaunch is how kernels were launched.
type runLaunch struct {
	Grid   gpu.Dim  `json:"grid"`
	Block  gpu.Dim  `json:"block"`
	Shared uint32   `json:"shared"`
	Args   []string `json:"args"`
	Check  int      `json:"check"`
	Warmup int      `json:"warmup"`
	Repeat int      `json:"repeat"`
	Reset  bool     `json:"reset"`
	Cold   bool     `json:"cold"`
}

// described returns the launch for JSON.
func (l *launching) described() runLaunch {
	x := &l.launch
	return runLaunch{
		Grid: x.Grid, Block: x.Block, Shared: x.Shared, Args: append([]string{}, l.args...),
		Check: x.Check, Warmup: x.Warmup, Repeat: x.Repeat, Reset: x.Reset, Cold: x.Cold,
	}
}

// someOf lists names, the first dozen of many.
func someOf(names map[string]bool) string {
	list := slices.Sorted(maps.Keys(names))
	if n := len(list); n > 12 {
		list = append(list[:12], fmt.Sprintf("… (%d in all)", n))
	}
	return strings.Join(list, ", ")
}

// describe prints what would be launched.
func (r *gpuRun) describe(choices [][]*gpu.Program) error {
	for _, list := range choices {
		for _, p := range list {
			fmt.Fprintf(r.stdout, "%s: kernel %s, %s, %s, %d bytes of shared memory\n", p.Name, shownName(p.Kernel.Name), p.Cubin.Arch, plural(p.Kernel.Regs, "register", "registers"), p.Kernel.Shared)
			for i, q := range p.Kernel.ParamList() {
				fmt.Fprintf(r.stdout, "  parameter %d: %s at 0x%x: %s\n", i+1, plural(q.Size, "byte", "bytes"), q.Offset, r.launch.Args[i].Text)
			}
		}
	}
	fmt.Fprintf(r.stdout, "grid %v, block %v, %d bytes of dynamic shared memory: it fits\n", r.launch.Grid, r.launch.Block, r.launch.Shared)
	return nil
}

// print writes the result of a run.
func (r *gpuRun) print(d *gpu.Device, res *gpu.Result, failed *gpu.KernelError) error {
	if r.json {
		rep := runReport{Format: "cupatch-run-1", Tool: toolName(), Device: d, Launch: r.described(), Result: res}
		if failed != nil {
			rep.Error = failed.Error()
		}
		return r.printJSON(rep)
	}
	w := r.stdout
	fmt.Fprintf(w, "GPU %d: %s, sm_%d, %s, driver for CUDA %s\n", d.Number, d.Name, d.SM, plural(d.Processors, "multiprocessor", "multiprocessors"), d.Driver)
	for i, p := range res.Programs {
		label := ""
		if len(res.Programs) > 1 {
			label = string(rune('A'+i)) + " "
		}
		fmt.Fprintf(w, "%s%s: kernel %s, %s\n", label, p.Name, p.Kernel, p.Arch)
		for _, b := range p.Buffers {
			note := "unchanged"
			if b.Changed {
				note = "changed"
			}
			fmt.Fprintf(w, "  argument %d: %d %s, sha256 %s, %s\n", b.Arg, b.Count, b.Type, b.SHA256[:16], note)
		}
		if t := p.Times; t != nil {
			fmt.Fprintf(w, "  %s: median of %s; fastest %s, quartiles %s to %s%s\n",
				micros(t.Median), plural(t.Launches, "launch", "launches"), micros(t.Min), micros(t.Q1), micros(t.Q3), bandwidth(p.GBs))
		}
	}
	if failed == nil {
		r.printComparison(res)
	}
	return nil
}

// printComparison says how further programs compare with the first one, and whether the
// first one gave the same each time.
func (r *gpuRun) printComparison(res *gpu.Result) {
	for i, p := range res.Programs {
		label := "results"
		if i > 0 {
			label = string(rune('A'+i)) + " against A"
		}
		switch {
		case !p.Identical && i == 0:
			fmt.Fprintf(r.stdout, "results: not the same every time: %s\n", difference(p.Difference))
		case !p.Identical:
			fmt.Fprintf(r.stdout, "%s: results differ: %s\n", label, difference(p.Difference))
		case i > 0:
			fmt.Fprintf(r.stdout, "%s: results bit-identical, %s\n", label, plural(r.launch.Check, "time", "times"))
		}
		if q := p.Ratio; q != nil {
			fmt.Fprintf(r.stdout, "%s: takes %.4f of the time (quartiles %.4f to %.4f)\n", label, q.Median, q.Q1, q.Q3)
		}
	}
}

// difference describes the first element in which results differ.
func difference(d *gpu.Difference) string {
	return fmt.Sprintf("argument %d, element %d is %s, not %s (%d of %d elements differ)", d.Arg, d.Index, d.Got, d.Want, d.Count, d.Of)
}

// micros writes a time given in microseconds.
func micros(us float64) string {
	if us >= 10000 {
		return fmt.Sprintf("%.3f ms", us/1000)
	}
	return fmt.Sprintf("%.2f us", us)
}

func bandwidth(gbs float64) string {
	if gbs == 0 {
		return ""
	}
	return fmt.Sprintf("; %.1f GB/s", gbs)
}
