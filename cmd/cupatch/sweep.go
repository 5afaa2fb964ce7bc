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
)

const sweepUsage = `usage: cupatch sweep -f RECIPE -o DIR [OPTIONS] FILE

Writes one variant of FILE for each combination of the recipe's parameters, named by
their values, and DIR/manifest.json. Combinations that give the same bytes share one
file, and the manifest says so.

  -f, --recipe FILE     the recipe
  -o, --output DIR      folder for the variants, made if need be
  -p, --param NAME=VAL  fix a parameter; repeatable
      --limit N         at most N combinations (default 256)
  -k, --kernel GLOB     only kernels whose mangled or C++ name fits; repeatable
  -a, --arch ARCH       only cubins for ARCH; repeatable
      --skip-refused    leave refused instructions alone
      --allow NAMES     as for patch
      --ignore-guard    as for patch
  -j, --jobs N          work on N variants at once
` + sweepRunUsage + `
A combination that the rules refuse is in the manifest with its error; the others are
written. The manifest has no times: the same input gives the same bytes.

exit status: 0; 1 if a combination has an error or does not pass --run; 2 trouble.

example:
  cupatch sweep -f examples/prefetch-sweep.toml -o variants kernel.cubin
`

func init() {
	register(&command{"sweep", "write a variant for each combination of parameters", sweepUsage, runSweep})
}

// A sweepManifest lists the variants of a sweep.
type sweepManifest struct {
	Format   string            `json:"format"`
	Tool     string            `json:"tool"`
	Recipe   string            `json:"recipe"`
	Input    string            `json:"input"`
	Hash     *patch.ReportHash `json:"input_hash"`
	Variants []*sweepVariant   `json:"variants"`
}

// A sweepVariant is one combination of parameters.
type sweepVariant struct {
	Params  map[string]string `json:"params"`
	File    string            `json:"file,omitempty"`
	Hash    *patch.ReportHash `json:"hash,omitempty"`
	Matched int               `json:"matched"`
	Changed int               `json:"changed"`
	SameAs  string            `json:"same_as,omitempty"` // name of an equal variant
	Error   string            `json:"error,omitempty"`

	content []byte
}

// A sweepRun is one run of sweep.
type sweepRun struct {
	*env
	narrowing
	opts        patchRun // options of each variant's plan
	recipe      *patch.Recipe
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
	if r.opts.allow, err = patch.ParseAllow(*allow); err != nil {
		return e.usageError(fmt.Errorf("--allow: %w", err))
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
	f, entries, err := e.openOne(files[0])
	if err != nil {
		return err
	}
	defer f.Close()
	if r.gpu.wanted {
		if err := r.gpu.prepare(f, entries); err != nil {
			return err
		}
	}
	return r.sweep(f, entries, combos)
}

// sweep plans and writes every combination.
func (r *sweepRun) sweep(f *elfx.File, entries []*elfx.Entry, combos []map[string]string) error {
	m := &sweepManifest{Format: "cupatch-sweep-1", Tool: toolName(), Recipe: filepath.ToSlash(r.recipe.Name), Input: f.Name, Hash: patch.HashOf(f.Data())}
	for _, c := range combos {
		m.Variants = append(m.Variants, &sweepVariant{Params: c})
	}
	if err := os.MkdirAll(r.dir, 0o755); err != nil {
		return err
	}
	status := 0
	byHash := map[patch.ReportHash]string{}
	// Each batch is planned in parallel and written in order, so that the first of
	// several equal variants is the one that stays.
	for batch := range slices.Chunk(m.Variants, max(r.jobs, 1)) {
		inParallel(len(batch), r.jobs, func(i int) { r.variant(f, entries, batch[i]) })
		for _, v := range batch {
			if err := r.store(f, v, byHash); err != nil {
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
	path := filepath.Join(r.dir, "manifest.json")
	err = patch.WriteFile(path, patch.WriteOption{}, func(w io.Writer) error { _, err := w.Write(append(b, '\n')); return err })
	if err != nil {
		return err
	}
	r.notef("%d combinations, %d files in %s", len(m.Variants), len(byHash), r.dir)
	if r.gpu.wanted {
		s, err := r.gpu.all(f, entries, r.dir, m.Variants)
		if err != nil {
			return err
		}
		status = worse(status, s)
	}
	return silent(status)
}

// variant makes the content of one combination.
func (r *sweepRun) variant(f *elfx.File, entries []*elfx.Entry, v *sweepVariant) {
	rules, err := r.recipe.Rules(v.Params)
	if err != nil {
		v.Error = err.Error()
		return
	}
	allow := maps.Clone(r.opts.allow)
	maps.Copy(allow, r.recipe.Allow())
	p := &patchRun{env: r.env, narrowing: r.narrowing, planners: map[string]*planning{}, allow: allow,
		skipRefused: r.opts.skipRefused, ignoreGuard: r.ignoreGuard}
	p.rules, p.recipe = rules, r.recipe
	p.target.out = "-" // no diff
	selected := map[*elfx.Entry]bool{}
	for _, e := range entries {
		selected[e] = true
	}
	if err := p.plan(f, selected); err == nil {
		err = p.checkPlan()
		v.Matched, v.Changed = p.sum.Matched, p.sum.Changed
		if err == nil {
			v.content, err = rewritten(f, p.files[0].change().edits)
		}
		if err != nil {
			v.Error = err.Error()
		}
	} else {
		v.Error = err.Error()
	}
}

// rewritten returns the content of a file with edits applied, proved to differ by
// nothing else.
func rewritten(f *elfx.File, edits map[int][]patch.Edit) ([]byte, error) {
	content, _, err := rewrite(f, edits, elfx.RewriteOptions{})
	if err != nil {
		return nil, err
	}
	b := content.Bytes()
	g, err := elfx.Open(f.Name, b, nil)
	if err != nil {
		return nil, err
	}
	return b, checkOutput(f, g, edits)
}

// store writes a variant, unless an equal one is there.
func (r *sweepRun) store(f *elfx.File, v *sweepVariant, byHash map[patch.ReportHash]string) error {
	if v.Error != "" {
		return nil
	}
	v.Hash = patch.HashOf(v.content)
	content := v.content
	v.content = nil
	if name, ok := byHash[*v.Hash]; ok {
		v.File, v.SameAs = name, name
		return nil
	}
	base := filepath.Base(f.Name)
	if f.Name == "-" {
		base = "stdin.cubin"
	}
	ext := filepath.Ext(base)
	v.File = strings.TrimSuffix(base, ext) + "." + comboName(v.Params) + ext
	byHash[*v.Hash] = v.File
	opt := patch.WriteOption{}
	if st, err := os.Stat(f.Name); err == nil {
		opt.Mode = st.Mode()
	}
	return patch.WriteFile(filepath.Join(r.dir, v.File), opt, func(w io.Writer) error { _, err := w.Write(content); return err })
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
