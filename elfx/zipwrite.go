package elfx

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"encoding/base64"
	"encoding/csv"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
)

// A ZipRewrite is a zip file with new content in some of its members. In a wheel the
// file RECORD follows. Everything else stays as it is: the other members to the byte of
// their compressed content, the order, the times, the comment.
type ZipRewrite struct {
	name    string
	in      *os.File
	zip     *zip.Reader
	spool   *os.File // new content, compressed, one member after another
	changed map[*zip.File]*newMember
}

// A newMember is the new content of a member of a zip file.
type newMember struct {
	at     int64 // in the spool, compressed
	packed int64
	size   int64
	crc    uint32
	sha256 [sha256.Size]byte
}

// IsZip reports whether the file at path is a zip file, such as a wheel.
func IsZip(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	return unpacker(head(f)) != nil
}

// Info returns what the system said of the file when it was opened.
func (z *ZipRewrite) Info() (fs.FileInfo, error) { return z.in.Stat() }

// RewriteZip calls change with every member of the zip file at path that holds GPU code.
// It writes the new content of the member to w and returns true, or returns false for a
// member that stays. A zip file inside the zip file with GPU code, and a signed wheel, are
// [ErrUnsupported]. Nothing is written before [ZipRewrite.Write]; Close releases it.
func RewriteZip(path string, opt *Options, change func(f *File, w io.Writer) (bool, error)) (z *ZipRewrite, err error) {
	z = &ZipRewrite{name: path, changed: make(map[*zip.File]*newMember)}
	defer func() {
		if err != nil {
			z.Close()
			z = nil
		}
	}()
	if z.in, err = os.Open(path); err != nil {
		return z, err
	}
	st, err := z.in.Stat()
	if err != nil {
		return z, err
	}
	z.zip, err = zip.NewReader(z.in, st.Size())
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return z, fmt.Errorf("%s: %w", path, err)
	}
	if z.spool, err = os.CreateTemp("", "cupatch-"); err != nil {
		return z, err
	}
	os.Remove(z.spool.Name())
	w := newWalker(opt, nil)
	members := make(map[string]*zip.File, len(z.zip.File))
	for _, m := range z.zip.File {
		members[path+MemberSeparator+m.Name] = m
	}
	w.fn = func(name string, f *File, err error) error {
		if err != nil {
			return err
		}
		w.found = true
		m := members[name]
		if m == nil {
			return fmt.Errorf("%s: a zip file inside a zip file is read only: %w", name, ErrUnsupported)
		}
		f.unpacked = false
		return z.change(m, f, change)
	}
	if err = w.end(path, w.zip(&packed{name: path, r: z.in, size: st.Size(), depth: 1})); err != nil {
		return z, err
	}
	return z, z.record()
}

// Changed returns how many members have new content, RECORD not counted.
func (z *ZipRewrite) Changed() int {
	n := len(z.changed)
	for m := range z.changed {
		if isRecord(m.Name) {
			n--
		}
	}
	return n
}

// Close releases the file and the memory of what was to be written.
func (z *ZipRewrite) Close() {
	if z.in != nil {
		z.in.Close()
	}
	if z.spool != nil {
		z.spool.Close()
		os.Remove(z.spool.Name())
	}
}

// change asks for the new content of a member and compresses it into the spool.
func (z *ZipRewrite) change(m *zip.File, f *File, change func(*File, io.Writer) (bool, error)) error {
	p, err := z.newMember(m)
	if err != nil {
		return err
	}
	changed, err := change(f, p)
	if err != nil {
		return err
	}
	return z.take(m, p, changed)
}

// A memberWriter compresses the content of one member and takes its sums.
type memberWriter struct {
	at   int64
	size int64
	crc  hash.Hash32
	sha  hash.Hash
	to   io.Writer // the spool, or the compressor before it
	done func() error
}

func (p *memberWriter) Write(b []byte) (int, error) {
	p.size += int64(len(b))
	p.crc.Write(b)
	p.sha.Write(b)
	return p.to.Write(b)
}

// newMember begins new content at the end of the spool, stored or compressed as the old.
func (z *ZipRewrite) newMember(m *zip.File) (*memberWriter, error) {
	at, err := z.spool.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, err
	}
	p := &memberWriter{at: at, crc: crc32.NewIEEE(), sha: sha256.New(), to: z.spool, done: func() error { return nil }}
	switch m.Method {
	case zip.Store:
	case zip.Deflate:
		c, err := flate.NewWriter(z.spool, flate.DefaultCompression)
		if err != nil {
			return nil, err
		}
		p.to, p.done = c, c.Close
	default:
		return nil, fmt.Errorf("%s%s%s: compressed by method %d: %w", z.name, MemberSeparator, m.Name, m.Method, ErrUnsupported)
	}
	return p, nil
}

// take keeps the new content of a member, or drops it.
func (z *ZipRewrite) take(m *zip.File, p *memberWriter, changed bool) error {
	if err := p.done(); err != nil {
		return err
	}
	if !changed {
		return z.spool.Truncate(p.at)
	}
	end, err := z.spool.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	n := &newMember{at: p.at, packed: end - p.at, size: p.size, crc: p.crc.Sum32()}
	p.sha.Sum(n.sha256[:0])
	z.changed[m] = n
	return nil
}

// isRecord reports whether a member is the list of a wheel's files (PEP 427), which has
// one folder above it.
func isRecord(name string) bool {
	dir, file := path.Split(name)
	return file == "RECORD" && strings.HasSuffix(dir, ".dist-info/") && strings.Count(dir, "/") == 1
}

// record changes the hashes and sizes that a wheel's RECORD has of changed members.
func (z *ZipRewrite) record() error {
	if len(z.changed) == 0 {
		return nil
	}
	var list *zip.File
	for _, m := range z.zip.File {
		switch {
		case isRecord(m.Name):
			list = m
		case strings.HasSuffix(m.Name, ".dist-info/RECORD.jws"), strings.HasSuffix(m.Name, ".dist-info/RECORD.p7s"):
			return fmt.Errorf("%s: a signed wheel (%s), whose signature would be wrong: %w", z.name, m.Name, ErrUnsupported)
		}
	}
	if list == nil {
		return nil // a plain zip file
	}
	rows := make(map[string]*newMember)
	for m, n := range z.changed {
		rows[m.Name] = n
	}
	r, err := list.Open()
	if err != nil {
		return err
	}
	defer r.Close()
	old, err := ReadStream(r, 0)
	if err != nil {
		return fmt.Errorf("%s%s%s: %w", z.name, MemberSeparator, list.Name, err)
	}
	p, err := z.newMember(list)
	if err != nil {
		return err
	}
	for line := range bytes.Lines(old) {
		if _, err := p.Write(recordLine(line, rows)); err != nil {
			return err
		}
	}
	return z.take(list, p, true)
}

// recordLine returns a line of RECORD, name,sha256=HASH,SIZE, as it is now.
func recordLine(line []byte, changed map[string]*newMember) []byte {
	fields, err := csv.NewReader(bytes.NewReader(line)).Read()
	if err != nil || len(fields) != 3 {
		return line
	}
	n := changed[fields[0]]
	if n == nil {
		return line
	}
	fields[1] = "sha256=" + base64.RawURLEncoding.EncodeToString(n.sha256[:])
	fields[2] = strconv.FormatInt(n.size, 10)
	var out bytes.Buffer
	w := csv.NewWriter(&out)
	w.UseCRLF = bytes.HasSuffix(line, []byte("\r\n"))
	_ = w.Write(fields) // to memory
	w.Flush()
	return out.Bytes()
}

// Write writes the whole zip file.
func (z *ZipRewrite) Write(w io.Writer) error {
	out := zip.NewWriter(w)
	for _, m := range z.zip.File {
		n := z.changed[m]
		if n == nil {
			if err := out.Copy(m); err != nil {
				return fmt.Errorf("%s%s%s: %w", z.name, MemberSeparator, m.Name, err)
			}
			continue
		}
		h := m.FileHeader
		h.CRC32, h.CompressedSize64, h.UncompressedSize64 = n.crc, uint64(n.packed), uint64(n.size)
		to, err := out.CreateRaw(&h)
		if err != nil {
			return err
		}
		if _, err := io.Copy(to, io.NewSectionReader(z.spool, n.at, n.packed)); err != nil {
			return err
		}
	}
	if err := out.SetComment(z.zip.Comment); err != nil {
		return err
	}
	return out.Close()
}

// Check proves that the file at path is what Write wrote: every member in its place,
// unpacked, has the content it is to have.
func (z *ZipRewrite) Check(path string) error {
	r, err := zip.OpenReader(path)
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return err
	}
	defer r.Close()
	if len(r.File) != len(z.zip.File) {
		return fmt.Errorf("%d members, want %d", len(r.File), len(z.zip.File))
	}
	for i, m := range z.zip.File {
		now := r.File[i]
		crc, size := m.CRC32, m.UncompressedSize64
		if n := z.changed[m]; n != nil {
			crc, size = n.crc, uint64(n.size)
		}
		if now.Name != m.Name || now.CRC32 != crc || now.UncompressedSize64 != size {
			return fmt.Errorf("member %s is not what was written", m.Name)
		}
		rc, err := now.Open()
		if err == nil {
			_, err = io.Copy(io.Discard, rc) // which checks the sum
			rc.Close()
		}
		if err != nil {
			return fmt.Errorf("member %s: %w", m.Name, err)
		}
	}
	return nil
}
