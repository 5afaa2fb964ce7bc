package diff

import (
	"bytes"

	"github.com/cupatch/cupatch/patch/listing"
)

// A noteReader gives what Printer.Notes says of the instructions of a kernel, in their order.
// The nil reader says nothing.
type noteReader struct {
	code  *Code
	notes listing.Notes
	noter *listing.Noter
	buf   []byte
}

// notesOf returns a reader, nil if nothing is asked for.
func (p *Printer) notesOf(c *Code) *noteReader {
	if p.Notes == nil {
		return nil
	}
	return &noteReader{code: c, notes: p.Notes(c)}
}

// hunk says that what was said before is out of sight.
func (r *noteReader) hunk() {
	if r != nil {
		r.noter = listing.NewNoter(r.notes)
	}
}

// before returns the lines that come before instruction i, nil where there is nothing new. They
// are valid until the next call.
func (r *noteReader) before(i int32) []byte {
	if r == nil {
		return nil
	}
	r.buf = r.noter.AppendBefore(r.buf[:0], r.code.PC(int(i)))
	return r.buf
}

// appendNotes appends notes with a sign at the start of each line.
func appendNotes(dst []byte, sign string, notes []byte) []byte {
	for line := range bytes.Lines(notes) {
		dst = append(append(dst, sign...), line...)
	}
	return dst
}

// appendShared appends what is said of the first instructions of both sides of a block where
// that is the same; it is not said again then.
func appendShared(dst []byte, lines []line, a, b *noteReader) []byte {
	if a == nil {
		return dst
	}
	first, second := int32(-1), int32(-1)
	for _, l := range lines {
		if first < 0 {
			first = l.a
		}
		if second < 0 {
			second = l.b
		}
	}
	if first < 0 || second < 0 {
		return dst
	}
	was, is := *a.noter, *b.noter
	if notes := b.before(second); bytes.Equal(a.before(first), notes) {
		return appendNotes(dst, " ", notes)
	}
	*a.noter, *b.noter = was, is
	return dst
}
