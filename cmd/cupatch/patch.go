package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/cupatch/cupatch/patch"
	"github.com/cupatch/cupatch/patch/check"
	"github.com/cupatch/cupatch/patch/recipe"
	"github.com/cupatch/cupatch/patch/report"
	"github.com/cupatch/cupatch/patch/rule"
	"github.com/spf13/pflag"
)

const patchUsage = `usage: cupatch patch -e RULE… | -f RECIPE  -n | -o OUT | -i  [OPTIONS] FILE…

Changes instructions by rules, MATCH [if CONDITION] => CHANGES, and proves that
nothing else changed. The rule language is described in docs/rules.md.

  -e, --rule RULE       a rule; repeatable, applied in order
  -f, --recipe FILE     rules from a recipe
  -p, --param NAME=VAL  value of a recipe's parameter; repeatable
  -o, --output OUT      write the result to OUT, a folder for several files; - is
                        standard output
  -i, --in-place        replace FILE itself; keeps its mode and symbolic links, breaks
                        hard links
      --backup SUFFIX   with -i, keep the old file as FILE+SUFFIX: --backup .orig
  -n, --dry-run         write nothing, show what would change
  -U, --context N       lines around each change in the diff (default 3)
  -a, --arch ARCH       only cubins for ARCH; repeatable
  -k, --kernel GLOB     only kernels of this mangled, C++ or bare name; repeatable
      --report FILE     write the edits as JSON, for apply, revert and verify; with -n too
      --keep-original   with --report FILE: keep the overwritten bytes in FILE.original,
                        so that revert restores the file byte for byte
      --allow NAMES     permit what would be refused: value, schedule, footprint, align,
                        hidden, class, target, hazard
      --skip-refused    skip refused instructions, count them and continue
      --allow-no-match  succeed even if the rules match nothing
      --no-warn NAMES   silence warnings: mercury, relocation, info, wait,
                        scoreboard, stall, reuse, hazard, all
      --again           apply relative changes to a file once more
      --no-grow         fail if the file would grow
      --ignore-guard    apply a recipe even if its guard does not hold
      --max-entry N     refuse entries larger than N when decompressed

A diff of the listing is printed on standard output, unless the file goes there or -q is
given. All files are planned before any is written. If a rule cannot be applied to an
instruction that it matches, that is an error, and nothing is written.

exit status: 0 done; 1 nothing matched, or an expectation or guard does not hold; 2
trouble.

examples:
  cupatch patch -n -e 'LDG.E.CONSTANT => .EF' kernel.cubin
  cupatch patch -e 'LDG => .EF .LTC128B' -o out.cubin kernel.cubin
  cupatch patch -f tune.toml -p prefetch=LTC256B -i --backup .orig libfoo.so
`

func init() {
	register(&command{"patch", "change instructions by rules", patchUsage, runPatch})
}

// A ruleSource is where rules come from: the command line or a recipe.
type ruleSource struct {
	texts  []string
	file   string
	params []string
	recipe *recipe.Recipe
	rules  []*rule.Rule
	values map[string]string
}

func (s *ruleSource) flags(fs *pflag.FlagSet) {
	fs.StringArrayVarP(&s.texts, "rule", "e", nil, "")
	fs.StringVarP(&s.file, "recipe", "f", "", "")
	fs.StringArrayVarP(&s.params, "param", "p", nil, "")
}

// load reads the rules.
func (s *ruleSource) load(e *env) error {
	if (len(s.texts) == 0) == (s.file == "") {
		return e.usagef("rules come from -e or from -f, one of them")
	}
	for i, t := range s.texts {
		r, err := rule.Parse("", i+1, t)
		if err != nil {
			return err
		}
		s.rules = append(s.rules, r)
	}
	values, err := parseParams(s.params)
	if err != nil {
		return e.usageError(err)
	}
	s.values = values
	if s.file == "" {
		if len(values) > 0 {
			return e.usagef("-p gives a value to a recipe's parameter; there is no recipe")
		}
		return nil
	}
	if s.recipe, err = loadRecipe(e, s.file); err != nil {
		return err
	}
	s.rules, err = s.recipe.Rules(values)
	return err
}

// loadRecipe reads a recipe from a file or standard input.
func loadRecipe(e *env, path string) (*recipe.Recipe, error) {
	data, err := e.readFile(path)
	if err != nil {
		return nil, err
	}
	return recipe.Parse(path, data)
}

func parseParams(list []string) (map[string]string, error) {
	out := map[string]string{}
	for _, p := range list {
		name, v, ok := strings.Cut(p, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("-p %s: want NAME=VALUE", p)
		}
		if _, twice := out[name]; twice {
			return nil, fmt.Errorf("-p %s: %s has a value already", p, name)
		}
		out[name] = v
	}
	return out, nil
}

// A patchRun is one run of patch.
type patchRun struct {
	*env
	narrowing
	ruleSource
	target       destination
	dryRun       bool
	context      contextLines
	report       string
	skipRefused  bool
	allowNoMatch bool
	again        bool
	ignoreGuard  bool
	allow        check.Allow
	silent       map[string]bool

	planner *patch.Planner
	timing  *patch.Rescheduler // of schedule, which has no rules
	files   []*filePlan
	visited []string // every file that was opened
	sum     rule.Summary
	status  int
}

func (r *patchRun) define(fs *pflag.FlagSet) (allow, noWarn *string) {
	r.narrowing.flags(fs)
	r.ruleSource.flags(fs)
	r.target.flags(fs)
	r.target.keepFlag(fs)
	fs.BoolVarP(&r.dryRun, "dry-run", "n", false, "")
	r.context.flag(fs)
	outFlag(fs, &r.report, "report", "")
	fs.BoolVar(&r.skipRefused, "skip-refused", false, "")
	fs.BoolVar(&r.allowNoMatch, "allow-no-match", false, "")
	fs.BoolVar(&r.again, "again", false, "")
	fs.BoolVar(&r.ignoreGuard, "ignore-guard", false, "")
	return fs.String("allow", "", ""), fs.String("no-warn", "", "")
}

func runPatch(e *env, args []string) error {
	r := &patchRun{env: e}
	fs := e.flags()
	allow, noWarn := r.define(fs)
	files, err := e.parse(fs, args)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return e.usagef("patch needs a FILE")
	}
	if r.allow, err = check.ParseAllow(*allow); err != nil {
		return e.usageError(err)
	}
	if r.silent, err = check.ParseSilent(*noWarn); err != nil {
		return e.usageError(fmt.Errorf("--no-warn: %w", err))
	}
	if err := r.checkOutput(); err != nil {
		return err
	}
	if err := r.load(e); err != nil {
		return err
	}
	if r.recipe != nil {
		for name := range r.recipe.Allow() {
			r.allow[name] = true
		}
	}
	return r.change(files)
}

// checkOutput looks at the options that say where the result goes.
func (r *patchRun) checkOutput() error {
	if err := r.context.check(r.env); err != nil {
		return err
	}
	if err := r.target.check(r.env, r.dryRun); err != nil {
		return err
	}
	if err := r.target.checkKeep(r.env, r.report); err != nil {
		return err
	}
	return oneStream(r.env, &r.target, r.report)
}

// change plans files and writes them.
func (r *patchRun) change(files []string) error {
	opt, err := r.options()
	if err != nil {
		return err
	}
	r.planner = r.newPlanner()
	if r.status, err = r.eachFile(files, opt, r.plan); err != nil {
		return planError(err)
	}
	if r.status != 0 {
		return silent(r.status)
	}
	if err := r.checkPlan(); err != nil {
		return err
	}
	return r.finish()
}

// planError gives an error of a plan its exit status: what a rule expected and did
// not find is a no, everything else trouble.
func planError(err error) error {
	var expect *rule.ExpectError
	var guard *recipe.GuardError
	if errors.As(err, &expect) || errors.As(err, &guard) {
		return &exitError{code: 1, err: err}
	}
	return err
}

// checkPlan looks at the plan of all files together.
func (r *patchRun) checkPlan() error {
	if len(r.files) == 0 {
		return r.nothing("cubin")
	}
	forArch := r.recipe != nil && len(r.recipe.Arch) > 0
	if forArch {
		r.miss.extra = "arch " + strings.Join(r.recipe.Arch, ", ") + " of " + r.recipe.Name
	}
	if r.sum.Seen == 0 && (!r.allowNoMatch || r.timing != nil) && (forArch || len(r.kernels) > 0) {
		return r.nothing("cubin")
	}
	if err := r.planner.Missing(); err != nil {
		return err
	}
	if err := rule.CheckExpected(r.rules, &r.sum); err != nil {
		return planError(err)
	}
	if r.sum.Matched == 0 && !r.allowNoMatch {
		x := answerNo("the rules match nothing in %s", plural(r.sum.Seen, "instruction", "instructions"))
		x.hint = "cupatch dis -m MATCH tries a match; --allow-no-match makes this no failure"
		return x
	}
	if r.report != "" && !r.again {
		return r.checkEarlier()
	}
	return nil
}

// checkEarlier refuses relative changes to a file that an earlier report at the same
// place lists as its output.
func (r *patchRun) checkEarlier() error {
	if !r.sum.Relative() {
		return nil
	}
	file, err := os.Open(r.report)
	if err != nil {
		return nil // no earlier report
	}
	defer file.Close()
	old, err := report.Read(file)
	if err != nil {
		return nil // it will be replaced
	}
	for _, f := range r.files {
		for _, o := range old.Files {
			if old.Relative && o.Output != nil && *o.Output == *f.hash && (o.Input == nil || *o.Input != *o.Output) {
				x := answerNo("%s is the output that %s reports, and the rules would change it further", f.name, r.report)
				x.hint = "cupatch revert undoes the first time; --again patches once more"
				return x
			}
		}
	}
	return nil
}
