package diff

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"github.com/cupatch/cupatch/elfx"
)

// wrapping says how two files that hold GPU code are wrapped differently.
func (c *comparer) wrapping() {
	a, b := c.index[0], c.index[1]
	note := func(what, format string, args ...any) {
		c.note(Note{Kind: Wrapping, What: what, Text: fmt.Sprintf(format, args...)})
	}
	before := len(c.r.Notes)
	if x, y := a.file.Kind, b.file.Kind; x != y {
		note("container", "%s → %s", x, y)
	}
	if x, y := compressions(a), compressions(b); x != y {
		note("compression", "%s → %s", x, y)
	}
	for _, kind := range entryKinds {
		x, y := bytesOf(a, kind), bytesOf(b, kind)
		sx, sy := slices.Sorted(slices.Values(x)), slices.Sorted(slices.Values(y))
		switch {
		case len(x) != len(y):
			note("entries", "%d → %d of kind %s", len(x), len(y), kind)
		case slices.Equal(sx, sy) && !slices.Equal(x, y):
			note("entries", "of kind %s are the same in another order", kind)
		}
	}
	if len(c.r.Notes) == before && c.r.Kinds&^Wrapping == 0 {
		note("file", "what surrounds the GPU code differs")
	}
}

// entryKinds are the kinds of entry that have contents of their own.
var entryKinds = []elfx.Kind{elfx.KindELF, elfx.KindPTX, elfx.KindLTOIR, elfx.KindOldCubin, elfx.KindUnknown}

// compressions lists the ways in which the entries of a file are stored.
func compressions(x *index) string {
	var out []string
	for _, e := range x.entries {
		s := e.entry.Compression.String()
		if e.entry.Parent != nil {
			s = e.entry.Parent.Compression.String()
		}
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// bytesOf lists the entries of a kind by architecture and content.
func bytesOf(x *index, kind elfx.Kind) []string {
	var out []string
	for _, e := range x.entries {
		if e.entry.Kind == kind {
			out = append(out, e.entry.Target()+" "+e.hash.String())
		}
	}
	return out
}

// storageFlags say only how an entry is stored.
const storageFlags = elfx.FlagOldPacking | elfx.FlagLZ4 | elfx.FlagZstd | elfx.FlagCompat

// loaderText returns what a loader sees of an entry beside its contents.
func loaderText(e *elfx.Entry) string {
	flags := *e
	flags.Flags &^= storageFlags
	text := fmt.Sprintf("%s, flags %s", e.Target(), orNone(strings.Join(flags.FlagNames(), " ")))
	if e.Kind != elfx.KindELF {
		text += fmt.Sprintf(", version %d.%d", e.Major, e.Minor)
	}
	if e.Kind == elfx.KindUnknown {
		text += fmt.Sprintf(", kind %#x", e.RawKind)
	}
	return text
}

// heads compares what the containers say of the cubins that are partners, and their
// order: of two that fit a device alike, a loader takes the first.
func (c *comparer) heads() {
	type place struct {
		a, b *elfx.Container
		arch string
	}
	last := map[place]int{}
	told := map[place]bool{}
	for _, e := range c.index[0].cubins() {
		o := e.partner
		if o == nil || e.bare() || o.bare() {
			continue
		}
		if p, q := loaderText(e.entry), loaderText(o.entry); p != q {
			p, q = differingParts(p, q)
			c.note(Note{Kind: Loader, Where: e.where(), What: "entry", Text: p + " → " + q})
		}
		at := place{e.entry.Container, o.entry.Container, e.arch}
		if n := o.entry.Number; n < last[at] && !told[at] {
			told[at] = true
			c.note(Note{Kind: Loader, What: "order", Text: "the cubins for " + e.arch + " are in another order in their container"})
		} else {
			last[at] = n
		}
	}
}

// others compares the entries that are no cubins. Where one of the files is a bare cubin,
// they are part of the wrapping of the other.
func (c *comparer) others() {
	a, b := c.index[0], c.index[1]
	kind := Loader
	if a.file.Kind == elfx.FileCubin || b.file.Kind == elfx.FileCubin {
		kind = Wrapping
	}
	for _, k := range entryKinds[1:] {
		x, y := meaningsOf(a, k), meaningsOf(b, k)
		gone, fresh := onlyIn(x, y), onlyIn(y, x)
		if len(gone)+len(fresh) > 0 {
			c.note(Note{Kind: kind, What: "entries", Always: true, Text: fmt.Sprintf("of kind %s: %d only in the first file, %d only in the second", k, len(gone), len(fresh))})
		}
	}
}

// meaningsOf lists the entries of a kind by what a loader sees of them.
func meaningsOf(x *index, kind elfx.Kind) []string {
	var out []string
	for _, e := range x.entries {
		if e.entry.Kind == kind {
			out = append(out, loaderText(e.entry)+" "+e.meaning.String())
		}
	}
	return out
}

// meaningOf returns the hash of what an entry means: of PTX without comments, white space,
// the times and sizes of source files, the zeros that fill its place where it is not
// compressed, and what changes in names from build to build; of anything else its bytes.
func meaningOf(kind elfx.Kind, data []byte) Hash {
	if kind == elfx.KindPTX {
		if text := len(bytes.TrimRight(data, "\x00")); text < len(data) {
			data = data[:text+1] // with the zero byte that ends it where it is compressed
		}
		return hashPTX(data)
	}
	return sha256.Sum256(data)
}
