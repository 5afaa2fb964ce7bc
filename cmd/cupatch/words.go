package main

import (
	"fmt"
	"strconv"
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

// percent returns n as a part of of.
func percent(n, of int) string {
	if of == 0 {
		return "0%"
	}
	return strconv.Itoa((100*n+of/2)/of) + "%"
}
