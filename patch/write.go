package patch

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// A WriteOption says how [WriteFile] goes about it.
type WriteOption struct {
	Mode fs.FileMode // of a file that does not exist yet; 0 means 0o644
	// Warn is called with what the user should know; nil: nobody wants to.
	Warn func(msg string)
	// Check is called with the path of the temporary file before that takes its place;
	// an error leaves everything as it was. Devices and pipes are not checked.
	Check func(path string) error
	// Old is the file at the path as it was when what is written was made from it. Where
	// another is there by now the error is [ErrChanged]. nil: whatever is there.
	Old fs.FileInfo
	// New is for a file that replaces nothing: where there is something at the path the
	// error is fs.ErrExist. Such files are not synced.
	New bool
}

// ErrChanged says that somebody else changed a file while its new content was made.
var ErrChanged = errors.New("the file was changed by another program meanwhile")

// unfinished has the paths of temporary files that are being written.
var unfinished sync.Map

// RemoveUnfinished removes the temporary files of every [WriteFile] that is under way: for
// a program that is about to be ended by a signal.
func RemoveUnfinished() {
	unfinished.Range(func(path, _ any) bool {
		os.Remove(path.(string))
		return true
	})
}

// WriteFile replaces the file at path by what write writes, or leaves it alone: the
// bytes go to a temporary file beside it, which is synced and renamed. An existing
// file keeps its mode, owner and extended attributes, or is left alone; a symbolic link is
// followed, a hard link is broken with a warning. Devices and pipes are written to as they are. Errors of writing name the path;
// other errors of write are returned as they are.
func WriteFile(path string, opt WriteOption, write func(io.Writer) error) (err error) {
	if opt.New {
		if _, err := os.Lstat(path); err == nil {
			return &fs.PathError{Op: "create", Path: path, Err: fs.ErrExist}
		}
	}
	path, err = followLinks(path)
	if err != nil {
		return err
	}
	mode := opt.Mode.Perm()
	if mode == 0 {
		mode = 0o644
	}
	st, serr := os.Stat(path)
	switch {
	case serr == nil && st.IsDir():
		return fmt.Errorf("%s: is a directory", path)
	case serr == nil && !st.Mode().IsRegular():
		return writeDevice(path, write)
	case serr == nil:
		if linkCount(st) > 1 && opt.Warn != nil {
			opt.Warn(path + " has other hard links; they keep the old content")
		}
	case !errors.Is(serr, fs.ErrNotExist):
		return serr
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".cupatch-*")
	if err != nil {
		return ownName(err, path)
	}
	unfinished.Store(f.Name(), true)
	defer func() {
		err = ownName(err, path)
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
		unfinished.Delete(f.Name())
	}()
	if err := write(f); err != nil {
		return err
	}
	if st != nil && serr == nil {
		err = keepAttributes(f, path, st)
	} else {
		err = f.Chmod(mode)
	}
	if err != nil {
		return err
	}
	if !opt.New {
		if err := f.Sync(); err != nil {
			return err
		}
	}
	if err := f.Close(); err != nil {
		return err
	}
	if opt.Check != nil {
		if err := opt.Check(f.Name()); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	if opt.New {
		return link(f.Name(), path)
	}
	return replace(f.Name(), path, opt.Old)
}

// replace renames a temporary file to path, unless another file than old is there by
// now. Of several programs that replace files of one folder so, one at a time does it.
func replace(tmp, path string, old fs.FileInfo) error {
	if old != nil {
		defer lockDir(filepath.Dir(path))()
		st, err := os.Stat(path)
		if err != nil {
			return err
		}
		if !os.SameFile(st, old) || st.Size() != old.Size() || !st.ModTime().Equal(old.ModTime()) {
			return fmt.Errorf("%s: %w; nothing is written", path, ErrChanged)
		}
	}
	if err := os.Rename(tmp, path); err != nil {
		return err
	}
	syncDir(filepath.Dir(path))
	return nil
}

// link gives a temporary file its name unless there is one by now.
func link(tmp, path string) error {
	err := os.Link(tmp, path)
	switch {
	case err == nil:
		return os.Remove(tmp)
	case errors.Is(err, fs.ErrExist):
		return &fs.PathError{Op: "create", Path: path, Err: fs.ErrExist}
	}
	return os.Rename(tmp, path) // a file system without links
}

// followLinks resolves symbolic links of path, also one whose target does not exist.
func followLinks(path string) (string, error) {
	for range 40 {
		st, err := os.Lstat(path)
		if err != nil || st.Mode()&fs.ModeSymlink == 0 {
			return path, nil
		}
		to, err := os.Readlink(path)
		if err != nil {
			return "", err
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(path), to)
		}
		path = to
	}
	return "", fmt.Errorf("%s: too many symbolic links", path)
}

func writeDevice(path string, write func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	if err := write(f); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// syncDir makes a rename last; where directories cannot be synced, nothing is lost
// but that.
func syncDir(dir string) {
	if d, err := os.Open(dir); err == nil {
		_ = d.Sync()
		d.Close()
	}
}

// CanWrite returns an error where [WriteFile] could not put a file at path.
func CanWrite(path string) error {
	path, err := followLinks(path)
	if err != nil {
		return err
	}
	switch st, err := os.Stat(path); {
	case err != nil:
	case st.IsDir():
		return fmt.Errorf("%s: is a directory", path)
	case !st.Mode().IsRegular():
		return nil
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".cupatch-*")
	if err != nil {
		return ownName(err, path)
	}
	f.Close()
	return os.Remove(f.Name())
}

// ownName replaces the name of a temporary file in an error by that of the file that it
// would have become.
func ownName(err error, path string) error {
	var pe *fs.PathError
	if errors.As(err, &pe) && isTemporary(pe.Path, path) {
		return &fs.PathError{Op: "write", Path: path, Err: pe.Err}
	}
	return err
}

// isTemporary reports whether a file is the temporary one of what is to be at path.
func isTemporary(name, path string) bool {
	return strings.HasPrefix(filepath.Base(name), ".") && strings.Contains(filepath.Base(name), "cupatch-") && name != path
}
