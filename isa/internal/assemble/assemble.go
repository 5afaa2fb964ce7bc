// Package assemble makes machine code of text, for the tests of the packages below isa.
package assemble

import (
	"strings"
	"testing"

	"github.com/cupatch/cupatch/isa"
)

// Code returns the table of an architecture and the code of instructions, one a line, with
// or without control codes.
func Code(tb testing.TB, arch, text string) (*isa.Table, []byte) {
	tb.Helper()
	a, err := isa.ParseArch(arch)
	if err != nil {
		tb.Fatal(err)
	}
	table, err := isa.Load(a)
	if err != nil {
		tb.Fatal(err)
	}
	var code []byte
	for line := range strings.Lines(strings.TrimSpace(text)) {
		control, rest, _, err := isa.SplitControl(strings.TrimSpace(line))
		if err != nil {
			tb.Fatalf("%s: %v", line, err)
		}
		w, err := table.Encode(rest, uint64(len(code)), nil)
		if err != nil {
			tb.Fatalf("%s: %v", line, err)
		}
		if control != nil {
			w = control.Set(w)
		}
		code = append(code, make([]byte, isa.WordSize)...)
		w.Store(code[len(code)-isa.WordSize:])
	}
	return table, code
}
