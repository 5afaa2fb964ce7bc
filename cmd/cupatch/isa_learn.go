package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"sync"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/isa/check"
	"github.com/cupatch/cupatch/isa/learn"
	"github.com/cupatch/cupatch/patch/code"
)

const isaLearnUsage = `usage: cupatch isa learn --arch ARCH --nvdisasm PATH -o FILE [OPTIONS]
       cupatch isa learn --align -o FILE FILE…
       cupatch isa learn --schedule --arch ARCH -o FILE CODE…
       cupatch isa learn --habits --arch ARCH -o FILE CODE…

Makes the instruction table of an architecture by asking nvdisasm. It starts from what
real code and related tables show, tries all opcodes, and learns every encoding class
that it meets; a class is done when it predicts the text of thousands of random words.
What could not be explained is reported at the end, and the exit status is then 1.

  -a, --arch ARCH        the architecture to learn, as nvdisasm knows it
      --nvdisasm PATH    the tool to ask; default: nvdisasm in the path
  -o, --output FILE      the table to write
      --base TABLE       the table of a related architecture: its classes are tested, and
                         only what differs is learned and written
      --update           FILE is there already: its classes are tested, only what is wrong or
                         missing is learned; its base and the bits that ptxas emits
                         where a text leaves them open stay
      --trust            take the classes of the table as they are, until words of the whole
                         table show one to be wrong
      --seed-from FILE   a cubin, library or folder with code of the architecture, or a
                         table of another one; may be repeated
      --no-scan          do not look for classes: neither in all opcodes nor in the classes of
                         other architectures
      --tests N          random words that a class has to predict (default 2000)
      --mutants N        words of seeds and examples with bits flipped that the whole table
                         has to predict (default 200000)
      --workers N        processes of nvdisasm (default 2)
      --effects          learn which registers the instructions of a table in the program
                         read and write, and write that file; --base is then such a file
      --seed N           of the random words for --effects (default 1)
      --align            learn of what powers of two registers and offsets are multiples in
                         the code of FILE…, of every architecture, and write that file; no
                         other option but -o is of use with it
      --schedule         learn what schedules keep to from the code of ptxas in the FILEs
                         and folders that are given, and write that model; asks no tool
      --habits           with the code that --schedule takes: learn how ptxas sets
                         control codes, and write that for cupatch's scheduler
      --cache DIR        where finished classes are kept, so that an interrupted run goes
                         on where it stopped (default: the user's cache folder)

A C compiler makes it quick: cc builds a small preload that keeps nvdisasm waiting for
questions. Without one, every question starts a process.

examples:
  cupatch isa learn --arch sm_90a --nvdisasm nvdisasm --seed-from lib/ -o sm_90a.txt
  cupatch isa learn --arch sm_103 --base isa/tables/sm_100.txt -o sm_103.txt
  cupatch isa learn --effects --arch sm_90a -o isa/tables/effects/sm_90a.txt
  cupatch isa learn --align -o isa/align.txt lib/
  cupatch isa learn --schedule --arch sm_90 -o isa/schedule/tables/sm_90.txt libs/
  cupatch isa learn --habits --arch sm_90 -o isa/schedule/assign/tables/sm_90.txt libs/
`

func init() {
	registerIsa(&command{"learn", "", isaLearnUsage, runIsaLearn})
}

func runIsaLearn(e *env, args []string) error {
	fs := e.flags()
	arch := archFlag(fs)
	tool := fs.String("nvdisasm", "nvdisasm", "")
	out := fs.StringP("output", "o", "", "")
	base := fs.String("base", "", "")
	update := fs.Bool("update", false, "")
	trust := fs.Bool("trust", false, "")
	seeds := fs.StringArray("seed-from", nil, "")
	noScan := fs.Bool("no-scan", false, "")
	tests := fs.Int("tests", 2000, "")
	mutants := fs.Int("mutants", 200000, "")
	workers := fs.Int("workers", 2, "")
	cache := fs.String("cache", "", "")
	effects := fs.Bool("effects", false, "")
	seed := fs.Uint64("seed", 1, "")
	align := fs.Bool("align", false, "")
	sched := fs.Bool("schedule", false, "")
	habits := fs.Bool("habits", false, "")
	rest, err := e.parse(fs, args)
	if err != nil {
		return err
	}
	if *align && *out != "" {
		return e.learnAlign(rest, *out)
	}
	a, err := isa.ParseArch(*arch)
	switch {
	case err != nil:
		return e.usageError(err)
	case *out == "":
		return e.usagef("where to? say -o FILE")
	case *update && *base != "":
		return e.usagef("--update keeps the table's own base: leave out --base")
	case *tests < 1 || *workers < 1 || *mutants < 0:
		return e.usagef("--tests and --workers count from 1, --mutants from 0")
	case (*sched || *habits) && len(rest) == 0:
		return e.usagef("--schedule and --habits learn from code: name files or folders with some")
	case *habits:
		return e.learnHabits(a, rest, *out)
	case *sched:
		return e.learnSchedule(a, rest, *out)
	}
	if *cache == "" {
		dir, err := os.UserCacheDir()
		if err != nil {
			return err
		}
		*cache = filepath.Join(dir, "cupatch")
	}
	version, err := toolVersion(*tool)
	if err != nil {
		return err
	}
	if *effects {
		return e.learnEffects(a, *tool, version, *base, *out, *seed)
	}
	opt := learn.Options{Arch: a, NVDisasm: *tool, Cache: *cache, Scan: !*noScan, Tests: *tests, Mutants: *mutants, Workers: *workers, Trust: *trust}
	file := &isa.TableFile{Arch: a, Tool: version}
	start, baseFile, err := startingTables(*base, *out, *update)
	if err != nil {
		return err
	}
	var older []*isa.Variant
	if baseFile != nil {
		file.Base = baseFile.Arch
		older = baseFile.Variants
	}
	if start != nil {
		opt.Base = isa.NewTable(a, start.Variants)
		older = slices.Concat(older, start.Variants)
	}
	if *update {
		opt.Related, err = folderTables(filepath.Dir(*out))
	} else {
		opt.Related, err = code.Tables()
	}
	if err != nil {
		return err
	}
	real, err := seedsOf(*seeds, a, &opt)
	if err != nil {
		return err
	}
	bad, err := e.learn(&opt, file, filepath.Join(*cache, fmt.Sprintf("learn-%s-%s.jsonl", a, version)))
	if err != nil {
		return err
	}
	check.InheritDefaults(file.Variants, older)
	if !*update {
		check.FitDefaults(a, file.Variants, real)
	}
	if err := writeTable(*out, file, baseFile); err != nil {
		return err
	}
	if bad > 0 {
		return silent(1)
	}
	return nil
}

// startingTables returns the table whose classes are tested first, and the one that the
// new table says the difference to. Either may be nil.
func startingTables(base, out string, update bool) (start, related *isa.TableFile, err error) {
	switch {
	case base != "":
		start, err = code.ReadTableFile(base)
		return start, start, err
	case !update:
		return nil, nil, nil
	}
	if start, err = code.ReadTableFile(out); err != nil || start.Base == (isa.Arch{}) {
		return start, nil, err
	}
	related, err = code.ReadTableFile(filepath.Join(filepath.Dir(out), start.Base.String()+".txt"))
	return start, related, err
}

// learn runs opt, keeps what it finds in the journal, and puts the variants into file.
// It returns the number of classes that were not explained.
func (e *env) learn(opt *learn.Options, file *isa.TableFile, path string) (bad int, err error) {
	j, err := openJournal(path, opt)
	if err != nil {
		return 0, err
	}
	defer j.file.Close()
	e.notef("%s: %d seed words; %d classes and %d examples from %s", opt.Arch, len(opt.Seeds), len(opt.Known), len(opt.Samples), path)
	n := 0
	opt.Done = func(r learn.Result) {
		n++
		e.notef("%5d %s", n, r)
		j.write(journalLine{Result: &r})
	}
	opt.Sample = func(class string, w isa.Word) { j.write(journalLine{Class: class, Word: &w}) }
	opt.Searched = func() { j.write(journalLine{Searched: true}) }
	out, err := learn.Learn(*opt)
	if err == nil {
		err = j.err
	}
	if err != nil {
		return 0, err
	}
	for _, r := range out.Results {
		if r.Variant != nil {
			v := *r.Variant // it may be the related table's own
			file.Variants = append(file.Variants, &v)
		}
		if r.Variant == nil || r.Misses > 0 {
			bad++
			e.warnf("not explained: %s", r)
		}
	}
	e.summarize(opt, out, bad)
	return bad + out.Wrong, nil
}

// summarize says what was learned, what is wrong with it, and what was not tried.
func (e *env) summarize(opt *learn.Options, out *learn.Outcome, bad int) {
	e.notef("%s: %d classes, %d of them not explained", opt.Arch, len(out.Results), bad)
	if out.Hunted > 0 {
		e.notef("%s: of %d words for the whole table, %d are wrong", opt.Arch, out.Hunted, out.Wrong)
	}
	if opt.Mutants < enoughMutants {
		e.warnf("not tried: %d words made without a look at the table (--mutants); classes may be missing, and may take words of others", enoughMutants)
	}
	if len(opt.Seeds) == 0 {
		e.warnf("not tried: words of real code (--seed-from)")
	}
	if !opt.Scan && !opt.SkipSearch {
		e.warnf("not tried: all opcodes, and the classes of other architectures (--no-scan)")
	}
}

// enoughMutants is how many words show most of what is wrong with a table.
const enoughMutants = 100000

// A journal keeps what a run has learned, one JSON object a line, so that an interrupted
// run goes on where it stopped.
type journal struct {
	mu   sync.Mutex
	file *os.File
	err  error
}

// A journalLine holds the result for a class, or an example of one, or says that the
// search for classes is over.
type journalLine struct {
	Result   *learn.Result `json:",omitempty"`
	Class    string        `json:",omitempty"`
	Word     *isa.Word     `json:",omitempty"`
	Searched bool          `json:",omitempty"`
}

// openJournal reads the journal at path into opt and opens it for more.
func openJournal(path string, opt *learn.Options) (*journal, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	opt.Samples = map[string][]isa.Word{}
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<28)
	for sc.Scan() {
		var l journalLine
		if json.Unmarshal(sc.Bytes(), &l) != nil {
			continue // an interruption cut it short
		}
		switch {
		case l.Result != nil:
			opt.Known = append(opt.Known, *l.Result)
		case l.Word != nil:
			opt.Samples[l.Class] = append(opt.Samples[l.Class], *l.Word)
		}
		opt.SkipSearch = opt.SkipSearch || l.Searched
	}
	return &journal{file: f}, sc.Err()
}

func (j *journal) write(l journalLine) {
	line, err := json.Marshal(l)
	j.mu.Lock()
	defer j.mu.Unlock()
	if err == nil {
		_, err = j.file.Write(append(line, '\n'))
	}
	if j.err == nil {
		j.err = err
	}
}

var rxVersion = regexp.MustCompile(`V(\d+\.\d+\.\d+)`)

// toolVersion asks a tool of NVIDIA's for its version.
func toolVersion(tool string) (string, error) {
	out, err := exec.Command(tool, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("%s --version: %w", tool, err)
	}
	m := rxVersion.FindSubmatch(out)
	if m == nil {
		return "", fmt.Errorf("%s --version names no version", tool)
	}
	return string(m[1]), nil
}

// seedsOf reads all seeds into opt and returns those that are words of real code for a.
func seedsOf(seeds []string, a isa.Arch, opt *learn.Options) (real []isa.Word, err error) {
	for _, s := range seeds {
		ws, err := seedWords(s, a)
		if err != nil {
			return nil, err
		}
		opt.Seeds = append(opt.Seeds, ws...)
		if filepath.Ext(s) != ".txt" {
			real = append(real, ws...)
		}
	}
	return real, nil
}

// seedWords returns the different words of all kernels for a in a file or folder, words
// of a table, or the words of a file named *.bin that holds nothing else.
func seedWords(path string, a isa.Arch) ([]isa.Word, error) {
	switch filepath.Ext(path) {
	case ".txt":
		f, err := code.ReadTableFile(path)
		if err != nil {
			return nil, err
		}
		return learn.SeedsOf(isa.NewTable(f.Arch, f.Variants)), nil
	case ".bin":
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		return wordsOf(data, map[isa.Word]bool{}), nil
	}
	seen := map[isa.Word]bool{}
	var out []isa.Word
	err := elfx.Walk(path, nil, func(name string, f *elfx.File, err error) error {
		if err != nil {
			return err
		}
		for _, x := range f.Entries() {
			if x.SM != a.SM {
				continue
			}
			c, err := x.Cubin()
			if err != nil {
				continue // other entries will do
			}
			for _, k := range c.Kernels() {
				out = append(out, wordsOf(k.Data(), seen)...)
			}
		}
		return nil
	})
	return out, err
}

func wordsOf(data []byte, seen map[isa.Word]bool) []isa.Word {
	var out []isa.Word
	for ; len(data) >= isa.WordSize; data = data[isa.WordSize:] {
		if w := isa.LoadWord(data); !seen[w] {
			seen[w] = true
			out = append(out, w)
		}
	}
	return out
}
