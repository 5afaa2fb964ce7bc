package elfx

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// OpenFile opens the file at path. It is mapped, not read; Close releases it.
// Directories and zip files are for [Walk].
func OpenFile(path string, opt *Options) (*File, error) {
	fd, err := os.Open(path)
	if err != nil {
		if _, _, ok := cutMember(path, err); ok {
			return nil, fmt.Errorf("%s: a member of a zip file is read only: %w", path, ErrUnsupported)
		}
		return nil, err
	}
	defer fd.Close()
	if unpacker(head(fd)) != nil {
		return nil, fmt.Errorf("%s: a zip file is read only: %w", path, ErrUnsupported)
	}
	return openHandle(path, fd, opt)
}

// ReadStream reads what may have no end: at most limit bytes, as in [Options.MaxEntry], and
// DefaultMaxStream where that is 0 or the default. More is [ErrTooLarge].
func ReadStream(r io.Reader, limit int64) ([]byte, error) {
	if limit <= 0 || limit == DefaultMaxEntry {
		limit = DefaultMaxStream
	}
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(data)) > limit {
		return nil, fmt.Errorf("more than %d bytes: %w", limit, ErrTooLarge)
	}
	return data, err
}

// head returns the first bytes of a file, which tell its format.
func head(r io.ReaderAt) []byte {
	b := make([]byte, longestMagic())
	n, _ := r.ReadAt(b, 0) // a pipe has none
	return b[:n]
}

// cutMember splits the path of a file that cannot be opened, because of err, into that
// of a zip file and of a member.
func cutMember(path string, err error) (base, member string, ok bool) {
	base, member, ok = strings.Cut(path, MemberSeparator)
	if !ok || !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
		return "", "", false
	}
	_, err = os.Stat(base)
	return base, member, err == nil
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
		if st.Mode()&fs.ModeDevice != 0 {
			return nil, fmt.Errorf("%s: is a device", name)
		}
		limit := int64(0)
		if opt != nil {
			limit = opt.MaxEntry
		}
		data, err := ReadStream(fd, limit)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		f, err := Open(name, data, opt)
		if err == nil {
			f.streamed = true
		}
		return f, err
	}
	data, release, err := mapFile(fd, st.Size())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if unmap := release; unmap != nil {
		forget := remember(name, data)
		release = func() error { forget(); return unmap() }
	}
	f, err := open(name, data, opt, release != nil)
	if err != nil {
		if release != nil {
			release()
		}
		return nil, err
	}
	f.release, f.Info = release, st
	return f, nil
}

// Walk calls fn with every file that holds GPU code at path: the file itself, or
// those in a directory or a zip file (a wheel), one after another. A path DIR.zip!NAME
// stands for one member, also of a zip file inside one. Each File is closed when fn
// returns. Files without GPU code are left out in directories and zip files; where there
// is none at all, the error is [ErrNoCode]. An error of one file in a directory or zip
// file does not end the walk: fn is called with a nil File, the name, and the error.
func Walk(path string, opt *Options, fn func(name string, f *File, err error) error) error {
	w := newWalker(opt, fn)
	st, err := os.Stat(path)
	switch base, member, ok := cutMember(path, err); {
	case ok:
		return w.only(base, member)
	case err != nil:
		return err
	case st.IsDir():
		err = w.dir(path)
	default:
		err = w.file(path, true)
	}
	return w.end(path, err)
}

// WalkData is [Walk] for a file, maybe a zip file, whose bytes are at hand.
func WalkData(name string, data []byte, opt *Options, fn func(name string, f *File, err error) error) error {
	w := newWalker(opt, fn)
	if unpacks := unpacker(data); unpacks != nil {
		return w.end(name, unpacks(w, &packed{name: name, r: bytes.NewReader(data), size: int64(len(data)), depth: 1}))
	}
	f, err := Open(name, data, &w.opt)
	if err != nil {
		return err
	}
	return fn(name, f, nil)
}

type walker struct {
	opt   Options
	fn    func(name string, f *File, err error) error
	found bool // fn was called

	unpackLimit int64 // how many bytes may still be unpacked
}

func newWalker(opt *Options, fn func(name string, f *File, err error) error) *walker {
	if opt == nil {
		opt = &Options{}
	}
	w := &walker{opt: *opt}
	if w.opt.MaxEntry <= 0 {
		w.opt.MaxEntry = DefaultMaxEntry
	}
	w.fn = func(name string, f *File, err error) error {
		w.found = true
		return fn(name, f, err)
	}
	return w
}

// end gives a walk that found nothing its error.
func (w *walker) end(path string, err error) error {
	if err == nil && !w.found {
		return fmt.Errorf("%s: %w", path, ErrNoCode)
	}
	return err
}

// only visits one member of the zip file at path.
func (w *walker) only(path, member string) error {
	fd, err := os.Open(path)
	if err != nil {
		return err
	}
	defer fd.Close()
	st, err := fd.Stat()
	if err != nil {
		return err
	}
	unpacks := unpacker(head(fd))
	if unpacks == nil {
		return fmt.Errorf("%s: not a zip file, it has no member %q", path, member)
	}
	if err := unpacks(w, &packed{name: path, r: fd, size: st.Size(), only: member, depth: 1}); err != nil {
		return err
	}
	if !w.found {
		return fmt.Errorf("%s: no member %q with GPU code", path, member)
	}
	return nil
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
	start := head(fd)
	if unpacks := unpacker(start); unpacks != nil {
		st, err := fd.Stat()
		if err != nil {
			return fail(err)
		}
		if err := unpacks(w, &packed{name: path, r: fd, size: st.Size(), depth: 1}); err != nil {
			return fail(err)
		}
		return nil
	}
	if !named && !worthOpening(start) {
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
