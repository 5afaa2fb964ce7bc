package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const data = "../../testdata/"

// cupatch runs a command line and returns what it printed and its status.
func cupatch(t *testing.T, stdin []byte, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	var out, errs bytes.Buffer
	status = run(args, bytes.NewReader(stdin), &out, &errs)
	return out.String(), errs.String(), status
}

// want runs a command line, expects a status, and expects lines in its output.
func want(t *testing.T, status int, lines []string, args ...string) string {
	t.Helper()
	out, errs, got := cupatch(t, nil, args...)
	if got != status {
		t.Errorf("cupatch %s: status %d, want %d\n%s%s", strings.Join(args, " "), got, status, out, errs)
	}
	for _, l := range lines {
		if !strings.Contains(out+errs, l) {
			t.Errorf("cupatch %s: no %q in\n%s%s", strings.Join(args, " "), l, out, errs)
		}
	}
	return out
}

// The sizes and entries are those of the files that testdata/BUILD names; the numbers
// of registers and instructions are cuobjdump's.
func TestLs(t *testing.T) {
	want(t, 0, []string{
		"zstd.fatbin: fatbin, 8272 bytes", "8272 bytes = 288 headers + 7970 payload + 14 padding",
		"#1 elf sm_75, zstd 2297 of 9384 bytes, CUDA 13.5", "#2 elf sm_80, zstd 2075 of 9256 bytes, CUDA 12.9",
		"#4 ptx compute_90, zstd 1184 of 3417 bytes, PTX 6.4", "4 entries (1 ptx, 3 elf), 12 kernels",
	}, "ls", "-s", data+"fatbin/zstd.fatbin")
	want(t, 0, []string{
		"kernel calls_direct: 64 instructions, 24 registers, 12 bytes params, unbounded stack",
		"kernel calls_system: 72 instructions, 24 registers, 8 bytes stack",
	}, "ls", data+"cubin/new/sm_90/calls.cubin")
	want(t, 0, []string{"part of #1", "#1 concat"}, "ls", "-s", data+"fatbin/concat.fatbin")
	want(t, 0, []string{"from unit.cu", "relocatable", "function fibonacci"}, "ls", data+"fatbin/relocatable.fatbin")
}

func TestLsFor(t *testing.T) {
	want(t, 0, []string{"#2 elf sm_80", "CUDA 12.9  ← loaded", "for sm_89: 1 load a cubin, 0 compile PTX, 0 have nothing"},
		"ls", "-s", "--for", "sm_89", data+"fatbin/stored.fatbin")
	want(t, 0, []string{"PTX 6.4  ← compiled by the driver"}, "ls", "-s", "--for", "120", data+"fatbin/stored.fatbin")
	want(t, 0, []string{"(nothing to load)"}, "ls", "-s", "--for", "70", data+"fatbin/stored.fatbin")
	want(t, 2, []string{`--for: "x" is no architecture`}, "ls", "--for", "x", data+"fatbin/stored.fatbin")
}

func TestLsNarrowed(t *testing.T) {
	out := want(t, 0, []string{"#3 elf sm_90"}, "ls", "-s", "-a", "90", data+"fatbin/stored.fatbin")
	if strings.Contains(out, "#1") || strings.Contains(out, "#4") && !strings.Contains(out, "compute_90") {
		t.Errorf("-a 90 lists too much:\n%s", out)
	}
	out = want(t, 0, []string{"#2 elf sm_80"}, "ls", "-s", data+"fatbin/stored.fatbin#2")
	if strings.Contains(out, "#1 ") {
		t.Errorf("#2 lists too much:\n%s", out)
	}
	out = want(t, 0, []string{"kernel calls_system"}, "ls", "-k", "*_sys*", data+"cubin/new/sm_90/calls.cubin")
	if strings.Contains(out, "calls_direct") {
		t.Errorf("-k lists too much:\n%s", out)
	}
	want(t, 1, []string{"no entry \"9\" among 4 entries"}, "ls", data+"fatbin/stored.fatbin#9")
}

func TestLsJSON(t *testing.T) {
	out := want(t, 0, nil, "ls", "--json", "--for", "90", data+"fatbin/lz4.fatbin", data+"cubin/new/sm_100/cache.cubin")
	var list struct {
		Files  []lsFile
		Totals lsTotals
	}
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		t.Fatal(err)
	}
	if len(list.Files) != 2 || list.Totals.Files != 2 || list.Totals.Entries != 5 {
		t.Fatalf("%d files, totals %+v", len(list.Files), list.Totals)
	}
	s := list.Files[0].Sections[0]
	if a := s.Account; a.Headers+a.Payload+a.Padding != s.Size || s.Size != 11072 {
		t.Errorf("account %+v of %d bytes", a, s.Size)
	}
	e := s.Containers[0].Entries[2]
	if e.Number != 3 || e.Arch != "sm_90" || e.CubinArch != "sm_90" || e.Compression != "lz4" || e.Toolkit != "13.5" || !e.Loaded || len(e.Kernels) == 0 {
		t.Errorf("entry %+v", e)
	}
	if e := list.Files[1].Sections[0].Containers[0].Entries[0]; !e.Mercury || e.Arch != "sm_100" {
		t.Errorf("cubin %+v", e)
	}
}

// One bad entry: the others are listed, and the status is 2.
func TestLsDamaged(t *testing.T) {
	b, err := os.ReadFile(data + "fatbin/zstd.fatbin")
	if err != nil {
		t.Fatal(err)
	}
	copy(b[0x60:], "this is not a zstd frame")
	path := filepath.Join(t.TempDir(), "bad.fatbin")
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	want(t, 2, []string{"#1 elf sm_75", "error: ", "entry #1", "#2 elf sm_80", "#4 ptx", "1 error"}, "ls", "-s", path)
	out, _, status := cupatch(t, b, "ls", "-s", "-")
	if status != 2 || !strings.Contains(out, "-: fatbin") {
		t.Errorf("standard input: status %d\n%s", status, out)
	}
	want(t, 2, []string{"no GPU code found", "#1 elf"}, "ls", "-s", "ls_test.go", data+"fatbin/zstd.fatbin")
	want(t, 2, []string{"9384 bytes after decompression, the limit is 5120"}, "ls", "-s", "--max-entry", "5k", data+"fatbin/zstd.fatbin")
}

func TestLsDuplicates(t *testing.T) {
	want(t, 0, []string{"1 duplicate", "same as ../../testdata/fatbin/stored.fatbin#1", "1 of 4 entries"}, "ls", "-s", data+"fatbin/stored.fatbin#1", data+"cubin/new/sm_75/control.cubin")
}
