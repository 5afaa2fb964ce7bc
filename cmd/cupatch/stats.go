package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/patch/code"
	"github.com/cupatch/cupatch/patch/listing"
	"github.com/cupatch/cupatch/patch/stats"
)

const statsUsage = `usage: cupatch stats [OPTIONS] FILE…

Counts, for each kernel: instructions by opcode; loads and stores by cache hint,
prefetch size, width and order; stall cycles, yields, scoreboards and waits; reuse
flags.

  -a, --arch ARCH     only cubins for ARCH; repeatable
  -k, --kernel GLOB   only kernels of this mangled, C++ or bare name; repeatable
      --detail        also follow the flow of each kernel: how many registers are taken at
                      once at most, and where; loops and what they are made of; sources
                      that collide in the register file; what goes through local memory
      --total         one count over all kernels; does not go with --detail
      --full          also count mnemonics with all their modifiers
      --json          one JSON object a line for each kernel
      --max-entry N   refuse entries larger than N when decompressed

The code hash can be used in [guard.kernels] of a recipe. docs/stats.md says how things
are counted; docs/stats.schema.json describes the JSON.

exit status: 0 done; 1 if -a, -k and FILE#ENTRY select nothing; 2 trouble.

examples:
  cupatch stats --detail -k 'gemm*' libfoo.so
  cupatch stats --json kernel.cubin | jq .opcodes
  cupatch stats --full --total libfoo.so
`

func init() {
	register(&command{"stats", "count instructions, cache hints, stalls", statsUsage, runStats})
}

// A statsRun is one run of stats.
type statsRun struct {
	kernelRun
	json   bool
	full   bool
	detail bool
	total  *stats.Stats // of --total
}

// jsonStats is a line of stats --json.
type jsonStats struct {
	File      string `json:"file,omitempty"`
	Entry     int    `json:"entry,omitempty"`
	Arch      string `json:"arch,omitempty"`
	Kernel    string `json:"kernel,omitempty"`
	Demangled string `json:"demangled,omitempty"`
	CodeHash  string `json:"code_sha256,omitempty"`
	Registers int    `json:"registers,omitempty"`
	Stack     int    `json:"stack,omitempty"` // bytes of local memory for a thread, as the cubin says
	*stats.Stats
	*stats.Details
}

func runStats(e *env, args []string) error {
	r := &statsRun{kernelRun: kernelRun{env: e, done: "counted"}}
	fs := e.flags()
	r.narrowing.flags(fs)
	total := fs.Bool("total", false, "")
	fs.BoolVar(&r.json, "json", false, "")
	fs.BoolVar(&r.full, "full", false, "")
	fs.BoolVar(&r.detail, "detail", false, "")
	files, err := e.parse(fs, args)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return e.usagef("stats needs a FILE")
	}
	if *total && r.detail {
		return e.usagef("--detail describes each kernel; it does not go with --total")
	}
	if *total {
		r.total = r.newStats()
	}
	status, err := r.eachKernels(files, r.file)
	if err != nil {
		return err
	}
	if r.total != nil {
		r.print(r.stdout, jsonStats{Stats: r.total}, "all kernels")
	}
	return silent(status)
}

// newStats returns empty counts.
func (r *statsRun) newStats() *stats.Stats {
	s := stats.New()
	if r.full {
		s.Mnemonics = map[string]int{}
	}
	return s
}

func (r *statsRun) file(f *elfx.File, selected map[*elfx.Entry]bool) error {
	return kernelsIn(&r.kernelRun, f, selected, r.count, func(t *statsText) error {
		if r.total != nil {
			r.total.Add(t.total)
		}
		_, err := r.stdout.Write(t.buf.Bytes())
		return err
	})
}

// A statsText is what is said of some kernels of a cubin.
type statsText struct {
	buf   bytes.Buffer
	total *stats.Stats
}

// count counts some kernels.
func (r *statsRun) count(s *kernelCubin, kernels []*elfx.Kernel) *statsText {
	out := &statsText{total: r.newStats()}
	for _, k := range kernels {
		n := r.newStats()
		n.Count(s.target.Table, k.Data())
		if r.total != nil {
			out.total.Add(n)
			continue
		}
		j := jsonStats{
			Kernel: k.Name, CodeHash: code.Hash(k.Data()), Registers: k.Regs, Stack: max(k.Stack, 0), Stats: n,
		}
		if r.detail {
			j.Details = stats.Describe(s.target.Table, s.target.Kernel(k))
		}
		j.File, j.Entry, j.Arch, j.Demangled = s.names(k)
		r.print(&out.buf, j, listing.Header(s.target.Kernel(k), s.entry.ArchOf(s.target.Cubin))[len("// "):])
	}
	return out
}

// print writes the counts as text or JSON.
func (r *statsRun) print(w io.Writer, j jsonStats, title string) {
	if r.json {
		b, err := json.Marshal(j)
		if err == nil { // strings and numbers always marshal
			w.Write(append(b, '\n'))
		}
		return
	}
	fmt.Fprintln(w, title)
	if j.CodeHash != "" {
		fmt.Fprintln(w, "  code hash     sha256:"+j.CodeHash)
	}
	s := j.Stats
	fmt.Fprintf(w, "  instructions  %d\n", s.Instructions)
	if s.Unknown > 0 {
		fmt.Fprintf(w, "  unknown       %d\n", s.Unknown)
	}
	fmt.Fprintf(w, "  stall cycles  %d (%s)\n", s.Stall, plural(s.Yields, "yield", "yields"))
	fmt.Fprintf(w, "  scoreboards   %d set, %s\n", s.ScoreboardsSet, plural(s.Waits, "wait", "waits"))
	fmt.Fprintf(w, "  reuse flags   %d of %d register sources (%s)\n", s.Reuse, s.Sources, percent(s.Reuse, s.Sources))
	if j.Details != nil {
		printDetails(w, j)
	}
	for _, g := range []struct {
		name string
		m    map[string]int
		by   stats.CountsBy
	}{{"opcodes", s.Opcodes, nil}, {"mnemonics", s.Mnemonics, nil}, {"loads", s.Loads, s.LoadsBy}, {"stores", s.Stores, s.StoresBy}, {"atomics", s.Atomics, s.AtomicsBy}} {
		if len(g.m) == 0 {
			continue
		}
		fmt.Fprintf(w, "  %s\n", g.name)
		for _, x := range stats.ByCount(g.m) {
			fmt.Fprintf(w, "    %7d %s\n", x.Count, x.Name)
		}
		for _, name := range slices.Sorted(maps.Keys(g.by)) {
			var values []string
			for _, x := range stats.ByCount(g.by[name]) {
				values = append(values, fmt.Sprintf("%d %s", x.Count, x.Name))
			}
			fmt.Fprintf(w, "    by %-9s %s\n", name, strings.Join(values, ", "))
		}
	}
}
