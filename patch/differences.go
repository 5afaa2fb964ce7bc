package patch

import (
	"fmt"
	"strings"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/patch/code"
	"github.com/cupatch/cupatch/patch/edit"
	"github.com/cupatch/cupatch/patch/listing"
)

// A Difference is something in which two files differ and which no edit explains.
type Difference struct {
	Entry   int    // number, 0 for what is outside entries
	Section string // of the cubin, "" outside sections
	Offset  uint64 // in the entry's data, or in the file
	Msg     string
}

func (d Difference) String() string {
	s := ""
	if d.Entry > 0 {
		s = fmt.Sprintf("entry %d: ", d.Entry)
	}
	if d.Section != "" {
		s += d.Section + ":"
		if !strings.HasPrefix(d.Msg, "\n") {
			s += " "
		}
	}
	return s + d.Msg
}

// Differences returns every difference between old, with edits applied by entry number,
// and now. An edit that is not in now is a difference too. Every byte of both files is
// looked at: it is equal, or part of an edit, or of the compressed form of an entry whose
// content is proved, or it follows from the sizes of those.
func Differences(old, now *elfx.File, edits Edits) ([]Difference, error) {
	c := compareWith(old, edits.changes())
	c.repack = true
	return c.differences(now)
}

// contentDifferences compares what an entry, which held old, must hold with what it holds.
func contentDifferences(x *elfx.Entry, old, want, got []byte) []Difference {
	if len(want) != len(got) {
		return []Difference{{Entry: x.Number, Msg: fmt.Sprintf("%d bytes instead of %d", len(got), len(want))}}
	}
	at := edit.FirstDifference(want, got)
	if at < 0 {
		return nil
	}
	l := differ{entry: x.Number, want: want, got: got}
	if x.Kind == elfx.KindELF {
		if c, err := elfx.ParseCubin(old); err == nil {
			l.cubin = c
		}
	}
	l.run(at)
	return l.out
}

// A differ names the places where two versions of a cubin differ.
type differ struct {
	entry     int
	cubin     *elfx.Cubin
	table     *isa.Table
	want, got []byte
	out       []Difference
}

// run lists instruction by instruction inside code, and stretch by stretch elsewhere.
func (l *differ) run(at int) {
	if l.cubin != nil {
		l.table, _ = code.TableOf(l.cubin) // without one the bytes are told
	}
	for i := at; i < len(l.want); {
		if l.want[i] == l.got[i] {
			if n := edit.FirstDifference(l.want[i:], l.got[i:]); n < 0 {
				return
			} else {
				i += n
			}
		}
		i = l.at(i)
	}
}

// at reports the difference at byte i and returns where to go on.
func (l *differ) at(i int) int {
	section, lo, hi := l.section(i)
	if k := l.kernel(i); k != nil && l.table != nil {
		pc := (uint64(i) - uint64(k.Offset)) &^ (isa.WordSize - 1)
		off := uint64(k.Offset) + pc
		if off+isa.WordSize <= uint64(k.Offset+k.Size) {
			var s listing.Style
			d := Difference{Entry: l.entry, Section: section, Offset: off}
			d.Msg = fmt.Sprintf("\n  want %s  got  %s", s.AppendLine(nil, l.table, isa.LoadWord(l.want[off:]), pc),
				s.AppendLine(nil, l.table, isa.LoadWord(l.got[off:]), pc))
			d.Msg = d.Msg[:len(d.Msg)-1]
			l.out = append(l.out, d)
			return int(off) + isa.WordSize
		}
	}
	end := i + 1
	for same := 0; end < hi && same < 8; end++ {
		if l.want[end] == l.got[end] {
			same++
		} else {
			same = 0
		}
	}
	for end > i+1 && l.want[end-1] == l.got[end-1] {
		end--
	}
	l.out = append(l.out, Difference{Entry: l.entry, Section: section, Offset: uint64(i),
		Msg: fmt.Sprintf("bytes %#x to %#x of the section", i-lo, end-lo)})
	if section == "" {
		l.out[len(l.out)-1].Msg = fmt.Sprintf("bytes %#x to %#x, outside sections", i, end)
	}
	return end
}

// section returns the section that byte i is in and its bounds.
func (l *differ) section(i int) (name string, lo, hi int) {
	if l.cubin == nil {
		return "", 0, len(l.want)
	}
	hi = len(l.want)
	for _, s := range l.cubin.Sections() {
		if !s.HasData() {
			continue
		}
		start, end := int(s.Offset), int(s.Offset)+int(s.Size)
		if i >= start && i < end {
			return s.Name, start, end
		}
		if start > i {
			hi = min(hi, start)
		}
	}
	return "", 0, hi
}

func (l *differ) kernel(i int) *elfx.Kernel {
	if l.cubin == nil {
		return nil
	}
	for k := range l.cubin.Kernels() {
		x := &l.cubin.Kernels()[k]
		if int64(i) >= x.Offset && int64(i) < x.Offset+x.Size {
			return x
		}
	}
	return nil
}
