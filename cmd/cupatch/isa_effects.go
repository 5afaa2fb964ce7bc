package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/isa/liferange"
)

// learnEffects learns which registers the instructions of a read and write, and writes
// the file out. base is the effects file of a related architecture, or "".
func (e *env) learnEffects(a isa.Arch, tool, version, base, out string, seed uint64) error {
	opt := liferange.Options{Seed: seed, Tool: version, Progress: func(round, left int) {
		e.notef("round %d: %d classes", round+1, left)
	}}
	var err error
	if base != "" {
		if opt.Base, err = readEffects(base); err != nil {
			return err
		}
	}
	table, err := isa.Load(a)
	if err != nil {
		return err
	}
	o, err := liferange.Open(tool, a)
	if err != nil {
		return err
	}
	defer o.Close()
	res, err := liferange.Learn(table, o, opt)
	if err != nil {
		return err
	}
	res.File.Arch = a
	if opt.Base != nil {
		res.File.Base = opt.Base.Arch
	}
	if err := os.WriteFile(out, isa.FormatEffects(res.File, opt.Base), 0o644); err != nil {
		return err
	}
	for _, n := range res.Notes {
		e.notef("%s: %s", n.Class, n.Text)
	}
	e.notef("%s: effects of %d classes, %d noted; %d words in %d runs of nvdisasm", a, len(res.File.Rules), len(res.Notes), o.Words, o.Runs)
	return nil
}

// readEffects reads an effects file; the files that it builds on are those beside it, or
// in the program.
func readEffects(name string) (*isa.EffectsFile, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	f, err := isa.ParseEffects(string(text), func(a isa.Arch) (*isa.EffectsFile, error) {
		f, err := readEffects(filepath.Join(filepath.Dir(name), a.String()+".txt"))
		if errors.Is(err, fs.ErrNotExist) {
			return isa.LoadEffects(a)
		}
		return f, err
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return f, nil
}

// checkEffects compares the effects of the table with nvdisasm, for words and random ones.
func (r *checkRun) checkEffects(words []isa.Word) (*liferange.Report, error) {
	f, err := isa.LoadEffects(r.table.Arch())
	if r.effects != "" {
		f, err = readEffects(r.effects)
	}
	if err != nil {
		return nil, err
	}
	o, err := liferange.Open(r.nvdisasm, r.table.Arch())
	if err != nil {
		return nil, err
	}
	defer o.Close()
	words = append(words, liferange.RandomWords(r.table, r.opt.Samples, r.opt.Seed)...)
	return liferange.Check(r.table, f, o, words, func(done, all int) { r.notef("%d of %d words", done, all) })
}

// printEffects prints the report for people.
func (r *checkRun) printEffects(rep *liferange.Report) {
	fmt.Fprintf(r.stdout, "%s, seed %d\n%d different words, %d answered, %d equal (%s), %d of them with registers that nvdisasm does not show\n",
		rep.Arch, r.opt.Seed, rep.Words, rep.Answered, rep.Equal, share(rep.Equal, rep.Answered), rep.Hidden)
	for _, k := range rep.Kinds {
		fmt.Fprintf(r.stdout, "\n%6d  %s %s\n        %s\n", k.Count, k.Class, k.What, k.Example)
	}
}

// reportEffects compares effects and prints the outcome; it reports whether anything
// disagrees.
func (r *checkRun) reportEffects(words []isa.Word) (bool, error) {
	report, err := r.checkEffects(words)
	if err != nil {
		return false, err
	}
	if r.asJSON {
		err = r.printJSON(report)
	} else {
		r.printEffects(report)
	}
	return len(report.Kinds) > 0, err
}
