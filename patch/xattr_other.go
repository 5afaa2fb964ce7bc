//go:build unix && !linux

package patch

// copyXattrs does nothing: there is no way of asking that every system has.
func copyXattrs(to, from string) error { return nil }
