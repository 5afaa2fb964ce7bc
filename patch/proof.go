package patch

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/patch/edit"
)

// An extent says how much of a file is compared beside what its entries hold.
type extent uint8

const (
	everyByte   extent = iota
	unlessMoved        // every byte where no entry has another place, else the headers of entries
	headers
)

// A comparison compares a file with what another must become. There is no other: patch, revert,
// replace, prune and recompress prove what they wrote with it, and verify what others did.
type comparison struct {
	old     *elfx.File
	kept    []*elfx.Entry  // those of old that must be there, in order
	changes map[int]change // what becomes of an entry's data, by number
	extent  extent
	repack  bool // an entry without changes may be stored in another compressed form
	recode  bool // and with another compression
	fill    bool // a stored entry may have zeros after what it holds

	now     *elfx.File
	out     []Difference
	touched map[*elfx.Entry]bool // entries with changes, and concatenations of them
	same    map[*elfx.Entry]bool // entries of old that are stored as they were
	opaque  map[*elfx.Entry]bool // entries of old that nobody can decode: they are compared as they are stored
	told    map[*elfx.Entry]bool // entries of now of which a difference is known
}

// A change makes the new data of an entry of the old, which it leaves alone.
type change func(data []byte) ([]byte, error)

// changes returns what the edits make of the data of entries.
func (e Edits) changes() map[int]change {
	out := map[int]change{}
	for n, edits := range e {
		if len(edits) > 0 {
			out[n] = func(data []byte) ([]byte, error) {
				data = slices.Clone(data)
				return data, edit.Apply(data, edits)
			}
		}
	}
	return out
}

// compareWith returns the comparison of what f must become when some of its entries change.
func compareWith(f *elfx.File, changes map[int]change) comparison {
	return comparison{old: f, kept: f.Entries(), changes: changes}
}

// prove returns the first difference as an error.
func (v comparison) prove(now *elfx.File) error {
	list, err := v.differences(now)
	if err == nil && len(list) > 0 {
		err = errors.New(list[0].String())
	}
	return err
}

// differences returns what the file now has that it must not have, or lacks.
func (v comparison) differences(now *elfx.File) ([]Difference, error) {
	v.now, v.touched, v.same = now, map[*elfx.Entry]bool{}, map[*elfx.Entry]bool{}
	v.opaque, v.told = map[*elfx.Entry]bool{}, map[*elfx.Entry]bool{}
	if a, b := len(v.kept), len(now.Entries()); a != b {
		return []Difference{{Msg: fmt.Sprintf("%d entries instead of %d", b, a)}}, nil
	}
	for i, x := range v.kept {
		v.touched[x] = v.touched[x] || v.changes[x.Number] != nil
		if x.Parent != nil {
			v.touched[x.Parent] = v.touched[x.Parent] || v.touched[x]
		}
		y := now.Entries()[i]
		v.same[x] = x.Compression == y.Compression && x.Size == y.Size && bytes.Equal(x.Raw(), y.Raw())
		x.Done()
		y.Done()
	}
	for i, x := range v.kept {
		if err := v.entry(x, now.Entries()[i]); err != nil {
			return nil, err
		}
	}
	for i, x := range v.kept {
		if y := now.Entries()[i]; x.Kind == elfx.KindConcat && !v.told[y] {
			if err := v.content(x, y); err != nil {
				return nil, err
			}
		}
	}
	return v.out, v.outside()
}

// tell adds a difference of an entry of the new file.
func (v *comparison) tell(y *elfx.Entry, list ...Difference) {
	v.out = append(v.out, list...)
	v.told[y] = true
	if y.Parent != nil {
		v.told[y.Parent] = true
	}
}

// entry compares an entry of the old file with that of the new one: its header as far as
// that is not compared with every byte of the file, and what it holds.
func (v *comparison) entry(x, y *elfx.Entry) error {
	const form = elfx.FlagLZ4 | elfx.FlagZstd
	switch {
	case x.RawKind != y.RawKind || x.Target() != y.Target() || x.Compression != y.Compression && !v.recode:
		v.tell(y, Difference{Entry: x.Number, Msg: fmt.Sprintf("%s %s, %s, instead of %s %s, %s",
			y.Kind, y.Target(), y.Compression, x.Kind, x.Target(), x.Compression)})
		return nil
	case v.extent != everyByte && (x.Name != y.Name || x.Options != y.Options || x.Flags&^form != y.Flags&^form):
		v.tell(y, Difference{Entry: x.Number, Msg: "its header changed"})
		return nil
	case x.Kind == elfx.KindConcat: // its parts follow
		return nil
	}
	defer x.Done()
	defer y.Done()
	return v.content(x, y)
}

// content compares what two entries hold.
func (v *comparison) content(x, y *elfx.Entry) error {
	whole := x
	if x.Parent != nil {
		whole = x.Parent
	}
	if v.same[whole] && !v.touched[x] {
		return nil
	}
	p, err := x.Data()
	switch {
	case errors.Is(err, elfx.ErrUnsupported):
		v.opaque[whole] = true
		if v.extent != everyByte && !v.same[x] {
			v.tell(y, Difference{Entry: x.Number, Msg: "it changed"})
		}
		return nil
	case err != nil:
		return err
	}
	q, err := y.Data()
	if err != nil {
		v.tell(y, Difference{Entry: x.Number, Msg: err.Error()})
		return nil
	}
	want, err := v.becomes(x, p)
	if err != nil {
		return err
	}
	if v.fill && y.Compression == elfx.Stored && len(q) > len(want) && len(bytes.Trim(q[len(want):], "\x00")) == 0 {
		q = q[:len(want)]
	}
	if list := contentDifferences(x, p, want, q); len(list) > 0 {
		v.tell(y, list...)
	} else if !v.repack && !v.touched[whole] {
		v.tell(y, Difference{Entry: x.Number, Msg: "it is stored in another form, and nothing in it was to change"})
	}
	return nil
}

// becomes returns what the data of an entry must be.
func (v *comparison) becomes(x *elfx.Entry, data []byte) (_ []byte, err error) {
	if f := v.changes[x.Number]; f != nil {
		return f(data)
	}
	if x.Kind != elfx.KindConcat || !v.touched[x] {
		return data, nil
	}
	data = slices.Clone(data)
	for _, part := range v.kept {
		if f := v.changes[part.Number]; f != nil && part.Parent == x {
			at := part.Inner()
			now, err := f(data[at : at+part.Size])
			if err != nil {
				return nil, err
			}
			copy(data[at:], now)
		}
	}
	return data, nil
}
