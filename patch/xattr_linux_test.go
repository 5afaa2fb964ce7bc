package patch

import (
	"os"
	"syscall"
	"testing"
)

// TestOwnerAndXattrsStay replaces a file that belongs to somebody else and has an extended
// attribute.
func TestOwnerAndXattrsStay(t *testing.T) {
	path := proof(t)
	if os.Getuid() == 0 {
		if err := os.Chown(path, 12, 34); err != nil {
			t.Fatal(err)
		}
	}
	attr := syscall.Setxattr(path, "user.note", []byte("kept"), 0)
	var before, after syscall.Stat_t
	if err := syscall.Stat(path, &before); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := planText(t, f, "LDG!.EF => .EF").WriteFile(path, WriteOption{}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Stat(path, &after); err != nil {
		t.Fatal(err)
	}
	if before.Uid != after.Uid || before.Gid != after.Gid || before.Mode != after.Mode {
		t.Errorf("owner %d:%d mode %o, were %d:%d and %o", after.Uid, after.Gid, after.Mode, before.Uid, before.Gid, before.Mode)
	}
	if attr != nil {
		t.Skip("no extended attributes here: ", attr)
	}
	b := make([]byte, 10)
	if n, err := syscall.Getxattr(path, "user.note", b); err != nil || string(b[:n]) != "kept" {
		t.Errorf("attribute %q, %v", b[:max(n, 0)], err)
	}
}
