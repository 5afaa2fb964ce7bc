//go:build !unix

package patch

import (
	"io/fs"
	"os"
)

// linkCount returns how many names a file has: 1, for want of a way to ask.
func linkCount(fs.FileInfo) uint64 { return 1 }

// keepAttributes gives f the mode of the file that it replaces.
func keepAttributes(f *os.File, _ string, st fs.FileInfo) error { return f.Chmod(st.Mode().Perm()) }

// lockDir does nothing, for want of a lock that every system has.
func lockDir(string) (unlock func()) { return func() {} }
