package elfx

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// RewriteOptions control [File.Rewrite].
type RewriteOptions struct {
	NoGrow bool // refuse with ErrGrow what needs a larger file
}

// A How is the way in which an entry was written.
type How uint8

// The ways of writing.
const (
	InPlace      How = iota // stored bytes replaced, nothing else touched
	Recompressed            // compressed anew, at the same place and in the same space
	Moved                   // in a rebuilt container
)

var howNames = [...]string{"in place", "recompressed", "moved"}

func (h How) String() string { return howNames[h] }

// A Change tells how one entry was written.
type Change struct {
	Entry *Entry
	How   How
	Old   int64 // stored bytes before
	New   int64 // stored bytes after
}

// A RewriteReport tells what [File.Rewrite] did.
type RewriteReport struct {
	Changes []Change
	OldSize int64
	NewSize int64
	// Why says, where the file was rebuilt, what did not fit, and what moved.
	Why []string
}

// A payload is what is to be stored for an entry.
type payload struct {
	entry  *Entry
	data   []byte // stored bytes without padding
	size   int64  // decompressed size
	padded int64  // space that the container will give it
	fits   bool   // in the space that the entry has
}

// Rewrite returns the content of the file with the payloads of some entries replaced
// by those in changes, which are not compressed. Stored payloads of the same size are
// replaced in place, compressed ones where they fit their space. Where one does not,
// the container is rebuilt: a .fatbin file is written anew; the fatbin section of a
// host program or library moves to a new segment at its end, and the pointers to it
// follow. Objects and archives cannot grow: [ErrGrow]. Nothing is written to disk.
func (f *File) Rewrite(changes map[*Entry][]byte, opt RewriteOptions) (*Output, *RewriteReport, error) {
	if f.parent != nil {
		return nil, nil, fmt.Errorf("%s: a member cannot be written by itself", f.Name)
	}
	if why := f.ReadOnly(); why != "" {
		return nil, nil, fmt.Errorf("%s: %s: %w", f.Name, why, ErrUnsupported)
	}
	payloads, err := f.payloads(changes)
	if err != nil {
		return nil, nil, err
	}
	rep := &RewriteReport{OldSize: f.Size}
	var tight []*payload
	for _, p := range payloads {
		how := InPlace
		if p.entry.Compression != Stored {
			how = Recompressed
		}
		if !p.fits {
			how = Moved
			tight = append(tight, p)
		}
		rep.Changes = append(rep.Changes, Change{Entry: p.entry, How: how, Old: p.entry.StoredSize, New: int64(len(p.data))})
	}
	if len(tight) > 0 {
		rep.Why = append(rep.Why, whyGrow(tight))
	}
	var out *Output
	switch {
	case len(tight) == 0:
		s := &splicer{src: f.data}
		for _, p := range payloads {
			p.splice(s)
		}
		out, err = s.output(f.Size)
	case opt.NoGrow:
		err = fmt.Errorf("%s, and growing is not allowed: %w", rep.Why[0], ErrGrow)
	default:
		out, err = f.grow(payloads, rep)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", f.Name, err)
	}
	rep.NewSize = out.size
	return out, rep, nil
}

// whyGrow says in one line what does not fit.
func whyGrow(tight []*payload) string {
	p := tight[0]
	s := fmt.Sprintf("entry #%d needs %d bytes (%s), its place has %d", p.entry.Number, len(p.data), p.entry.Compression, p.entry.PayloadSize)
	if len(tight) > 1 {
		s += fmt.Sprintf("; %d entries in all do not fit", len(tight))
	}
	return s
}

// payloads prepares the new payloads in the order of the file. Parts of a
// concatenation become one payload of the whole.
func (f *File) payloads(changes map[*Entry][]byte) ([]*payload, error) {
	for e := range changes {
		if e.Number < 1 || e.Number > len(f.entries) || f.entries[e.Number-1] != e {
			return nil, fmt.Errorf("%s: entry #%d is of another file", f.Name, e.Number)
		}
	}
	blobs := make(map[*Entry][]byte)
	var order []*Entry
	whole := make(map[*Entry][]byte)
	for _, e := range f.entries {
		data, ok := changes[e]
		if !ok {
			continue
		}
		if e.Err != nil {
			return nil, fmt.Errorf("%s: %w", e.place(), e.Err)
		}
		if e.Parent == nil {
			order, whole[e] = append(order, e), data
			continue
		}
		blob := blobs[e.Parent]
		if blob == nil {
			old, err := e.Parent.Data()
			if err != nil {
				return nil, err
			}
			blob = slices.Clone(old)
			blobs[e.Parent], whole[e.Parent] = blob, blob
			order = append(order, e.Parent)
		}
		if int64(len(data)) != e.Size {
			return nil, fmt.Errorf("%s: %d bytes instead of %d inside a concatenation: %w", e.place(), len(data), e.Size, ErrUnsupported)
		}
		copy(blob[e.inner:], data)
	}
	return packAll(order, whole)
}

// packAll compresses the new payloads, several at a time.
func packAll(order []*Entry, whole map[*Entry][]byte) ([]*payload, error) {
	out := make([]*payload, len(order))
	errs := make([]error, len(order))
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(order)) {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(order)); i = next.Add(1) - 1 {
				out[i], errs[i] = newPayload(order[i], whole[order[i]])
			}
		})
	}
	wg.Wait()
	return out, errors.Join(errs...)
}

// newPayload compresses the new content of an entry.
func newPayload(e *Entry, content []byte) (*payload, error) {
	if old, err := e.Data(); err == nil && bytes.Equal(old, content) {
		return &payload{entry: e, data: e.raw(), size: e.Size, padded: e.PayloadSize, fits: true}, nil
	}
	data, err := pack(e.Compression, content, e.PayloadSize)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", e.place(), err)
	}
	p := &payload{entry: e, data: data, size: int64(len(content)), padded: alignUp(int64(len(data)), 8)}
	p.fits = int64(len(data)) <= e.PayloadSize
	if p.fits {
		p.padded = e.PayloadSize
	}
	if e.Container.Kind == ContainerCubin && int64(len(data)) != e.Size {
		p.fits, p.padded = false, int64(len(data))
	}
	return p, nil
}

// splice puts a payload that fits into its place.
func (p *payload) splice(s *splicer) {
	e := p.entry
	if e.Compression == Stored {
		// The bytes that stay the same are left alone: the output then shares them.
		p.spliceStored(s)
		return
	}
	s.put32(e.Offset+offPackedSize, uint32(len(p.data)))
	s.put64(e.Offset+offSize, uint64(p.size))
	s.put(e.PayloadOffset, p.data)
	s.zero(e.PayloadOffset+int64(len(p.data)), e.PayloadSize-int64(len(p.data)))
}

// spliceStored replaces the pages of a stored payload that differ.
func (p *payload) spliceStored(s *splicer) {
	const page = 1 << 12
	e := p.entry
	old := s.src[e.PayloadOffset : e.PayloadOffset+e.PayloadSize]
	for pos := 0; pos < len(p.data); pos += page {
		end := min(pos+page, len(p.data))
		if string(old[pos:end]) != string(p.data[pos:end]) {
			s.put(e.PayloadOffset+int64(pos), p.data[pos:end])
		}
	}
	s.zero(e.PayloadOffset+int64(len(p.data)), e.PayloadSize-int64(len(p.data)))
}
