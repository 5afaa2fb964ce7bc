package rule

import (
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/patch/check"
	"github.com/cupatch/cupatch/patch/code"
	"github.com/cupatch/cupatch/patch/edit"
)

// Options say how a plan is made. The zero value plans every kernel and refuses what
// it knows to be wrong.
type Options struct {
	Allow       check.Allow
	SkipRefused bool // leave out what is refused, count it, and go on
	// Kernel selects kernels; nil takes all.
	Kernel func(*elfx.Kernel) bool
	// Arch is the cubin's architecture for conditions and for rules that are meant for
	// some; "" is the table's.
	Arch string
	// Silent has the names of warnings that nobody wants to hear.
	Silent map[string]bool
	// LaxOpcodes leaves out rules that name an instruction which the architecture does
	// not have, and with SkipRefused those that name a modifier, value or field which it
	// does not have; [Planner.Missing] tells them. It is for files of several
	// architectures.
	LaxOpcodes bool
}

// A Summary counts what a plan saw and does, in instructions.
type Summary struct {
	Kernels int // looked at
	Seen    int // instructions in them
	Matched int // to which a rule has changes
	Changed int // that differ in the end
	Same    int // matched, and already as the rule wants them
	Refused int // left alone by SkipRefused
	Rules   []Count
}

// A Count counts what one rule did.
type Count struct {
	Rule    string // name or number
	Matches int    // instructions, or windows for a rule of several items
	Edits   int    // words in the end different that the rule touched
	Refused int
	// Relative says that applying the rule to its own output changes more.
	Relative bool
}

// Add adds the counts of another plan made with the same rules.
func (s *Summary) Add(o *Summary) {
	s.Kernels += o.Kernels
	s.Seen += o.Seen
	s.Matched += o.Matched
	s.Changed += o.Changed
	s.Same += o.Same
	s.Refused += o.Refused
	for _, r := range o.Rules {
		i := slices.IndexFunc(s.Rules, func(x Count) bool { return x.Rule == r.Rule })
		if i < 0 {
			s.Rules = append(s.Rules, r)
			continue
		}
		t := &s.Rules[i]
		t.Matches += r.Matches
		t.Edits += r.Edits
		t.Refused += r.Refused
		t.Relative = t.Relative || r.Relative
	}
}

// Relative reports whether any rule changes its own output again.
func (s *Summary) Relative() bool {
	return slices.ContainsFunc(s.Rules, func(r Count) bool { return r.Relative && r.Edits > 0 })
}

// A Planner applies rules to the kernels of one architecture. It is safe for
// concurrent use.
type Planner struct {
	table    *isa.Table
	opts     Options
	rules    []*compiled
	opcodes  [1 << 13 / 64]uint64 // that some rule may start with
	deciders [1 << 13]isa.Word    // by opcode that a rule may start with, the bits that decide which do
	guards   isa.Word             // the guard, where a pattern asks for it
	scratch  sync.Pool
	texts    sync.Pool // of *code.Texts
	missing  []*Error
}

// Missing returns the errors of the rules that were left out for want of an
// instruction that they name, or of a part of it: see [Options.LaxOpcodes].
func (p *Planner) Missing() []*Error { return p.missing }

// Rules returns the rules that the planner applies.
func (p *Planner) Rules() []*Rule {
	var out []*Rule
	for _, c := range p.rules {
		out = append(out, c.rule)
	}
	return out
}

// NewPlanner makes rules ready for an architecture. Rules that are for others, by their
// Arch or their condition, are left out. An error is a *RuleError.
func NewPlanner(rules []*Rule, t *isa.Table, opts Options) (*Planner, error) {
	if opts.Arch == "" {
		opts.Arch = t.Arch().String()
	}
	p := &Planner{table: t, opts: opts}
	p.scratch.New = func() any { return newScratch(p.rules) }
	for _, r := range rules {
		means, err := r.meansArch(t, opts.Arch)
		if err != nil {
			return nil, err
		}
		if !means {
			continue
		}
		c, err := compileRule(r, t, opts.Arch)
		if err != nil {
			var re *Error
			if opts.LaxOpcodes && errors.As(err, &re) && (re.unknownOpcode || re.lacks && opts.SkipRefused) {
				p.missing = append(p.missing, re)
				continue
			}
			return nil, err
		}
		p.rules = append(p.rules, c)
	}
	p.filter()
	return p, nil
}

// appliesTo reports whether the rule is meant for an architecture.
func (r *Rule) appliesTo(arch string) bool {
	return len(r.Arch) == 0 || slices.ContainsFunc(r.Arch, func(s string) bool {
		b, err := isa.ParseArch(s)
		return err == nil && b.String() == arch
	})
}

// A KernelPlan is the plan for one kernel.
type KernelPlan struct {
	Edits    []edit.Edit
	Warnings []check.Warning
	Summary  Summary
	Matches  []int // by pc, the instructions that a rule means, in order

	code  *state
	meant []bool // by rule, whether its condition may hold in this kernel
}

// Kernel plans one kernel.
func (p *Planner) Kernel(c *code.Kernel) (*KernelPlan, error) {
	cs := p.newCodeState(c)
	k := &KernelPlan{code: cs}
	k.Summary.Kernels, k.Summary.Seen = 1, cs.N
	ps := &pass{planner: p, code: cs, plan: k}
	if err := ps.run(); err != nil {
		return nil, err
	}
	if err := ps.hazards(); err != nil {
		return nil, err
	}
	k.finish(ps)
	if len(k.Edits) > 0 {
		p.findRelative(k)
		k.Warnings = append(k.Warnings, check.LintKernel(cs.State, k.Edits, p.opts.Allow, p.opts.Silent)...)
	}
	return k, nil
}

func (p *Planner) newCodeState(c *code.Kernel) *state {
	cs := newState(c, p.table)
	cs.arch = p.opts.Arch
	return cs
}

// findRelative plans the output again and marks the rules that change it further.
func (p *Planner) findRelative(k *KernelPlan) {
	again := *k.code.Kernel
	again.Data = k.code.Planned()
	cs := p.newCodeState(&again)
	ps := &pass{planner: p, code: cs, plan: &KernelPlan{code: cs}}
	err := ps.run()
	for i := range k.Summary.Rules {
		r := &k.Summary.Rules[i]
		if r.Edits == 0 {
			continue
		}
		var re *Error
		if errors.As(err, &re) && re.Rule == p.rules[i].rule.ID() {
			r.Relative = true
		}
		for at, rules := range cs.touched {
			if cs.Old(at) != cs.Word(at) && slices.ContainsFunc(rules, func(x *Rule) bool { return x.Label() == r.Rule }) {
				r.Relative = true
			}
		}
	}
}

// finish turns the words as planned into edits and counts.
func (k *KernelPlan) finish(ps *pass) {
	c := k.code
	changed := c.changed()
	edits := make([]int, len(ps.planner.rules))
	texts, _ := ps.planner.texts.Get().(*code.Texts)
	if texts == nil {
		texts = &code.Texts{}
	}
	defer ps.planner.texts.Put(texts)
	if len(changed) > 0 {
		k.Edits = make([]edit.Edit, 0, len(changed))
	}
	for _, i := range changed {
		old, now := c.Old(i), c.Word(i)
		var labels []string
		for _, r := range c.touched[i] {
			labels = append(labels, r.Label())
			for j, x := range ps.planner.rules {
				if x.rule == r {
					edits[j]++
				}
			}
		}
		pc := uint64(i) * isa.WordSize
		e := edit.Edit{
			Entry: c.Entry, Kernel: c.Name, PC: pc, Offset: uint64(c.Offset) + pc, FileOffset: -1, Old: old, New: now,
			OldText: texts.Text(c.Table, old, pc, ""), Rule: strings.Join(labels, ", "),
		}
		e.NewText = texts.Text(c.Table, now, pc, e.OldText)
		if c.FileOffset >= 0 {
			e.FileOffset = c.FileOffset + int64(pc)
		}
		k.Edits = append(k.Edits, e)
	}
	s := &k.Summary
	s.Changed = len(k.Edits)
	ps.matched.each(func(i int) { k.Matches = append(k.Matches, i*isa.WordSize) })
	s.Matched = len(k.Matches)
	s.Refused = ps.refused.count()
	for _, pc := range k.Matches {
		i := pc / isa.WordSize
		if c.Old(i) == c.Word(i) && !ps.refused.has(i) {
			s.Same++
		}
	}
	for i, r := range ps.planner.rules {
		s.Rules = append(s.Rules, Count{
			Rule: r.rule.Label(), Matches: ps.matches[i], Edits: edits[i], Refused: ps.refusedBy[i],
			Relative: r.relative && edits[i] > 0,
		})
	}
}

// A CubinPlan is the plan for all kernels of a cubin. Edits come in the order of the
// kernels and of their addresses.
type CubinPlan struct {
	Edits    []edit.Edit
	Summary  Summary
	Warnings []check.Warning
}

// Plan plans all kernels of a cubin.
func Plan(t *code.Target, rules []*Rule, opts Options) (*CubinPlan, error) {
	if opts.Arch == "" {
		opts.Arch = t.Cubin.Arch
	}
	p, err := NewPlanner(rules, t.Table, opts)
	if err != nil {
		return nil, err
	}
	return p.Cubin(t)
}

// Cubin plans all kernels of a cubin of the planner's architecture.
func (p *Planner) Cubin(t *code.Target) (*CubinPlan, error) {
	cp := &CubinPlan{}
	var edits [][]edit.Edit // of each kernel
	for i := range t.Cubin.Kernels() {
		k := &t.Cubin.Kernels()[i]
		if p.opts.Kernel != nil && !p.opts.Kernel(k) {
			continue
		}
		kp, err := p.Kernel(t.Kernel(k))
		if err != nil {
			return nil, err
		}
		edits = append(edits, kp.Edits)
		cp.Warnings = append(cp.Warnings, kp.Warnings...)
		cp.Summary.Add(&kp.Summary)
		if err := p.checkPerKernel(kp, k.Name); err != nil {
			return nil, err
		}
	}
	cp.Edits = slices.Concat(edits...)
	if w := check.Mercury(t); len(cp.Edits) > 0 && w != nil && !p.opts.Silent[check.WarnMercury] {
		cp.Warnings = append(cp.Warnings, *w)
	}
	return cp, nil
}
