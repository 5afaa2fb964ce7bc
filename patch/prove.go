package patch

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/patch/edit"
)

// Prove returns an error unless g is f with exactly the edits: every cubin and every
// other entry is compared, headers too, and where nothing moved every byte.
func Prove(f, g *elfx.File, edits Edits) error {
	changed := func(x *elfx.Entry) bool { return len(edits[x.Number]) > 0 }
	if err := proveOthers(f, g, changed); err != nil {
		return err
	}
	for i, a := range f.Entries() {
		if !changed(a) {
			continue
		}
		old, err := a.Data()
		if err != nil {
			return err
		}
		now, err := g.Entries()[i].Data()
		if err != nil {
			return err
		}
		if err := edit.CheckApplied(old, now, edits[a.Number]); err != nil {
			return fmt.Errorf("entry %d: %w", a.Number, err)
		}
		a.Done()
	}
	return nil
}

// proveOthers proves that g is f but for the changed entries.
func proveOthers(f, g *elfx.File, changed func(*elfx.Entry) bool) error {
	if len(g.Entries()) != len(f.Entries()) {
		return fmt.Errorf("%d entries instead of %d", len(g.Entries()), len(f.Entries()))
	}
	touched := map[*elfx.Entry]bool{} // also concatenations of which a part is changed
	for _, a := range f.Entries() {
		if changed(a) {
			touched[a] = true
			if a.Parent != nil {
				touched[a.Parent] = true
			}
		}
	}
	inPlace := len(f.Data()) == len(g.Data())
	for i, a := range f.Entries() {
		b := g.Entries()[i]
		inPlace = inPlace && a.Offset == b.Offset
		if a.RawKind != b.RawKind || a.Target() != b.Target() || a.Flags != b.Flags || a.Name != b.Name || a.Options != b.Options {
			return fmt.Errorf("entry %d: its header changed", a.Number)
		}
		if touched[a] {
			continue
		}
		if err := sameEntry(a, b, a.Parent != nil && touched[a.Parent]); err != nil {
			return fmt.Errorf("entry %d: %w", a.Number, err)
		}
		a.Done()
	}
	if inPlace {
		return sameOutside(f, g, touched)
	}
	return nil
}

// sameEntry proves that an entry is stored as it was. unpacked says that it is a part
// of a concatenation that has been compressed anew.
func sameEntry(a, b *elfx.Entry, unpacked bool) error {
	if !unpacked {
		if !bytes.Equal(a.Raw(), b.Raw()) {
			return errors.New("it changed and has no edits")
		}
		return nil
	}
	old, err := a.Data()
	if err != nil {
		return err
	}
	now, err := b.Data()
	if err != nil {
		return err
	}
	return edit.CheckApplied(old, now, nil)
}

// sameOutside compares the bytes of two files outside the touched entries.
func sameOutside(f, g *elfx.File, touched map[*elfx.Entry]bool) error {
	pos := int64(0)
	skip := func(from, to int64) error {
		if !bytes.Equal(f.Data()[pos:from], g.Data()[pos:from]) {
			return fmt.Errorf("bytes between 0x%x and 0x%x changed, where no edit is", pos, from)
		}
		pos = to
		return nil
	}
	for i, x := range f.Entries() {
		if !touched[x] || x.Parent != nil {
			continue
		}
		if x.Compression != elfx.Stored {
			for _, field := range x.SizeFields() {
				if err := skip(field[0], field[1]); err != nil {
					return err
				}
			}
			y := g.Entries()[i]
			if rest := g.Data()[y.PayloadOffset+y.StoredSize : y.PayloadOffset+y.PayloadSize]; len(bytes.Trim(rest, "\x00")) > 0 {
				return fmt.Errorf("entry %d: its padding is not 0", x.Number)
			}
		}
		if err := skip(x.PayloadOffset, x.PayloadOffset+x.PayloadSize); err != nil {
			return err
		}
	}
	return skip(int64(len(f.Data())), 0)
}
