// Package oracletest runs NVIDIA's own tools for tests. See package oracle.
//
// A test that asks for a tool which is not installed is skipped with one line, unless
// CUPATCH_ORACLE names the folder: then the caller expects the tools, and the test fails.
package oracletest

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/cupatch/cupatch/scripts/nv/oracle"
)

// A Word is an instruction: bits 0–63 in Lo, 64–127 in Hi. isa.Word converts to it.
type Word = oracle.Word

// A Text is nvdisasm's answer about one word.
type Text = oracle.Text

// An Instr is one instruction of a `cuobjdump -sass` listing.
type Instr = oracle.Instr

// Tool returns the path of a tool that oracle.Lookup knows. Where it is not installed, the
// test is skipped, or fails if CUPATCH_ORACLE is set.
func Tool(tb testing.TB, name string) string {
	tb.Helper()
	path, err := oracle.Lookup(name)
	if err == nil {
		return path
	}
	if os.Getenv("CUPATCH_ORACLE") != "" {
		tb.Fatal(err)
	}
	tb.Skip(err)
	return ""
}

// Run runs a tool with args and returns its standard output; the test fails when the
// tool does.
func Run(tb testing.TB, name string, args ...string) []byte {
	tb.Helper()
	cmd := exec.Command(Tool(tb, name), args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		tb.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return out
}

// Disassemble returns nvdisasm's answers about words for an architecture such as sm_90a.
func Disassemble[W ~Word](tb testing.TB, arch string, words []W) []Text {
	tb.Helper()
	Tool(tb, oracle.Current("nvdisasm", arch))
	plain := make([]Word, len(words))
	for i, w := range words {
		plain[i] = Word(w)
	}
	out, err := oracle.Disassemble(arch, plain)
	if err != nil {
		tb.Fatal(err)
	}
	return out
}

// Sass returns the instructions that `cuobjdump -sass` prints for a cubin file. For sm_70
// and sm_72, which version 13 does not know, pass a tool of "cuobjdump12"; "" means the
// current one.
func Sass(tb testing.TB, tool, file string) []Instr {
	tb.Helper()
	if tool == "" {
		tool = "cuobjdump"
	}
	return ParseSass(tb, Run(tb, tool, "-sass", file))
}

// ParseSass reads a `cuobjdump -sass` listing.
func ParseSass(tb testing.TB, listing []byte) []Instr {
	tb.Helper()
	out, err := oracle.ParseSass(listing)
	if err != nil {
		tb.Fatal(err)
	}
	return out
}

// Long skips a test that takes minutes, unless CUPATCH_LONG is set.
func Long(tb testing.TB) {
	tb.Helper()
	if os.Getenv("CUPATCH_LONG") == "" {
		tb.Skip("takes minutes: set CUPATCH_LONG=1 to run it")
	}
}
