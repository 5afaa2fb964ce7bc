package patch

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/cupatch/cupatch/elfx"
)

// Prune returns the content of a file without the entries that keep refuses, and what is
// left. See [elfx.File.Prune]. The proof compares every byte of the entries that stay.
func Prune(f *elfx.File, keep func(*elfx.Entry) bool) (*Content, []*elfx.Entry, error) {
	out, rep, err := f.Prune(keep)
	if err != nil {
		return nil, nil, err
	}
	prove := func(now *elfx.File) error {
		return sameEntries(rep.Kept, now.Entries(), func(a, b *elfx.Entry) error {
			if a.Flags != b.Flags || !bytes.Equal(a.Raw(), b.Raw()) {
				return errors.New("it changed")
			}
			return nil
		})
	}
	return &Content{rep.Why, f, out, prove}, rep.Kept, nil
}

// Recompress returns the content of a file with its entries compressed in another way. See
// [elfx.File.Recompress]. The proof compares every entry after decompression.
func Recompress(f *elfx.File, how elfx.Compression, level int) (*Content, error) {
	out, rep, err := f.Recompress(how, level)
	if err != nil {
		return nil, err
	}
	prove := func(now *elfx.File) error {
		return sameEntries(f.Entries(), now.Entries(), func(a, b *elfx.Entry) error {
			old, err := a.Data()
			if errors.Is(err, elfx.ErrUnsupported) { // what cannot be decoded stays as it is
				if bytes.Equal(a.Raw(), b.Raw()) {
					return nil
				}
				return errors.New("it changed")
			}
			if err != nil {
				return err
			}
			got, err := b.Data()
			// What is stored fills its place up with zeros.
			if err == nil && (!bytes.HasPrefix(got, old) || len(bytes.Trim(got[len(old):], "\x00")) > 0) {
				err = errors.New("it changed")
			}
			a.Done()
			return err
		})
	}
	return &Content{rep.Why, f, out, prove}, nil
}

// sameEntries compares the entries of two files one by one.
func sameEntries(old, now []*elfx.Entry, same func(a, b *elfx.Entry) error) error {
	if len(old) != len(now) {
		return fmt.Errorf("%d entries instead of %d", len(now), len(old))
	}
	for i, a := range old {
		b := now[i]
		if a.RawKind != b.RawKind || a.Target() != b.Target() || a.Name != b.Name || a.Options != b.Options {
			return fmt.Errorf("entry %d: its header changed", a.Number)
		}
		if err := same(a, b); err != nil {
			return fmt.Errorf("entry %d: %w", a.Number, err)
		}
	}
	return nil
}
