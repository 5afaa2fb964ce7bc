//go:build unix

package elfx

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A file that is cut off while it is open gives an error, in every goroutine that reads it.
func TestFileBecomesShorter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "k.fatbin")
	data := mustRead(t, "fatbin/zstd.fatbin")
	data = append(data, make([]byte, 1<<20)...)
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
	f, err := OpenFile(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	check := func(what string, err error) {
		if !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), "k.fatbin: the file became shorter") {
			t.Errorf("%s: %v", what, err)
		}
	}
	sum := func() (n int, err error) {
		defer CatchFault(&err)()
		for _, b := range f.Data() {
			n += int(b)
		}
		return n, nil
	}
	_, err = sum()
	check("reading", err)
	_, _, err = f.Recompress(LZ4, 1)
	check("recompressing", err)
}

func TestCatchFaultPassesPanics(t *testing.T) {
	defer func() {
		if r := recover(); r != "other" {
			t.Errorf("recovered %v", r)
		}
	}()
	var err error
	defer CatchFault(&err)()
	panic("other")
}
