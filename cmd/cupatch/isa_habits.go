package main

import (
	"os"

	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/isa/kernel"
	"github.com/cupatch/cupatch/isa/schedule/assign"
)

// learnHabits learns from the code for a in files how ptxas sets control codes, and writes
// that out.
func (e *env) learnHabits(a isa.Arch, files []string, out string) error {
	table, err := isa.Load(a)
	if err != nil {
		return err
	}
	m := assign.NewMiner(table)
	for _, look := range []func(*kernel.Graph){m.Count, m.Look, m.Issue} {
		if err := eachGraph(table, files, func(g *kernel.Graph, _ string) { look(g) }); err != nil {
			return err
		}
	}
	h := m.Habits()
	if err := os.WriteFile(out, assign.Format(h), 0o644); err != nil {
		return err
	}
	e.notef("sm_%d: %d instructions", a.SM, h.Instructions)
	return nil
}
