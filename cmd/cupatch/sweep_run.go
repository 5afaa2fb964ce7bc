package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/patch/gpu"
	"github.com/spf13/pflag"
)

// sweepRunUsage is the part of sweep's help about --run.
const sweepRunUsage = `      --run             launch each variant and the unpatched kernel on a GPU, check that
                        their results are equal, bit by bit, and rank the variants by
                        time: a table on standard output, and DIR/run.json. -k selects
                        the kernel. A variant that faults or does not end is listed and
                        does not end the sweep. Launch options, as for run: --grid
                        --block --shared --arg --check --repeat --warmup --reset --cold
                        --device --timeout (for each variant)
`

// A sweepTrial is what came of running one variant.
type sweepTrial struct {
	Params map[string]string `json:"params"`
	File   string            `json:"file"`
	*gpu.Result
	Error string `json:"error,omitempty"`
}

// outcome is what came of the variant itself, nil if it did not run.
func (t *sweepTrial) outcome() *gpu.Outcome {
	if t.Error != "" || t.Result == nil || len(t.Programs) < 2 {
		return nil
	}
	return t.Programs[1]
}

// ratio is the variant's time as a part of the unpatched kernel's, 0 if not known.
func (t *sweepTrial) ratio() float64 {
	if x := t.outcome(); x != nil && x.Ratio != nil {
		return x.Ratio.Median
	}
	return 0
}

// good reports whether the variant ran and left what the unpatched kernel leaves.
func (t *sweepTrial) good() bool { return t.outcome() != nil && t.Identical }

// A sweepTrials is the file run.json.
type sweepTrials struct {
	Format string        `json:"format"`
	Tool   string        `json:"tool"`
	Device *gpu.Device   `json:"device"`
	Launch runLaunch     `json:"launch"`
	Trials []*sweepTrial `json:"trials"` // best first
}

// A sweepLauncher runs the variants of a sweep.
type sweepLauncher struct {
	*env
	*narrowing
	launching
	wanted bool
	device *gpu.Device
}

func (l *sweepLauncher) flags(e *env, n *narrowing, fs *pflag.FlagSet) {
	l.env, l.narrowing = e, n
	fs.BoolVar(&l.wanted, "run", false, "")
	l.launching.flags(fs)
}

// prepare checks, before anything is written, that variants of a file can be run.
func (l *sweepLauncher) prepare(f *elfx.File, entries []*elfx.Entry) error {
	if err := l.launching.parse(l.env); err != nil {
		return err
	}
	list, err := l.programs(l.env, f, entries)
	if err != nil {
		return err
	}
	if err := l.fits([][]*gpu.Program{list}); err != nil {
		return l.usageError(err)
	}
	s, done, err := l.open(l.env)
	if err != nil {
		return err
	}
	defer done()
	l.device = s.Device
	_, err = choose(list, s.Device)
	return err
}

// all runs every variant that was written and prints them, best first. It returns the
// exit status.
func (l *sweepLauncher) all(f *elfx.File, entries []*elfx.Entry, dir string, variants []*sweepVariant) (int, error) {
	list, err := l.programs(l.env, f, entries)
	if err != nil {
		return 2, err
	}
	original, err := choose(list, l.device)
	if err != nil {
		return 2, err
	}
	out := &sweepTrials{Format: trialsFormat, Tool: toolName(), Device: l.device, Launch: l.described(), Trials: []*sweepTrial{}}
	status := 0
	for _, v := range variants {
		if v.File == "" || v.SameAs != "" {
			continue
		}
		t := l.trial(original, entries, dir, v)
		if !t.good() {
			status = 1
		}
		out.Trials = append(out.Trials, t)
	}
	slices.SortStableFunc(out.Trials, func(a, b *sweepTrial) int {
		if a.good() != b.good() {
			return cmp.Compare(rank(a.good()), rank(b.good()))
		}
		return cmp.Compare(a.ratio(), b.ratio())
	})
	l.print(out)
	b, err := json.MarshalIndent(out, "", " ")
	if err != nil {
		return 2, err
	}
	return status, writeBytes(filepath.Join(dir, trialsName), append(b, '\n'))
}

// rank puts good trials first.
func rank(good bool) int {
	if good {
		return 0
	}
	return 1
}

// trial runs the unpatched kernel and one variant in turn, in a process of their own.
// The variant's entries are those that stand where entries do.
func (l *sweepLauncher) trial(original *gpu.Program, entries []*elfx.Entry, dir string, v *sweepVariant) *sweepTrial {
	t := &sweepTrial{Params: v.Params, File: v.File}
	err := func() error {
		f, err := elfx.OpenFile(filepath.Join(dir, v.File), nil)
		if err != nil {
			return err
		}
		defer f.Close()
		list, err := l.programs(l.env, f, sameEntries(f, entries))
		if err != nil {
			return err
		}
		p, err := choose(list, l.device)
		if err != nil {
			return err
		}
		p.Name, original.Name = "variant", "unpatched"
		s, done, err := l.open(l.env)
		if err != nil {
			return err
		}
		defer done()
		t.Result, err = s.Run(&l.launch, original, p)
		return err
	}()
	if err != nil {
		t.Error = err.Error()
		var failed *gpu.KernelError
		if errors.As(err, &failed) {
			t.Error = failed.Err.Error()
		}
	}
	return t
}

// sameEntries returns the entries of f with the numbers of list.
func sameEntries(f *elfx.File, list []*elfx.Entry) []*elfx.Entry {
	var out []*elfx.Entry
	for _, x := range f.Entries() {
		if slices.ContainsFunc(list, func(y *elfx.Entry) bool { return x.Number == y.Number }) {
			out = append(out, x)
		}
	}
	return out
}

// print writes the table.
func (l *sweepLauncher) print(out *sweepTrials) {
	fmt.Fprintf(l.stdout, "GPU %d: %s, sm_%d, driver for CUDA %s; times as a part of the unpatched kernel's\n", out.Device.Number, out.Device.Name, out.Device.SM, out.Device.Driver)
	width := len("variant")
	for _, t := range out.Trials {
		width = max(width, len(comboName(t.Params)))
	}
	fmt.Fprintf(l.stdout, "%-*s  %12s  %7s  %-17s  %s\n", width, "variant", "median", "ratio", "quartiles", "results")
	for _, t := range out.Trials {
		median, ratio, quartiles, result := "-", "-", "-", "identical"
		x := t.outcome()
		if x != nil && x.Ratio != nil {
			median = micros(x.Times.Median)
			ratio, quartiles = fmt.Sprintf("%.4f", x.Ratio.Median), fmt.Sprintf("%.4f to %.4f", x.Ratio.Q1, x.Ratio.Q3)
		}
		switch {
		case x == nil:
			result = t.Error
		case !t.Programs[0].Identical:
			result = "the unpatched kernel does not give the same every time"
		case !x.Identical:
			result = "differ: " + difference(x.Difference)
		}
		fmt.Fprintf(l.stdout, "%-*s  %12s  %7s  %-17s  %s\n", width, comboName(t.Params), median, ratio, quartiles, result)
	}
}
