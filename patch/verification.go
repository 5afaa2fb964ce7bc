package patch

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/patch/edit"
)

// A verification compares a file with what another must become.
type verification struct {
	old, now *elfx.File
	edits    Edits
	out      []Difference
	told     map[*elfx.Entry]bool // entries of now whose content is known to differ
}

// entry compares the contents of an entry of the old file and of the new one.
func (v *verification) entry(x, y *elfx.Entry) error {
	if x.RawKind != y.RawKind || x.Target() != y.Target() || x.Compression != y.Compression {
		v.told[y] = true
		v.out = append(v.out, Difference{Entry: x.Number, Msg: fmt.Sprintf("%s %s, %s, instead of %s %s, %s", y.Kind, y.Target(), y.Compression, x.Kind, x.Target(), x.Compression)})
		return nil
	}
	if x.Kind == elfx.KindConcat { // its parts follow
		return nil
	}
	list, err := entryDifferences(x, y, v.edits[x.Number])
	if err != nil {
		return err
	}
	if len(list) > 0 {
		v.out = append(v.out, list...)
		v.told[y] = true
		if y.Parent != nil {
			v.told[y.Parent] = true
		}
	}
	x.Done()
	y.Done()
	return nil
}

// bytes compares the new file with what the old one becomes when the entries that changed
// are stored as the new one stores them.
func (v *verification) bytes() error {
	s := &scanner{rest: v.now.Data()}
	want, err := v.expected()
	if err != nil {
		v.out = append(v.out, Difference{Msg: fmt.Sprintf("what the file must be cannot be made: %v", err)})
		return nil
	}
	size := v.old.Size
	if want == nil {
		_, err = s.Write(v.old.Data())
	} else {
		size = want.Size()
		_, err = want.WriteTo(s)
	}
	if err != nil {
		return err
	}
	if v.now.Size != size {
		v.resized(size, s)
		return nil
	}
	for _, r := range s.found {
		v.place(r[0], r[1])
	}
	if s.more > 0 {
		v.out = append(v.out, Difference{Msg: fmt.Sprintf("%d more stretches of bytes", s.more)})
	}
	return nil
}

// expected returns what the new file must be, nil for the old one as it is.
func (v *verification) expected() (*elfx.Output, error) {
	var entries []*elfx.Entry
	for i, x := range v.old.Entries() {
		y := v.now.Entries()[i]
		packed := x.Compression != elfx.Stored && x.Parent == nil && !v.told[y] && !bytes.Equal(x.Raw(), y.Raw())
		if packed {
			if _, err := x.Data(); errors.Is(err, elfx.ErrUnsupported) {
				continue // compared as it is stored
			}
		}
		if packed || len(v.edits[x.Number]) > 0 {
			entries = append(entries, x)
		}
	}
	if entries == nil {
		return nil, nil
	}
	content := func(x *elfx.Entry) ([]byte, error) {
		data, err := x.Data()
		if err != nil {
			return nil, err
		}
		data = slices.Clone(data)
		return data, edit.Apply(data, v.edits[x.Number])
	}
	packed := func(x *elfx.Entry, content []byte) []byte {
		y := v.now.Entries()[x.Number-1]
		if got, err := y.Data(); err != nil || !bytes.Equal(got, content) {
			return nil
		}
		return y.Raw()
	}
	out, _, err := v.old.RewriteFunc(entries, content, elfx.RewriteOptions{Packed: packed})
	return out, err
}

// resized says that the new file has another size than it must have.
func (v *verification) resized(size int64, s *scanner) {
	msg := fmt.Sprintf("the file has %d bytes instead of %d", v.now.Size, size)
	if len(s.found) > 0 {
		msg += fmt.Sprintf(", the first difference is at byte %#x", s.found[0][0])
	}
	if len(v.out) == 0 && len(v.edits) == 0 {
		msg = "the same cubins in other wrapping: " + msg
	}
	v.out = append(v.out, Difference{Offset: uint64(min(size, v.now.Size)), Msg: msg})
}

// place says where in the new file the bytes from lo to hi stand, unless the entry that
// they belong to is known to differ.
func (v *verification) place(lo, hi int64) {
	for _, y := range v.now.Entries() {
		if y.Parent != nil || lo < y.Offset || lo >= y.PayloadOffset+y.PayloadSize {
			continue
		}
		d := Difference{Entry: y.Number, Offset: uint64(lo)}
		switch {
		case lo < y.PayloadOffset:
			d.Msg = fmt.Sprintf("bytes %#x to %#x of the file, in its header", lo, hi)
		case v.told[y] && lo < y.PayloadOffset+y.StoredSize:
			return
		case lo < y.PayloadOffset+y.StoredSize:
			d.Msg = fmt.Sprintf("bytes %#x to %#x of the file, in its stored form", lo, hi)
		default:
			d.Msg = fmt.Sprintf("bytes %#x to %#x of the file, in its padding", lo, hi)
		}
		v.out = append(v.out, d)
		return
	}
	v.out = append(v.out, Difference{Offset: uint64(lo), Msg: fmt.Sprintf("bytes %#x to %#x of the file, outside its entries", lo, hi)})
}

// A scanner is a writer that compares what it gets with rest and keeps where they differ:
// stretches that may have a few equal bytes in them.
type scanner struct {
	rest  []byte
	at    int64
	found [][2]int64
	more  int // stretches that were not kept
}

// Bounds of what a scanner keeps: stretches, and equal bytes in one.
const (
	maxStretches = 10000
	maxEqual     = 16
)

func (s *scanner) Write(p []byte) (int, error) {
	n := min(len(p), len(s.rest))
	for i := 0; i < n; {
		d := edit.FirstDifference(p[i:n], s.rest[i:n])
		if d < 0 {
			break
		}
		i += d
		s.differs(s.at + int64(i))
		i++
	}
	if n < len(p) {
		s.differs(s.at + int64(n))
	}
	s.rest = s.rest[n:]
	s.at += int64(len(p))
	return len(p), nil
}

func (s *scanner) differs(at int64) {
	if k := len(s.found) - 1; k >= 0 && at <= s.found[k][1]+maxEqual {
		s.found[k][1] = at + 1
	} else if k+1 < maxStretches {
		s.found = append(s.found, [2]int64{at, at + 1})
	} else {
		s.more++
	}
}
