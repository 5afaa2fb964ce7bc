package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/patch"
	"github.com/cupatch/cupatch/patch/report"
)

// A change is the edits of a file, and its new content once that has been made.
type change struct {
	input   string
	data    []byte // of standard input
	edits   patch.Edits
	undo    *elfx.Undo // the way to the new content, where it was kept
	file    *elfx.File // open while there is content
	content *patch.Content
}

// make opens the input again and makes its new content, which is in doubt where it has
// compressed cubins that may not fit their places.
func (c *change) make(d *destination) (err error) {
	if c.content != nil {
		return nil
	}
	if c.data != nil {
		c.file, err = elfx.Open(c.input, c.data, nil)
	} else {
		c.file, err = elfx.OpenFile(c.input, nil)
	}
	if err != nil {
		return err
	}
	if c.undo != nil {
		c.content, err = patch.Restore(c.file, c.undo, c.edits)
	} else {
		c.content, err = patch.Rewrite(c.file, c.edits, elfx.RewriteOptions{NoGrow: d.noGrow})
	}
	if err != nil {
		c.close()
	}
	return err
}

// close lets go of the content.
func (c *change) close() {
	if c.file != nil {
		c.file.Close()
	}
	c.file, c.content = nil, nil
}

// write makes the output of one file and proves that it is the input with exactly
// the edits. It returns the identity of the output.
func (d *destination) write(e *env, c *change, out string) (*report.Hash, error) {
	if err := c.make(d); err != nil {
		return nil, err
	}
	defer c.close()
	for _, why := range c.content.Notes {
		e.notef("%s: %s", c.file.Name, why)
	}
	if d.originals != nil {
		if err := c.content.Undo().Write(d.originals); err != nil {
			return nil, err
		}
	}
	return d.store(e, c.file, c.content, out)
}

// store writes content, which was made of f, to out.
func (d *destination) store(e *env, f *elfx.File, content *patch.Content, out string) (*report.Hash, error) {
	opt := patch.WriteOption{Warn: func(s string) { e.warnf("%s", s) }}
	if out == "-" {
		return content.StreamTo(e.stdout)
	}
	if d.backup == "" {
		return content.WriteFile(out, opt)
	}
	made, err := backupFile(f, out+d.backup, opt)
	if err != nil {
		return nil, err
	}
	hash, err := content.WriteFile(out, opt)
	if err != nil && made {
		os.Remove(out + d.backup) // the file is what it was
	}
	return hash, err
}

// noBackup refuses a backup that is there already: it is not overwritten. One that is the
// same as the file, which an interrupted run has left, will do.
func noBackup(file, path string) error {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if old, err := os.ReadFile(path); err == nil {
		if now, err := os.ReadFile(file); err == nil && bytes.Equal(old, now) {
			return nil
		}
	}
	return &exitError{code: 2, err: fmt.Errorf("%s exists already", path), hint: "remove it, or choose another --backup"}
}

// backupFile keeps the old content, and reports whether it made a file for it.
func backupFile(f *elfx.File, path string, opt patch.WriteOption) (made bool, err error) {
	if err := noBackup(f.Name, path); err != nil {
		return false, err
	}
	if _, err := os.Lstat(path); err == nil {
		return false, nil
	}
	if st := f.Info; st != nil {
		opt.Mode = st.Mode()
	}
	opt.New = true
	return true, patch.WriteFile(path, opt, func(w io.Writer) error { _, err := w.Write(f.Data()); return err })
}
