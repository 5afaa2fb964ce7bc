package main

import (
	"bufio"
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cupatch/cupatch/patch/report"
)

// TestReportOfSome checks that what was written before something failed is in the report.
func TestReportOfSome(t *testing.T) {
	failed := errors.New("the second file cannot be written")
	for _, keep := range []bool{false, true} {
		path := filepath.Join(t.TempDir(), "r.json")
		e := &env{stdout: bufio.NewWriter(&bytes.Buffer{})}
		d := &destination{keepOriginal: keep, out: "out"}
		err := d.keeping(e, path, func() (*report.Report, error) {
			return &report.Report{Format: report.Format, Files: []report.File{{File: "first.cubin", Edits: []report.Edit{}}}}, failed
		})
		if !errors.Is(err, failed) {
			t.Errorf("keep %t: error %v", keep, err)
		}
		data, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(data), "first.cubin") {
			t.Errorf("keep %t: report %q, %v", keep, data, err)
		}
		if _, err := os.Stat(originalName(path)); keep && err != nil {
			t.Errorf("the old bytes: %v", err)
		}
		none := filepath.Join(t.TempDir(), "none.json")
		if err := d.keeping(e, none, func() (*report.Report, error) { return nil, failed }); !errors.Is(err, failed) {
			t.Errorf("nothing written: %v", err)
		}
		if _, err := os.Stat(none); err == nil {
			t.Error("a report of nothing")
		}
	}
}

// TestNameOfBytes patches a kernel whose name is not UTF-8, and undoes it with the report.
func TestNameOfBytes(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "testdata", "cubin", "new", "sm_90", "pair.cubin"))
	if err != nil {
		t.Fatal(err)
	}
	old := bytes.ReplaceAll(data, []byte("ffma_loop"), []byte("ff\xffa_lo\xc3p"))
	dir := t.TempDir()
	file, rep := filepath.Join(dir, "k.cubin"), filepath.Join(dir, "r.json")
	if err := os.WriteFile(file, old, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"patch", "-q", "-i", "-e", "FFMA => stall=9", "--report", rep, file}, {"revert", "-q", "-i", rep, file},
	} {
		var out, talk bytes.Buffer
		if status := run(args, strings.NewReader(""), &out, &talk); status != 0 {
			t.Fatalf("%v: status %d, %s", args, status, talk.String())
		}
		now, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if same := bytes.Equal(now, old); same != (args[0] == "revert") {
			t.Errorf("after %s: the same bytes %t", args[0], same)
		}
	}
}
