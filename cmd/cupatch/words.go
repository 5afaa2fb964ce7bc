package main

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/cupatch/cupatch/elfx"
)

// plural returns a number and what is counted: 1 entry, 2 entries.
func plural(n int, one, many string) string {
	return fmt.Sprintf("%d %s", n, pluralWord(n, one, many))
}

// pluralWord is the word of plural alone.
func pluralWord(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// shownName returns a kernel's name for people: as in C++, and nothing in it that a terminal
// would obey.
func shownName(name string) string { return elfx.Printable(elfx.Demangle(name)) }

// printableLines makes a message safe to show: names in it are somebody else's. Its lines
// remain.
func printableLines(msg string) string {
	lines := strings.Split(msg, "\n")
	for i, s := range lines {
		lines[i] = printableLine(s)
	}
	return strings.Join(lines, "\n")
}

// printableLine does the same for what is one line.
func printableLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, s)
}

// percent returns n as a part of of.
func percent(n, of int) string {
	if of == 0 {
		return "0%"
	}
	return strconv.Itoa((100*n+of/2)/of) + "%"
}
