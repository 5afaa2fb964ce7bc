package main

import (
	"strings"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/patch/code"
	"github.com/cupatch/cupatch/patch/edit"
	"github.com/cupatch/cupatch/patch/listing"
	"github.com/spf13/pflag"
)

// showsDiff reports whether the diff of the listing goes to standard output, which
// takes one answer.
func showsDiff(e *env, to *destination, report string) bool {
	return report != "-" && !e.quiet && to.out != "-"
}

// oneStream refuses that output and report both go to standard output.
func oneStream(e *env, to *destination, report string) error {
	if report == "-" && to.out == "-" {
		return e.usagef("the output and the report cannot both go to standard output")
	}
	return nil
}

// diffOf returns the unified diff of a cubin's edits.
func diffOf(t *code.Target, edits []edit.Edit, context int) []byte {
	name := elfx.JoinSelector(t.File, t.Entry)
	byKernel := map[uint64][]edit.Edit{}
	for _, e := range edits {
		at := e.Offset - e.PC
		byKernel[at] = append(byKernel[at], e)
	}
	var out []byte
	for i := range t.Cubin.Kernels() {
		k := &t.Cubin.Kernels()[i]
		out = listing.AppendDiff(out, t.Table, t.Kernel(k), name, byKernel[uint64(k.Offset)], context)
	}
	return out
}

// contextLines is the value of -U: lines around each change in a diff.
type contextLines int

func (n *contextLines) flag(fs *pflag.FlagSet) { fs.IntVarP((*int)(n), "context", "U", 3, "") }

func (n contextLines) check(e *env) error {
	if n < 0 || n > 1000 {
		return e.usagef("-U %d: want 0 to 1000 lines", n)
	}
	return nil
}

// printDiff writes a diff, colored if that is wanted.
func (e *env) printDiff(diff []byte) {
	if !e.color() {
		e.stdout.Write(diff)
		return
	}
	for _, line := range strings.SplitAfter(string(diff), "\n") {
		color := ""
		switch {
		case strings.HasPrefix(line, "---"), strings.HasPrefix(line, "+++"):
			color = ansiBold
		case strings.HasPrefix(line, "@@"):
			color = ansiCyan
		case strings.HasPrefix(line, "-"):
			color = ansiRed
		case strings.HasPrefix(line, "+"):
			color = ansiGreen
		}
		if color == "" || line == "" {
			e.stdout.WriteString(line)
			continue
		}
		e.stdout.WriteString(color + strings.TrimSuffix(line, "\n") + ansiReset + "\n")
	}
}
