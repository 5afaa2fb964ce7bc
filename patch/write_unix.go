//go:build unix

package patch

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// linkCount returns how many names a file has.
func linkCount(st fs.FileInfo) uint64 {
	if s, ok := st.Sys().(*syscall.Stat_t); ok {
		return uint64(s.Nlink)
	}
	return 1
}

// keepAttributes gives f the owner, the mode and the extended attributes of the file at
// path that it replaces, or says what it cannot keep. The owner comes first: a change of it
// takes bits of the mode, and capabilities, away.
func keepAttributes(f *os.File, path string, st fs.FileInfo) error {
	const special = fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky
	s, ok := st.Sys().(*syscall.Stat_t)
	mine, err := f.Stat()
	if err != nil {
		return err
	}
	if m, same := mine.Sys().(*syscall.Stat_t); ok && same && (m.Uid != s.Uid || m.Gid != s.Gid) {
		if err := f.Chown(int(s.Uid), int(s.Gid)); err != nil {
			return fmt.Errorf("%s: the owner (user %d, group %d) cannot be kept: %w; -o writes a file of your own", path, s.Uid, s.Gid, err)
		}
	}
	if err := f.Chmod(st.Mode() & (fs.ModePerm | special)); err != nil {
		return err
	}
	return copyXattrs(f.Name(), path)
}

// lockDir waits until no other program has the lock of a folder and takes it. Where there
// are no locks, as on some network file systems, it does nothing.
func lockDir(dir string) (unlock func()) {
	d, err := os.Open(dir)
	if err != nil {
		return func() {}
	}
	_ = syscall.Flock(int(d.Fd()), syscall.LOCK_EX)
	return func() { d.Close() }
}
