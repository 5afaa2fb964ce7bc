package elfx

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"slices"
)

// An Undo turns the new content of a file back into the old one, byte for byte. It
// holds what the new content lacks: for an entry that was compressed anew, its old
// compressed bytes. It encodes as JSON.
type Undo struct {
	OldSize int64      `json:"old_size"`
	OldHash string     `json:"old_sha256"`
	NewSize int64      `json:"new_size"`
	NewHash string     `json:"new_sha256"`
	Steps   []UndoStep `json:"steps"`
}

// An UndoStep adds bytes to the old content: Size bytes of the new content from From
// on, or Data.
type UndoStep struct {
	From int64  `json:"from,omitempty"`
	Size int64  `json:"size,omitempty"`
	Data []byte `json:"data,omitempty"`
}

// A stretch is a part of the old content that the new content has as well.
type stretch struct{ old, new, size int64 }

// Undo returns the way back from the output to the file that it was made of.
func (f *File) Undo(o *Output) *Undo {
	u := &Undo{OldSize: f.Size, NewSize: o.size}
	sum := sha256.Sum256(f.data)
	u.OldHash = hex.EncodeToString(sum[:])
	h := sha256.New()
	_, _ = o.WriteTo(h) // a hash takes everything
	u.NewHash = hex.EncodeToString(h.Sum(nil))
	pos := int64(0)
	for _, s := range o.kept() {
		if s.old < pos {
			skip := pos - s.old
			s = stretch{s.old + skip, s.new + skip, s.size - skip}
		}
		if s.size <= 0 {
			continue
		}
		u.literal(f.data[pos:s.old])
		u.copy(s.new, s.size)
		pos = s.old + s.size
	}
	u.literal(f.data[pos:])
	return u
}

// kept returns the stretches of the old content in the output, in their old order.
func (o *Output) kept() []stretch {
	var out []stretch
	at := int64(0)
	for _, p := range o.pieces {
		if p.from >= 0 {
			out = append(out, stretch{p.from, at, p.size})
		}
		at += p.size
	}
	slices.SortStableFunc(out, func(a, b stretch) int { return cmp.Compare(a.old, b.old) })
	return out
}

func (u *Undo) literal(b []byte) {
	for len(b) > 0 {
		n := min(len(b), maxStep)
		u.Steps = append(u.Steps, UndoStep{Data: b[:n:n]})
		b = b[n:]
	}
}

func (u *Undo) copy(from, size int64) {
	if n := len(u.Steps); n > 0 {
		if s := &u.Steps[n-1]; s.Data == nil && s.From+s.Size == from {
			s.Size += size
			return
		}
	}
	u.Steps = append(u.Steps, UndoStep{From: from, Size: size})
}

// Apply returns the old content of a file whose new content is data. Both are checked
// by their hashes. The output refers to data.
func (u *Undo) Apply(data []byte) (*Output, error) {
	if !u.Of(data) {
		return nil, fmt.Errorf("the file is not the one that was written, which has %d bytes, SHA-256 %s", u.NewSize, u.NewHash)
	}
	out := &Output{}
	copied := int64(0)
	for i, s := range u.Steps {
		if s.Data != nil {
			out.add(s.Data)
			continue
		}
		if s.From < 0 || s.Size < 0 || s.From > int64(len(data)) || s.Size > int64(len(data))-s.From {
			return nil, fmt.Errorf("step %d: bytes 0x%x to 0x%x of 0x%x", i, s.From, s.From+s.Size, len(data))
		}
		// No byte of the file is used twice, which bounds the result.
		if copied += s.Size; copied > int64(len(data)) {
			return nil, fmt.Errorf("step %d: more than the %d bytes of the file", i, len(data))
		}
		out.keep(data, s.From, s.From+s.Size)
	}
	h := sha256.New()
	_, _ = out.WriteTo(h)
	if old := hex.EncodeToString(h.Sum(nil)); old != u.OldHash {
		return nil, fmt.Errorf("the result has SHA-256 %s, want %s", old, u.OldHash)
	}
	return out, nil
}

// Of reports whether data is the new content that the way back starts from.
func (u *Undo) Of(data []byte) bool {
	if int64(len(data)) != u.NewSize {
		return false
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]) == u.NewHash
}

// maxStep bounds the bytes of one step, and with that the memory that Write takes.
const maxStep = 1 << 20

// Write encodes the way back as JSON, with one step a line.
func (u *Undo) Write(w io.Writer) error {
	head := *u
	head.Steps = []UndoStep{}
	b, err := json.Marshal(head)
	if err != nil {
		return err
	}
	sep := "\n" // in front of a step
	b = bytes.TrimSuffix(b, []byte("]}"))
	for i := 0; err == nil && i < len(u.Steps); i++ {
		if _, err = w.Write(append(b, sep...)); err == nil {
			b, err = json.Marshal(u.Steps[i])
		}
		sep = ",\n"
	}
	if err == nil {
		_, err = w.Write(append(b, "]}\n"...))
	}
	return err
}

// ReadUndo decodes the next of what Write wrote, one after another; [io.EOF] says that
// there are no more.
func ReadUndo(d *json.Decoder) (*Undo, error) {
	u := new(Undo)
	d.DisallowUnknownFields()
	if err := d.Decode(u); err != nil {
		return nil, err
	}
	return u, nil
}
