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
	"github.com/spf13/pflag"
)

// keepFlag defines --keep-original, for commands that write a report.
func (d *destination) keepFlag(fs *pflag.FlagSet) {
	fs.BoolVar(&d.keepOriginal, "keep-original", false, "")
}

// originalName names the file beside a report that holds what its edits overwrote.
func originalName(report string) string { return report + ".original" }

// keeping runs write, which calls destination.write for each file, and with
// --keep-original puts the ways back beside the report.
func (d *destination) keeping(e *env, report string, write func() error) error {
	if dry := d.out == "" && !d.inPlace; !d.keepOriginal || dry {
		return write()
	}
	if report == "" || report == "-" {
		return e.usagef("--keep-original puts the old bytes beside the report: it needs --report FILE")
	}
	return patch.WriteFile(originalName(report), patch.WriteOption{}, func(w io.Writer) error {
		d.originals = bufio.NewWriter(w)
		if err := write(); err != nil {
			return err
		}
		return d.originals.Flush()
	})
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
