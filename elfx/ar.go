package elfx

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
)

var (
	arMagic   = []byte("!<arch>\n")
	thinMagic = []byte("!<thin>\n")
)

const arHeaderSize = 60

// FileArchive is an ar archive.
const FileArchive FileKind = "archive"

func init() {
	register(&format{
		magic: []string{string(arMagic), string(thinMagic)}, open: (*File).readArchive, relink: relinkArchive,
	})
}

// readArchive opens each member of an ar archive (GNU and BSD names).
func (f *File) readArchive() {
	f.Kind = FileArchive
	b := f.bytes()
	if bytes.HasPrefix(b, thinMagic) {
		f.Err = errors.New("thin archive: its members are files of their own, name those")
		return
	}
	var long []byte // GNU table of long names
	for pos := int64(len(arMagic)); pos < f.Size; {
		if f.Size-pos < arHeaderSize {
			if !isZero(b[pos:]) && len(bytes.TrimSpace(b[pos:])) > 0 {
				f.Err = formatErrorf("archive", pos, "truncated member header")
			}
			return
		}
		h := b[pos : pos+arHeaderSize]
		size, err := strconv.ParseInt(strings.TrimSpace(string(h[48:58])), 10, 64)
		if err != nil || size < 0 || string(h[58:60]) != "`\n" {
			f.Err = formatErrorf("archive", pos, "damaged member header %q", h[48:60])
			return
		}
		header, start := pos, pos+arHeaderSize
		if size > f.Size-start {
			f.Err = formatErrorf("archive", pos+48, "member of %d bytes, %d are left: truncated by %d bytes",
				size, f.Size-start, size-(f.Size-start))
			size = f.Size - start
		}
		pos = start + size + size&1
		name := strings.TrimRight(string(h[:16]), " ")
		switch {
		case name == "//":
			long = b[start : start+size]
			continue
		case name == "/" || name == "/SYM64/" || strings.HasPrefix(name, "__.SYMDEF"):
			continue
		case strings.HasPrefix(name, "#1/"): // BSD: the name precedes the data
			n, err := strconv.ParseInt(name[3:], 10, 32)
			if err != nil || n < 0 || n > size {
				f.Err = formatErrorf("archive", pos, "damaged member name %q", name)
				continue
			}
			name = string(bytes.TrimRight(b[start:start+min(n, maxName)], "\x00"))
			start, size = start+n, size-n
			if strings.HasPrefix(name, "__.SYMDEF") {
				continue
			}
		default:
			name = gnuName(name, long)
		}
		f.addMember(name, header, start, size)
	}
}

// gnuName resolves "/123" to the name at that offset of the long name table, and
// drops the slash that ends short names.
func gnuName(name string, long []byte) string {
	if rest, ok := strings.CutPrefix(name, "/"); ok {
		off, err := strconv.ParseUint(rest, 10, 31)
		if err != nil || off >= uint64(len(long)) {
			return name
		}
		s := long[off:min(off+maxEntryString, uint64(len(long)))]
		if i := bytes.IndexAny(s, "\n\x00"); i >= 0 {
			s = s[:i]
		}
		name = string(s)
	}
	return strings.TrimSuffix(name, "/")
}

// addMember opens a member and keeps it if it holds GPU code or is damaged.
func (f *File) addMember(name string, header, off, size int64) {
	m := &File{header: f.Offset + header, Name: f.Name + "(" + name + ")", Offset: f.Offset + off, Size: size, parent: f}
	if b := m.bytes(); bytes.HasPrefix(b, arMagic) || bytes.HasPrefix(b, thinMagic) {
		return // archives do not nest; a bound on recursion
	}
	m.read()
	if len(m.Regions) > 0 || m.Err != nil {
		f.Members = append(f.Members, m)
	}
}
