package patch

import (
	"os"
	"strings"
	"testing"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/isa"
)

// miniTable returns a small table made by hand, so that the tests here do not depend on
// what is learned. The encodings are those of sm_90 except that QGMMA is cut down.
func miniTable(tb testing.TB) *isa.Table {
	tb.Helper()
	text, err := os.ReadFile("testdata/mini.txt")
	if err != nil {
		tb.Fatal(err)
	}
	f, err := isa.ParseTable(string(text), nil)
	if err != nil {
		tb.Fatal(err)
	}
	return isa.NewTable(f.Arch, f.Variants)
}

// code assembles lines of a listing.
func code(tb testing.TB, t *isa.Table, lines string) []byte {
	tb.Helper()
	b, err := assemble(t, "test", lines)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// listing returns the listing of code without addresses.
func listing(t *isa.Table, data []byte) string {
	var b strings.Builder
	var s ListingStyle
	for off := 0; off < len(data); off += isa.WordSize {
		line := string(s.AppendLine(nil, t, isa.LoadWord(data[off:]), uint64(off)))
		_, line, _ = strings.Cut(line, "*/ ")
		b.WriteString(line)
	}
	return b.String()
}

// loadTable returns the table of an architecture.
func loadTable(tb testing.TB, name string) *isa.Table {
	tb.Helper()
	a, err := isa.ParseArch(name)
	if err != nil {
		tb.Fatal(err)
	}
	t, err := isa.Load(a)
	if err != nil {
		return miniTable(tb)
	}
	return t
}

func cubins(list ...*Target) []*elfx.Cubin {
	var out []*elfx.Cubin
	for _, t := range list {
		out = append(out, t.Cubin)
	}
	return out
}

// nopWord returns the word of NOP.
func nopWord(tb testing.TB) isa.Word {
	tb.Helper()
	return isa.LoadWord(code(tb, miniTable(tb), "NOP ;"))
}
