package elfx

import (
	"bytes"
	"fmt"
	"io"
	"sort"
)

// An Output is the new content of a file: stretches of the old one and new bytes. It
// refers to the File it came from, which must stay open while it is used.
type Output struct {
	pieces []piece
	size   int64
}

// A piece is data, or, where that is nil, so many zeros. from is the offset in the old
// content that the data was taken from, or -1.
type piece struct {
	data []byte
	size int64
	from int64
}

// Size returns the length of the content.
func (o *Output) Size() int64 { return o.size }

// add appends new bytes.
func (o *Output) add(b []byte) { o.addFrom(b, -1) }

// keep appends bytes of the old content.
func (o *Output) keep(src []byte, off, end int64) { o.addFrom(src[off:end], off) }

func (o *Output) addFrom(b []byte, from int64) {
	if len(b) > 0 {
		o.pieces = append(o.pieces, piece{b, int64(len(b)), from})
		o.size += int64(len(b))
	}
}

func (o *Output) zeros(n int64) {
	if n > 0 {
		o.pieces = append(o.pieces, piece{nil, n, -1})
		o.size += n
	}
}

// addChanged appends data, which replaces src[off:end]: blocks that are the same are
// kept, the others copied, so that data itself need not stay.
func (o *Output) addChanged(src []byte, off, end int64, data []byte) {
	const block = 64
	common := min(end-off, int64(len(data)))
	same := func(at int64) bool {
		to := min(at+block, common)
		return bytes.Equal(src[off+at:off+to], data[at:to])
	}
	for at := int64(0); at < common; {
		start := at
		for at < common && same(at) {
			at = min(at+block, common)
		}
		if at > start {
			o.keep(src, off+start, off+at)
		}
		start = at
		for at < common && !same(at) {
			at = min(at+block, common)
		}
		o.add(bytes.Clone(data[start:at]))
	}
	o.add(bytes.Clone(data[common:]))
}

// append adds the whole of p.
func (o *Output) append(p *Output) {
	o.pieces = append(o.pieces, p.pieces...)
	o.size += p.size
}

// WriteTo writes the content to w.
func (o *Output) WriteTo(w io.Writer) (int64, error) {
	var n int64
	var zeros [1 << 12]byte
	for _, p := range o.pieces {
		if p.data != nil {
			m, err := w.Write(p.data)
			n += int64(m)
			if err != nil {
				return n, err
			}
			continue
		}
		for left := p.size; left > 0; {
			m, err := w.Write(zeros[:min(left, int64(len(zeros)))])
			n += int64(m)
			left -= int64(m)
			if err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

// Bytes returns the content in memory.
func (o *Output) Bytes() []byte {
	out := make([]byte, 0, o.size)
	for _, p := range o.pieces {
		if p.data != nil {
			out = append(out, p.data...)
		} else {
			out = append(out, make([]byte, p.size)...)
		}
	}
	return out
}

// A splice replaces bytes of a file by as many others.
type splice struct {
	off  int64
	data []byte
}

// A swap replaces a part of a file by something of another size.
type swap struct {
	off, end int64
	body     *Output
}

// A splicer collects changes of a file. Offsets are those of the old content.
type splicer struct {
	src     []byte
	base    int64 // where src starts in the file
	splices []splice
	swaps   []swap // in order
}

// swap replaces a part of the file, which lies after those that were replaced before. The
// body may still be added to.
func (s *splicer) swap(off, end int64, body *Output) { s.swaps = append(s.swaps, swap{off, end, body}) }

// shift returns where an offset of the old content is in the new one. Within a part that
// was replaced it is as far from the start, at most at the end.
func (s *splicer) shift(off int64) int64 {
	by := int64(0)
	for _, w := range s.swaps {
		switch {
		case off >= w.end:
			by += w.body.size - (w.end - w.off)
		case off > w.off:
			return w.off + by + min(off-w.off, w.body.size)
		}
	}
	return off + by
}

func (s *splicer) put(off int64, data []byte) {
	if len(data) > 0 {
		s.splices = append(s.splices, splice{off, data})
	}
}

func (s *splicer) put64(off int64, v uint64) { s.put(off, le.AppendUint64(nil, v)) }
func (s *splicer) put32(off int64, v uint32) { s.put(off, le.AppendUint32(nil, v)) }
func (s *splicer) put16(off int64, v uint16) { s.put(off, le.AppendUint16(nil, v)) }

// zero replaces size bytes at off by zeros.
func (s *splicer) zero(off, size int64) { s.put(off, make([]byte, size)) }

func (s *splicer) keep(o *Output, off, end int64) { o.addFrom(s.src[off:end], s.base+off) }

// output returns the source up to end with the changes made. Changes must not overlap.
func (s *splicer) output(end int64) (*Output, error) {
	sort.SliceStable(s.splices, func(i, j int) bool { return s.splices[i].off < s.splices[j].off })
	o := &Output{}
	pos := int64(0)
	swaps := s.swaps
	takeSwaps := func(before int64) error {
		for ; len(swaps) > 0 && swaps[0].off < before; swaps = swaps[1:] {
			w := swaps[0]
			if w.off < pos || w.end > end {
				return fmt.Errorf("changes at 0x%x and 0x%x overlap", pos, w.off)
			}
			s.keep(o, pos, w.off)
			o.append(w.body)
			pos = w.end
		}
		return nil
	}
	for _, p := range s.splices {
		if err := takeSwaps(p.off); err != nil {
			return nil, err
		}
		if p.off < pos || p.off+int64(len(p.data)) > end {
			return nil, fmt.Errorf("changes at 0x%x and 0x%x overlap", pos, p.off)
		}
		s.keep(o, pos, p.off)
		o.add(p.data)
		pos = p.off + int64(len(p.data))
	}
	if err := takeSwaps(end); err != nil {
		return nil, err
	}
	s.keep(o, pos, end)
	return o, nil
}
