package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/patch"
	"github.com/cupatch/cupatch/patch/edit"
	"github.com/cupatch/cupatch/patch/report"
)

// A change is the new content of some cubins of a file, by entry number.
type change struct {
	input string
	data  []byte // of standard input
	edits map[int][]edit.Edit
	undo  *elfx.Undo // the way to the new content, where it was kept
}

// open opens the input again.
func (c *change) open() (*elfx.File, error) {
	if c.data != nil {
		return elfx.Open("-", c.data, nil)
	}
	return elfx.OpenFile(c.input, nil)
}

// write makes the output of one file and proves that it is the input with exactly
// the edits. It returns the identity of the output.
func (d *destination) write(e *env, c *change, out string) (*report.Hash, error) {
	f, err := c.open()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var content *elfx.Output
	if c.undo != nil {
		if content, err = c.undo.Apply(f.Data()); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
	} else {
		var rep *elfx.RewriteReport
		if content, rep, err = rewrite(f, c.edits, elfx.RewriteOptions{NoGrow: d.noGrow}); err != nil {
			return nil, err
		}
		for _, why := range rep.Why {
			e.notef("%s: %s", f.Name, why)
		}
	}
	if d.originals != nil {
		if err := f.Undo(content).Write(d.originals); err != nil {
			return nil, err
		}
	}
	return d.store(e, f, content, out, func(g *elfx.File) error { return checkOutput(f, g, c.edits) })
}

// try finds out whether the output of a file can be made, which is in doubt where it has
// compressed cubins that may not fit their places.
func (d *destination) try(c *change) error {
	f, err := c.open()
	if err != nil {
		return err
	}
	defer f.Close()
	for _, x := range f.Entries() {
		if len(c.edits[x.Number]) > 0 && !x.Stored() {
			_, _, err := rewrite(f, c.edits, elfx.RewriteOptions{NoGrow: d.noGrow})
			return err
		}
	}
	return nil
}

// rewrite applies edits, which are by entry number.
func rewrite(f *elfx.File, edits map[int][]edit.Edit, opt elfx.RewriteOptions) (*elfx.Output, *elfx.RewriteReport, error) {
	var entries []*elfx.Entry
	for _, x := range f.Entries() {
		if len(edits[x.Number]) > 0 {
			entries = append(entries, x)
		}
	}
	return f.RewriteFunc(entries, func(x *elfx.Entry) ([]byte, error) {
		data, err := x.Data()
		if err != nil {
			return nil, err
		}
		data = slices.Clone(data)
		if err := edit.Apply(data, edits[x.Number]); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		return data, nil
	}, opt)
}

// store writes content, which was made of f, to out. What has been written is read
// back and checked before it takes its place.
func (d *destination) store(e *env, f *elfx.File, content *elfx.Output, out string, check func(g *elfx.File) error) (*report.Hash, error) {
	opt := patch.WriteOption{Warn: func(s string) { e.warnf("%s", s) }}
	if st, err := os.Stat(f.Name); err == nil && f.Name != "-" {
		opt.Mode = st.Mode()
	}
	if d.backup != "" {
		if err := backupFile(f, out+d.backup, opt); err != nil {
			return nil, err
		}
	}
	opt.Check = func(path string) error {
		if err := readBack(path, content, check); err != nil {
			return fmt.Errorf("the new content is wrong, nothing is written: %w", err)
		}
		return nil
	}
	h := sha256.New()
	write := func(w io.Writer) error {
		b := bufio.NewWriterSize(io.MultiWriter(w, h), 1<<16) // an edit is a few bytes
		if _, err := content.WriteTo(b); err != nil {
			return err
		}
		return b.Flush()
	}
	var err error
	switch st, serr := os.Stat(out); {
	case out == "-":
		err = spool(e.stdout, write, opt.Check)
	case serr == nil && !st.Mode().IsRegular() && !st.IsDir():
		err = writeFile(out, opt, func(w io.Writer) error { return spool(w, write, opt.Check) })
	default:
		err = writeFile(out, opt, write)
	}
	return &report.Hash{SHA256: hex.EncodeToString(h.Sum(nil)), Size: content.Size()}, err
}

// spool writes by way of a temporary file, which is checked first.
func spool(w io.Writer, write func(io.Writer) error, check func(path string) error) error {
	tmp, err := os.CreateTemp("", "cupatch-")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	defer tmp.Close()
	if err := write(tmp); err != nil {
		return err
	}
	if err := check(tmp.Name()); err != nil {
		return err
	}
	if _, err := tmp.Seek(0, io.SeekStart); err != nil {
		return err
	}
	_, err = io.Copy(w, tmp)
	return err
}

// noBackup refuses a backup that is there already: it is not overwritten.
func noBackup(path string) error {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return &exitError{code: 2, err: fmt.Errorf("%s exists already", path), hint: "remove it, or choose another --backup"}
	}
	return nil
}

// backupFile keeps the old content.
func backupFile(f *elfx.File, path string, opt patch.WriteOption) error {
	if err := noBackup(path); err != nil {
		return err
	}
	return writeFile(path, opt, func(w io.Writer) error { _, err := w.Write(f.Data()); return err })
}

// readBack compares a file with what was written to it, and checks what it holds.
func readBack(path string, want *elfx.Output, check func(g *elfx.File) error) error {
	g, err := elfx.OpenFile(path, nil)
	if err != nil {
		return err
	}
	defer g.Close()
	c := &comparer{rest: g.Data()}
	if _, err := want.WriteTo(c); err != nil || len(c.rest) > 0 {
		return errors.Join(errors.New("what was read back is not what was written"), err)
	}
	return check(g)
}

// A comparer is a writer that takes what it expects.
type comparer struct{ rest []byte }

func (c *comparer) Write(p []byte) (int, error) {
	if !bytes.HasPrefix(c.rest, p) {
		return 0, fmt.Errorf("with %d bytes to go", len(c.rest))
	}
	c.rest = c.rest[len(p):]
	return len(p), nil
}

// checkOutput proves that g is f with exactly the edits: every cubin and every other
// entry is compared, and where nothing moved every byte.
func checkOutput(f, g *elfx.File, edits map[int][]edit.Edit) error {
	changed := func(x *elfx.Entry) bool { return len(edits[x.Number]) > 0 }
	if err := checkOthers(f, g, changed); err != nil {
		return err
	}
	for i, a := range f.Entries() {
		if !changed(a) {
			continue
		}
		old, err := a.Data()
		if err != nil {
			return err
		}
		now, err := g.Entries()[i].Data()
		if err != nil {
			return err
		}
		if err := edit.CheckApplied(old, now, edits[a.Number]); err != nil {
			return fmt.Errorf("entry %d: %w", a.Number, err)
		}
		a.Done()
	}
	return nil
}

// checkOthers proves that g is f but for the changed entries.
func checkOthers(f, g *elfx.File, changed func(*elfx.Entry) bool) error {
	if len(g.Entries()) != len(f.Entries()) {
		return fmt.Errorf("%d entries instead of %d", len(g.Entries()), len(f.Entries()))
	}
	touched := map[*elfx.Entry]bool{} // also concatenations of which a part is changed
	for _, a := range f.Entries() {
		if changed(a) {
			touched[a] = true
			if a.Parent != nil {
				touched[a.Parent] = true
			}
		}
	}
	inPlace := len(f.Data()) == len(g.Data())
	for i, a := range f.Entries() {
		b := g.Entries()[i]
		inPlace = inPlace && a.Offset == b.Offset
		if a.RawKind != b.RawKind || a.Target() != b.Target() || a.Flags != b.Flags || a.Name != b.Name || a.Options != b.Options {
			return fmt.Errorf("entry %d: its header changed", a.Number)
		}
		if touched[a] {
			continue
		}
		if err := sameEntry(a, b, a.Parent != nil && touched[a.Parent]); err != nil {
			return fmt.Errorf("entry %d: %w", a.Number, err)
		}
		a.Done()
	}
	if inPlace {
		return sameOutside(f, g, touched)
	}
	return nil
}

// sameEntry proves that an entry is stored as it was. unpacked says that it is a part
// of a concatenation that has been compressed anew.
func sameEntry(a, b *elfx.Entry, unpacked bool) error {
	if !unpacked {
		if !bytes.Equal(a.Raw(), b.Raw()) {
			return errors.New("it changed and has no edits")
		}
		return nil
	}
	old, err := a.Data()
	if err != nil {
		return err
	}
	now, err := b.Data()
	if err != nil {
		return err
	}
	return edit.CheckApplied(old, now, nil)
}

// sameOutside compares the bytes of two files outside the touched entries.
func sameOutside(f, g *elfx.File, touched map[*elfx.Entry]bool) error {
	pos := int64(0)
	skip := func(from, to int64) error {
		if !bytes.Equal(f.Data()[pos:from], g.Data()[pos:from]) {
			return fmt.Errorf("bytes between 0x%x and 0x%x changed, where no edit is", pos, from)
		}
		pos = to
		return nil
	}
	for _, x := range f.Entries() {
		if !touched[x] || x.Parent != nil {
			continue
		}
		from := x.PayloadOffset
		if x.Compression != elfx.Stored {
			from = x.Offset // the header tells the size of the payload
		}
		if err := skip(from, x.PayloadOffset+x.PayloadSize); err != nil {
			return err
		}
	}
	return skip(int64(len(f.Data())), 0)
}
