//go:build unix

package patch

import (
	"io/fs"
	"syscall"
)

// linkCount returns how many names a file has.
func linkCount(st fs.FileInfo) uint64 {
	if s, ok := st.Sys().(*syscall.Stat_t); ok {
		return uint64(s.Nlink)
	}
	return 1
}
