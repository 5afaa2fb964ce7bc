package main

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/isa/check"
	"github.com/cupatch/cupatch/isa/learn"
)

const isaCheckUsage = `usage: cupatch isa check --arch ARCH --nvdisasm PATH [OPTIONS] [FILE…]

Compares the table of an architecture with nvdisasm: each different word of the code
for that architecture in FILE…, random words of random encoding classes, and words
with one to twelve bits flipped. Every word that agrees is encoded again too. Exit
status 1 when anything disagrees.

  -a, --arch ARCH      sm_90, sm_90a, 90a, …
      --nvdisasm PATH  NVIDIA's disassembler (default: nvdisasm in the search path)
      --table FILE     the table to check (default: the one in the program)
      --samples N      random words (default 10000)
      --flips N        words with flipped bits (default N of --samples / 4)
      --seed N         of the random numbers (default: another each time, printed)
      --examples N     examples of each kind of disagreement (default 1)
      --limit N        at most N different words of FILE… (default: all)
      --json           the report as JSON

examples:
  cupatch isa check --arch sm_90 --nvdisasm /usr/local/cuda/bin/nvdisasm libfoo.so
  cupatch isa check --arch sm_90 --samples 200000 --flips 50000 --json libfoo.so
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
	asJSON   bool
	opt      check.Options
}

func runIsaCheck(e *env, args []string) error {
	r := &checkRun{env: e}
	fs := e.flags()
	arch := archFlag(fs)
	fs.StringVar(&r.nvdisasm, "nvdisasm", "nvdisasm", "")
	table := fs.String("table", "", "")
	fs.IntVar(&r.opt.Samples, "samples", 10000, "")
	fs.IntVar(&r.opt.Flips, "flips", -1, "")
	fs.Uint64Var(&r.opt.Seed, "seed", rand.Uint64(), "")
	fs.IntVar(&r.opt.Examples, "examples", 1, "")
	fs.IntVar(&r.limit, "limit", 0, "")
	fs.BoolVar(&r.asJSON, "json", false, "")
	rest, err := e.parse(fs, args)
	if err != nil {
		return err
	}
	if r.opt.Flips < 0 {
		r.opt.Flips = r.opt.Samples / 4
	}
	if *table == "" {
		r.table, err = e.table(*arch)
	} else {
		var f *isa.TableFile
		if f, err = readTableFile(*table); err == nil {
			r.table = isa.NewTable(f.Arch, f.Variants)
		}
	}
	if err != nil {
		return err
	}
	words, status := r.realWords(rest)
	report, err := r.compare(words)
	if err != nil {
		return err
	}
	if r.asJSON {
		err = e.printJSON(report)
	} else {
		r.print(report)
	}
	if len(report.Kinds) > 0 {
		status = worse(status, 1)
	}
	if err == nil {
		err = silent(status)
	}
	return err
}

// realWords returns the different words of the code in files for the table's
// architecture, in the order of their numbers.
func (r *checkRun) realWords(files []string) ([]isa.Word, int) {
	seen := map[isa.Word]bool{}
	arch := r.table.Arch()
	status, err := r.eachFile(files, nil, func(f *elfx.File, selected map[*elfx.Entry]bool) error {
		for _, x := range f.Entries() {
			if x.SM != arch.SM || selected != nil && !selected[x] {
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
	words := make([]isa.Word, 0, len(seen))
	for w := range seen {
		words = append(words, w)
	}
	slices.SortFunc(words, func(a, b isa.Word) int { return cmp.Or(cmp.Compare(a.Hi, b.Hi), cmp.Compare(a.Lo, b.Lo)) })
	if r.limit > 0 && len(words) > r.limit {
		x := rand.New(rand.NewPCG(r.opt.Seed, 1))
		x.Shuffle(len(words), func(i, j int) { words[i], words[j] = words[j], words[i] })
		words = words[:r.limit]
	}
	return words, status
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
	return check.Run(r.table, askOracle(o), words, r.opt)
}

// askOracle turns o into what package check wants. That nvdisasm dies is an error.
func askOracle(o *learn.Oracle) check.Oracle {
	return func(words []isa.Word) (out []check.Answer, err error) {
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("nvdisasm: %v", p)
			}
		}()
		for _, a := range o.Ask(words) {
			out = append(out, check.Answer{Text: a.Text, PC: a.PC, Refused: !a.OK})
		}
		return out, nil
	}
}

// print prints the report for people.
func (r *checkRun) print(rep *check.Report) {
	o := r.stdout
	fmt.Fprintf(o, "%s, seed %d\n", rep.Arch, rep.Seed)
	for _, t := range []struct {
		name string
		*check.Tally
	}{{"real words", &rep.Real}, {"random words", &rep.Random}, {"flipped words", &rep.Flipped}} {
		if t.Words == 0 {
			continue
		}
		fmt.Fprintf(o, "%-14s %9d  accepted %9d, equal %9d (%s)\n", t.name, t.Words, t.Accepted, t.Equal, share(t.Equal, t.Accepted))
		if t.Refused > 0 {
			fmt.Fprintf(o, "%-14s            refused  %9d, by us  %9d (%s)\n", "", t.Refused, t.RefusedToo, share(t.RefusedToo, t.Refused))
		}
		fmt.Fprintf(o, "%-14s            encoded  like the word %d (%s), from the text %d, the same word %d (%s)\n", "",
			t.Reencoded, share(t.Reencoded, t.Equal), t.EncodedText, t.EncodedSame, share(t.EncodedSame, t.Equal))
	}
	for _, k := range rep.Kinds {
		fmt.Fprintf(o, "\n%6d  %s %s\n", k.Count, k.Class, k.What)
		for _, x := range k.Examples {
			fmt.Fprintf(o, "        %s %s at %#x\n          nvdisasm %s\n          cupatch  %s\n", x.Lo, x.Hi, x.PC,
				strings.TrimSpace(x.Want), x.Got)
		}
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
