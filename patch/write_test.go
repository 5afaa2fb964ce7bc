package patch

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// dirNames returns what a folder holds.
func dirNames(t *testing.T, dir string) []string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range list {
		out = append(out, e.Name())
	}
	return out
}

// TestWriteFileFails checks that a write that fails leaves the old file and no other.
func TestWriteFileFails(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	err := WriteFile(path, WriteOption{}, func(w io.Writer) error {
		if _, err := w.Write([]byte("half of the new")); err != nil {
			return err
		}
		return broken
	})
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "old" {
		t.Errorf("the old file is %q: %v", b, err)
	}
	if n := dirNames(t, dir); len(n) != 1 {
		t.Errorf("the folder holds %q", n)
	}
	if err := WriteFile(dir, WriteOption{}, func(io.Writer) error { return nil }); err == nil {
		t.Error("a folder was written to")
	}
	if err := WriteFile(filepath.Join(dir, "no", "f"), WriteOption{}, func(io.Writer) error { return nil }); err == nil {
		t.Error("a file in a folder that does not exist was written")
	}
}

// TestWriteFileLinks checks symbolic links, also one whose target does not exist yet.
func TestWriteFileLinks(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	if err := os.Symlink("target", link); err != nil {
		t.Skip(err)
	}
	for _, text := range []string{"one", "two"} {
		err := WriteFile(link, WriteOption{Mode: 0o640}, func(w io.Writer) error { _, err := w.Write([]byte(text)); return err })
		if err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(filepath.Join(dir, "target")); err != nil || string(b) != text {
			t.Errorf("target holds %q: %v", b, err)
		}
	}
	if to, err := os.Readlink(link); err != nil || to != "target" {
		t.Errorf("the link points to %q: %v", to, err)
	}
	st, err := os.Stat(link)
	if err != nil || st.Mode().Perm() != 0o640 {
		t.Errorf("mode %v: %v", st.Mode(), err)
	}
	loop := filepath.Join(dir, "loop")
	if err := os.Symlink("loop", loop); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(loop, WriteOption{}, func(io.Writer) error { return nil }); err == nil {
		t.Error("a link to itself was followed for ever")
	}
}

// TestRemoveUnfinished checks that a program ended in the middle leaves no file behind.
func TestRemoveUnfinished(t *testing.T) {
	dir := t.TempDir()
	err := WriteFile(filepath.Join(dir, "f"), WriteOption{}, func(w io.Writer) error {
		if n := dirNames(t, dir); len(n) != 1 {
			t.Errorf("the folder holds %q", n)
		}
		RemoveUnfinished()
		return nil
	})
	if err == nil {
		t.Error("a file without content took its place")
	}
	if n := dirNames(t, dir); len(n) != 0 {
		t.Errorf("the folder holds %q", n)
	}
}
