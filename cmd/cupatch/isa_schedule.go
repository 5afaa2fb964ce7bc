package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/isa/kernel"
	"github.com/cupatch/cupatch/isa/schedule"
	"github.com/cupatch/cupatch/patch/code"
)

// learnSchedule learns from the code for a in files what schedules keep to, and writes the
// model out.
func (e *env) learnSchedule(a isa.Arch, files []string, out string) error {
	table, err := isa.Load(a)
	if err != nil {
		return err
	}
	m := schedule.NewMiner(table)
	if err := eachGraph(table, files, func(g *kernel.Graph, _ string) { m.Count(g) }); err != nil {
		return err
	}
	if err := eachGraph(table, files, m.Look); err != nil {
		return err
	}
	m.Order()
	if err := eachGraph(table, files, m.Look); err != nil {
		return err
	}
	model := m.Model()
	if err := os.WriteFile(out, schedule.Format(model), 0o644); err != nil {
		return err
	}
	e.notef("sm_%d: %d instructions, %d dependences", a.SM, model.Instructions, model.Dependences)
	return nil
}

// eachGraph calls fn with the flow of every kernel for table's architecture, whatever its
// suffix, in files and folders, and with where it is.
func eachGraph(table *isa.Table, files []string, fn func(g *kernel.Graph, place string)) error {
	for _, path := range files {
		err := elfx.Walk(path, nil, func(name string, f *elfx.File, err error) error {
			if err != nil {
				return err
			}
			for _, x := range f.Entries() {
				if x.SM != table.Arch().SM {
					continue
				}
				t, err := code.Open(x)
				if err != nil {
					continue // other entries will do
				}
				for i := range t.Cubin.Kernels() {
					k := &t.Cubin.Kernels()[i]
					fn(code.NewState(t.Kernel(k), table).Flow(), fmt.Sprintf("%s %.60s", filepath.Base(name), k.Name))
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
