//go:build !unix

package elfx

import (
	"io"
	"os"
)

// mapFile reads the file where there is no mapping to be had.
func mapFile(f *os.File, size int64) (data []byte, release func() error, err error) {
	data, err = io.ReadAll(f)
	return data, nil, err
}
