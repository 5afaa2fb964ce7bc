package elfx

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// relinkArchive puts an archive together whose members change their sizes. The index of
// symbols, which has the members' places, follows.
func relinkArchive(f *File, r *rebuild) (*Output, error) {
	s := &splicer{src: f.data}
	changed := func(m *File) bool {
		return slices.ContainsFunc(m.Regions, func(reg *Region) bool { return r.regions[reg] })
	}
	for _, m := range f.Members {
		if !changed(m) {
			continue
		}
		if m.format.relink == nil {
			return nil, fmt.Errorf("%s: a file of kind %s cannot change its size: %w", m.Name, m.Kind, ErrGrow)
		}
		body, err := m.format.relink(m, r)
		if err != nil {
			return nil, err
		}
		size := m.Offset + m.Size - (m.header + arHeaderSize) // a BSD name counts
		size += body.size - m.Size
		if (body.size-m.Size)%2 != 0 || size >= 1e10 {
			return nil, fmt.Errorf("%s: %d bytes instead of %d in an archive: %w", m.Name, body.size, m.Size, ErrGrow)
		}
		s.put(m.header+48, fmt.Appendf(nil, "%-10d", size))
		s.swap(m.Offset, m.Offset+m.Size, body)
	}
	for _, p := range r.list {
		if !changed(p.entry.File) {
			p.splice(s)
		}
	}
	if err := f.shiftIndex(s); err != nil {
		return nil, err
	}
	return s.output(f.Size)
}

// shiftIndex lets the index of symbols follow: a big-endian count and as many places of
// member headers, in 32 bits (member /) or 64 (/SYM64/).
func (f *File) shiftIndex(s *splicer) error {
	b := f.data
	for pos := int64(len(arMagic)); f.Size-pos >= arHeaderSize; {
		name := strings.TrimRight(string(b[pos:pos+16]), " ")
		size, err := strconv.ParseInt(strings.TrimSpace(string(b[pos+48:pos+58])), 10, 64)
		start := pos + arHeaderSize
		if err != nil || size < 0 || size > f.Size-start {
			return nil // damage, of which the reader has said what there is to say
		}
		width := map[string]int64{"/": 4, "/SYM64/": 8}[name]
		if strings.HasPrefix(name, "__.SYMDEF") || strings.HasPrefix(string(b[start:start+min(size, 16)]), "__.SYMDEF") {
			return fmt.Errorf("an archive with a BSD index of symbols: %w", ErrGrow)
		}
		if width > 0 && size >= width {
			word := func(b []byte) uint64 {
				if width == 4 {
					return uint64(binary.BigEndian.Uint32(b))
				}
				return binary.BigEndian.Uint64(b)
			}
			n := min(word(b[start:]), uint64(size/width-1))
			for i := range int64(n) {
				at := start + (i+1)*width
				old := word(b[at:])
				if old > uint64(f.Size) {
					continue
				}
				now := binary.BigEndian.AppendUint64(nil, uint64(s.shift(int64(old))))
				s.put(at, now[8-width:])
			}
		}
		pos = start + size + size&1
	}
	return nil
}
