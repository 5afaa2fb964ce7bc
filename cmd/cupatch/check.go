package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/isa/kernel"
	"github.com/cupatch/cupatch/isa/schedule"
	"github.com/cupatch/cupatch/patch/code"
)

const checkUsage = `usage: cupatch check [OPTIONS] FILE
       cupatch check [OPTIONS] OLD NEW

Follows every path of the kernels and reports what their control codes do not wait for:
a result that is read or overwritten too early, a scoreboard that is not waited for, or
that nobody sets. What is too early is what code of ptxas never does; docs/check.md says
how that was learned. With two files only what NEW has and OLD has not is reported.

  -a, --arch ARCH     only cubins for ARCH; repeatable
  -k, --kernel GLOB   only kernels of this mangled, C++ or bare name; repeatable
      --json          one JSON object a line for each finding
      --model FILE    a model that isa learn --schedule wrote, for cubins of its architecture only
      --max-entry N   refuse entries larger than N when decompressed

exit status: 0 nothing found; 1 something found, or -a, -k and FILE#ENTRY select nothing;
2 trouble, or no schedule model for the architecture.

examples:
  cupatch check kernel.cubin
  cupatch check libfoo.so libfoo-tuned.so
`

func init() {
	register(&command{"check", "find results used before they are ready", checkUsage, runCheck})
}

// A hazardRun is one run of check.
type hazardRun struct {
	kernelRun
	json   bool
	model  *schedule.Model    // of --model
	old    map[hazardKey]bool // what is not news, nil where everything is
	print  bool               // else the findings are put into old
	counts checkCounts
	pool   checkers
}

// checkCounts is how much was looked at.
type checkCounts struct{ kernels, dependences, findings int }

// A hazardKey tells findings apart, those of two builds of a file too.
type hazardKey struct {
	entry  int
	kernel string
	schedule.Key
}

// checkers keeps the checkers of tables that are not at work.
type checkers struct {
	mu   sync.Mutex
	idle map[*isa.Table][]*schedule.Checker
}

func (p *checkers) get(m *schedule.Model, t *isa.Table) *schedule.Checker {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.idle[t]
	if len(list) == 0 {
		return schedule.NewChecker(m, t)
	}
	p.idle[t] = list[:len(list)-1]
	return list[len(list)-1]
}

func (p *checkers) put(t *isa.Table, c *schedule.Checker) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.idle == nil {
		p.idle = map[*isa.Table][]*schedule.Checker{}
	}
	p.idle[t] = append(p.idle[t], c)
}

// jsonFinding is a line of check --json.
type jsonFinding struct {
	File     string         `json:"file"`
	Entry    int            `json:"entry,omitempty"`
	Arch     string         `json:"arch"`
	Kernel   string         `json:"kernel"`
	Name     string         `json:"name"`
	Severity string         `json:"severity"`
	Kind     string         `json:"kind"`
	Register string         `json:"register"`
	First    jsonScheduleAt `json:"first"`
	Second   jsonScheduleAt `json:"second"`
	Cycles   int            `json:"cycles"`
	Needed   int            `json:"needed,omitempty"` // cycles, where they are what is missing
	Seen     int            `json:"seen"`             // dependences in code of ptxas that the rule rests on
	Message  string         `json:"message"`
}

type jsonScheduleAt struct {
	PC      int    `json:"pc"`
	Control string `json:"control"`
	Text    string `json:"text"`
}

func runCheck(e *env, args []string) error {
	r := &hazardRun{kernelRun: kernelRun{env: e, done: "checked"}}
	r.accept = func(t *code.Target) error {
		_, err := r.modelFor(t.Table.Arch())
		return err
	}
	fs := e.flags()
	r.narrowing.flags(fs)
	fs.BoolVar(&r.json, "json", false, "")
	model := fs.String("model", "", "")
	files, err := e.parse(fs, args)
	if err != nil {
		return err
	}
	if len(files) != 1 && len(files) != 2 {
		return e.usagef("check needs a FILE, or OLD and NEW")
	}
	opt, err := r.options()
	if err != nil {
		return err
	}
	if *model != "" {
		if r.model, err = readModel(*model); err != nil {
			return err
		}
	}
	if len(files) == 2 {
		r.old = map[hazardKey]bool{}
	}
	status := 0
	for i, name := range files {
		r.print, r.counts = i == len(files)-1, checkCounts{}
		s, err := e.eachFile([]string{name}, opt, r.file)
		if err != nil {
			return err
		}
		status = worse(status, s)
	}
	if status = worse(status, r.status); !r.found && status == 0 {
		return r.nothing("cubin")
	}
	n := r.counts
	e.notef("%s, %s checked: %s", plural(n.kernels, "kernel", "kernels"), plural(n.dependences, "dependence", "dependences"),
		plural(n.findings, "finding", "findings"))
	if n.findings > 0 {
		status = worse(status, 1)
	}
	return silent(status)
}

func (r *hazardRun) file(f *elfx.File, selected map[*elfx.Entry]bool) error {
	return kernelsIn(&r.kernelRun, f, selected, r.check, r.use)
}

// use takes in what was found in some kernels.
func (r *hazardRun) use(t *checkText) error {
	r.counts.kernels += t.counts.kernels
	r.counts.dependences += t.counts.dependences
	for i, k := range t.keys {
		switch {
		case !r.print:
			r.old[k] = true
		case !r.old[k]:
			r.counts.findings++
			if _, err := r.stdout.Write(t.texts[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// A checkText is what was found in some kernels of a cubin.
type checkText struct {
	counts checkCounts
	keys   []hazardKey
	texts  [][]byte
}

// modelFor returns the model for an architecture.
func (r *hazardRun) modelFor(a isa.Arch) (*schedule.Model, error) {
	switch {
	case r.model == nil:
		return schedule.Load(a)
	case r.model.Arch.SM != a.SM:
		return nil, fmt.Errorf("%w for sm_%d in the file that --model names", schedule.ErrNoModel, a.SM)
	}
	return r.model, nil
}

// readModel reads a model that isa learn --schedule wrote.
func readModel(name string) (*schedule.Model, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	m, err := schedule.Parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return m, nil
}

// check checks some kernels.
func (r *hazardRun) check(s *kernelCubin, kernels []*elfx.Kernel) *checkText {
	out := &checkText{}
	if len(kernels) == 0 {
		return out
	}
	out.counts.kernels = len(kernels)
	table := s.target.Table
	model, err := r.modelFor(table.Arch())
	if err != nil {
		return out // which accept has seen
	}
	c := r.pool.get(model, table)
	defer r.pool.put(table, c)
	before := c.Checked
	for _, k := range kernels {
		g := code.NewState(s.target.Kernel(k), table).Flow()
		for _, x := range c.Check(g) {
			j := jsonFinding{
				Kernel: k.Name, Name: x.Name, Severity: "error", Kind: x.Kind.String(),
				Register: x.File.Names()[x.Register], Cycles: x.Cycles, Needed: x.Need.Cycles, Seen: x.Need.Seen, Message: x.Message(),
				First: scheduleAt(table, g, x.First), Second: scheduleAt(table, g, x.Second),
			}
			j.File, j.Entry, j.Arch, _ = s.names(k)
			out.keys = append(out.keys, hazardKey{s.entry.Number, k.Name, x.Key()})
			out.texts = append(out.texts, r.text(&j))
		}
	}
	out.counts.dependences = c.Checked - before
	return out
}

// scheduleAt describes instruction i.
func scheduleAt(t *isa.Table, g *kernel.Graph, i int) jsonScheduleAt {
	in, pc := g.Inst(i), i*isa.WordSize
	return jsonScheduleAt{pc, isa.ControlOf(in.Word).String(), t.Text(in, uint64(pc))}
}

// text returns a finding as text or JSON.
func (r *hazardRun) text(j *jsonFinding) []byte {
	if r.json {
		b, err := json.Marshal(j)
		if err != nil { // strings and numbers always marshal
			return nil
		}
		return append(b, '\n')
	}
	var b bytes.Buffer
	entry := ""
	if j.Entry > 0 {
		entry = fmt.Sprintf("#%d", j.Entry)
	}
	fmt.Fprintf(&b, "%s%s: kernel %s at %#x: %s [%s]\n", j.File, entry, j.Kernel, j.Second.PC, j.Message, j.Name)
	for _, x := range []jsonScheduleAt{j.First, j.Second} {
		fmt.Fprintf(&b, "    /*%04x*/ %s %s ;\n", x.PC, x.Control, x.Text)
	}
	return b.Bytes()
}

// noModel reports whether err says that there is no schedule model.
func noModel(err error) bool { return errors.Is(err, schedule.ErrNoModel) }
