package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/patch"
	"github.com/cupatch/cupatch/patch/report"
	"github.com/spf13/pflag"
)

// keepFlag defines --keep-original, for commands that write a report.
func (d *destination) keepFlag(fs *pflag.FlagSet) {
	fs.BoolVar(&d.keepOriginal, "keep-original", false, "")
}

// originalName names the file beside a report that holds what its edits overwrote.
func originalName(report string) string { return report + ".original" }

// checkKeep sees that --keep-original has a report to put the old bytes beside.
func (d *destination) checkKeep(e *env, report string) error {
	if d.keepOriginal && (report == "" || report == "-") {
		return e.usagef("--keep-original writes the old bytes next to the report: it needs --report FILE")
	}
	return nil
}

// dryRun reports whether there is no output.
func (d *destination) dryRun() bool { return d.out == "" && !d.inPlace }

// beside adds what is written beside the outputs.
func (d *destination) beside(used *pathSet, report string) {
	used.writes("--report", report)
	if d.keepOriginal && !d.dryRun() {
		used.writes("--keep-original", originalName(report))
	}
}

// keeping runs write, which calls destination.write for each file and returns the report,
// and saves that, and with --keep-original the ways back. Their files are begun before
// write changes anything, so that a place where they cannot be ends the run in time.
func (d *destination) keeping(e *env, report string, write func() (*report.Report, error)) error {
	if !d.keepOriginal || d.dryRun() {
		return e.reporting(report, write)
	}
	var failed error // after some of the files
	err := patch.WriteFile(originalName(report), patch.WriteOption{}, func(w io.Writer) error {
		d.originals = bufio.NewWriter(w)
		err := e.reporting(report, write)
		var part *partError
		if errors.As(err, &part) {
			failed = err
		} else if err != nil {
			return err
		}
		return d.originals.Flush()
	})
	if err == nil {
		err = failed
	}
	return err
}

// A partError is what went wrong after some of the files had been written, of which there
// is a report.
type partError struct{ err error }

func (e *partError) Error() string { return e.err.Error() }
func (e *partError) Unwrap() error { return e.err }

// reporting runs write and saves the report that it returns to path, standard output
// for -, or not at all. With an error write returns the report of the files that it had
// written by then, if there are any: that is saved, too.
func (e *env) reporting(path string, write func() (*report.Report, error)) error {
	var failed error
	save := func(w io.Writer) error {
		report, err := write()
		switch {
		case err != nil && (report == nil || len(report.Files) == 0):
			return err
		case err != nil:
			failed = &partError{err}
		}
		if path == "" {
			return nil
		}
		_, err = report.WriteTo(w)
		return err
	}
	var err error
	if path == "" || path == "-" {
		err = save(e.stdout)
	} else {
		err = patch.WriteFile(path, patch.WriteOption{}, save)
	}
	if err == nil {
		err = failed
	} else if failed != nil {
		err = errors.Join(failed, err)
	}
	return err
}

// originalOf returns the way back to the bytes of a patched file before it was patched,
// if they were kept beside the report.
func (e *env) originalOf(report string, f *elfx.File) (*elfx.Undo, error) {
	if report == "-" {
		return nil, nil
	}
	path := originalName(report)
	fd, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer fd.Close()
	d := json.NewDecoder(bufio.NewReader(fd))
	for {
		u, err := elfx.ReadUndo(d)
		switch {
		case err == io.EOF:
			e.warnf("%s is for another file than %s; compressed cubins are compressed again", path, f.Name)
			return nil, nil
		case err != nil:
			return nil, &exitError{code: 2, err: fmt.Errorf("%s: %w", path, err), hint: "without that file the edits are undone word by word"}
		case u.Of(f.Data()):
			return u, nil
		}
	}
}
