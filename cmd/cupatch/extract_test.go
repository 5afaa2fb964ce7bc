package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestExtract(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	want(t, 0, []string{"wrote 4 files"}, "extract", "-o", dir, data+"fatbin/zstd.fatbin")
	for name, from := range map[string]string{
		"zstd.fatbin.1.sm_75.cubin": "cubin/new/sm_75/control.cubin", "zstd.fatbin.2.sm_80.cubin": "cubin/old/sm_80/control.cubin",
		"zstd.fatbin.3.sm_90.cubin": "cubin/new/sm_90/control.cubin",
	} {
		if !bytes.Equal(read(t, filepath.Join(dir, name)), read(t, data+from)) {
			t.Errorf("%s is not %s", name, from)
		}
	}
	if ptx := read(t, filepath.Join(dir, "zstd.fatbin.4.compute_90.ptx")); !bytes.Contains(ptx, []byte(".entry")) || bytes.IndexByte(ptx, 0) >= 0 {
		t.Errorf("PTX is %q", ptx)
	}
	want(t, 2, []string{"--force replaces"}, "extract", "-o", dir, data+"fatbin/zstd.fatbin")
	want(t, 0, []string{"wrote 4 files"}, "extract", "--force", "-o", dir, data+"fatbin/zstd.fatbin")
}

func TestExtractChosen(t *testing.T) {
	out := want(t, 0, nil, "extract", "--list", "-a", "sm_90", data+"fatbin/zstd.fatbin")
	if out != "zstd.fatbin.3.sm_90.cubin\nzstd.fatbin.4.compute_90.ptx\n" {
		t.Errorf("--list -a sm_90: %s", out)
	}
	out = want(t, 0, nil, "extract", "-o", "-", data+"fatbin/lz4.fatbin#2")
	if out != string(read(t, data+"cubin/old/sm_80/control.cubin")) {
		t.Errorf("-o - wrote %d bytes", len(out))
	}
	want(t, 2, []string{"exactly one entry, there are 4"}, "extract", "-o", "-", data+"fatbin/lz4.fatbin")
	want(t, 1, []string{"no kernel fits -k nothing*"}, "extract", "--list", "-k", "nothing*", data+"fatbin/lz4.fatbin")
	out = want(t, 0, nil, "extract", "--list", "-k", "control_*", data+"fatbin/lz4.fatbin#2")
	if out != "lz4.fatbin.2.sm_80.cubin\n" {
		t.Errorf("-k: %q", out)
	}
}

// Names in the input cannot lead out of the folder, nor collide.
func TestExtractNames(t *testing.T) {
	dir := t.TempDir()
	for _, sub := range []string{"a", "b"} {
		if err := os.MkdirAll(filepath.Join(dir, "in", sub), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "in", sub, "-x y;.fatbin"), read(t, data+"fatbin/ptx.fatbin"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	out := want(t, 0, nil, "extract", "--list", filepath.Join(dir, "in"))
	if out != "x_y_.fatbin.1.compute_75.ptx\nx_y_.fatbin-2.1.compute_75.ptx\n" {
		t.Errorf("names: %s", out)
	}
	for in, want := range map[string]string{
		"../../etc/passwd": ".._etc_passwd", "..": "stdin", "": "stdin", "libä.so": "lib_.so", "a\x00b\nc": "a_b_c",
		strings.Repeat("x", 300): strings.Repeat("x", 100),
	} {
		if got := safeName(in); strings.ContainsAny(got, "/\\\x00\n") || got != strings.TrimLeft(strings.ReplaceAll(want, ".._etc_passwd", "_.._etc_passwd"), ".-") {
			t.Errorf("safeName(%q) = %q", in, got)
		}
	}
}

func TestRebuild(t *testing.T) {
	out := filepath.Join(t.TempDir(), "thin.fatbin")
	want(t, 0, []string{"wrote 2 entries"}, "extract", "--rebuild", out, "-a", "sm_90", data+"fatbin/lz4.fatbin")
	want(t, 0, []string{"#1 elf sm_90, lz4 3223 of 10568 bytes", "#2 ptx compute_90"}, "ls", "-s", out)
	want(t, 2, []string{"--force replaces"}, "extract", "--rebuild", out, "-a", "sm_90", data+"fatbin/lz4.fatbin")
}

func TestReplace(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "new.fatbin")
	other := data + "cubin/new/sm_90/gemm.cubin"
	want(t, 0, []string{"has no control_", "entry #3 has no ffma_"}, "replace", "-o", out, data+"fatbin/stored.fatbin#3", other)
	extracted := want(t, 0, nil, "extract", "-o", "-", out+"#3")
	if !strings.HasPrefix(extracted, string(read(t, other))) {
		t.Errorf("entry 3 has %d bytes", len(extracted))
	}
	want(t, 1, []string{"is for sm_90, entry #1 is for sm_75"}, "replace", "-o", out, data+"fatbin/stored.fatbin#1", other)
	want(t, 0, []string{"warning: "}, "replace", "--force", "-o", out, data+"fatbin/stored.fatbin#1", other)
	want(t, 2, []string{"growing is not allowed"}, "replace", "--no-grow", "-o", out, data+"fatbin/lz4.fatbin#3", other)
	want(t, 2, []string{"the selector names 3"}, "replace", "-o", out, data+"fatbin/stored.fatbin", other)
	want(t, 2, []string{"where does the result go"}, "replace", data+"fatbin/stored.fatbin#3", other)

	in := filepath.Join(dir, "in.fatbin")
	if err := os.WriteFile(in, read(t, data+"fatbin/zstd.fatbin"), 0o640); err != nil {
		t.Fatal(err)
	}
	want(t, 0, nil, "replace", "-q", "-i", "--backup", ".orig", in+"#3", other)
	if !bytes.Equal(read(t, in+".orig"), read(t, data+"fatbin/zstd.fatbin")) {
		t.Error("the backup is not the input")
	}
	if st, err := os.Stat(in); err != nil || st.Mode().Perm() != 0o640 {
		t.Errorf("mode %v, %v", st.Mode(), err)
	}
}
