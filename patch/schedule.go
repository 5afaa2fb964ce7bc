package patch

import (
	"fmt"
	"sync"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/isa/schedule"
	"github.com/cupatch/cupatch/isa/schedule/assign"
	"github.com/cupatch/cupatch/patch/code"
	"github.com/cupatch/cupatch/patch/edit"
	"github.com/cupatch/cupatch/patch/rule"
)

// A Rescheduler makes the control codes of kernels anew, whatever they were. It is safe for
// concurrent use.
type Rescheduler struct {
	Profile assign.Profile
	Kernel  func(*elfx.Kernel) bool // the kernels that get new ones; nil for all

	mu   sync.Mutex
	idle map[*isa.Table][]*assign.Scheduler
}

// A HazardError says that control codes were made that the checker finds wrong.
type HazardError struct {
	Kernel  string
	Finding schedule.Finding
}

func (e *HazardError) Error() string {
	return fmt.Sprintf("kernel %s at %#x: no control codes found that are safe: after the instruction at %#x, it %s", e.Kernel,
		e.Finding.Second*isa.WordSize, e.Finding.First*isa.WordSize, e.Finding.Message())
}

// Supports returns why the control codes of a cubin cannot be made: too little is known of its
// architecture. A nil Rescheduler supports everything.
func (r *Rescheduler) Supports(t *code.Target) error {
	if r == nil || t.NoTable != nil {
		return nil
	}
	if _, err := schedule.Load(t.Table.Arch()); err != nil {
		return err
	}
	_, err := assign.Load(t.Table.Arch())
	return err
}

// Cubin plans new control codes for the kernels of a cubin. The error where little is known
// of the architecture is [schedule.ErrNoModel] or [assign.ErrNoHabits].
func (r *Rescheduler) Cubin(t *code.Target) (*rule.CubinPlan, error) {
	if t.NoTable != nil {
		return nil, t.NoTable
	}
	s, err := r.scheduler(t.Table)
	if err != nil {
		return nil, err
	}
	defer r.done(t.Table, s)
	out := &rule.CubinPlan{}
	for i := range t.Cubin.Kernels() {
		k := &t.Cubin.Kernels()[i]
		if r.Kernel != nil && !r.Kernel(k) {
			continue
		}
		if err := reschedule(out, s, t, k); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// scheduler returns a scheduler that is not at work.
func (r *Rescheduler) scheduler(t *isa.Table) (*assign.Scheduler, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if list := r.idle[t]; len(list) > 0 {
		r.idle[t] = list[:len(list)-1]
		return list[len(list)-1], nil
	}
	model, err := schedule.Load(t.Arch())
	if err != nil {
		return nil, err
	}
	habits, err := assign.Load(t.Arch())
	if err != nil {
		return nil, err
	}
	s := assign.NewScheduler(habits, t, schedule.NewChecker(model, t))
	s.Profile = r.Profile
	return s, nil
}

func (r *Rescheduler) done(t *isa.Table, s *assign.Scheduler) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.idle == nil {
		r.idle = map[*isa.Table][]*assign.Scheduler{}
	}
	r.idle[t] = append(r.idle[t], s)
}

// reschedule adds the edits of a kernel to out.
func reschedule(out *rule.CubinPlan, s *assign.Scheduler, t *code.Target, k *elfx.Kernel) error {
	c := t.Kernel(k)
	ctrl, found := s.Schedule(code.NewState(c, t.Table).Source(), nil)
	if len(found) > 0 {
		return &HazardError{k.Name, found[0]}
	}
	out.Summary.Kernels++
	out.Summary.Seen += len(ctrl)
	for i := range ctrl {
		pc := i * isa.WordSize
		old := isa.LoadWord(c.Data[pc:])
		now := ctrl[i].Set(old)
		in := t.Table.Decode(old)
		if in.Status != isa.StatusKnown {
			continue
		}
		out.Summary.Matched++
		if now == old {
			out.Summary.Same++
			continue
		}
		out.Summary.Changed++
		text := t.Table.Text(in, uint64(pc))
		out.Edits = append(out.Edits, edit.Edit{
			Entry: t.Entry, Kernel: k.Name, PC: uint64(pc), Offset: uint64(k.Offset) + uint64(pc), FileOffset: t.OffsetInFile(k.Offset + int64(pc)),
			Old: old, New: now, OldText: text, NewText: t.Table.Text(t.Table.Decode(now), uint64(pc)), Rule: "schedule",
		})
	}
	return nil
}
