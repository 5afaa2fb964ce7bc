package main

import (
	"encoding/json"
	"fmt"
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
flags; registers.

  -a, --arch ARCH     only cubins for ARCH; repeatable
  -k, --kernel GLOB   only kernels named so: mangled, C++ or bare name; repeatable
      --total         one count over all kernels
      --json          one JSON object a line for each kernel
      --max-entry N   refuse entries larger than N when decompressed

The code hash is the one that a recipe's [guard.kernels] takes.

exit status: 0; 1 if -a, -k and the entries of FILE choose nothing; 2 trouble.

examples:
  cupatch stats -k 'gemm*' libfoo.so
  cupatch stats --json kernel.cubin | jq .opcodes
`

func init() {
	register(&command{"stats", "count instructions, cache hints, stalls", statsUsage, runStats})
}

// A statsRun is one run of stats.
type statsRun struct {
	*env
	narrowing
	json   bool
	total  *stats.Stats // of --total
	found  bool         // there is something that -a, -k and the rest choose
	status int
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
	*stats.Stats
}

func runStats(e *env, args []string) error {
	r := &statsRun{env: e}
	fs := e.flags()
	r.narrowing.flags(fs)
	total := fs.Bool("total", false, "")
	fs.BoolVar(&r.json, "json", false, "")
	files, err := e.parse(fs, args)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return e.usagef("stats needs a FILE")
	}
	if *total {
		r.total = stats.New()
	}
	opt, err := r.options()
	if err != nil {
		return err
	}
	status, err := e.eachFile(files, opt, r.file)
	if err != nil {
		return err
	}
	if status = worse(status, r.status); !r.found && status == 0 {
		return r.nothing("cubin")
	}
	if r.total != nil {
		r.print(jsonStats{Stats: r.total}, "all kernels")
	}
	return silent(status)
}

func (r *statsRun) file(f *elfx.File, selected map[*elfx.Entry]bool) error {
	cubins := r.cubins(f, selected)
	r.found = r.found || len(cubins) > 0 && len(r.kernels) == 0
	for _, e := range cubins {
		if err := r.entry(f, e); err != nil {
			r.report(err)
			r.status = worse(r.status, 2)
		}
	}
	if !r.found {
		r.missed(f, selected)
	}
	return nil
}

func (r *statsRun) entry(f *elfx.File, e *elfx.Entry) error {
	t, err := code.Open(e)
	if err != nil {
		return err
	}
	if t.NoTable != nil {
		return fmt.Errorf("%s: %w", e.ID(), t.NoTable)
	}
	c, table := t.Cubin, t.Table
	for _, k := range kernelOrder(c, false) {
		if !r.kernelWanted(k) {
			continue
		}
		r.found = true
		s := stats.New()
		s.Count(table, k.Data())
		if r.total != nil {
			r.total.Add(s)
			continue
		}
		j := jsonStats{
			File: f.Name, Arch: c.Arch, Kernel: k.Name, CodeHash: code.Hash(k.Data()), Registers: k.Regs, Stats: s,
		}
		if f.Kind != elfx.FileCubin {
			j.Entry = e.Number
		}
		if d := k.Demangled(); d != k.Name {
			j.Demangled = d
		}
		r.print(j, listing.Header(t.Kernel(k), c.Arch)[len("// "):])
	}
	return nil
}

// print writes the counts as text or JSON.
func (r *statsRun) print(j jsonStats, title string) {
	if r.json {
		b, err := json.Marshal(j)
		if err == nil { // strings and numbers always marshal
			r.stdout.Write(append(b, '\n'))
		}
		return
	}
	fmt.Fprintln(r.stdout, title)
	if j.CodeHash != "" {
		fmt.Fprintln(r.stdout, "  code hash     sha256:"+j.CodeHash)
	}
	s := j.Stats
	fmt.Fprintf(r.stdout, "  instructions  %d\n", s.Instructions)
	if s.Unknown > 0 {
		fmt.Fprintf(r.stdout, "  unknown       %d\n", s.Unknown)
	}
	fmt.Fprintf(r.stdout, "  stall cycles  %d (%s)\n", s.Stall, plural(s.Yields, "yield", "yields"))
	fmt.Fprintf(r.stdout, "  scoreboards   %d set, %s\n", s.ScoreboardsSet, plural(s.Waits, "wait", "waits"))
	fmt.Fprintf(r.stdout, "  reuse flags   %d of %d register sources (%s)\n", s.Reuse, s.Sources, percent(s.Reuse, s.Sources))
	for _, g := range []struct {
		name string
		m    map[string]int
		by   stats.CountsBy
	}{{"opcodes", s.Opcodes, nil}, {"loads", s.Loads, s.LoadsBy}, {"stores", s.Stores, s.StoresBy}, {"atomics", s.Atomics, s.AtomicsBy}} {
		if len(g.m) == 0 {
			continue
		}
		fmt.Fprintf(r.stdout, "  %s\n", g.name)
		for _, x := range stats.ByCount(g.m) {
			fmt.Fprintf(r.stdout, "    %7d %s\n", x.Count, x.Name)
		}
		for _, name := range slices.Sorted(maps.Keys(g.by)) {
			var values []string
			for _, x := range stats.ByCount(g.by[name]) {
				values = append(values, fmt.Sprintf("%d %s", x.Count, x.Name))
			}
			fmt.Fprintf(r.stdout, "    by %-9s %s\n", name, strings.Join(values, ", "))
		}
	}
}
