package elfx

// A FileKind is what a file is, told from its content. The kinds are declared by the
// formats, each in the file that reads it.
type FileKind string

// FileUnknown is a file of no known format, which is searched as a whole.
const FileUnknown FileKind = "data"

func (k FileKind) String() string { return string(k) }

// A format is a way in which files hold GPU code. A new one is added by a file of its
// own that registers it; nothing else asks what formats there are.
type format struct {
	magic []string            // such a file starts with one of these
	is    func(b []byte) bool // whether it is one; nil: the magic decides
	// open finds the code in the file: it fills in Kind, Regions, Members and Err.
	open func(f *File)
	// unpack, in place of open, visits the members of a file that have to be unpacked.
	unpack func(w *walker, p *packed) error
	// relink puts a file together whose containers are rebuilt, and some of them larger
	// or smaller than before. nil: that cannot be done.
	relink func(f *File, r *rebuild) (*Output, error)
}

// rawFormat is the format of what has no other.
var rawFormat = &format{open: (*File).scanAll}

// formats has every other format. At most one of them takes a given file.
var formats []*format

// register adds a format. It is called while the program starts.
func register(x *format) { formats = append(formats, x) }

// formatOf returns the format of a file.
func formatOf(b []byte) *format {
	for _, x := range formats {
		if x.open != nil && x.fits(b) && (x.is == nil || x.is(b)) {
			return x
		}
	}
	return rawFormat
}

// fits reports whether b starts with the magic of the format.
func (x *format) fits(b []byte) bool {
	for _, m := range x.magic {
		if len(b) >= len(m) && string(b[:len(m)]) == m {
			return true
		}
	}
	return false
}

// worthOpening reports whether the first bytes are those of a file that can hold GPU
// code in a place that this package looks at.
func worthOpening(head []byte) bool {
	for _, x := range formats {
		if x.fits(head) {
			return true
		}
	}
	return false
}

// unpacker returns how the members of a file that starts with head are visited, or nil
// when it is no such file.
func unpacker(head []byte) func(w *walker, p *packed) error {
	for _, x := range formats {
		if x.unpack != nil && x.fits(head) {
			return x.unpack
		}
	}
	return nil
}

// longestMagic is the number of bytes that worthOpening wants to see.
func longestMagic() int {
	n := 0
	for _, x := range formats {
		for _, m := range x.magic {
			n = max(n, len(m))
		}
	}
	return n
}
