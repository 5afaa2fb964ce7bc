package elfx

import (
	"os"
	"syscall"
)

// dropPages tells the kernel that a part of a mapping of a file will not be looked at
// soon. The pages leave the process but not the page cache, and come back when they
// are touched.
func dropPages(b []byte) {
	page := os.Getpagesize()
	if len(b) < page {
		return
	}
	// b starts at a page when its caller says so; what is left at its end stays.
	_ = syscall.Madvise(b[:len(b)&^(page-1)], syscall.MADV_DONTNEED) // only an economy
}
