package recipe

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/patch/check"
	"github.com/cupatch/cupatch/patch/code"
	"github.com/cupatch/cupatch/patch/edit"
	"github.com/cupatch/cupatch/patch/listing"
	"github.com/cupatch/cupatch/patch/rule"
)

// A Test is a [[test]] of a recipe: a listing before and what the rules must
// make of it.
type Test struct {
	Name   string
	Arch   isa.Arch
	Params map[string]string
	Allow  check.Allow
	Error  string // part of the error that the rules must give instead

	spec testTable
	pos  string
}

func (rc *Recipe) readTests() error {
	for i, t := range rc.file.Test {
		path := fmt.Sprintf("test[%d]", i)
		out := Test{Name: t.Name, Params: map[string]string{}, Error: t.Error, spec: t, pos: rc.index.pos(rc.Name, path)}
		if out.Name == "" {
			out.Name = fmt.Sprintf("test %d", i+1)
		}
		arch := t.Arch
		if arch == "" && len(rc.Arch) > 0 {
			arch = rc.Arch[0]
		}
		a, err := rule.TargetArch(arch)
		if err != nil {
			return rc.errorf(path+".arch", "a test needs an arch: %v", err)
		}
		out.Arch = a
		for _, name := range slices.Sorted(maps.Keys(t.Param)) {
			if out.Params[name], err = rc.scalar(path+".param", t.Param[name]); err != nil {
				return err
			}
		}
		if _, err := rc.values(out.Params); err != nil {
			return rc.errorf(path+".param", "%v", err)
		}
		list, err := rc.texts(path+".allow", t.Allow)
		if err != nil {
			return err
		}
		if out.Allow, err = check.ParseAllow(strings.Join(list, ",")); err != nil {
			return rc.errorf(path+".allow", "%v", err)
		}
		for name := range rc.Allow() {
			out.Allow[name] = true
		}
		if t.Before == "" || (t.After == "") == (t.Error == "") {
			return rc.errorf(path, "a test needs before, and either after or error")
		}
		rc.Tests = append(rc.Tests, out)
	}
	return nil
}

// RunTest runs one test. A test that does not come out as it should is an error that
// shows what did.
func (rc *Recipe) RunTest(t *Test) error {
	table, err := code.TableFor(t.Arch)
	if err != nil {
		return err
	}
	return rc.runTest(t, table)
}

func (rc *Recipe) runTest(t *Test, table *isa.Table) error {
	before, err := listing.Assemble(table, rc.Name+": "+t.Name+": before", t.spec.Before)
	if err != nil {
		return err
	}
	rules, err := rc.Rules(t.Params)
	if err != nil {
		return err
	}
	kernel := t.spec.Kernel
	if kernel == "" {
		kernel = "test"
	}
	p, err := rule.NewPlanner(rules, table, rule.Options{Allow: t.Allow})
	var plan *rule.KernelPlan
	if err == nil {
		plan, err = p.Kernel(&code.Kernel{Name: kernel, Data: before, Regs: t.spec.Regs})
	}
	if t.Error != "" {
		if err == nil {
			return fmt.Errorf("%s: %s: no error; want one that says %q", t.pos, t.Name, t.Error)
		}
		if !strings.Contains(err.Error(), t.Error) {
			return fmt.Errorf("%s: %s: the error %q does not say %q", t.pos, t.Name, err, t.Error)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", t.Name, err)
	}
	want, err := listing.Assemble(table, rc.Name+": "+t.Name+": after", t.spec.After)
	if err != nil {
		return err
	}
	got := make([]byte, len(before))
	copy(got, before)
	if err := edit.Apply(got, plan.Edits); err != nil {
		return err
	}
	return rc.compare(t, table, before, want, got)
}

// compare compares listings, since text is all that a test gives.
func (rc *Recipe) compare(t *Test, table *isa.Table, before, want, got []byte) error {
	if len(want) != len(before) {
		return fmt.Errorf("%s: %s: before has %d instructions, after %d", t.pos, t.Name, len(before)/isa.WordSize, len(want)/isa.WordSize)
	}
	var style listing.Style
	var b strings.Builder
	for off := 0; off < len(got); off += isa.WordSize {
		w := style.AppendLine(nil, table, isa.LoadWord(want[off:]), uint64(off))
		g := style.AppendLine(nil, table, isa.LoadWord(got[off:]), uint64(off))
		if string(w) != string(g) {
			fmt.Fprintf(&b, "\n  want %s  got  %s", w, strings.TrimSuffix(string(g), "\n"))
		}
	}
	if b.Len() == 0 {
		return nil
	}
	return fmt.Errorf("%s: %s: the listing differs%s", t.pos, t.Name, b.String())
}
