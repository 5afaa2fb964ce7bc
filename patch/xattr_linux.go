package patch

import (
	"bytes"
	"errors"
	"fmt"
	"syscall"
)

// copyXattrs gives the file at to the extended attributes of that at from: access
// control lists, capabilities, labels and those of users.
func copyXattrs(to, from string) error {
	names, err := xattr(func(b []byte) (int, error) { return syscall.Listxattr(from, b) })
	if errors.Is(err, syscall.ENOTSUP) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: extended attributes: %w", from, err)
	}
	for _, n := range bytes.Split(names, []byte{0}) {
		name := string(n)
		if name == "" {
			continue
		}
		value, err := xattr(func(b []byte) (int, error) { return syscall.Getxattr(from, name, b) })
		if err != nil {
			return fmt.Errorf("%s: extended attribute %s: %w", from, name, err)
		}
		// Labels are set by the system, and the same already.
		if have, err := xattr(func(b []byte) (int, error) { return syscall.Getxattr(to, name, b) }); err == nil && bytes.Equal(have, value) {
			continue
		}
		if err := syscall.Setxattr(to, name, value, 0); err != nil {
			return fmt.Errorf("%s: the extended attribute %s cannot be kept: %w; -o writes a file without it", from, name, err)
		}
	}
	return nil
}

// xattr calls get with enough memory for what it returns.
func xattr(get func([]byte) (int, error)) ([]byte, error) {
	for {
		n, err := get(nil)
		if err != nil || n == 0 {
			return nil, err
		}
		b := make([]byte, n)
		if n, err = get(b); !errors.Is(err, syscall.ERANGE) {
			return b[:max(n, 0)], err
		}
	}
}
