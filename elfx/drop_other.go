//go:build !linux

package elfx

func dropPages([]byte) {}
