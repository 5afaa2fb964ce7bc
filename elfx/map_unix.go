//go:build unix

package elfx

import (
	"fmt"
	"math"
	"os"
	"syscall"
)

// mapFile maps a regular file into memory, so that only the pages that are looked at
// are read. The mapping is of the file as it was: programs that replace a file by
// renaming another over it do not disturb it.
func mapFile(f *os.File, size int64) (data []byte, release func() error, err error) {
	if size == 0 {
		return nil, nil, nil
	}
	if size > math.MaxInt {
		return nil, nil, fmt.Errorf("%d bytes: %w", size, ErrTooLarge)
	}
	data, err = syscall.Mmap(int(f.Fd()), 0, int(size), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return nil, nil, os.NewSyscallError("mmap", err)
	}
	return data, func() error { return syscall.Munmap(data) }, nil
}
