package main

import (
	"encoding/json"
	"fmt"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/patch/cfg"
	"github.com/cupatch/cupatch/patch/code"
)

const cfgUsage = `usage: cupatch cfg [OPTIONS] FILE…

Prints the control flow of every kernel in FILE as a graph for Graphviz: a node for each
basic block with its addresses, instructions and register pressure, an edge for each way
that control can go (taken, fall through, indirect; back to the header of a loop in red;
calls in gray), a cluster for each loop, inside one another. Blocks, edges and loops are
those that nvdisasm -bbcfg finds.

  -a, --arch ARCH     only cubins for ARCH; repeatable
  -k, --kernel GLOB   only kernels of this mangled, C++ or bare name; repeatable
      --text          with the instructions in the nodes
      --json          one JSON object a line for each kernel
      --max-entry N   refuse entries larger than N when decompressed

FILE is anything that cupatch ls reads; - is standard input. docs/cfg.schema.json
describes the JSON.

exit status: 0 done; 1 if -a, -k and FILE#ENTRY select nothing; 2 trouble.

examples:
  cupatch cfg -k gemm kernel.cubin | dot -Tsvg > gemm.svg
  cupatch cfg --json kernel.cubin | jq '.loops[] | select(.depth == 1)'
`

func init() {
	register(&command{"cfg", "the control flow of kernels, for Graphviz or as JSON", cfgUsage, runCfg})
}

// A cfgRun is one run of cfg.
type cfgRun struct {
	*env
	narrowing
	json, text bool
	found      bool // there is something that -a, -k and the rest choose
	status     int
}

// A cfgCubin is a cubin whose kernels are described.
type cfgCubin struct {
	entry  *elfx.Entry
	target *code.Target
	err    error
}

func runCfg(e *env, args []string) error {
	r := &cfgRun{env: e}
	fs := e.flags()
	r.narrowing.flags(fs)
	fs.BoolVar(&r.json, "json", false, "")
	fs.BoolVar(&r.text, "text", false, "")
	files, err := e.parse(fs, args)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return e.usagef("cfg needs a FILE")
	}
	if r.json && r.text {
		return e.usagef("--text goes into the nodes of a graph; with --json, use cupatch dis --json --blocks")
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
	return silent(status)
}

func (r *cfgRun) file(f *elfx.File, selected map[*elfx.Entry]bool) error {
	cubins := r.cubins(f, selected)
	r.found = r.found || len(cubins) > 0 && len(r.kernels) == 0
	skipped := &skipping{}
	walk := cubinWalk[*cfgCubin, []byte]{begin: r.begin}
	walk.work = func(s *cfgCubin, kernels []*elfx.Kernel) []byte {
		var out []byte
		for _, k := range kernels {
			out = r.kernel(out, f, s, k)
		}
		return out
	}
	walk.use = func(s *cfgCubin, text []byte) error {
		switch {
		case s.err == nil:
			skipped.done = true
		case !skipped.add(s.err):
			r.report(s.err)
			r.status = worse(r.status, 2)
		}
		r.found = r.found || len(text) > 0
		if _, err := r.stdout.Write(text); err != nil {
			return &exitError{code: 2, err: fmt.Errorf("standard output: %w", err)}
		}
		return nil
	}
	if err := walk.run(r.jobs, cubins); err != nil {
		return err
	}
	if err := skipped.end(r.env, f.Name, "described"); err != nil {
		r.report(err)
		r.status = worse(r.status, 2)
	}
	if !r.found {
		r.missed(f, selected)
	}
	return nil
}

// begin looks at a cubin before its kernels are described.
func (r *cfgRun) begin(e *elfx.Entry, t *code.Target, err error) (*cfgCubin, []*elfx.Kernel) {
	s := &cfgCubin{entry: e, target: t, err: err}
	if err == nil {
		s.err = tableError(e, t)
	}
	if s.err != nil {
		return s, nil
	}
	return s, r.kernelsOf(t.Cubin, false)
}

// kernel appends the graph of one kernel.
func (r *cfgRun) kernel(dst []byte, f *elfx.File, s *cfgCubin, k *elfx.Kernel) []byte {
	g := cfg.New(s.target.Table, s.target.Kernel(k))
	g.File, g.Arch = f.Name, s.entry.ArchOf(s.target.Cubin)
	if f.Kind != elfx.FileCubin {
		g.Entry = s.entry.Number
	}
	if d := k.Demangled(); d != k.Name {
		g.Demangled = d
	}
	if !r.json {
		return g.AppendDot(dst, r.text)
	}
	b, err := json.Marshal(g)
	if err != nil {
		return dst // strings and numbers always marshal
	}
	return append(append(dst, b...), '\n')
}
