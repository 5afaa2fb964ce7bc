package main

import (
	"fmt"
	"maps"
	"slices"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/patch/code"
)

// A skipping counts the cubins of a file that a command leaves alone because there is no
// instruction table for them, or no schedule model. That is no failure as long as there are others.
type skipping struct {
	why  map[string]int // how many cubins, by reason
	done bool           // there was one with a table
}

// tableError returns the error of a cubin without an instruction table, nil for others.
func tableError(e *elfx.Entry, t *code.Target) error {
	if t.NoTable == nil || code.Unsupported(t.NoTable) {
		return t.NoTable
	}
	return fmt.Errorf("%s: %w", e.ID(), t.NoTable)
}

// add counts a cubin if err says that there is no table or no model for it.
func (s *skipping) add(err error) bool {
	if !code.Unsupported(err) && !noModel(err) {
		return false
	}
	if s.why == nil {
		s.why = map[string]int{}
	}
	s.why[err.Error()]++
	return true
}

// end warns once for each reason. Where nothing else was done it returns an error; verb is
// what could not be.
func (s *skipping) end(e *env, file, verb string) error {
	for _, why := range slices.Sorted(maps.Keys(s.why)) {
		e.warnf("%s: %s left alone: %s", file, plural(s.why[why], "cubin", "cubins"), why)
	}
	if len(s.why) > 0 && !s.done {
		return fmt.Errorf("%s: no cubin that can be %s", file, verb)
	}
	return nil
}
