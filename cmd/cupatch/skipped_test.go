package main

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cupatch/cupatch/elfx"
)

// oldArch writes a copy of a container in which the cubins with these numbers say that
// they are for sm_52, whose instructions are of another size.
func oldArch(t *testing.T, from string, numbers ...int) string {
	t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	f, err := elfx.Open(from, data, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range numbers {
		e := f.Entries()[n-1]
		c, err := e.Cubin()
		if err != nil {
			t.Fatal(err)
		}
		at, shift := e.FileOffset(0)+0x30, 8 // e_flags, where bits 8 to 15 have the architecture
		if c.Layout == elfx.LayoutOld {
			shift = 0
		}
		flags := binary.LittleEndian.Uint32(data[at:])
		binary.LittleEndian.PutUint32(data[at:], flags&^(0xff<<shift)|52<<shift)
	}
	to := filepath.Join(t.TempDir(), "old.fatbin")
	if err := os.WriteFile(to, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return to
}

// TestLeftAlone checks that every command does the cubins that it can, says once for an
// architecture that others are left alone, and fails only where there are no others.
func TestLeftAlone(t *testing.T) {
	two := oldArch(t, data+"fatbin/stored.fatbin", 1, 2)
	all := oldArch(t, data+"fatbin/stored.fatbin", 1, 2, 3)
	const why = "2 cubins left alone: sm_52: instructions before sm_70 are not supported\n"
	for _, args := range [][]string{
		{"dis"}, {"dis", "--json"}, {"dis", "-m", "EXIT"}, {"dis", "-j", "1"}, {"stats"}, {"stats", "--total", "-j", "1"},
		{"patch", "-n", "-e", "EXIT => stall=6"},
	} {
		name := strings.Join(args, " ")
		out, talk, status := cupatch(t, nil, append(args, two)...)
		if status != 0 || out == "" || strings.Count(talk, "left alone") != 1 || !strings.Contains(talk, why) {
			t.Errorf("%s: status %d, %d bytes\n%s", name, status, len(out), talk)
		}
		_, talk, status = cupatch(t, nil, append(args, all)...)
		if status != 2 || !strings.Contains(talk, "no cubin that can be ") {
			t.Errorf("%s of no other cubin: status %d\n%s", name, status, talk)
		}
	}
	out, talk, status := cupatch(t, nil, "hash", two) // by their bytes
	if status != 0 || talk != "" || !strings.Contains(out, " sm_52 ") {
		t.Errorf("hash: status %d\n%s%s", status, out, talk)
	}
}

// TestJobs checks that output does not depend on how many things are done at once.
func TestJobs(t *testing.T) {
	files := []string{data + "fatbin/stored.fatbin", data + "fatbin/zstd.fatbin", data + "cubin/new/sm_90"}
	for _, args := range [][]string{
		{"ls"}, {"ls", "--json"}, {"dis"}, {"dis", "--json"}, {"dis", "--stable"}, {"dis", "-m", "LDG"}, {"stats"}, {"stats", "--total"},
		{"hash"}, {"hash", "-l", "code,noregs"}, {"hash", "--duplicates"}, {"patch", "-n", "-e", "LDG => .EF"},
	} {
		name := strings.Join(args, " ")
		want, _, status := cupatch(t, nil, append(append([]string{"-j", "1"}, args...), files...)...)
		if status != 0 || want == "" {
			t.Fatalf("%s: status %d", name, status)
		}
		got, _, status := cupatch(t, nil, append(append([]string{"-j", "7"}, args...), files...)...)
		if status != 0 || got != want {
			t.Errorf("%s: -j 7 gives another output than -j 1, status %d", name, status)
		}
	}
}
