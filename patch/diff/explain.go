package diff

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"
)

// stringsText says which readable strings of two notes differ.
func stringsText(p, q []byte) string {
	x, y := readable(p), readable(q)
	sx, sy := slices.Sorted(slices.Values(x)), slices.Sorted(slices.Values(y))
	gone, fresh := without(sx, sy), without(sy, sx)
	if len(gone)+len(fresh) == 0 {
		return "numbers differ"
	}
	quote := func(l []string) string {
		var out []string
		for _, s := range l {
			out = append(out, fmt.Sprintf("%q", s))
		}
		return list(out)
	}
	return quote(gone) + " → " + quote(fresh)
}

// readable returns the runs of at least four printable characters.
func readable(b []byte) []string {
	var out []string
	for _, s := range bytes.FieldsFunc(b, func(r rune) bool { return r < ' ' || r > '~' }) {
		if len(s) >= 4 {
			out = append(out, string(s))
		}
	}
	return out
}

// debugLine says why two line tables differ: by the times at which the source files
// were changed, or by more.
func (s *sectionDiff) debugLine(p, q []byte) {
	a, restA, ok1 := lineFiles(p)
	b, restB, ok2 := lineFiles(q)
	if !ok1 || !ok2 || len(a) != len(b) || !bytes.Equal(restA, restB) {
		s.note(Metadata, ".debug_line", "line numbers differ, %d → %d bytes", len(p), len(q))
		return
	}
	for i, f := range a {
		if f == b[i] {
			continue
		}
		when := func(t uint64) string {
			if t == 0 || t > 1<<40 {
				return fmt.Sprint(t)
			}
			return time.Unix(int64(t), 0).UTC().Format(time.DateTime)
		}
		text := "modification time or size of source file " + f.name
		if f.time != b[i].time {
			text += ": " + when(f.time) + " → " + when(b[i].time)
		} else {
			text += fmt.Sprintf(": %d → %d bytes", f.size, b[i].size)
		}
		s.note(Metadata, ".debug_line", "%s", text)
	}
}

// A lineFile is a source file in a line table.
type lineFile struct {
	name       string
	time, size uint64
}

// lineFiles reads the file tables of the units of a .debug_line section of DWARF
// version 2 to 4 (section 6.2.4 of the standard). rest is the section without the times
// and sizes of the files, and without the lengths that depend on them.
func lineFiles(b []byte) (files []lineFile, rest []byte, ok bool) {
	for len(b) > 0 {
		if len(b) < 15 {
			return nil, nil, false
		}
		length := binary.LittleEndian.Uint32(b)
		version := binary.LittleEndian.Uint16(b[4:])
		if uint64(length)+4 > uint64(len(b)) || length < 11 || version < 2 || version > 4 {
			return nil, nil, false
		}
		unit := b[4 : 4+length]
		b = b[4+length:]
		at := 6 // version and header length
		fixed := 5
		if version == 4 {
			fixed = 6
		}
		if len(unit) < at+fixed {
			return nil, nil, false
		}
		rest = append(rest, unit[:2]...)
		ops := int(unit[at+fixed-1])
		tables := at + fixed + max(ops-1, 0)
		if tables > len(unit) {
			return nil, nil, false
		}
		rest = append(rest, unit[at:tables]...)
		r := &lineReader{b: unit[tables:]}
		r.tables()
		if r.bad {
			return nil, nil, false
		}
		files = append(files, r.files...)
		rest = append(append(rest, r.kept...), r.b...)
	}
	return files, rest, true
}

// A lineReader reads the directory and file tables of a line program.
type lineReader struct {
	b     []byte
	kept  []byte // what was read, without times and sizes
	files []lineFile
	bad   bool
}

func (r *lineReader) tables() {
	for r.text() != "" && !r.bad {
	}
	for !r.bad {
		name := r.text()
		if name == "" {
			return
		}
		r.kept = binary.AppendUvarint(r.kept, r.uleb())
		r.files = append(r.files, lineFile{strings.Clone(name), r.uleb(), r.uleb()})
	}
}

func (r *lineReader) text() string {
	i := bytes.IndexByte(r.b, 0)
	if i < 0 {
		r.bad = true
		return ""
	}
	s := string(r.b[:i])
	r.kept = append(r.kept, r.b[:i+1]...)
	r.b = r.b[i+1:]
	return s
}

func (r *lineReader) uleb() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.bad = true
		return 0
	}
	r.b = r.b[n:]
	return v
}
