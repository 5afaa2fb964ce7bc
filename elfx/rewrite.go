package elfx

import (
	"fmt"
	"maps"
	"slices"
)

// RewriteOptions control [File.Rewrite].
type RewriteOptions struct {
	NoGrow bool // refuse with ErrGrow what needs a larger file
	// Packed, if set, is asked for the stored form of what a compressed entry becomes: to find
	// out what a file that was written before must be. nil is compressed here.
	Packed func(e *Entry, content []byte) []byte
}

// A How is the way in which an entry was written.
type How uint8

// The ways of writing.
const (
	InPlace      How = iota // stored bytes replaced, nothing else touched
	Recompressed            // compressed anew, at the same place and in the same space
	Moved                   // in a rebuilt container
)

var howNames = [...]string{"in place", "recompressed", "moved"}

func (h How) String() string { return howNames[h] }

// A Change tells how one entry was written.
type Change struct {
	Entry *Entry
	How   How
	Old   int64 // stored bytes before
	New   int64 // stored bytes after
}

// A RewriteReport tells what [File.Rewrite] did.
type RewriteReport struct {
	Changes []Change
	Kept    []*Entry // what [File.Prune] left in, in order
	OldSize int64
	NewSize int64
	// Why says, where the file was rebuilt, what did not fit, and what moved.
	Why []string
}

// Rewrite returns the content of the file with the payloads of some entries replaced
// by those in changes, which are not compressed. Stored payloads of the same size are
// replaced in place, compressed ones where they fit their space. Where one does not,
// the container is rebuilt: a .fatbin file is written anew; the fatbin section of a
// host program or library moves to a new segment at its end, and the pointers to it
// follow. in objects and archives what comes after it moves. Nothing is written to disk.
func (f *File) Rewrite(changes map[*Entry][]byte, opt RewriteOptions) (*Output, *RewriteReport, error) {
	content := func(e *Entry) ([]byte, error) { return changes[e], nil }
	return f.RewriteFunc(slices.Collect(maps.Keys(changes)), content, opt)
}

// RewriteFunc is [File.Rewrite] for entries that need not be in memory together:
// content returns what one of them becomes. It is called once for each, by several
// goroutines at once, and what it returns is not kept.
func (f *File) RewriteFunc(entries []*Entry, content func(*Entry) ([]byte, error), opt RewriteOptions) (*Output, *RewriteReport, error) {
	if f.parent != nil {
		return nil, nil, fmt.Errorf("%s: a member cannot be written by itself", f.Name)
	}
	if why := f.ReadOnly(); why != "" {
		return nil, nil, fmt.Errorf("%s: %s: %w", f.Name, why, ErrUnsupported)
	}
	payloads, err := f.payloads(entries, content, opt.Packed)
	if err != nil {
		return nil, nil, err
	}
	rep := &RewriteReport{OldSize: f.Size}
	var tight []*payload
	for _, p := range payloads {
		how := InPlace
		if p.entry.Compression != Stored {
			how = Recompressed
		}
		if !p.fits {
			how = Moved
			tight = append(tight, p)
		}
		rep.Changes = append(rep.Changes, Change{Entry: p.entry, How: how, Old: p.entry.StoredSize, New: p.body.size})
	}
	if len(tight) > 0 && (f.Kind != FileCubin || tight[0].body.size > f.Size) {
		rep.Why = append(rep.Why, whyGrow(tight))
	}
	var out *Output
	switch {
	case len(tight) == 0:
		s := &splicer{src: f.data}
		for _, p := range payloads {
			p.splice(s)
		}
		out, err = s.output(f.Size)
	case opt.NoGrow && len(rep.Why) > 0:
		err = fmt.Errorf("%s, and growing is not allowed: %w", rep.Why[0], ErrGrow)
	default:
		out, err = f.grow(payloads, rep)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", f.Name, err)
	}
	rep.NewSize = out.size
	return out, rep, nil
}

// whyGrow says in one line what does not fit.
func whyGrow(tight []*payload) string {
	p := tight[0]
	s := fmt.Sprintf("entry %s needs %d bytes (%s), its place has %d", p.entry.Tag(), p.body.size, p.entry.Compression, p.entry.PayloadSize)
	if len(tight) > 1 {
		s += fmt.Sprintf("; %d entries in all do not fit", len(tight))
	}
	return s
}
