package main

import (
	"fmt"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/patch/code"
	"github.com/cupatch/cupatch/patch/diff"
	"github.com/cupatch/cupatch/patch/listing"
	"github.com/cupatch/cupatch/patch/rule"
)

const disUsage = `usage: cupatch dis [OPTIONS] FILE…

Lists the instructions of every kernel in FILE with their control codes:

  /*0070*/ [B------:R-:W2:-:S04] @P0 LDG.E R4, desc[UR4][R2.64] ;

The code says which scoreboards the instruction waits for (B0–B5), which one it sets
when its sources are read (R) and when its result is written (W), whether it yields
(Y or -), and its stall count (S). The text is what NVIDIA's nvdisasm prints. A word
that the tables do not know prints as .word 0xLO, 0xHI.

  -a, --arch ARCH     only cubins for ARCH; repeatable
  -k, --kernel GLOB   only kernels named so: mangled, C++ or bare name; repeatable
  -m, --match RULE    only instructions that "MATCH [if CONDITION]" means
      --hex           the two halves of each word behind it
      --control STYLE cuasm (default), nvidia (&req={0} &wr=0x2 ?WAIT4_END_GROUP), none
      --labels        lines with labels before branch targets, comments that name them
      --stable        a listing for checking in: no addresses, labels instead, kernels
                      sorted by name, no padding
      --json          one JSON object a line for each kernel
      --strict        exit with 1 if a word is not known
      --max-entry N   refuse entries larger than N when decompressed

FILE is anything that cupatch ls takes; - is standard input. The listing can be
edited and applied: cupatch apply LISTING FILE.

exit status: 0; 1 if there is nothing that -a, -k and -m and the entries of FILE choose,
or under --strict; 2 trouble.

examples:
  cupatch dis kernel.cubin
  cupatch dis -k 'gemm*' -m 'LDG.E if width >= 64' libfoo.so
  cupatch dis --hex --control nvidia kernel.cubin
`

func init() {
	register(&command{"dis", "list instructions", disUsage, runDis})
}

// A disRun is one run of dis.
type disRun struct {
	*env
	narrowing
	style   listing.Style
	json    bool
	strict  bool
	rule    *rule.Rule // of -m, or nil
	only    string     // the one file that was named, "" for several
	title   string     // line to print before the next kernel
	buf     []byte
	words   int
	unknown int
	matched int
	found   bool // there is something that -k and the rest let through
	status  int
	known   bool        // some architecture knows the instruction of -m
	missing *rule.Error // the error of one that does not
}

func runDis(e *env, args []string) error {
	r := &disRun{env: e}
	var control, match string
	fs := e.flags()
	r.narrowing.flags(fs)
	fs.StringVarP(&match, "match", "m", "", "")
	fs.BoolVar(&r.style.Hex, "hex", false, "")
	fs.StringVar(&control, "control", "cuasm", "")
	fs.BoolVar(&r.style.Labels, "labels", false, "")
	fs.BoolVar(&r.style.Stable, "stable", false, "")
	fs.BoolVar(&r.json, "json", false, "")
	fs.BoolVar(&r.strict, "strict", false, "")
	files, err := e.parse(fs, args)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return e.usagef("dis needs a FILE")
	}
	if r.style.Control, err = controlStyle(control); err != nil {
		return e.usageError(err)
	}
	if r.style.Hex && (r.style.Stable || r.json) {
		return e.usagef("--hex does not go with --stable, which leaves the words out, nor with --json, which has them")
	}
	if match != "" {
		if r.rule, err = rule.ParseMatch(match); err != nil {
			return err
		}
		if r.style.Stable {
			return e.usagef("--stable lists whole kernels; -m does not go with it")
		}
	}
	opt, err := r.options()
	if err != nil {
		return err
	}
	if len(files) == 1 {
		r.only, _ = elfx.CutSelector(files[0])
	}
	status, err := e.eachFile(files, opt, r.file)
	if err != nil {
		return err
	}
	return r.end(worse(status, r.status))
}

func controlStyle(s string) (listing.ControlStyle, error) {
	switch s {
	case "cuasm":
		return listing.ControlCuasm, nil
	case "nvidia":
		return listing.ControlNvidia, nil
	case "none":
		return listing.ControlNone, nil
	}
	return 0, fmt.Errorf("--control %s: want cuasm, nvidia or none", s)
}

// end says what the listing cannot show and returns the exit status.
func (r *disRun) end(status int) error {
	if r.unknown > 0 {
		they := pluralWord(r.unknown, "is not known to the tables; it prints", "are not known to the tables; they print")
		r.notef("%d of %s %s as .word", r.unknown, plural(r.words, "word", "words"), they)
	}
	if !r.found && status == 0 {
		return r.nothing("cubin")
	}
	if r.rule != nil && r.matched == 0 && status == 0 {
		if !r.known && r.missing != nil {
			return r.missing
		}
		return answerNo("nothing matches")
	}
	if r.strict && r.unknown > 0 {
		status = worse(status, 1)
	}
	return silent(status)
}

// file lists one file.
func (r *disRun) file(f *elfx.File, selected map[*elfx.Entry]bool) error {
	if err := f.Damage(); err != nil {
		r.report(err)
		r.status = worse(r.status, 2)
	}
	bare := f.Kind == elfx.FileCubin
	r.title = ""
	if f.Name != r.only && bare && !r.json {
		r.title = "// file " + f.Name + "\n"
	}
	cubins := r.cubins(f, selected)
	r.found = r.found || len(cubins) > 0 && len(r.kernels) == 0
	for _, e := range cubins {
		if err := r.entry(f, e, bare); err != nil {
			if _, ok := err.(*rule.Error); ok {
				return &exitError{code: 2, err: err}
			}
			r.report(err)
			r.status = worse(r.status, 2)
		}
	}
	if !r.found {
		r.missed(f, selected)
	}
	return nil
}

// entry lists one cubin.
func (r *disRun) entry(f *elfx.File, e *elfx.Entry, bare bool) error {
	t, err := code.Open(e)
	if err != nil {
		return err
	}
	if t.NoTable != nil {
		return fmt.Errorf("%s: %w", e.ID(), t.NoTable)
	}
	c, table := t.Cubin, t.Table
	var planner *rule.Planner
	if r.rule != nil {
		if planner, err = rule.NewPlanner([]*rule.Rule{r.rule}, table, rule.Options{Arch: c.Arch, LaxOpcodes: true}); err != nil {
			return err
		}
		if m := planner.Missing(); len(m) > 0 {
			r.missing, r.found = m[0], true
			return nil
		}
		r.known = true
	}
	header := !bare && !r.json
	for _, k := range kernelOrder(c, r.style.Stable) {
		if !r.kernelWanted(k) {
			continue
		}
		r.found = true
		words := t.Kernel(k)
		var matches []int
		if planner != nil {
			plan, err := planner.Kernel(words)
			if err != nil {
				return err
			}
			if matches = plan.Matches; len(matches) == 0 {
				continue
			}
			r.matched += len(matches)
		}
		r.stdout.WriteString(r.title)
		r.title = ""
		if header {
			name := "entry " + e.ID()
			if r.style.Stable { // without the file and the number in it
				name = "cubin"
			}
			fmt.Fprintf(r.stdout, "// %s (%s)\n", name, c.Arch)
			header = false
		}
		r.kernel(k, words, t, e, matches)
		if _, err := r.stdout.Write(r.buf); err != nil {
			return &exitError{code: 2, err: fmt.Errorf("standard output: %w", err)}
		}
	}
	return nil
}

// kernel puts the listing of one kernel into r.buf.
func (r *disRun) kernel(k *elfx.Kernel, c *code.Kernel, t *code.Target, e *elfx.Entry, matches []int) {
	r.buf = r.buf[:0]
	r.words += len(c.Data) / isa.WordSize
	plain := !r.json && !r.style.Stable && !r.style.Labels && matches == nil
	if !plain {
		r.countUnknown(t.Table, c.Data)
	}
	if r.json {
		r.buf = appendKernelJSON(r.buf, k, c, t, e, matches)
		return
	}
	if r.style.Stable {
		r.buf = append(r.buf, "// kernel "+diff.StableName(k.Name)+"\n"...)
	} else {
		r.buf = append(r.buf, listing.Header(c, t.Cubin.Arch)+"\n"...)
		if d := k.Demangled(); d != k.Name {
			r.buf = append(r.buf, "//   "+d+"\n"...)
		}
	}
	switch {
	case plain:
		r.list(t.Table, c.Data)
		return
	case matches == nil:
		r.buf = r.style.AppendKernel(r.buf, t.Table, c)
		return
	}
	for _, pc := range matches {
		r.buf = r.style.AppendLine(r.buf, t.Table, isa.LoadWord(c.Data[pc:]), uint64(pc))
	}
}

// list puts the lines of data into r.buf and counts the words that are not known.
func (r *disRun) list(t *isa.Table, data []byte) {
	for off := 0; off+isa.WordSize <= len(data); off += isa.WordSize {
		in := t.Decode(isa.LoadWord(data[off:]))
		if in.Status == isa.StatusUnknown {
			r.unknown++
		}
		r.buf = r.style.AppendInst(r.buf, t, in, uint64(off))
	}
}

// countUnknown counts the words of data that are not known.
func (r *disRun) countUnknown(t *isa.Table, data []byte) {
	for off := 0; off+isa.WordSize <= len(data); off += isa.WordSize {
		if t.Decode(isa.LoadWord(data[off:])).Status == isa.StatusUnknown {
			r.unknown++
		}
	}
}
