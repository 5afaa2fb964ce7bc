package main

import (
	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/patch/code"
)

// A kernelRun is one run of a command that says something of each kernel.
type kernelRun struct {
	*env
	narrowing
	done   string                   // what happens to kernels: counted
	accept func(*code.Target) error // what keeps a cubin from being looked at; nil: nothing
	found  bool                     // there is something that -a, -k and the rest choose
	status int
}

// A kernelCubin is a cubin whose kernels are looked at.
type kernelCubin struct {
	file   *elfx.File
	entry  *elfx.Entry
	target *code.Target
	err    error
}

// names returns how JSON names a kernel's file, the number of its entry, 0 for a bare cubin,
// the architecture, and its C++ name, "" where it has none.
func (s *kernelCubin) names(k *elfx.Kernel) (file string, entry int, arch, demangled string) {
	if s.file.Kind != elfx.FileCubin {
		entry = s.entry.Number
	}
	if d := k.Demangled(); d != k.Name {
		demangled = d
	}
	return s.file.Name, entry, s.entry.ArchOf(s.target.Cubin), demangled
}

// begin looks at a cubin before its kernels are.
func (r *kernelRun) begin(f *elfx.File, e *elfx.Entry, t *code.Target, err error) (*kernelCubin, []*elfx.Kernel) {
	s := &kernelCubin{file: f, entry: e, target: t, err: err}
	if err == nil {
		s.err = tableError(e, t)
	}
	if s.err == nil && r.accept != nil {
		s.err = r.accept(t)
	}
	if s.err != nil {
		return s, nil
	}
	return s, r.kernelsOf(t.Cubin, false)
}

// kernelsIn calls work for the chosen kernels of a file, some at a time and several times at
// once, and use with the results in order.
func kernelsIn[T any](r *kernelRun, f *elfx.File, selected map[*elfx.Entry]bool, work func(*kernelCubin, []*elfx.Kernel) T, use func(T) error) error {
	type result struct {
		kernels int
		value   T
	}
	cubins := r.cubins(f, selected)
	r.found = r.found || len(cubins) > 0 && len(r.kernels) == 0
	skipped := &skipping{}
	walk := cubinWalk[*kernelCubin, result]{
		begin: func(e *elfx.Entry, t *code.Target, err error) (*kernelCubin, []*elfx.Kernel) {
			return r.begin(f, e, t, err)
		},
		work: func(s *kernelCubin, kernels []*elfx.Kernel) result {
			return result{len(kernels), work(s, kernels)}
		},
		use: func(s *kernelCubin, v result) error {
			switch {
			case s.err == nil:
				skipped.done = true
			case !skipped.add(s.err):
				r.report(s.err)
				r.status = worse(r.status, 2)
			}
			r.found = r.found || v.kernels > 0
			return use(v.value)
		},
	}
	if err := walk.run(r.jobs, cubins); err != nil {
		return err
	}
	if err := skipped.end(r.env, f.Name, r.done); err != nil {
		r.report(err)
		r.status = worse(r.status, 2)
	}
	if !r.found {
		r.missed(f, selected)
	}
	return nil
}

// eachKernels opens the files and calls file for each. It returns the exit status, or an
// error where nothing was chosen.
func (r *kernelRun) eachKernels(files []string, file func(*elfx.File, map[*elfx.Entry]bool) error) (int, error) {
	opt, err := r.options()
	if err != nil {
		return 0, err
	}
	status, err := r.eachFile(files, opt, file)
	if err != nil {
		return 0, err
	}
	if status = worse(status, r.status); !r.found && status == 0 {
		return 0, r.nothing("cubin")
	}
	return status, nil
}
