package main

import (
	"encoding/json"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/patch/cfg"
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
	kernelRun
	json, text bool
}

func runCfg(e *env, args []string) error {
	r := &cfgRun{kernelRun: kernelRun{env: e, done: "described"}}
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
	status, err := r.eachKernels(files, func(f *elfx.File, selected map[*elfx.Entry]bool) error {
		return kernelsIn(&r.kernelRun, f, selected, r.graphs, func(text []byte) error {
			_, err := r.stdout.Write(text)
			return err
		})
	})
	if err != nil {
		return err
	}
	return silent(status)
}

// graphs describes some kernels.
func (r *cfgRun) graphs(s *kernelCubin, kernels []*elfx.Kernel) []byte {
	var out []byte
	for _, k := range kernels {
		g := cfg.New(s.target.Table, s.target.Kernel(k))
		g.File, g.Entry, g.Arch, g.Demangled = s.names(k)
		if !r.json {
			out = g.AppendDot(out, r.text)
			continue
		}
		if b, err := json.Marshal(g); err == nil { // strings and numbers always marshal
			out = append(append(out, b...), '\n')
		}
	}
	return out
}
