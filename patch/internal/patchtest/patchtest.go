// Package patchtest holds what the tests of patch and the packages below it share: one
// small table, one assembler, the cubins of testdata.
package patchtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/patch/code"
	"github.com/cupatch/cupatch/patch/listing"
)

// MiniTable returns a small table made by hand, so that the tests here do not depend on
// what is learned. The encodings are those of sm_90 except that QGMMA is cut down.
func MiniTable(tb testing.TB) *isa.Table {
	tb.Helper()
	t, err := code.ReadTable(Path("isa/testdata/mini.txt"))
	if err != nil {
		tb.Fatal(err)
	}
	return t
}

// Code assembles lines of a listing.
func Code(tb testing.TB, t *isa.Table, lines string) []byte {
	tb.Helper()
	b, err := listing.Assemble(t, "test", lines)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// Listing returns the listing of code without addresses.
func Listing(t *isa.Table, data []byte) string {
	var b strings.Builder
	var s listing.Style
	for off := 0; off < len(data); off += isa.WordSize {
		line := string(s.AppendLine(nil, t, isa.LoadWord(data[off:]), uint64(off)))
		_, line, _ = strings.Cut(line, "*/ ")
		b.WriteString(line)
	}
	return b.String()
}

// Table returns the table of an architecture.
func Table(tb testing.TB, name string) *isa.Table {
	tb.Helper()
	a, err := isa.ParseArch(name)
	if err != nil {
		tb.Fatal(err)
	}
	t, err := isa.Load(a)
	if err != nil {
		tb.Fatal(err)
	}
	return t
}

// NopWord returns the word of NOP.
func NopWord(tb testing.TB) isa.Word {
	tb.Helper()
	return isa.LoadWord(Code(tb, MiniTable(tb), "NOP ;"))
}

// OpenCubin reads a cubin of testdata as a target.
func OpenCubin(tb testing.TB, name string) *code.Target {
	tb.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		tb.Fatal(err)
	}
	c := Parse(tb, data)
	return &code.Target{Cubin: c, Table: Table(tb, c.Arch)}
}

// Parse reads a cubin.
func Parse(tb testing.TB, data []byte) *elfx.Cubin {
	tb.Helper()
	c, err := elfx.ParseCubin(data)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// Control is the default control code, with a blank after it.
const Control = "[B------:R-:W-:-:S01] "

// Lines gives each line the default control code and the end.
func Lines(s string) string {
	var out []string
	for _, l := range strings.Split(strings.TrimSpace(s), "\n") {
		l = strings.TrimSpace(l)
		if !strings.HasPrefix(l, "[B") {
			l = Control + l
		}
		out = append(out, l+" ;")
	}
	return strings.Join(out, "\n") + "\n"
}

// Path returns the path of a file of the repository, named from its root.
func Path(name string) string {
	dir := "."
	for range 10 {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		dir = filepath.Join("..", dir)
	}
	return filepath.Join(dir, filepath.FromSlash(name))
}

// LoadsCubin is a cubin with loads of every kind.
var LoadsCubin = Path("testdata/cubin/new/sm_90/loads.cubin")
