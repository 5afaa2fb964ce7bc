package patch

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/patch/edit"
	"github.com/cupatch/cupatch/patch/report"
)

// Edits are the edits of a file, by the number of their entry.
type Edits map[int][]edit.Edit

// A Content is the new content of a file, and the proof that it has to pass before it
// takes its place. It refers to the file that it was made from, which must stay open.
type Content struct {
	Notes []string // what did not fit its place, and what moved

	out   *elfx.Output
	proof comparison
}

// Rewrite returns the content of a file with edits applied, each of whose old words is
// checked. Stored cubins are changed in place; compressed ones are compressed again.
func Rewrite(f *elfx.File, edits Edits, opt elfx.RewriteOptions) (*Content, error) {
	var entries []*elfx.Entry
	for _, x := range f.Entries() {
		if len(edits[x.Number]) > 0 {
			entries = append(entries, x)
		}
	}
	changes := edits.changes()
	out, rep, err := f.RewriteFunc(entries, func(x *elfx.Entry) ([]byte, error) {
		data, err := x.Data()
		if err != nil {
			return nil, err
		}
		if data, err = changes[x.Number](data); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		return data, nil
	}, opt)
	if err != nil {
		return nil, err
	}
	return &Content{rep.Why, out, compareWith(f, changes)}, nil
}

// Restore returns the content of a file before edits were made, which undo has kept;
// edits lead there from what is in the file.
func Restore(f *elfx.File, undo *elfx.Undo, edits Edits) (*Content, error) {
	out, err := undo.Apply(f.Data())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name, err)
	}
	// What follows from moving entries back is proved by the hash of the old file.
	proof := compareWith(f, edits.changes())
	proof.extent = unlessMoved
	return &Content{nil, out, proof}, nil
}

// Replace returns the content of a file with the payload of one entry replaced, and how
// that was written.
func Replace(f *elfx.File, x *elfx.Entry, data []byte, opt elfx.RewriteOptions) (*Content, *elfx.Change, error) {
	out, rep, err := f.Rewrite(map[*elfx.Entry][]byte{x: data}, opt)
	if err != nil {
		return nil, nil, err
	}
	proof := compareWith(f, map[int]change{x.Number: func([]byte) ([]byte, error) { return data, nil }})
	proof.fill = true
	return &Content{rep.Why, out, proof}, &rep.Changes[0], nil
}

// Size returns the number of bytes of the content.
func (c *Content) Size() int64 { return c.out.Size() }

// Undo returns the way back from the content to what the file is now.
func (c *Content) Undo() *elfx.Undo { return c.proof.old.Undo(c.out) }

// Bytes returns the content in memory, proved.
func (c *Content) Bytes() ([]byte, error) {
	b := c.out.Bytes()
	now, err := elfx.Open(c.proof.old.Name, b, nil)
	if err != nil {
		return nil, err
	}
	return b, c.proof.prove(now)
}

// WriteFile writes the content to path as [WriteFile] does. What has been written is read
// back and proved to be the file with its edits and nothing else before it takes its
// place; for a device or a pipe that happens in a temporary file. A new file gets the mode
// of the old one.
func (c *Content) WriteFile(path string, opt WriteOption) (*report.Hash, error) {
	if st, err := os.Stat(path); err == nil && !st.Mode().IsRegular() && !st.IsDir() {
		var hash *report.Hash
		err := WriteFile(path, opt, func(w io.Writer) (err error) { hash, err = c.StreamTo(w); return err })
		return hash, err
	}
	if st := c.proof.old.Info; st != nil {
		opt.Mode = st.Mode()
		if samePath(path, c.proof.old.Name) {
			opt.Old = st
		}
	}
	opt.Check = c.check
	h := &hashing{}
	err := WriteFile(path, opt, func(w io.Writer) error { return h.copy(w, c.out) })
	return h.hash(c.out), err
}

// samePath reports whether two paths are those of one file, or of one that has taken its
// place.
func samePath(a, b string) bool {
	x, err1 := filepath.EvalSymlinks(a)
	y, err2 := filepath.EvalSymlinks(b)
	if err1 != nil || err2 != nil {
		return false
	}
	x, err1 = filepath.Abs(x)
	y, err2 = filepath.Abs(y)
	return err1 == nil && err2 == nil && x == y
}

// StreamTo writes the content to w, by way of a temporary file in which it is proved
// first.
func (c *Content) StreamTo(w io.Writer) (*report.Hash, error) {
	tmp, err := os.CreateTemp("", "cupatch-")
	if err != nil {
		return nil, err
	}
	unfinished.Store(tmp.Name(), true)
	defer func() {
		tmp.Close()
		os.Remove(tmp.Name())
		unfinished.Delete(tmp.Name())
	}()
	h := &hashing{}
	if err := h.copy(tmp, c.out); err != nil {
		return nil, err
	}
	if err := c.check(tmp.Name()); err != nil {
		return nil, err
	}
	if _, err := tmp.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	_, err = io.Copy(w, tmp)
	return h.hash(c.out), err
}

// check compares a file with the content, which was written to it, and proves what it
// holds.
func (c *Content) check(path string) error {
	err := func() error {
		now, err := elfx.OpenFile(path, nil)
		if err != nil {
			return err
		}
		defer now.Close()
		rest := &comparer{rest: now.Data()}
		if _, err := c.out.WriteTo(rest); err != nil || len(rest.rest) > 0 {
			return errors.Join(errors.New("what was read back is not what was written"), err)
		}
		return c.proof.prove(now)
	}()
	if err != nil {
		return fmt.Errorf("the new content is wrong, nothing is written: %w", err)
	}
	return nil
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

// A hashing is the hash of what is written.
type hashing struct{ sum []byte }

func (h *hashing) copy(w io.Writer, out *elfx.Output) error {
	sum := sha256.New()
	b := bufio.NewWriterSize(io.MultiWriter(w, sum), 1<<16) // an edit is a few bytes
	if _, err := out.WriteTo(b); err != nil {
		return err
	}
	err := b.Flush()
	h.sum = sum.Sum(nil)
	return err
}

func (h *hashing) hash(out *elfx.Output) *report.Hash {
	return &report.Hash{SHA256: hex.EncodeToString(h.sum), Size: out.Size()}
}
