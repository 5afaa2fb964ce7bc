package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/patch"
	"github.com/cupatch/cupatch/patch/check"
	"github.com/cupatch/cupatch/patch/recipe"
	"github.com/cupatch/cupatch/patch/report"
)

const sweepUsage = `usage: cupatch sweep -f RECIPE -o DIR [OPTIONS] FILE

Writes a variant of FILE for each combination of the recipe's parameters, named after the
values, and DIR/manifest.json. Combinations that give the same bytes share one file, as
the manifest shows.

  -f, --recipe FILE     the recipe
  -o, --output DIR      folder for the variants, created if needed
  -p, --param NAME=VAL  fix a parameter; repeatable
      --limit N         at most N combinations (default 256)
  -k, --kernel GLOB     only kernels of this mangled, C++ or bare name; repeatable
  -a, --arch ARCH       only cubins for ARCH; repeatable
      --skip-refused    leave refused instructions alone
      --allow NAMES     as for patch
      --ignore-guard    as for patch
      --max-entry N     refuse entries larger than N when decompressed
  -j, --jobs N          work on N variants at once
` + sweepRunUsage + `
A combination that is refused is listed in the manifest with its error; the others are
written. The manifest has no times: the same input gives the same manifest. If DIR has the
manifest of an earlier sweep, the files that it names and that are not written again are
removed, unless they have changed since.

exit status: 0 done; 1 a combination has an error or does not pass --run; 2 trouble.

example:
  cupatch sweep -f examples/prefetch-sweep.toml -o variants kernel.cubin
`

func init() {
	register(&command{"sweep", "write a variant for each combination of parameters", sweepUsage, runSweep})
}

// A sweepManifest lists the variants of a sweep.
type sweepManifest struct {
	Format   string          `json:"format"`
	Tool     string          `json:"tool"`
	Recipe   string          `json:"recipe"`
	Input    string          `json:"input"`
	Hash     *report.Hash    `json:"input_hash"`
	Variants []*sweepVariant `json:"variants"`
}

// A sweepVariant is one combination of parameters.
type sweepVariant struct {
	Params  map[string]string `json:"params"`
	File    string            `json:"file,omitempty"`
	Hash    *report.Hash      `json:"hash,omitempty"`
	Matched int               `json:"matched"`
	Changed int               `json:"changed"`
	SameAs  string            `json:"same_as,omitempty"` // name of an equal variant
	// Warnings counts what patch would warn of, by the name of the warning.
	Warnings map[string]int `json:"warnings,omitempty"`
	Error    string         `json:"error,omitempty"`

	content []byte
}

// A sweepRun is one run of sweep.
type sweepRun struct {
	*env
	narrowing
	opts        patchRun // options of each variant's plan
	recipe      *recipe.Recipe
	dir         string
	ignoreGuard bool
	gpu         sweepLauncher // for --run
}

func runSweep(e *env, args []string) error {
	r := &sweepRun{env: e}
	fs := e.flags()
	r.narrowing.flags(fs)
	r.gpu.flags(e, &r.narrowing, fs)
	recipe := fs.StringP("recipe", "f", "", "")
	fs.StringVarP(&r.dir, "output", "o", "", "")
	params := fs.StringArrayP("param", "p", nil, "")
	limit := fs.Int("limit", 256, "")
	fs.BoolVar(&r.opts.skipRefused, "skip-refused", false, "")
	allow := fs.String("allow", "", "")
	fs.BoolVar(&r.ignoreGuard, "ignore-guard", false, "")
	files, err := e.parse(fs, args)
	switch {
	case err != nil:
		return err
	case len(files) != 1:
		return e.usagef("sweep needs one FILE")
	case *recipe == "" || r.dir == "":
		return e.usagef("sweep needs -f RECIPE and -o DIR")
	}
	if r.opts.allow, err = check.ParseAllow(*allow); err != nil {
		return e.usageError(err)
	}
	if r.recipe, err = loadRecipe(e, *recipe); err != nil {
		return err
	}
	fixed, err := parseParams(*params)
	if err != nil {
		return e.usageError(err)
	}
	combos, err := r.recipe.Combinations(fixed, *limit)
	if err != nil {
		return err
	}
	opt, err := r.options()
	if err != nil {
		return err
	}
	f, entries, err := e.openOne(files[0], opt)
	if err != nil {
		return err
	}
	defer f.Close()
	if r.gpu.wanted {
		if err := r.gpu.prepare(f, entries); err != nil {
			return err
		}
	}
	if !r.chooses(f, asSet(entries)) {
		r.missed(f, asSet(entries))
		return r.nothing("cubin")
	}
	old, err := r.earlier()
	if err != nil {
		return err
	}
	if err := r.checkPaths(f, *recipe, combos, old); err != nil {
		return err
	}
	return r.sweep(f, entries, combos, old)
}

// sweep plans and writes every combination.
func (r *sweepRun) sweep(f *elfx.File, entries []*elfx.Entry, combos []map[string]string, old *sweepManifest) error {
	m := &sweepManifest{Format: manifestFormat, Tool: toolName(), Recipe: filepath.ToSlash(r.recipe.Name), Input: f.Name, Hash: report.HashOf(f.Data())}
	for _, c := range combos {
		m.Variants = append(m.Variants, &sweepVariant{Params: c})
	}
	if err := os.MkdirAll(r.dir, 0o755); err != nil {
		return err
	}
	status := 0
	names := &variantNames{byHash: map[report.Hash]string{}, taken: map[string]bool{}}
	// Each batch is planned in parallel and written in order, so that the first of
	// several equal variants is the one that stays.
	for batch := range slices.Chunk(m.Variants, max(r.jobs, 1)) {
		inParallel(len(batch), r.jobs, func(i int) { r.variant(f, entries, batch[i], batch[i] == m.Variants[0]) })
		for _, v := range batch {
			if err := r.store(f, v, names); err != nil {
				return err
			}
			if v.Error != "" {
				status = 1
				r.notef("%s: %s", comboName(v.Params), v.Error)
			}
		}
	}
	b, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return err
	}
	if err := writeBytes(filepath.Join(r.dir, manifestName), append(b, '\n')); err != nil {
		return err
	}
	if err := r.clean(old, m); err != nil {
		return err
	}
	r.notef("%s", m.summary(r.dir, len(names.byHash)))
	if r.gpu.wanted {
		s, err := r.gpu.all(f, entries, r.dir, m.Variants)
		if err != nil {
			return err
		}
		status = worse(status, s)
	}
	return silent(status)
}

// summary says in one line what was written.
func (m *sweepManifest) summary(dir string, files int) string {
	same, failed := 0, 0
	warned := map[string]int{}
	for _, v := range m.Variants {
		if v.SameAs != "" {
			same++
		}
		if v.Error != "" {
			failed++
		}
		for name, n := range v.Warnings {
			warned[name] = max(warned[name], n)
		}
	}
	s := fmt.Sprintf("%s, %s in %s", plural(len(m.Variants), "combination", "combinations"), plural(files, "file", "files"), dir)
	if same > 0 {
		s += fmt.Sprintf("; %d give the same bytes as another", same)
	}
	if failed > 0 {
		s += fmt.Sprintf("; %d failed", failed)
	}
	if len(warned) > 0 {
		s += "; warnings, counted in the manifest: " + strings.Join(slices.Sorted(maps.Keys(warned)), ", ")
	}
	return s
}

// variant makes the content of one combination. What is said of the file itself is said
// once.
func (r *sweepRun) variant(f *elfx.File, entries []*elfx.Entry, v *sweepVariant, first bool) {
	rules, err := r.recipe.Rules(v.Params)
	if err != nil {
		v.Error = err.Error()
		return
	}
	allow := maps.Clone(r.opts.allow)
	maps.Copy(allow, r.recipe.Allow())
	e := *r.env
	e.quiet = e.quiet || !first
	p := &patchRun{env: &e, narrowing: r.narrowing, allow: allow,
		skipRefused: r.opts.skipRefused, ignoreGuard: r.ignoreGuard}
	p.rules, p.recipe = rules, r.recipe
	p.planner = p.newPlanner()
	p.target.out = "-" // no diff
	selected := map[*elfx.Entry]bool{}
	for _, e := range entries {
		selected[e] = true
	}
	if err := p.plan(f, selected); err == nil {
		err = p.checkPlan()
		v.Matched, v.Changed = p.sum.Matched, p.sum.Changed
		v.count(p.files)
		if err == nil {
			v.content, err = rewritten(f, p.files[0].edits())
		}
		if err != nil {
			v.Error = err.Error()
		}
	} else {
		v.Error = err.Error()
	}
}

// count counts the warnings of a plan.
func (v *sweepVariant) count(files []*filePlan) {
	for _, f := range files {
		for _, e := range f.entries {
			for _, w := range e.warnings {
				if v.Warnings == nil {
					v.Warnings = map[string]int{}
				}
				v.Warnings[w.Name]++
			}
		}
	}
}

// rewritten returns the content of a file with edits applied, proved to differ by
// nothing else.
func rewritten(f *elfx.File, edits patch.Edits) ([]byte, error) {
	c, err := patch.Rewrite(f, edits, elfx.RewriteOptions{})
	if err != nil {
		return nil, err
	}
	return c.Bytes()
}

// variantNames has the names of the variants that were written.
type variantNames struct {
	byHash map[report.Hash]string
	taken  map[string]bool
}

// maxVariantName bounds the name of a variant in bytes: file systems take 255.
const maxVariantName = 200

// choose makes a name of a stem and an extension that no other variant has: values that
// differ in letters that file names cannot have would get the same one, and long ones
// none at all.
func (n *variantNames) choose(stem, ext string) string {
	name := stem
	if len(name) > maxVariantName {
		name = name[:maxVariantName]
	}
	for i := 2; n.taken[name]; i++ {
		name = fmt.Sprintf("%s~%d", stem[:min(len(stem), maxVariantName)], i)
	}
	n.taken[name] = true
	return name + ext
}

// store writes a variant, unless an equal one is there.
func (r *sweepRun) store(f *elfx.File, v *sweepVariant, names *variantNames) error {
	if v.Error != "" {
		return nil
	}
	v.Hash = report.HashOf(v.content)
	content := v.content
	v.content = nil
	if name, ok := names.byHash[*v.Hash]; ok {
		v.File, v.SameAs = name, name
		return nil
	}
	v.File = names.choose(variantStem(f, v.Params))
	names.byHash[*v.Hash] = v.File
	opt := patch.WriteOption{}
	if st, err := os.Stat(f.Name); err == nil {
		opt.Mode = st.Mode()
	}
	return patch.WriteFile(filepath.Join(r.dir, v.File), opt, func(w io.Writer) error { _, err := w.Write(content); return err })
}

// variantStem returns the beginning and the extension of a variant's name.
func variantStem(f *elfx.File, params map[string]string) (stem, ext string) {
	base := filepath.Base(f.Name)
	if f.Name == "-" {
		base = "stdin.cubin"
	}
	ext = filepath.Ext(base)
	return strings.TrimSuffix(base, ext) + "." + comboName(params), ext
}

// comboName names a combination by its values, in letters that file systems take.
func comboName(params map[string]string) string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(params)) {
		v := strings.Map(func(c rune) rune {
			if c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || strings.ContainsRune("-+_.", c) {
				return c
			}
			return '_'
		}, params[k])
		parts = append(parts, k+"="+v)
	}
	if parts == nil {
		return "default"
	}
	return strings.Join(parts, ",")
}
