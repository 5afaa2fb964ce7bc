package main

import (
	"cmp"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/isa/check"
	"github.com/cupatch/cupatch/isa/learn"
	"github.com/cupatch/cupatch/patch/code"
)

const isaCheckUsage = `usage: cupatch isa check --arch ARCH --nvdisasm PATH [OPTIONS] [FILE…]
       cupatch isa check --align FILE…

Compares the table of an architecture with nvdisasm: each different word of the code
for that architecture in FILE…, random words of the table's classes, and words that
are made without a look at the table:

  uniform      opcodes that nvdisasm has, random in all other bits
  flips        words of real code with 1 to 40 bits flipped
  splices      two words of real code, mixed
  windows      words of real code with every value of 8 to 10 neighboring bits
  transplants  the constant bits of the classes of every architecture, also under other
               opcodes and with a bit changed, random in all other bits

Every word that agrees is encoded again too. A class that nvdisasm names and the table
does not have is reported even where no word of it prints. Exit status 1 when anything
disagrees, or when --time ran out before all was compared.

  -a, --arch ARCH      sm_90, sm_90a, 90a, …
      --nvdisasm PATH  NVIDIA's disassembler (default: nvdisasm in the search path)
      --table FILE     the table to check (default: the one in the program)
      --effects        compare the registers that instructions read and write with the life
                       ranges of nvdisasm, for each different word of FILE… and random ones
      --effects-from FILE  the effects to check (default: those in the program)
      --align          print the instructions of FILE… with registers or offsets that are not
                       aligned as they are in ptxas code, of every architecture; --table is
                       then a file that isa learn --align wrote
      --samples N      random words of the table's classes (default 10000)
      --words N        words of each sort that is made without the table (default 2500)
      --foreign        change words of the code for other architectures in FILE… too
      --seed N         of the random numbers (default: another each time, printed)
      --time DURATION  compare no more after it, such as 30m
      --state FILE     keep there what was compared, and go on from it; the options have
                       to be the same
      --examples N     examples of each kind of disagreement (default 1)
      --limit N        at most N different words of FILE… (default: all)
      --json           the report as JSON

examples:
  cupatch isa check --arch sm_90 --nvdisasm /usr/local/cuda/bin/nvdisasm libfoo.so
  cupatch isa check --arch sm_90 --words 200000 --time 20m --state sm_90.jsonl libfoo.so
  cupatch isa check --effects --arch sm_90 --samples 20000 libfoo.so
`

func init() {
	registerIsa(&command{"check", "", isaCheckUsage, runIsaCheck})
}

// A checkRun is one run of isa check.
type checkRun struct {
	*env
	table    *isa.Table
	nvdisasm string
	limit    int
	foreign  bool
	state    string
	asJSON   bool
	effects  string // the effects file to check, "" for those in the program
	opt      check.Options
}

func runIsaCheck(e *env, args []string) error {
	r := &checkRun{env: e}
	fs := e.flags()
	arch := archFlag(fs)
	fs.StringVar(&r.nvdisasm, "nvdisasm", "nvdisasm", "")
	table := fs.String("table", "", "")
	effects := fs.Bool("effects", false, "")
	align := fs.Bool("align", false, "")
	fs.StringVar(&r.effects, "effects-from", "", "")
	fs.IntVar(&r.opt.Samples, "samples", 10000, "")
	fs.IntVar(&r.opt.Words, "words", 2500, "")
	fs.BoolVar(&r.foreign, "foreign", false, "")
	fs.Uint64Var(&r.opt.Seed, "seed", rand.Uint64(), "")
	budget := fs.Duration("time", 0, "")
	fs.StringVar(&r.state, "state", "", "")
	fs.IntVar(&r.opt.Examples, "examples", 1, "")
	fs.IntVar(&r.limit, "limit", 0, "")
	fs.BoolVar(&r.asJSON, "json", false, "")
	rest, err := e.parse(fs, args)
	if err != nil {
		return err
	}
	if r.opt.Samples < 0 || r.opt.Words < 0 || r.opt.Examples < 0 || r.limit < 0 {
		return e.usagef("--samples, --words, --examples and --limit count from 0")
	}
	if *align {
		return e.checkAlign(rest, *table)
	}
	if *budget > 0 {
		end := time.Now().Add(*budget)
		r.opt.Stop = func() bool { return time.Now().After(end) }
	}
	if *table == "" {
		r.table, err = e.table(*arch)
	} else {
		r.table, err = code.ReadTable(*table)
	}
	if err != nil {
		return err
	}
	words, status := r.realWords(rest)
	var wrong bool
	if *effects || r.effects != "" {
		wrong, err = r.reportEffects(words)
	} else {
		wrong, err = r.reportTexts(words)
	}
	if wrong {
		status = worse(status, 1)
	}
	if err == nil {
		err = silent(status)
	}
	return err
}

// reportTexts compares texts and prints the outcome; it reports whether anything disagrees.
func (r *checkRun) reportTexts(words []isa.Word) (bool, error) {
	report, err := r.compare(words)
	if err != nil {
		return false, err
	}
	if r.asJSON {
		err = r.printJSON(report)
	} else {
		r.print(report)
	}
	return len(report.Kinds) > 0 || !report.Complete, err
}

// realWords returns the different words of the code in files for the table's
// architecture, in the order of their numbers. Those of other architectures become words
// to change, where that is asked for.
func (r *checkRun) realWords(files []string) ([]isa.Word, int) {
	own, foreign := map[isa.Word]bool{}, map[isa.Word]bool{}
	arch := r.table.Arch()
	status, err := r.eachFile(files, nil, func(f *elfx.File, selected map[*elfx.Entry]bool) error {
		for _, x := range f.Entries() {
			seen := own
			if x.SM != arch.SM {
				seen = foreign
			}
			if x.SM != arch.SM && (!r.foreign || x.InstructionSize() != isa.WordSize) || selected != nil && !selected[x] {
				continue
			}
			c, err := x.Cubin()
			if err != nil {
				continue // PTX, or damage that other commands report
			}
			for _, k := range c.Kernels() {
				for b := k.Data(); len(b) >= isa.WordSize; b = b[isa.WordSize:] {
					seen[isa.LoadWord(b)] = true
				}
			}
		}
		return nil
	})
	if err != nil {
		r.report(err)
		status = 2
	}
	r.opt.Start = r.limited(foreign)
	return r.limited(own), status
}

// limited returns the words of a set in the order of their numbers, or as many of them at
// random as the limit says.
func (r *checkRun) limited(set map[isa.Word]bool) []isa.Word {
	words := make([]isa.Word, 0, len(set))
	for w := range set {
		words = append(words, w)
	}
	slices.SortFunc(words, func(a, b isa.Word) int { return cmp.Or(cmp.Compare(a.Hi, b.Hi), cmp.Compare(a.Lo, b.Lo)) })
	if r.limit > 0 && len(words) > r.limit {
		x := rand.New(rand.NewPCG(r.opt.Seed, 1))
		x.Shuffle(len(words), func(i, j int) { words[i], words[j] = words[j], words[i] })
		words = words[:r.limit]
	}
	return words
}

// compare runs the comparison.
func (r *checkRun) compare(words []isa.Word) (*check.Report, error) {
	cache, err := os.MkdirTemp("", "cupatch-check-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(cache)
	o, err := learn.OpenOracle(r.nvdisasm, r.table.Arch(), cache)
	if err != nil {
		return nil, err
	}
	defer o.Close()
	r.opt.Progress = func(what string, done, all int) {
		if done%200000 < 20000 || done == all {
			r.notef("%s: %d of %d", what, done, all)
		}
	}
	if r.opt.Related, err = code.Tables(); err != nil {
		return nil, err
	}
	if r.state == "" {
		return check.Run(r.table, askOracle(o), words, r.opt)
	}
	state, err := openCheckState(r.state, r.fingerprint(words), &r.opt)
	if err != nil {
		return nil, err
	}
	defer state.Close()
	rep, err := check.Run(r.table, askOracle(o), words, r.opt)
	if err == nil {
		err = state.err
	}
	return rep, err
}

// askOracle turns o into what package check wants.
func askOracle(o *learn.Oracle) check.Oracle {
	return func(words []isa.Word) ([]check.Answer, error) {
		answers, err := o.Ask(words)
		if err != nil {
			return nil, err
		}
		out := make([]check.Answer, len(answers))
		for i, a := range answers {
			out[i] = check.Answer{Text: a.Text, PC: a.PC, Refused: !a.OK, Class: a.Class, Table: a.Table}
		}
		return out, nil
	}
}

// print prints the report for people.
func (r *checkRun) print(rep *check.Report) {
	o := r.stdout
	fmt.Fprintf(o, "%s, seed %d\n", rep.Arch, rep.Seed)
	for _, t := range rep.Sorts {
		printSort(o, &t)
	}
	if r.opt.Words > 0 {
		fmt.Fprintf(o, "%-11s %9d  in the table, met %d\n", "classes", rep.ClassesInTable, rep.Classes)
	}
	if !rep.Complete {
		fmt.Fprintln(o, "time ran out: not all was compared")
	}
	for _, k := range rep.Kinds {
		fmt.Fprintf(o, "\n%6d  %s %s\n", k.Count, k.Class, k.What)
		for _, x := range k.Examples {
			fmt.Fprintf(o, "        %s %s at %#x\n          nvdisasm %s\n          cupatch  %s\n", x.Lo, x.Hi, x.PC,
				strings.TrimSpace(x.Want), x.Got)
		}
	}
}

// printSort prints what was found about the words of one sort.
func printSort(o io.Writer, t *check.Sort) {
	line := func(name string, n int, format string, args ...any) {
		fmt.Fprintf(o, "%-11s %9d  %s\n", name, n, fmt.Sprintf(format, args...))
	}
	line(t.Name, t.Words, "words")
	if t.Accepted > 0 {
		line("", t.Accepted, "accepted, equal %d (%s), silent %d", t.Equal, share(t.Equal, t.Accepted), t.Silent)
	}
	if t.Refused > 0 {
		line("", t.Refused, "refused, by us %d (%s)", t.RefusedToo, share(t.RefusedToo, t.Refused))
	}
	if n := t.Equal - t.Silent; n > 0 {
		line("", n, "encoded, like the word %d (%s), from the text %d, the same word %d (%s)",
			t.Reencoded, share(t.Reencoded, n), t.EncodedText, t.EncodedSame, share(t.EncodedSame, n))
	}
	if n := t.Wrong(); n > 0 {
		line("", n, "wrong: text %d, not known %d, not refused %d, schedule %d, class missing %d",
			t.TextDiffers, t.NotKnown, t.NotRefused, t.Schedule, t.NewClass)
	}
}

// share returns a of b in percent, rounded down so that only all is 100%.
func share(a, b int) string {
	if b == 0 {
		return "–"
	}
	n := a * 1000000 / b
	return fmt.Sprintf("%d.%04d%%", n/10000, n%10000)
}
