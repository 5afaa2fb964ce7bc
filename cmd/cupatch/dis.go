package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"

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

The control code has the scoreboards that the instruction waits for (B0–B5), the one
that it sets when its sources have been read (R), the one that it sets when its result
has been written (W), yield (Y or -), and the stall count (S). The text equals that of
NVIDIA's nvdisasm. A word that the tables do not know prints as .word 0xLO, 0xHI.

  -a, --arch ARCH     only cubins for ARCH; repeatable
  -k, --kernel GLOB   only kernels of this mangled, C++ or bare name; repeatable
  -m, --match RULE    only instructions that "MATCH [if CONDITION]" selects
      --hex           also print the two halves of each word
      --control STYLE cuasm (default), nvidia (&req={1,0} &wr=0x2 ?WAIT4_END_GROUP as
                      nvdisasm 12.8 has it for sm_120), none
      --labels        label branch targets, and name them in comments
      --lines[=WHAT]  the source lines, as nvdisasm -g prints them; WHAT is source
                      (default), inline (and the calls that were inlined, as -gi), or
                      ptx (the lines of the PTX, as -gp)
      --blocks        where basic blocks start, their loops and predecessors
      --live          how many registers of each file are taken, and which of them are
                      still needed after the instruction
      --stable        a listing for version control: labels instead of addresses,
                      kernels sorted by name, no padding
      --json          one JSON object a line for each kernel
      --strict        exit with 1 if a word is not known
      --max-entry N   refuse entries larger than N when decompressed
      --raw ARCH      FILE is nothing but instructions for ARCH, as nvdisasm -b takes it
      --base ADDR     with --raw: the address of the first one (default 0)

FILE is anything that cupatch ls reads; - is standard input. A listing can be edited
and applied: cupatch apply LISTING FILE. docs/listings.md describes the comments that
options add, docs/dis.schema.json the JSON.

exit status: 0 done; 1 if -a, -k, -m and FILE#ENTRY select nothing, or because of
--strict; 2 trouble.

examples:
  cupatch dis kernel.cubin
  cupatch dis -k 'gemm*' -m 'LDG.E if width >= 64' libfoo.so
  cupatch dis --hex --control nvidia kernel.cubin
  cupatch dis --lines=inline --blocks -k 'gemm*' libfoo.so
  cupatch dis --raw sm_90 --base 0x200 code.bin
`

func init() {
	register(&command{"dis", "list instructions", disUsage, runDis})
}

// A disRun is one run of dis.
type disRun struct {
	*env
	narrowing
	noting
	style   listing.Style
	json    bool
	strict  bool
	rule    *rule.Rule // of -m, or nil
	only    string     // the one file that was named, "" for several
	title   string     // line to print before the next kernel
	words   int
	unknown int
	matched int
	found   bool // there is something that -k and the rest let through
	lined   bool // some cubin has the lines of --lines
	status  int
	known   bool        // some architecture knows the instruction of -m
	missing *rule.Error // the error of one that does not
}

func runDis(e *env, args []string) error {
	r := &disRun{env: e}
	var control, match string
	var raw rawCode
	fs := e.flags()
	r.narrowing.flags(fs)
	r.noting.flags(fs)
	fs.StringVarP(&match, "match", "m", "", "")
	fs.BoolVar(&r.style.Hex, "hex", false, "")
	fs.StringVar(&control, "control", "cuasm", "")
	fs.BoolVar(&r.style.Labels, "labels", false, "")
	fs.BoolVar(&r.style.Stable, "stable", false, "")
	fs.BoolVar(&r.json, "json", false, "")
	fs.BoolVar(&r.strict, "strict", false, "")
	raw.flags(fs)
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
	if err := r.noting.check(); err != nil {
		return e.usageError(err)
	}
	if r.noting.any() && r.style.Stable {
		return e.usagef("--lines, --blocks and --live do not go with --stable")
	}
	if raw.arch != "" || fs.Changed("base") {
		return r.raw(&raw, files)
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
	r.noLines()
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
	d := &disFile{disRun: r, name: f.Name, bare: bare, planners: map[string]*disPlanner{}, skipped: &skipping{}}
	walk := cubinWalk[*disCubin, *disText]{begin: d.begin, work: d.work, use: d.use}
	if err := walk.run(r.jobs, cubins); err != nil {
		return err
	}
	if err := d.skipped.end(r.env, f.Name, "listed"); err != nil {
		r.report(err)
		r.status = worse(r.status, 2)
	}
	if !r.found {
		r.missed(f, selected)
	}
	return nil
}

// A disFile is the listing of one file.
type disFile struct {
	*disRun
	name     string
	bare     bool
	planners map[string]*disPlanner // of -m, by architecture
	skipped  *skipping
	headed   *disCubin // whose header is written
	bufs     sync.Pool // of *disText
	printers sync.Map  // of *sync.Pool of *disPrinter, by *isa.Table
}

// A disPlanner finds what -m means on an architecture.
type disPlanner struct {
	planner *rule.Planner
	err     error
}

// A disCubin is a cubin to list.
type disCubin struct {
	entry   *elfx.Entry
	target  *code.Target
	planner *rule.Planner   // of -m, or nil
	lines   *elfx.LineTable // of --lines, or nil
	err     error
}

// A disText is the listing of some kernels of a cubin.
type disText struct {
	buf, painted            []byte
	words, unknown, matched int
	kernels                 int // with or without matches
	err                     error
}

// begin looks at a cubin before its kernels are listed.
func (d *disFile) begin(e *elfx.Entry, t *code.Target, err error) (*disCubin, []*elfx.Kernel) {
	out := &disCubin{entry: e, target: t, err: err}
	if err == nil {
		out.err = tableError(e, t)
	}
	if out.err != nil {
		return out, nil
	}
	if d.rule != nil {
		arch := t.Cubin.Arch
		p := d.planners[arch]
		if p == nil {
			p = &disPlanner{}
			p.planner, p.err = rule.NewPlanner([]*rule.Rule{d.rule}, t.Table, rule.Options{Arch: arch, LaxOpcodes: true, SkipRefused: true})
			d.planners[arch] = p
		}
		if out.planner, out.err = p.planner, p.err; out.err != nil || len(p.planner.Missing()) > 0 {
			return out, nil
		}
	}
	if out.lines, err = d.noting.lineTable(t.Lines); err != nil {
		out.err = fmt.Errorf("%s: %w", e.ID(), err)
		return out, nil
	}
	return out, d.kernelsOf(t.Cubin, d.style.Stable)
}

// lineSize is how many bytes the line of an instruction takes, mostly.
const lineSize = 72

// work lists some kernels.
func (d *disFile) work(s *disCubin, kernels []*elfx.Kernel) *disText {
	out, _ := d.bufs.Get().(*disText)
	if out == nil {
		out = &disText{}
	}
	*out = disText{buf: out.buf[:0], painted: out.painted[:0], kernels: len(kernels)}
	if len(kernels) == 0 {
		return out
	}
	p, pool := d.printer(s.target.Table)
	defer pool.Put(p)
	if s.planner == nil && !d.json {
		size := 0
		for _, k := range kernels {
			size += int(k.Size) / isa.WordSize * lineSize
		}
		out.buf = slices.Grow(out.buf, size)
	}
	for _, k := range kernels {
		c := s.target.Kernel(k)
		var matches []int
		if s.planner != nil {
			plan, err := s.planner.Kernel(c)
			if err != nil {
				out.err = err
				return out
			}
			if matches = plan.Matches; len(matches) == 0 {
				continue
			}
			out.matched += len(matches)
		}
		d.kernel(out, p, s, k, c, matches)
	}
	if d.color() && !d.json {
		out.painted = paintListing(out.painted, out.buf)
	}
	return out
}

// use writes the listing of some kernels, after the lines that come before them.
func (d *disFile) use(s *disCubin, t *disText) error {
	defer d.bufs.Put(t)
	err := cmp.Or(s.err, t.err)
	var re *rule.Error
	switch {
	case errors.As(err, &re):
		return &exitError{code: 2, err: err}
	case err != nil && !d.skipped.add(err):
		d.report(err)
		d.status = worse(d.status, 2)
	}
	if err != nil {
		return nil
	}
	d.skipped.done = true
	d.lined = d.lined || s.lines != nil && !s.lines.Empty()
	if s.planner != nil {
		if m := s.planner.Missing(); len(m) > 0 {
			d.missing, d.found = m[0], true
			return nil
		}
		d.known = true
	}
	d.found = d.found || t.kernels > 0
	d.words += t.words
	d.unknown += t.unknown
	d.matched += t.matched
	if len(t.buf) == 0 {
		return nil
	}
	d.stdout.WriteString(d.title)
	d.title = ""
	if d.headed != s && !d.bare && !d.json {
		name := "entry " + s.entry.ID()
		if d.style.Stable { // without the file and the number in it
			name = "cubin"
		}
		d.stdout.WriteString(d.paint(ansiBold, fmt.Sprintf("// %s (%s)", elfx.Printable(name), s.entry.ArchOf(s.target.Cubin))) + "\n")
		d.headed = s
	}
	text := t.buf
	if len(t.painted) > 0 {
		text = t.painted
	}
	if _, err := d.stdout.Write(text); err != nil {
		return &exitError{code: 2, err: fmt.Errorf("standard output: %w", err)}
	}
	return nil
}

// kernel appends the listing of one kernel.
func (d *disFile) kernel(out *disText, p *disPrinter, s *disCubin, k *elfx.Kernel, c *code.Kernel, matches []int) {
	out.words += len(c.Data) / isa.WordSize
	var notes *listing.Notes
	if d.noting.any() {
		notes = d.notes(s, k, c)
	}
	if d.json {
		out.json(p, s, k, c, matches, notes)
		return
	}
	if d.style.Stable {
		out.buf = append(out.buf, "// kernel "+elfx.Printable(diff.StableName(k.Name))+"\n"...)
	} else {
		out.buf = append(out.buf, listing.Header(c, s.entry.ArchOf(s.target.Cubin))+"\n"...)
		if full := k.Demangled(); full != k.Name {
			out.buf = append(out.buf, "//   "+elfx.Printable(full)+"\n"...)
		}
	}
	if matches == nil && !d.style.Stable && !d.style.Labels && notes == nil {
		out.list(&p.Printer, c.Data)
		return
	}
	out.countUnknown(s.target.Table, c.Data)
	if notes != nil {
		out.buf = d.style.AppendNoted(out.buf, s.target.Table, c, *notes, matches)
		return
	}
	if matches == nil {
		out.buf = d.style.AppendKernel(out.buf, s.target.Table, c)
	}
	for _, pc := range matches {
		out.buf, _ = p.AppendLine(out.buf, isa.LoadWord(c.Data[pc:]), uint64(pc))
	}
}

// list appends the lines of data and counts the words that are not known.
func (t *disText) list(p *listing.Printer, data []byte) {
	for off := 0; off+isa.WordSize <= len(data); off += isa.WordSize {
		var status isa.Status
		if t.buf, status = p.AppendLine(t.buf, isa.LoadWord(data[off:]), uint64(off)); status == isa.StatusUnknown {
			t.unknown++
		}
	}
}

// A disPrinter writes the instructions of an architecture as lines or as JSON.
type disPrinter struct {
	listing.Printer
	json  listing.Cache
	parts isa.Parts // in use while one instruction is written
}

// jsonCache is how many bytes of JSON a printer keeps.
const jsonCache = 2 << 20

// printer takes a printer for a table out of the pool that it belongs to.
func (d *disFile) printer(t *isa.Table) (*disPrinter, *sync.Pool) {
	x, _ := d.printers.LoadOrStore(t, &sync.Pool{})
	pool := x.(*sync.Pool)
	if p, ok := pool.Get().(*disPrinter); ok {
		return p, pool
	}
	return &disPrinter{Printer: listing.Printer{Style: d.style, Table: t}, json: listing.Cache{Bytes: jsonCache}}, pool
}

// countUnknown counts the words of data that are not known.
func (t *disText) countUnknown(table *isa.Table, data []byte) {
	for off := 0; off+isa.WordSize <= len(data); off += isa.WordSize {
		if table.Decode(isa.LoadWord(data[off:])).Status == isa.StatusUnknown {
			t.unknown++
		}
	}
}
