package elfx

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// MemberSeparator stands between the name of a zip file and that of its member.
const MemberSeparator = "!"

// zipDepth bounds zip files inside zip files.
const zipDepth = 3

var zipMagic = []byte("PK\x03\x04")

// OpenFile opens the file at path. It is mapped, not read; Close releases it.
// Directories and zip files are for [Walk].
func OpenFile(path string, opt *Options) (*File, error) {
	fd, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer fd.Close()
	return openHandle(path, fd, opt)
}

// openHandle opens what fd refers to under a name.
func openHandle(name string, fd *os.File, opt *Options) (*File, error) {
	st, err := fd.Stat()
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		if st.IsDir() {
			return nil, fmt.Errorf("%s: is a directory", name)
		}
		data, err := io.ReadAll(fd)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		return Open(name, data, opt)
	}
	data, release, err := mapFile(fd, st.Size())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	f, err := open(name, data, opt, release != nil)
	if err != nil {
		if release != nil {
			release()
		}
		return nil, err
	}
	f.release = release
	return f, nil
}

// Walk calls fn with every file that holds GPU code at path: the file itself, or
// those in a directory or a zip file (a wheel), one after another. A path DIR.zip!NAME
// stands for one member. Each File is closed when fn returns. Files without GPU code
// are left out in directories and zip files, and are [ErrNoCode] by themselves. An
// error of one file in a directory or zip file does not end the walk: fn is called
// with a nil File, the name, and the error.
func Walk(path string, opt *Options, fn func(name string, f *File, err error) error) error {
	if opt == nil {
		opt = &Options{}
	}
	w := &walker{opt: *opt, fn: fn}
	if w.opt.MaxEntry <= 0 {
		w.opt.MaxEntry = DefaultMaxEntry
	}
	st, err := os.Stat(path)
	if err != nil {
		if base, member, ok := strings.Cut(path, MemberSeparator); ok && errors.Is(err, fs.ErrNotExist) {
			if _, berr := os.Stat(base); berr == nil {
				w.only = member
				return w.file(base, true)
			}
		}
		return err
	}
	if st.IsDir() {
		return w.dir(path)
	}
	return w.file(path, true)
}

type walker struct {
	opt   Options
	fn    func(name string, f *File, err error) error
	only  string // the one member wanted, "" for all
	found bool
}

func (w *walker) dir(path string) error {
	return filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return w.fn(p, nil, err)
		}
		if !d.Type().IsRegular() {
			if d.Type()&fs.ModeSymlink == 0 {
				return nil
			}
			if st, err := os.Stat(p); err != nil || !st.Mode().IsRegular() {
				return nil
			}
		}
		return w.file(p, false)
	})
}

// file visits one file. named says that the user asked for it, and not for a
// directory that it is in.
func (w *walker) file(path string, named bool) error {
	fail := func(err error) error {
		if named {
			return err
		}
		return w.fn(path, nil, err)
	}
	fd, err := os.Open(path)
	if err != nil {
		return fail(err)
	}
	defer fd.Close()
	var head [8]byte
	n, _ := fd.ReadAt(head[:], 0)
	if bytes.HasPrefix(head[:n], zipMagic) {
		st, err := fd.Stat()
		if err != nil {
			return fail(err)
		}
		if err := w.zip(path, fd, st.Size(), 1); err != nil {
			return fail(err)
		}
		if w.only != "" && !w.found {
			return fmt.Errorf("%s: no member %q with GPU code", path, w.only)
		}
		return nil
	}
	if w.only != "" {
		return fmt.Errorf("%s: not a zip file, it has no member %q", path, w.only)
	}
	if !named && !worthOpening(head[:n]) {
		return nil
	}
	f, err := openHandle(path, fd, &w.opt)
	if err != nil {
		if !named && errors.Is(err, ErrNoCode) {
			return nil
		}
		return fail(err)
	}
	defer f.Close()
	return w.fn(path, f, nil)
}

// worthOpening reports whether the first bytes are those of a file that can hold GPU
// code in a place that this package looks at.
func worthOpening(head []byte) bool {
	for _, m := range [][]byte{elfMagic[:4], fatbinMagicBytes, arMagic, {'M', 'Z'}} {
		if bytes.HasPrefix(head, m) {
			return true
		}
	}
	return false
}

// zip visits the members of a zip file.
func (w *walker) zip(name string, r io.ReaderAt, size int64, depth int) error {
	z, err := zip.NewReader(r, size)
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return fmt.Errorf("%s: %w", name, err)
	}
	for _, m := range z.File {
		if m.FileInfo().IsDir() || w.only != "" && w.only != m.Name && depth == 1 && !strings.HasPrefix(w.only, m.Name+MemberSeparator) {
			continue
		}
		if err := w.member(name+MemberSeparator+m.Name, m, depth); err != nil {
			return err
		}
	}
	return nil
}

// member visits one member of a zip file. It is unpacked to a temporary file, so
// that large ones do not fill the memory.
func (w *walker) member(name string, m *zip.File, depth int) error {
	rc, err := m.Open()
	if err != nil {
		return w.fn(name, nil, fmt.Errorf("%s: %w", name, err))
	}
	defer rc.Close()
	head := make([]byte, 8)
	n, err := io.ReadFull(rc, head)
	head = head[:n]
	nested := bytes.HasPrefix(head, zipMagic) && depth < zipDepth
	if !nested && !worthOpening(head) {
		return nil
	}
	if err != nil {
		return w.fn(name, nil, fmt.Errorf("%s: %w", name, err))
	}
	fd, size, err := w.spool(io.MultiReader(bytes.NewReader(head), rc))
	if err != nil {
		return w.fn(name, nil, fmt.Errorf("%s: %w", name, err))
	}
	defer fd.Close()
	defer os.Remove(fd.Name())
	if nested {
		if err := w.zip(name, fd, size, depth+1); err != nil {
			return w.fn(name, nil, err)
		}
		return nil
	}
	f, err := openHandle(name, fd, &w.opt)
	if errors.Is(err, ErrNoCode) {
		return nil
	}
	w.found = true
	if err != nil {
		return w.fn(name, nil, err)
	}
	defer f.Close()
	f.unpacked = true
	return w.fn(name, f, nil)
}

// spool copies r to a temporary file, up to the limit of one entry.
func (w *walker) spool(r io.Reader) (*os.File, int64, error) {
	fd, err := os.CreateTemp("", "cupatch-")
	if err != nil {
		return nil, 0, err
	}
	n, err := io.Copy(fd, io.LimitReader(r, w.opt.MaxEntry+1))
	if err == nil && n > w.opt.MaxEntry {
		err = fmt.Errorf("more than %d bytes after decompression: %w", w.opt.MaxEntry, ErrTooLarge)
	}
	if err != nil {
		fd.Close()
		os.Remove(fd.Name())
		return nil, 0, err
	}
	return fd, n, nil
}
