package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// No instruction of ptxas is refused for its alignment: of the testdata in every run, of the
// public packages that scripts/corpus downloads in long ones.
func TestAlignOfRealCode(t *testing.T) {
	folders := []string{"../../testdata/cubin"}
	if os.Getenv("CUPATCH_LONG") != "" {
		dir, err := os.UserCacheDir()
		if err != nil {
			t.Fatal(err)
		}
		if d := os.Getenv("CUPATCH_CACHE"); d != "" {
			dir = d
		} else {
			dir = filepath.Join(dir, "cupatch")
		}
		folders = append(folders, filepath.Join(dir, "corpus"))
	}
	var out, errs bytes.Buffer
	status := run(append([]string{"isa", "check", "--align"}, folders...), strings.NewReader(""), &out, &errs)
	if status != 0 || !strings.HasSuffix(out.String(), " 0 of them not aligned\n") || strings.HasPrefix(out.String(), "0 ") {
		t.Errorf("exit status %d\n%s%s", status, out.String(), errs.String())
	}
}
