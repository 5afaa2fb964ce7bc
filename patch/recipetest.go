package patch

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cupatch/cupatch/isa"
)

// A RecipeTest is a [[test]] of a recipe: a listing before and what the rules must
// make of it.
type RecipeTest struct {
	Name   string
	Arch   isa.Arch
	Params map[string]string
	Allow  Allow
	Error  string // part of the error that the rules must give instead

	spec recipeTest
	pos  string
}

func (rc *Recipe) readTests() error {
	for i, t := range rc.file.Test {
		path := fmt.Sprintf("test[%d]", i)
		out := RecipeTest{Name: t.Name, Params: map[string]string{}, Error: t.Error, spec: t, pos: rc.index.pos(rc.Name, path)}
		if out.Name == "" {
			out.Name = fmt.Sprintf("test %d", i+1)
		}
		arch := t.Arch
		if arch == "" && len(rc.Arch) > 0 {
			arch = rc.Arch[0]
		}
		a, err := parseArch(arch)
		if err != nil {
			return rc.errorf(path+".arch", "a test needs an arch: %v", err)
		}
		out.Arch = a
		for _, name := range sortedKeys(t.Param) {
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
		if out.Allow, err = ParseAllow(strings.Join(list, ",")); err != nil {
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
func (rc *Recipe) RunTest(t *RecipeTest) error {
	table, err := isa.Load(t.Arch)
	if err != nil {
		return err
	}
	return rc.runTest(t, table)
}

func (rc *Recipe) runTest(t *RecipeTest, table *isa.Table) error {
	code, err := assemble(table, rc.Name+": "+t.Name+": before", t.spec.Before)
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
	p, err := NewPlanner(rules, table, Options{Allow: t.Allow})
	var plan *KernelPlan
	if err == nil {
		plan, err = p.Kernel(&Code{Name: kernel, Data: code, Regs: t.spec.Regs})
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
	want, err := assemble(table, rc.Name+": "+t.Name+": after", t.spec.After)
	if err != nil {
		return err
	}
	got := make([]byte, len(code))
	copy(got, code)
	if err := Apply(got, plan.Edits); err != nil {
		return err
	}
	return rc.compare(t, table, code, want, got)
}

// compare compares listings, since text is all that a test gives.
func (rc *Recipe) compare(t *RecipeTest, table *isa.Table, before, want, got []byte) error {
	if len(want) != len(before) {
		return fmt.Errorf("%s: %s: before has %d instructions, after %d", t.pos, t.Name, len(before)/isa.WordSize, len(want)/isa.WordSize)
	}
	var style ListingStyle
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

// assemble encodes a listing. Addresses may be missing; they then follow each other
// from 0.
func assemble(t *isa.Table, name, text string) ([]byte, error) {
	list, err := ParseListing(name, strings.NewReader(text))
	if err != nil {
		return nil, err
	}
	var out []byte
	for i := range list {
		in := &list[i]
		pc := uint64(len(out))
		if in.HasPC && in.PC != pc {
			return nil, &ListingError{name, in.Line, fmt.Errorf("address %#x where %#x follows", in.PC, pc)}
		}
		w, ok, err := parseRaw(in.Text)
		if !ok {
			w, err = t.Encode(in.Text, pc, nil)
		}
		if err != nil {
			return nil, &ListingError{name, in.Line, err}
		}
		ctl := isa.DefaultControl
		if in.Control != nil {
			ctl = *in.Control
		}
		w = ctl.SetCode(w)
		out = append(out, make([]byte, isa.WordSize)...)
		w.Store(out[pc:])
	}
	if out == nil {
		return nil, errors.New(name + ": no instructions")
	}
	return out, nil
}
