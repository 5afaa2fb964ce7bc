// Package difftest helps Go tests to compare compiled GPU code: a test fails with a
// report that shows the instructions that changed.
package difftest

import (
	"testing"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/patch/diff"
)

// maxReport bounds the report of a failed test, in bytes.
const maxReport = 1 << 16

// Same compares two files with GPU code and fails the test when they differ in a way
// that counts, and when anything could not be read or nothing was compared. Opt may be
// the zero value; see [diff.ParseLevel] for what counts.
func Same(tb testing.TB, want, got string, opt diff.Options) {
	tb.Helper()
	r := Compare(tb, want, got, opt)
	if r != nil && r.Different() {
		text := r.String()
		if len(text) > maxReport {
			text = text[:maxReport] + "\n… (the report goes on)"
		}
		tb.Errorf("%s is not the code of %s:\n%s", got, want, text)
	}
}

// Compare compares two files. What keeps the comparison from being complete is an error
// of the test, and the result is then nil.
func Compare(tb testing.TB, a, b string, opt diff.Options) *diff.Result {
	tb.Helper()
	x, err := elfx.OpenFile(a, nil)
	if err != nil {
		tb.Error(err)
		return nil
	}
	tb.Cleanup(func() { x.Close() })
	y, err := elfx.OpenFile(b, nil)
	if err != nil {
		tb.Error(err)
		return nil
	}
	tb.Cleanup(func() { y.Close() })
	r, err := diff.Files(x, y, opt)
	if err == nil {
		err = r.Err()
	}
	if err != nil {
		tb.Error(err)
		return nil
	}
	return r
}
