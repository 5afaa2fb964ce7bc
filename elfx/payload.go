package elfx

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// A payload is what is to be stored for an entry.
type payload struct {
	entry  *Entry
	body   *Output // stored bytes without padding; what stays as it was is a part of the file
	size   int64   // decompressed size
	padded int64   // space that the container will give it
	fits   bool    // in the space that the entry has
	how    Compression
}

// A task is an entry to be written, and which of its parts, if it is a concatenation.
type task struct {
	entry *Entry
	parts []*Entry
}

// payloads prepares the new payloads in the order of the file. Parts of a
// concatenation become one payload of the whole.
func (f *File) payloads(entries []*Entry, content func(*Entry) ([]byte, error), packed func(*Entry, []byte) []byte) ([]*payload, error) {
	for _, e := range entries {
		if e.Number < 1 || e.Number > len(f.entries) || f.entries[e.Number-1] != e {
			return nil, fmt.Errorf("%s: entry %s is of another file", f.Name, e.Tag())
		}
	}
	entries = slices.SortedFunc(slices.Values(entries), func(a, b *Entry) int { return cmp.Compare(a.Number, b.Number) })
	var tasks []*task
	whole := make(map[*Entry]*task)
	for _, e := range slices.Compact(entries) {
		if e.Err != nil {
			return nil, fmt.Errorf("%s: %w", e.place(), e.Err)
		}
		of := e
		if e.Parent != nil {
			of = e.Parent
		}
		t := whole[of]
		if t == nil {
			t = &task{entry: of}
			tasks, whole[of] = append(tasks, t), t
		}
		if e.Parent != nil {
			t.parts = append(t.parts, e)
		}
	}
	return forEach(tasks, func(t *task) (*payload, error) { return t.pack(content, packed) })
}

// forEach makes the new payloads, several at a time.
func forEach(tasks []*task, work func(*task) (*payload, error)) ([]*payload, error) {
	out := make([]*payload, len(tasks))
	errs := make([]error, len(tasks))
	var next atomic.Int64
	var wg sync.WaitGroup
	var large sync.Mutex
	for range min(runtime.GOMAXPROCS(0), len(tasks)) {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(tasks)); i = next.Add(1) - 1 {
				alone := tasks[i].entry.Size > largeEntry
				if alone {
					large.Lock()
				}
				func() {
					defer CatchFault(&errs[i])()
					out[i], errs[i] = work(tasks[i])
				}()
				if alone {
					large.Unlock()
				}
			}
		})
	}
	wg.Wait()
	return out, errors.Join(errs...)
}

// largeEntry is the decompressed size above which entries are compressed one after the
// other: the work on one may take 40 times its size in memory.
const largeEntry = 16 << 20

// pack makes the payload of a task.
func (t *task) pack(content func(*Entry) ([]byte, error), packed func(*Entry, []byte) []byte) (*payload, error) {
	if t.parts == nil {
		data, err := content(t.entry)
		if err != nil {
			return nil, err
		}
		return newPayload(t.entry, data, packed)
	}
	old, err := t.entry.Data()
	if err != nil {
		return nil, err
	}
	blob := slices.Clone(old)
	for _, e := range t.parts {
		data, err := content(e)
		if err != nil {
			return nil, err
		}
		if int64(len(data)) != e.Size {
			return nil, fmt.Errorf("%s: %d bytes instead of %d inside a concatenation: %w", e.place(), len(data), e.Size, ErrUnsupported)
		}
		copy(blob[e.inner:], data)
	}
	return newPayload(t.entry, blob, packed)
}

// newPayload compresses the new content of an entry, unless packed has its stored form.
func newPayload(e *Entry, content []byte, packed func(*Entry, []byte) []byte) (*payload, error) {
	body := &Output{}
	file := e.File.root().data
	var form []byte
	if packed != nil && e.Compression != Stored {
		form = packed(e, content)
	}
	if form != nil {
		body.add(form)
	} else if old, err := e.Data(); err == nil && bytes.Equal(old, content) {
		body.keep(file, e.PayloadOffset, e.PayloadOffset+e.StoredSize)
		return &payload{entry: e, body: body, size: e.Size, padded: e.PayloadSize, fits: true, how: e.Compression}, nil
	}
	switch {
	case form != nil:
	case e.Compression == Stored:
		body.addChanged(file, e.PayloadOffset, e.PayloadOffset+e.StoredSize, content)
	default:
		data, err := pack(e.Compression, content, e.PayloadSize)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.place(), err)
		}
		body.add(data)
	}
	p := &payload{entry: e, body: body, size: int64(len(content)), padded: alignUp(body.size, 8), how: e.Compression}
	p.fits = body.size <= e.PayloadSize
	if p.fits {
		p.padded = e.PayloadSize
	}
	if e.Container.Kind == ContainerCubin && body.size != e.Size {
		p.fits, p.padded = false, body.size
	}
	return p, nil
}

// setHeader writes what an entry's header says of its payload but the space that it takes.
func (p *payload) setHeader(header []byte) {
	packed, size, flag := uint32(p.body.size), uint64(p.size), uint64(0)
	switch p.how {
	case Stored:
		packed, size = 0, 0
	case LZ4:
		flag = FlagLZ4
	case Zstd:
		flag = FlagZstd
	}
	if p.how == p.entry.Compression && p.how == Stored {
		return
	}
	le.PutUint32(header[offPackedSize:], packed)
	le.PutUint64(header[offSize:], size)
	flags := le.Uint64(header[offFlags:])
	le.PutUint64(header[offFlags:], flags&^(FlagLZ4|FlagZstd)|flag)
}

// splice puts a payload that fits into its place.
func (p *payload) splice(s *splicer) {
	e, base := p.entry, -s.base
	if e.Compression != Stored {
		s.put32(base+e.Offset+offPackedSize, uint32(p.body.size))
		s.put64(base+e.Offset+offSize, uint64(p.size))
	}
	at := e.PayloadOffset
	for _, x := range p.body.pieces {
		if x.from != at { // what stays in its place is left alone
			s.put(base+at, x.data)
		}
		at += x.size
	}
	s.zero(base+at, e.PayloadOffset+e.PayloadSize-at)
}
