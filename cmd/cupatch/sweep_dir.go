package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/patch/report"
)

const (
	manifestFormat = "cupatch-sweep-1"
	trialsFormat   = "cupatch-sweep-run-1"
	manifestName   = "manifest.json"
	trialsName     = "run.json"
)

// earlier reads the manifest of an earlier sweep into the folder, nil if there is none.
// A file of that name that is something else is not to be overwritten.
func (r *sweepRun) earlier() (*sweepManifest, error) {
	path := filepath.Join(r.dir, manifestName)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	m := &sweepManifest{}
	if json.Unmarshal(data, m) != nil || m.Format != manifestFormat {
		return nil, &exitError{code: 2, err: fmt.Errorf("%s is no manifest of a sweep, and would be overwritten", path), hint: "choose another folder"}
	}
	return m, nil
}

// checkPaths sees that no file that the sweep may write or remove is one that it reads.
func (r *sweepRun) checkPaths(f *elfx.File, recipe string, combos []map[string]string, old *sweepManifest) error {
	used := &pathSet{}
	used.reads("recipe", recipe)
	used.reads(inputFile, f.Name)
	in := func(name string) string { return filepath.Join(r.dir, name) }
	used.writes("the manifest", in(manifestName))
	if r.gpu.wanted {
		used.writes("--run", in(trialsName))
	}
	// Equal variants share a file, so that these are all the names there can be.
	names := &variantNames{taken: map[string]bool{}}
	written := map[string]bool{}
	for _, c := range combos {
		name := names.choose(variantStem(f, c))
		written[name] = true
		used.writes("the variant", in(name))
	}
	for _, v := range old.files() {
		if !written[v.File] {
			written[v.File] = true
			used.writes("removing the variant of an earlier sweep", in(v.File))
		}
	}
	return used.check()
}

// files returns the variants of a manifest that have a file of their own in its folder.
func (m *sweepManifest) files() []*sweepVariant {
	var out []*sweepVariant
	if m == nil {
		return nil
	}
	for _, v := range m.Variants {
		if v != nil && v.SameAs == "" && v.Hash != nil && v.File != "" && v.File != "." && v.File != ".." && !strings.ContainsAny(v.File, `/\`) {
			out = append(out, v)
		}
	}
	return out
}

// clean removes what an earlier sweep left in the folder and this one did not write again:
// the files that its manifest names, and its results of --run. A file that is not what the
// manifest says is somebody's work, and stays.
func (r *sweepRun) clean(old, now *sweepManifest) error {
	if old == nil {
		return nil
	}
	kept := map[string]bool{}
	for _, v := range now.files() {
		kept[v.File] = true
	}
	removed := 0
	for _, v := range old.files() {
		path := filepath.Join(r.dir, v.File)
		if kept[v.File] {
			continue
		}
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if *report.HashOf(data) != *v.Hash {
			r.warnf("%s is of an earlier sweep and has been changed since; it stays", path)
			continue
		}
		if err := os.Remove(path); err != nil {
			return err
		}
		removed++
	}
	if removed > 0 {
		r.notef("%s of an earlier sweep removed from %s", plural(removed, "file", "files"), r.dir)
	}
	return r.cleanTrials()
}

// cleanTrials removes the results of --run of an earlier sweep.
func (r *sweepRun) cleanTrials() error {
	path := filepath.Join(r.dir, trialsName)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var t struct {
		Format string `json:"format"`
	}
	if err != nil || json.Unmarshal(data, &t) != nil || t.Format != trialsFormat {
		return err
	}
	return os.Remove(path)
}
