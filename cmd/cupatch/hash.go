package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/patch/code"
	"github.com/cupatch/cupatch/patch/diff"
)

const hashUsage = `usage: cupatch hash [OPTIONS] FILE…

Prints a hash of each kernel and of each file. Equal code has equal hashes, whatever the
container, compression or order of the kernels.

  -l, --level LEVELS  what the hash ignores; comma-separated (default code):
                        bytes      nothing: SHA-256 of the code section
                        code       addresses, relocated fields, padding
                        nocontrol  also control codes
                        noregs     also the choice of registers
  -a, --arch ARCH     only cubins for ARCH; repeatable
  -k, --kernel GLOB   only kernels of this mangled, C++ or bare name; repeatable
      --files         only the hash of each file
      --duplicates    only kernels whose hash occurs more than once, in groups
      --conflicts     only kernels whose name occurs with several hashes, in groups
      --json          one JSON object a line
      --max-entry N   refuse entries larger than N when decompressed

A line is LEVEL and version, hash, architecture, FILE or FILE#ENTRY, kernel. The hash
of a kernel is one of its code and its constant banks, not of its name; that of a file
is one of names, hashes, and what else a loader sees. The scheme is described in
docs/hash.md.

exit status: 0 done; 1 no kernel was found; 2 trouble.

examples:
  cupatch hash libfoo.so
  cupatch hash --level code,nocontrol -k 'gemm*' kernel.cubin
  cupatch hash --duplicates cubins/
`

func init() {
	register(&command{"hash", "hashes that are equal where the code is", hashUsage, runHash})
}

// A hashRun is one run of hash.
type hashRun struct {
	*env
	narrowing
	levels     []diff.HashLevel
	filesOnly  bool
	duplicates bool
	conflicts  bool
	json       bool
	list       []hashedKernel // kept for --duplicates and --conflicts
	found      int
	status     int
}

// A hashedKernel is a kernel and its hash at one level.
type hashedKernel struct {
	level   diff.HashLevel
	hash    diff.Hash
	arch    string
	file    string
	entry   int // 0 in a bare cubin
	name    string
	n       int
	unknown int
}

// jsonHash is a line of hash --json: a kernel, or a file where there is no kernel.
type jsonHash struct {
	Level        string `json:"level"`
	Version      int    `json:"version"`
	Hash         string `json:"hash"`
	File         string `json:"file"`
	Entry        int    `json:"entry,omitempty"`
	Arch         string `json:"arch,omitempty"`
	Kernel       string `json:"kernel,omitempty"`
	Instructions int    `json:"instructions,omitempty"`
	Unknown      int    `json:"unknown,omitempty"`
	Kernels      int    `json:"kernels,omitempty"`
}

func runHash(e *env, args []string) error {
	r := &hashRun{env: e}
	fs := e.flags()
	r.narrowing.flags(fs)
	levels := fs.StringSliceP("level", "l", []string{"code"}, "")
	fs.BoolVar(&r.filesOnly, "files", false, "")
	fs.BoolVar(&r.duplicates, "duplicates", false, "")
	fs.BoolVar(&r.conflicts, "conflicts", false, "")
	fs.BoolVar(&r.json, "json", false, "")
	files, err := e.parse(fs, args)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return e.usagef("hash needs a FILE")
	}
	for _, s := range *levels {
		l, err := diff.ParseHashLevel(s)
		if err != nil {
			return e.usageError(fmt.Errorf("--level: %w", err))
		}
		r.levels = append(r.levels, l)
	}
	if r.filesOnly && (r.duplicates || r.conflicts) || r.duplicates && r.conflicts {
		return e.usagef("--files, --duplicates and --conflicts do not go together")
	}
	opt, err := r.options()
	if err != nil {
		return err
	}
	status, err := e.eachFile(files, opt, r.file)
	if err != nil {
		return err
	}
	if r.duplicates || r.conflicts {
		r.groups()
	}
	if status = worse(status, r.status); status == 0 && r.found == 0 {
		return r.nothing("kernel")
	}
	return silent(status)
}

// file hashes the kernels of one file.
func (r *hashRun) file(f *elfx.File, selected map[*elfx.Entry]bool) error {
	if err := f.Damage(); err != nil {
		r.report(err)
		r.status = worse(r.status, 2)
	}
	lines := make([][]string, len(r.levels))
	n := 0
	walk := cubinWalk[*hashCubin, *hashPiece]{begin: r.begin, work: func(s *hashCubin, kernels []*elfx.Kernel) *hashPiece {
		return r.hash(f, s, kernels)
	}}
	walk.use = func(s *hashCubin, p *hashPiece) error {
		if s.err != nil {
			r.report(s.err)
			r.status = worse(r.status, 2)
		}
		n += len(p.list) / len(r.levels)
		for li := range lines {
			lines[li] = append(lines[li], p.lines[li]...)
		}
		for _, h := range p.list {
			switch {
			case r.duplicates || r.conflicts:
				r.list = append(r.list, h)
			case !r.filesOnly:
				r.printKernel(h)
			}
		}
		return nil
	}
	if err := walk.run(r.jobs, r.cubins(f, selected)); err != nil {
		return err
	}
	if r.found += n; r.found == 0 {
		r.missed(f, selected)
	}
	if n == 0 || r.duplicates || r.conflicts {
		return nil
	}
	if err := r.others(f, selected, lines); err != nil {
		return err
	}
	for li, level := range r.levels {
		r.print(jsonHash{Level: level.String(), Version: level.Version(), Hash: diff.FileHash(level, lines[li]).String(), File: f.Name, Kernels: n})
	}
	return nil
}

// whole reports whether the hashes of files are about all that is in them.
func (r *hashRun) whole() bool { return len(r.kernels) == 0 && !r.duplicates && !r.conflicts }

// others adds the lines of the entries that are no cubins to those of the file.
func (r *hashRun) others(f *elfx.File, selected map[*elfx.Entry]bool, lines [][]string) error {
	type hashed struct {
		line string
		err  error
	}
	if !r.whole() {
		return nil
	}
	produce := func(submit func(func() hashed) bool) {
		for _, e := range f.Entries() {
			if selected != nil && !selected[e] || !r.archWanted(e) || e.Kind == elfx.KindELF || e.Kind == elfx.KindConcat {
				continue
			}
			if !submit(func() hashed { line, err := diff.EntryLine(e); return hashed{line, err} }) {
				return
			}
		}
	}
	return inOrder(r.jobs, 4*r.jobs, produce, func(h hashed) error {
		if h.err != nil {
			r.report(h.err)
			r.status = worse(r.status, 2)
			return nil
		}
		for li := range lines {
			lines[li] = append(lines[li], h.line)
		}
		return nil
	})
}

// A hashCubin is a cubin whose kernels are hashed.
type hashCubin struct {
	entry   *elfx.Entry
	module  *diff.Module
	kernels []*elfx.Kernel
	err     error
}

// A hashPiece is some kernels of a cubin, and the lines that they and the cubin have in
// the hash of the file, by level.
type hashPiece struct {
	list  []hashedKernel
	lines [][]string
}

// begin looks at a cubin before its kernels are hashed.
func (r *hashRun) begin(e *elfx.Entry, t *code.Target, err error) (*hashCubin, []*elfx.Kernel) {
	if err != nil {
		return &hashCubin{err: err}, nil
	}
	if err := tableError(e, t); err != nil && !code.Unsupported(err) {
		return &hashCubin{err: err}, nil
	}
	s := &hashCubin{entry: e, module: diff.NewModule(t.Cubin, t.Table), kernels: r.kernelsOf(t.Cubin, false)}
	return s, s.kernels
}

// hash hashes some kernels at every level, one kernel after another.
func (r *hashRun) hash(f *elfx.File, s *hashCubin, kernels []*elfx.Kernel) *hashPiece {
	p := &hashPiece{lines: make([][]string, len(r.levels))}
	for _, k := range kernels {
		c := s.module.CodeOf(k)
		for li, level := range r.levels {
			h := hashedKernel{
				level: level, hash: c.Hash(level), arch: c.Arch, file: f.Name, name: k.Name, n: c.Len(), unknown: c.Unknown,
			}
			if f.Kind != elfx.FileCubin {
				h.entry = s.entry.Number
			}
			p.list = append(p.list, h)
			p.lines[li] = append(p.lines[li], c.HashLine(level, h.hash))
		}
		c.Done()
	}
	if first := len(kernels) == 0 || kernels[0] == s.kernels[0]; first && s.err == nil && r.whole() {
		for li, level := range r.levels {
			p.lines[li] = append(p.lines[li], s.module.ModuleLine(level))
		}
	}
	return p
}

func (r *hashRun) printKernel(h hashedKernel) {
	r.print(jsonHash{
		Level: h.level.String(), Version: h.level.Version(), Hash: h.hash.String(), File: h.file, Entry: h.entry, Arch: h.arch, Kernel: h.name,
		Instructions: h.n, Unknown: h.unknown,
	})
}

// print writes one line.
func (r *hashRun) print(j jsonHash) {
	if r.json {
		if b, err := json.Marshal(j); err == nil { // strings and numbers always marshal
			r.stdout.Write(append(b, '\n'))
		}
		return
	}
	at := j.File
	if j.Entry > 0 {
		at = elfx.JoinSelector(j.File, strconv.Itoa(j.Entry))
	}
	if j.Kernel == "" && j.Arch == "" {
		fmt.Fprintf(r.stdout, "%s%d %s file %s (%s)\n", j.Level, j.Version, j.Hash, elfx.Printable(at), plural(j.Kernels, "kernel", "kernels"))
		return
	}
	fmt.Fprintf(r.stdout, "%s%d %s %s %s %s\n", j.Level, j.Version, j.Hash, j.Arch, elfx.Printable(at), elfx.Printable(j.Kernel))
}

// groups prints the kernels that share a hash, or a name, in groups.
func (r *hashRun) groups() {
	key := func(h hashedKernel) string { return fmt.Sprint(h.level, " ", h.arch, " ", h.hash) }
	value := func(h hashedKernel) string { return h.file + fmt.Sprint(h.entry) + h.name }
	if r.conflicts {
		key = func(h hashedKernel) string { return fmt.Sprint(h.level, " ", h.arch, " ", h.name) }
		value = func(h hashedKernel) string { return h.hash.String() }
	}
	by := map[string][]hashedKernel{}
	for _, h := range r.list {
		by[key(h)] = append(by[key(h)], h)
	}
	var groups [][]hashedKernel
	for _, g := range by {
		values := map[string]bool{}
		for _, h := range g {
			values[value(h)] = true
		}
		if len(values) > 1 {
			groups = append(groups, g)
		}
	}
	slices.SortFunc(groups, func(a, b []hashedKernel) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a[0].name, b[0].name), cmp.Compare(a[0].file, b[0].file),
			cmp.Compare(key(a[0]), key(b[0])))
	})
	for i, g := range groups {
		if i > 0 && !r.json {
			fmt.Fprintln(r.stdout)
		}
		for _, h := range g {
			r.printKernel(h)
		}
	}
	what := "share their code with another"
	if r.conflicts {
		what = "have a name with different code elsewhere"
	}
	n := 0
	for _, g := range groups {
		n += len(g)
	}
	r.notef("%d of %s, in %s, %s", n, plural(len(r.list), "kernel", "kernels"), plural(len(groups), "group", "groups"), what)
}
