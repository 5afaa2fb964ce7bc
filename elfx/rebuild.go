package elfx

import (
	"fmt"
	"sort"
)

// A remap says where the bytes of a region went when it was rebuilt: stretches of old
// offsets, each with the new offset of its start, both from the start of the region.
type remap []struct{ old, new int64 }

// at returns the new place of an old offset.
func (m remap) at(off int64) int64 {
	i := sort.Search(len(m), func(i int) bool { return m[i].old > off }) - 1
	if i < 0 {
		return off
	}
	return m[i].new + off - m[i].old
}

// A rebuild is what becomes of the containers of a file.
type rebuild struct {
	list     []*payload
	payloads map[*Entry]*payload // the same by entry
	regions  map[*Region]bool    // with entries that do not fit their places
	dropped  map[*Entry]bool     // entries that are left out
	shrink   bool                // the file is to become as small as can be
	rep      *RewriteReport
}

// why says what the rebuild is for, for errors.
func (b *rebuild) why() string {
	if len(b.rep.Why) > 0 {
		return b.rep.Why[0]
	}
	return "entries change their sizes"
}

// rebuildRegion returns the region with new payloads, which may be larger or smaller
// than the old ones, and where everything went. Bytes between containers stay.
func (f *File) rebuildRegion(r *Region, b *rebuild) (*Output, remap) {
	data := f.root().data
	out := &Output{}
	var m remap
	mark := func(old int64) {
		m = append(m, struct{ old, new int64 }{old - r.Offset, out.size})
	}
	pos := r.Offset
	for _, c := range r.Containers {
		mark(pos)
		out.keep(data, pos, c.Offset)
		pos = c.Offset + c.Size
		mark(c.Offset)
		if c.Kind == ContainerCubin {
			if p := b.payloads[c.Entries[0]]; p != nil {
				out.append(p.body)
			} else {
				out.keep(data, c.Offset, pos)
			}
			continue
		}
		body := &Output{}
		rebuildEntries(data, c, b, body, func(old, into int64) {
			m = append(m, struct{ old, new int64 }{old - r.Offset, out.size + c.HeaderSize + into})
		})
		header := append([]byte(nil), data[c.Offset:c.Offset+c.HeaderSize]...)
		le.PutUint64(header[8:], uint64(body.size))
		out.add(header)
		out.append(body)
	}
	mark(pos)
	out.keep(data, pos, r.Offset+r.Size)
	return out, m
}

// rebuildEntries writes the entries of a container. mark is called with each entry's
// old offset in the file and its new one in the body.
func rebuildEntries(data []byte, c *Container, b *rebuild, body *Output, mark func(old, into int64)) {
	pos := c.Offset + c.HeaderSize
	for _, e := range c.Entries {
		p := b.payloads[e]
		if e.Parent != nil || p == nil && !b.dropped[e] {
			continue
		}
		mark(pos, body.size)
		body.keep(data, pos, e.Offset)
		mark(e.Offset, body.size)
		pos = e.PayloadOffset + e.PayloadSize
		if b.dropped[e] {
			continue
		}
		header := append([]byte(nil), data[e.Offset:e.Offset+e.HeaderSize]...)
		le.PutUint64(header[offPayloadSize:], uint64(p.padded))
		p.setHeader(header)
		body.add(header)
		body.append(p.body)
		body.zeros(p.padded - p.body.size)
	}
	mark(pos, body.size)
	body.keep(data, pos, c.Offset+c.Size)
}

// grow rebuilds the regions that hold payloads that do not fit.
func (f *File) grow(payloads []*payload, rep *RewriteReport) (*Output, error) {
	r := f.newRebuild()
	r.list, r.rep = payloads, rep
	for _, p := range payloads {
		r.payloads[p.entry] = p
		if p.fits {
			continue
		}
		c := p.entry.Container
		if err := c.damage(); err != nil {
			return nil, fmt.Errorf("entry %s does not fit, and its container is damaged: %w", p.entry.Tag(), err)
		}
		r.regions[c.Region] = true
	}
	if f.format.relink == nil {
		return nil, &growError{what: rep.Why[0], kind: f.Kind}
	}
	return f.format.relink(f, r)
}

// A growError says why a file cannot grow.
type growError struct {
	what string
	kind FileKind
}

func (e *growError) Error() string {
	return fmt.Sprintf("%s, and a file of kind %s cannot grow", e.what, e.kind)
}

func (e *growError) Unwrap() error { return ErrGrow }

// Hint returns advice for the user.
func (e *growError) Hint() string {
	return "extract the cubin, change it, and load it from a file of its own"
}
