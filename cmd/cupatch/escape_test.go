package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Names come from files that somebody else made: nothing that a command prints obeys one,
// and none makes a line of its own.
func TestNamesReachNoTerminal(t *testing.T) {
	good := filepath.Join("..", "..", "testdata", "cubin", "new", "sm_90", "proof.cubin")
	data, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	bad := filepath.Join(t.TempDir(), "bad.cubin")
	data = bytes.ReplaceAll(data, []byte("saxpy"), []byte("s\x1b\n\x9by"))
	if err := os.WriteFile(bad, data, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{
		"ls BAD", "ls --mangled BAD", "ls -k nothing BAD", "dis BAD", "dis --stable BAD", "dis --labels BAD", "dis -k nothing BAD",
		"stats BAD", "hash BAD", "diff GOOD BAD", "diff --mangled GOOD BAD", "diff --explain GOOD BAD", "diff --stat GOOD BAD",
		"diff --summary GOOD BAD", "patch -n -e LDG=>.EF BAD", "patch -n -e FADD=>stall=4 -k nothing BAD", "extract --list BAD",
	} {
		var list []string
		for _, a := range strings.Fields(args) {
			list = append(list, strings.NewReplacer("BAD", bad, "GOOD", good, "=>", " => ").Replace(a))
		}
		var out, talk bytes.Buffer
		run(list, strings.NewReader(""), &out, &talk)
		for _, s := range []string{out.String(), talk.String()} {
			if i := strings.IndexAny(s, "\x1b\u009b\r"); i >= 0 || strings.Contains(s, "\x9b") {
				t.Errorf("%s: %q", args, s[max(0, i-40):min(len(s), i+40)])
			}
			for _, line := range strings.Split(s, "\n") {
				if strings.HasPrefix(line, "\ufffdy") || strings.HasPrefix(line, "\x9by") {
					t.Errorf("%s: a name makes the line %q", args, line)
				}
			}
		}
		if out.Len()+talk.Len() == 0 {
			t.Errorf("%s: nothing printed", args)
		}
	}
}
