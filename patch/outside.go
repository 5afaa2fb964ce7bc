package patch

import (
	"bytes"
	"fmt"
	"io"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/patch/edit"
)

// outside compares the bytes of the files. What the new one must be is made of the old
// one, and of the compressed forms that the new one has of entries whose contents are
// proved by now.
func (v *comparison) outside() error {
	moved := len(v.old.Data()) != len(v.now.Data())
	for i, x := range v.kept {
		y := v.now.Entries()[i]
		moved = moved || x.Offset != y.Offset || x.PayloadOffset != y.PayloadOffset || x.PayloadSize != y.PayloadSize
	}
	if v.extent == headers || v.extent == unlessMoved && moved {
		return nil
	}
	var rewritten []*elfx.Entry
	for i, x := range v.kept {
		if x.Parent == nil && !v.opaque[x] && (v.touched[x] || !v.same[x] && !v.told[v.now.Entries()[i]]) {
			rewritten = append(rewritten, x)
		}
	}
	s := &scanner{rest: v.now.Data()}
	size, err := v.expect(s, rewritten, moved)
	if err != nil {
		v.out = append(v.out, Difference{Msg: fmt.Sprintf("what the file must be cannot be made: %v", err)})
		return nil
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

// expect writes what the new file must be, and returns its size.
func (v *comparison) expect(w io.Writer, rewritten []*elfx.Entry, moved bool) (int64, error) {
	content := func(x *elfx.Entry) ([]byte, error) {
		data, err := x.Data()
		if err != nil {
			return nil, err
		}
		return v.becomes(x, data)
	}
	if !moved {
		return v.old.Size, v.expectInPlace(w, rewritten, content)
	}
	if len(rewritten) == 0 {
		_, err := w.Write(v.old.Data())
		return v.old.Size, err
	}
	out, _, err := v.old.RewriteFunc(rewritten, content, elfx.RewriteOptions{Packed: func(x *elfx.Entry, _ []byte) []byte {
		if y := v.now.Entries()[x.Number-1]; !v.told[y] {
			return y.Raw()
		}
		return nil
	}})
	if err != nil {
		return 0, err
	}
	return out.WriteTo(w)
}

// expectInPlace writes what the new file must be where no entry moved. It knows nothing of
// how files are rewritten.
func (v *comparison) expectInPlace(w io.Writer, rewritten []*elfx.Entry, content func(*elfx.Entry) ([]byte, error)) error {
	pos := int64(0)
	put := func(from, to int64, b []byte) error {
		if from < pos || int64(len(b)) > to-from {
			return fmt.Errorf("entries overlap at byte %#x", from)
		}
		_, err := io.Copy(w, io.MultiReader(bytes.NewReader(v.old.Data()[pos:from]), bytes.NewReader(b), bytes.NewReader(make([]byte, to-from-int64(len(b))))))
		pos = to
		return err
	}
	for _, x := range rewritten {
		y := v.now.Entries()[x.Number-1]
		form := y.Raw()
		if x.Compression == elfx.Stored {
			data, err := content(x)
			if err != nil {
				return err
			}
			form = data
		} else {
			for _, f := range x.SizeFields() {
				if err := put(f[0], f[1], v.now.Data()[f[0]:f[1]]); err != nil {
					return err
				}
			}
		}
		if err := put(x.PayloadOffset, x.PayloadOffset+x.PayloadSize, form); err != nil {
			return err
		}
	}
	return put(v.old.Size, v.old.Size, nil)
}

// resized says that the new file has another size than it must have.
func (v *comparison) resized(size int64, s *scanner) {
	msg := fmt.Sprintf("the file has %d bytes instead of %d", v.now.Size, size)
	if len(s.found) > 0 {
		msg += fmt.Sprintf(", the first difference is at byte %#x", s.found[0][0])
	}
	if len(v.out) == 0 && len(v.changes) == 0 {
		msg = "the same cubins in other wrapping: " + msg
	}
	v.out = append(v.out, Difference{Offset: uint64(min(size, v.now.Size)), Msg: msg})
}

// place says where in the new file the bytes from lo to hi stand, unless the entry that
// they belong to is known to differ.
func (v *comparison) place(lo, hi int64) {
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
