package elfx

import (
	"cmp"
	"fmt"
	"slices"
)

// A chunk is a stretch of a cubin that keeps together: a section, or one of the
// header tables.
type chunk struct {
	old, oldEnd int64
	new, newEnd int64
	align       int64
	section     int    // index, -1 for a table
	data        []byte // what it holds now
	within      bool   // it shares the bytes of a chunk before it
}

// Resized returns the cubin with other contents of some sections, by index, of any
// length. What stands behind them moves: sections keep their order and alignment, and
// the header tables and segments follow. Nothing that is inside other sections changes.
//
// Sections that share bytes with another one, as those of capsule Mercury do, keep
// sharing them, so their contents cannot be replaced.
func (c *Cubin) Resized(contents map[int][]byte) ([]byte, error) {
	h, err := parseELFHeader(c.data)
	if err != nil {
		return nil, err
	}
	chunks, err := c.chunks(h, contents)
	if err != nil {
		return nil, err
	}
	size := arrange(chunks)
	last := int64(elfHeaderSize)
	for i := range chunks {
		last = max(last, chunks[i].oldEnd)
	}
	tail := c.data[last:]
	out := make([]byte, size+int64(len(tail)))
	copy(out, c.data[:elfHeaderSize])
	copy(out[size:], tail)
	end, newEnd := int64(elfHeaderSize), int64(elfHeaderSize)
	for i := range chunks {
		p := &chunks[i]
		if p.within {
			continue
		}
		if gap := p.old - end; gap == p.new-newEnd {
			copy(out[newEnd:p.new], c.data[end:p.old])
		}
		copy(out[p.new:], p.data)
		end, newEnd = p.oldEnd, p.newEnd
	}
	c.putHeaders(out, h, chunks)
	return out, nil
}

// chunks lists what a cubin is made of, by place.
func (c *Cubin) chunks(h *elfHeader, contents map[int][]byte) ([]chunk, error) {
	var out []chunk
	for i := range c.sections {
		s := &c.sections[i]
		data, replaced := contents[i]
		if replaced && !s.HasData() {
			return nil, fmt.Errorf("%s has no bytes in the file to replace", quoteName(s.Name, i))
		}
		if s.Type == shtNull {
			continue
		}
		if s.Addr != 0 {
			return nil, fmt.Errorf("%s has an address, %#x: %w", quoteName(s.Name, i), s.Addr, ErrUnsupported)
		}
		if !replaced {
			data = c.SectionData(s)
		}
		p := chunk{old: s.Offset, oldEnd: s.Offset, align: int64(max(s.Align, 1)), section: i, data: data}
		if s.HasData() {
			p.oldEnd = s.end()
		}
		if p.old > int64(len(c.data)) || p.align > 1<<20 || p.align&(p.align-1) != 0 {
			return nil, fmt.Errorf("%s: offset %#x, alignment %#x: %w", quoteName(s.Name, i), p.old, p.align, ErrUnsupported)
		}
		out = append(out, p)
	}
	table := func(off, size uint64) {
		if size > 0 {
			out = append(out, chunk{old: int64(off), oldEnd: int64(off + size), align: 1, section: -1, data: c.data[off : off+size]})
		}
	}
	table(h.Shoff, uint64(h.Shnum)*sectHeaderSize)
	table(h.Phoff, uint64(h.Phnum)*progHeaderSize)
	slices.SortStableFunc(out, func(a, b chunk) int {
		if a.old != b.old {
			return cmp.Compare(a.old, b.old)
		}
		x, y := a.oldEnd > a.old, b.oldEnd > b.old
		if x != y { // what is empty stands where the next one starts
			return cmp.Compare(a.oldEnd, b.oldEnd)
		}
		return 0
	})
	return out, c.shared(out, contents)
}

// shared finds the chunks that share the bytes of others.
func (c *Cubin) shared(chunks []chunk, contents map[int][]byte) error {
	var whole *chunk
	for i := range chunks {
		p := &chunks[i]
		if whole == nil || p.old >= whole.oldEnd {
			if p.oldEnd > p.old {
				whole = p
			}
			continue
		}
		if p.oldEnd > whole.oldEnd {
			if p.old != whole.old || whole.section < 0 {
				return fmt.Errorf("bytes %#x to %#x belong to two sections: %w", p.old, whole.oldEnd, ErrUnsupported)
			}
			*p, *whole = *whole, *p
		}
		p.within = true
		if _, ok := contents[p.section]; ok && p.section >= 0 {
			return fmt.Errorf("section %s shares its bytes with %s: %w", c.sections[p.section].Name, c.nameOf(whole), ErrUnsupported)
		}
		if _, ok := contents[whole.section]; ok && whole.section >= 0 && p.oldEnd > p.old && int64(len(whole.data)) != whole.oldEnd-whole.old {
			return fmt.Errorf("section %s shares its bytes with %s: %w", c.nameOf(whole), c.nameOf(p), ErrUnsupported)
		}
	}
	return nil
}

func (c *Cubin) nameOf(p *chunk) string {
	if p.section < 0 {
		return "a header table"
	}
	return c.sections[p.section].Name
}

// arrange gives chunks their new places and returns where the last one ends.
func arrange(chunks []chunk) int64 {
	end, newEnd := int64(elfHeaderSize), int64(elfHeaderSize)
	var whole *chunk
	for i := range chunks {
		p := &chunks[i]
		if p.within {
			p.new = whole.new + p.old - whole.old
			p.newEnd = p.new + p.oldEnd - p.old
			continue
		}
		p.new = alignUp(newEnd, p.align) + p.old - alignUp(end, p.align)
		if p.old < alignUp(end, p.align) { // not where its alignment would have it
			p.new = newEnd + p.old - end
		}
		p.newEnd = p.new + int64(len(p.data))
		end, newEnd = p.oldEnd, p.newEnd
		if p.oldEnd > p.old || whole == nil {
			whole = p
		}
	}
	return newEnd
}

// putHeaders writes the places of chunks into the headers.
func (c *Cubin) putHeaders(out []byte, h *elfHeader, chunks []chunk) {
	sections := make([]*chunk, len(c.sections))
	shoff, phoff := int64(h.Shoff), int64(h.Phoff)
	for i := range chunks {
		p := &chunks[i]
		switch {
		case p.section >= 0:
			sections[p.section] = p
		case h.Shnum > 0 && p.old == int64(h.Shoff):
			shoff = p.new
			le.PutUint64(out[40:], uint64(shoff))
		default:
			phoff = p.new
			le.PutUint64(out[32:], uint64(phoff))
		}
	}
	for i, p := range sections {
		if p == nil {
			continue
		}
		b := out[shoff+int64(i)*sectHeaderSize:]
		le.PutUint64(b[24:], uint64(p.new))
		if c.sections[i].HasData() {
			le.PutUint64(b[32:], uint64(p.newEnd-p.new))
		}
	}
	for i := range h.Phnum {
		b := out[phoff+int64(i)*progHeaderSize:]
		p := decodeProg(b)
		from, to := segmentPlace(chunks, int64(p.Off), int64(p.Off+p.Filesz))
		le.PutUint64(b[8:], uint64(from))
		le.PutUint64(b[32:], uint64(to-from))
		le.PutUint64(b[40:], p.Memsz+uint64(to-from)-p.Filesz)
	}
}

// segmentPlace returns where the stretch of a segment is now: it starts and ends with
// the chunks that it has.
func segmentPlace(chunks []chunk, from, to int64) (newFrom, newTo int64) {
	var first, last *chunk
	for i := range chunks {
		p := &chunks[i]
		if p.old < from || p.oldEnd > to || p.within || p.oldEnd == p.old && from != to {
			continue
		}
		if first == nil {
			first = p
		}
		last = p
	}
	if first == nil || from == to && first.oldEnd > first.old {
		for i := range chunks { // nothing of its own: it stays beside what stood there
			if p := &chunks[i]; p.old >= from && !p.within {
				return p.new + from - p.old, p.new + to - p.old
			}
		}
		return from, to
	}
	return first.new + from - first.old, last.newEnd + to - last.oldEnd
}
