package elfx

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// MemberSeparator stands between the name of a zip file and that of its member.
const MemberSeparator = "!"

// zipDepth bounds zip files inside zip files.
const zipDepth = 3

// zipEncrypted is the general purpose flag of an encrypted member (APPNOTE.TXT 4.4.4).
const zipEncrypted = 1

// zipRatio is how many times larger than a zip file its members may be in all, beyond
// bombSize: what is compressed by deflate shrinks 2 to 10 times in wheels, 1,032 at most.
const zipRatio = 100

func init() {
	register(&format{magic: []string{"PK\x03\x04"}, unpack: (*walker).zip})
}

// A packed is a file whose members have to be unpacked.
type packed struct {
	name  string
	r     io.ReaderAt
	size  int64
	only  string // the one member to look at, or one inside it; "" for all
	depth int    // 1 for a file of its own
}

// zip visits the members of a zip file, or only one, which may be a member of a zip
// file inside it.
func (w *walker) zip(p *packed) error {
	z, err := zip.NewReader(p.r, p.size)
	if errors.Is(err, zip.ErrInsecurePath) {
		err = nil
	}
	if err == nil {
		err = checkMembers(z)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", p.name, err)
		if p.depth > 1 {
			err = &memberError{err}
		}
		return err
	}
	if p.depth == 1 {
		w.unpackLimit = bombSize + zipRatio*p.size
	}
	for _, m := range z.File {
		rest, inner := strings.CutPrefix(p.only, m.Name+MemberSeparator)
		switch {
		case m.FileInfo().IsDir() || p.only != "" && p.only != m.Name && !inner:
			continue
		case !inner:
			rest = ""
		}
		name := p.name + MemberSeparator + m.Name
		err := w.member(name, m, rest, p.depth)
		var fault *memberError
		if errors.As(err, &fault) {
			err = w.fn(name, nil, fault.err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkMembers refuses members that share bytes: each of them could be unpacked, and a
// small file would become any number of large ones.
func checkMembers(z *zip.Reader) error {
	type span struct {
		name       string
		start, end uint64
	}
	spans := make([]span, 0, len(z.File))
	for _, m := range z.File {
		// A header that cannot be read is the error of its member alone.
		if at, err := m.DataOffset(); err == nil && m.CompressedSize64 > 0 {
			spans = append(spans, span{m.Name, uint64(at), uint64(at) + m.CompressedSize64})
		}
	}
	slices.SortFunc(spans, func(a, b span) int {
		if a.start < b.start {
			return -1
		}
		return 1
	})
	for i := 1; i < len(spans); i++ {
		if a, b := &spans[i-1], &spans[i]; b.start < a.end {
			return formatErrorf("zip file", int64(b.start), "members %s and %s overlap", a.name, b.name)
		}
	}
	return nil
}

// A memberError is an error of one member, which does not end the walk.
type memberError struct{ err error }

func (e *memberError) Error() string { return e.err.Error() }

// member visits one member of a zip file, or only one inside it. It is unpacked to a
// temporary file, so that large ones do not fill the memory. What is of no interest is
// read to its end too: a damaged member may be one that was.
func (w *walker) member(name string, m *zip.File, only string, depth int) error {
	bad := func(err error) error { return &memberError{fmt.Errorf("%s: %w", name, err)} }
	if m.Flags&zipEncrypted != 0 {
		return bad(fmt.Errorf("encrypted: %w", ErrUnsupported))
	}
	rc, err := m.Open()
	if err != nil {
		return bad(err)
	}
	defer rc.Close()
	in := &meter{r: rc, left: &w.unpackLimit, entry: w.opt.MaxEntry}
	head := make([]byte, longestMagic())
	n, err := io.ReadFull(in, head)
	head = head[:n]
	if err == io.EOF || err == io.ErrUnexpectedEOF && uint64(n) == m.UncompressedSize64 {
		err = nil // a short member
	}
	if err != nil {
		return bad(err)
	}
	unpacks := unpacker(head)
	if unpacks == nil && (only != "" || !worthOpening(head)) {
		if _, err := io.Copy(io.Discard, in); err != nil {
			return bad(err)
		}
		return nil
	}
	if unpacks != nil && depth == zipDepth {
		return bad(fmt.Errorf("a zip file inside %d others is not looked into, unpack it: %w", zipDepth, ErrUnsupported))
	}
	fd, size, err := spool(io.MultiReader(bytes.NewReader(head), in))
	if err != nil {
		return bad(err)
	}
	defer os.Remove(fd.Name())
	defer fd.Close()
	if unpacks != nil {
		return unpacks(w, &packed{name: name, r: fd, size: size, only: only, depth: depth + 1})
	}
	f, err := openHandle(name, fd, &w.opt)
	if errors.Is(err, ErrNoCode) {
		return nil
	}
	if err != nil {
		return w.fn(name, nil, err)
	}
	defer f.Close()
	f.unpacked = true
	return w.fn(name, f, nil)
}

// A meter counts what is unpacked of a member and stops at the limits.
type meter struct {
	r     io.Reader
	left  *int64 // of the whole walk
	entry int64  // of this member
	n     int64
}

func (m *meter) Read(b []byte) (int, error) {
	n, err := m.r.Read(b)
	m.n += int64(n)
	*m.left -= int64(n)
	switch {
	case m.n > m.entry:
		return n, fmt.Errorf("more than %d bytes after decompression: %w", m.entry, ErrTooLarge)
	case *m.left < 0:
		return n, fmt.Errorf("the members are more than %d times as large as the zip file: %w", zipRatio, ErrTooLarge)
	}
	return n, err
}

// spool copies r to a temporary file. Its name is removed at once where the system
// allows that, so that nothing stays behind, whatever ends the program.
func spool(r io.Reader) (*os.File, int64, error) {
	fd, err := os.CreateTemp("", "cupatch-")
	if err != nil {
		return nil, 0, err
	}
	removed := os.Remove(fd.Name()) == nil
	n, err := io.Copy(fd, r)
	if err != nil {
		fd.Close()
		if !removed {
			os.Remove(fd.Name())
		}
		return nil, 0, err
	}
	return fd, n, nil
}
