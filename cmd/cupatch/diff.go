package main

import (
	"errors"
	"fmt"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/patch/diff"
)

const diffUsage = `usage: cupatch diff [OPTIONS] A B

Compares the GPU code of two files, or of two folders or wheels file by file, and
classifies the differences. Kernels are paired by architecture and name, then by code,
then by similarity. Each pair has one class, from the strongest agreement to the weakest:

  identical       equal bytes
  same-code       equal except for addresses, relocated fields and padding
  hidden          equal text and control codes, other bits differ
  control-only    only control codes differ
  registers-only  equal after renaming registers (control codes may differ)
  reordered       the same instructions in another order that keeps every dependence
  modifiers-only  the same opcodes and operands (the rest may differ)
  code            other instructions

  -l, --level LEVEL   what counts as different, the strictest first:
                        bytes      the files, byte for byte
                        metadata   the cubins, but not their containers
                        code       all that a loader or the hardware sees (default)
                        text       instructions as text, resources, data, names
                        nocontrol  code, but not control codes or loader
                        noregs     nocontrol, but not the choice of registers
                        noorder    noregs, but not the order of instructions
                        nomods     noorder, but not modifiers
      --ignore KINDS  what else does not count: hidden, control, registers, order,
                      modifiers, code, resources, data, names, unpaired, loader,
                      metadata, wrapping
  -k, --kernel GLOB   only kernels of this mangled, C++ or bare name; repeatable
      --only GLOB     the same as --kernel
  -a, --arch ARCH     only cubins for ARCH; repeatable
      --summary       a short table
      --markdown      the same table in Markdown, for a pull request comment
      --stat          one line for each kernel that differs
      --json          the result as JSON (docs/diff.schema.json)
      --explain       why the files differ, in words
      --html FILE     also write the report as a web page
  -y, --side-by-side  show the listings side by side
      --width N       columns of -y (default 170)
  -U, --context N     equal lines around each difference (default 3)
      --lines[=WHAT]  also the source lines of what is shown, as cupatch dis --lines does;
                      WHAT is source (default), inline or ptx
      --mangled       print mangled names
      --max-entry N   refuse entries larger than N when decompressed

FILE#12 takes entry 12 of a container, FILE#sm_90 those of an architecture; - is
standard input. A word that the tables do not know is compared by its bits and counted.

exit status: 0 no difference that counts; 1 there are differences; 2 trouble: something
could not be read, or there was nothing to compare.

examples:
  cupatch diff old.cubin new.cubin
  cupatch diff --level nocontrol --markdown old/libfoo.so new/libfoo.so
  cupatch diff --only 'gemm*' -y a.fatbin b.fatbin
`

func init() {
	register(&command{"diff", "compare the code of two files", diffUsage, runDiff})
}

// A diffRun is one run of diff.
type diffRun struct {
	*env
	narrowing
	lining
	level, ignore string
	summary       bool
	markdown      bool
	stat          bool
	json          bool
	explain       bool
	html          string
	sides         bool
	width         int
	context       int
	mangled       bool

	opt    diff.Options
	status int
	folder bool // the arguments are folders or wheels
	pairs  int  // files of which something was compared
}

func runDiff(e *env, args []string) error {
	r := &diffRun{env: e}
	fs := e.flags()
	r.narrowing.flags(fs)
	r.lining.flags(fs)
	only := fs.StringArray("only", nil, "")
	fs.StringVarP(&r.level, "level", "l", "code", "")
	fs.StringVar(&r.ignore, "ignore", "", "")
	fs.BoolVar(&r.summary, "summary", false, "")
	fs.BoolVar(&r.markdown, "markdown", false, "")
	fs.BoolVar(&r.stat, "stat", false, "")
	fs.BoolVar(&r.json, "json", false, "")
	fs.BoolVar(&r.explain, "explain", false, "")
	fs.StringVar(&r.html, "html", "", "")
	fs.BoolVarP(&r.sides, "side-by-side", "y", false, "")
	fs.IntVar(&r.width, "width", 170, "")
	fs.IntVarP(&r.context, "context", "U", 3, "")
	fs.BoolVar(&r.mangled, "mangled", false, "")
	files, err := e.parse(fs, args)
	if err != nil {
		return err
	}
	if len(files) != 2 {
		return e.usagef("diff needs two files")
	}
	if files[0] == "-" && files[1] == "-" {
		return e.usagef("only one of the files can be standard input")
	}
	if err := e.notEmpty("html"); err != nil {
		return err
	}
	r.kernels = append(r.kernels, *only...)
	opt, err := r.check()
	if err != nil {
		return err
	}
	if err := r.trees(files[0], files[1], opt); err != nil {
		return err
	}
	return silent(r.status)
}

// check reads the options that have a meaning together.
func (r *diffRun) check() (*elfx.Options, error) {
	count, err := diff.ParseLevel(r.level)
	if err != nil {
		return nil, r.usageError(fmt.Errorf("--level: %w", err))
	}
	if r.ignore != "" {
		ignored, err := diff.ParseKinds(r.ignore)
		if err != nil {
			return nil, r.usageError(fmt.Errorf("--ignore: %w", err))
		}
		count &^= ignored
	}
	if count == 0 {
		return nil, r.usagef("--ignore leaves nothing that counts")
	}
	n := 0
	for _, b := range []bool{r.summary || r.markdown, r.stat, r.json, r.explain, r.sides} {
		if b {
			n++
		}
	}
	if n > 1 {
		return nil, r.usagef("--summary, --stat, --json, --explain and -y do not go together")
	}
	if err := r.lining.check(); err != nil {
		return nil, r.usageError(err)
	}
	if r.lines != "" && n > 0 {
		return nil, r.usagef("--lines goes with the unified listing only, not with --summary, --stat, --json, --explain or -y")
	}
	if r.context < 0 || r.context > 1000000 || r.width < 40 {
		return nil, r.usagef("-U wants 0 or more lines, --width 40 or more columns")
	}
	r.opt = diff.Options{Count: count, Jobs: r.jobs}
	if len(r.kernels) > 0 {
		r.opt.Kernel = r.kernelWanted
	}
	return r.options()
}

// A side is one of the files to compare.
type diffSide struct {
	file     *elfx.File
	selected map[*elfx.Entry]bool // nil: all
}

// wanted reports whether an entry is to be compared.
func (r *diffRun) wanted(s *diffSide, e *elfx.Entry) bool {
	return (s.selected == nil || s.selected[e]) && r.archWanted(e)
}

// compare compares two files and prints what was found.
func (r *diffRun) compare(a, b *diffSide) error {
	opt := r.opt
	sides := [2]*diffSide{a, b}
	opt.Entry = func(side int, e *elfx.Entry) bool { return r.wanted(sides[side], e) }
	out := r.output(a, b)
	page, err := r.openPage(a, b)
	if err != nil {
		return err
	}
	opt.Visit = func(k *diff.KernelDiff) error {
		if err := out.kernel(k); err != nil {
			return err
		}
		return page.kernel(k)
	}
	res, err := diff.Files(a.file, b.file, opt)
	if err != nil {
		return err
	}
	if err := out.end(res); err != nil {
		return err
	}
	if err := page.end(res); err != nil {
		return err
	}
	r.conclude(res)
	return nil
}

// conclude turns a result into the exit status.
func (r *diffRun) conclude(res *diff.Result) {
	err := res.Err()
	if res.Compared > 0 || res.SameBytes && err == nil {
		r.pairs++
	} else if r.folder && len(res.Errors) == 0 && res.A.Kernels+res.B.Kernels == 0 {
		return // a cubin without kernels among others
	}
	for _, e := range res.Errors {
		r.report(e)
	}
	switch {
	case err != nil:
		if len(res.Errors) == 0 {
			x := &exitError{err: err}
			if errors.Is(err, diff.ErrNothing) {
				x.hint = "cupatch ls shows what the files hold"
			}
			r.report(x)
		}
		r.status = worse(r.status, 2)
	case res.Different():
		r.status = worse(r.status, 1)
	}
}
