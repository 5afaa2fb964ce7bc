package patch

import (
	"sync"

	"github.com/cupatch/cupatch/patch/code"
	"github.com/cupatch/cupatch/patch/rule"
)

// A Planner plans rules for cubins of any architecture. It is safe for concurrent use.
type Planner struct {
	rules []*rule.Rule
	opts  rule.Options

	mu     sync.Mutex
	byArch map[string]*rule.Planner
}

// NewPlanner returns a planner that makes rules ready for each architecture that it
// meets. Of opts it does not take the architecture, and it always leaves out rules that an
// architecture has no instruction for.
func NewPlanner(rules []*rule.Rule, opts rule.Options) *Planner {
	opts.LaxOpcodes = true
	return &Planner{rules: rules, opts: opts, byArch: map[string]*rule.Planner{}}
}

// Cubin plans all kernels of a cubin.
func (p *Planner) Cubin(t *code.Target) (*rule.CubinPlan, error) {
	q, err := p.planner(t)
	if err != nil {
		return nil, err
	}
	return q.Cubin(t)
}

func (p *Planner) planner(t *code.Target) (*rule.Planner, error) {
	if t.NoTable != nil {
		return nil, t.NoTable
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	arch := t.Cubin.Arch
	if q := p.byArch[arch]; q != nil {
		return q, nil
	}
	opts := p.opts
	opts.Arch = arch
	q, err := rule.NewPlanner(p.rules, t.Table, opts)
	if err != nil {
		return nil, err
	}
	p.byArch[arch] = q
	return q, nil
}

// LeftOut returns the errors of the rules that were left out for an architecture: see
// [rule.Options.LaxOpcodes].
func (p *Planner) LeftOut(arch string) []*rule.Error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if q := p.byArch[arch]; q != nil {
		return q.Missing()
	}
	return nil
}

// Missing returns the error of the first rule that was left out for every architecture
// seen so far, or nil.
func (p *Planner) Missing() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.rules {
		known, missing := false, (*rule.Error)(nil)
		for _, q := range p.byArch {
			for _, x := range q.Rules() {
				known = known || x == r
			}
			for _, m := range q.Missing() {
				if m.Rule == r.ID() {
					missing = m
				}
			}
		}
		if !known && missing != nil {
			return missing
		}
	}
	return nil
}
