// Package nearest finds what a misspelled name was meant to be.
package nearest

import "strings"

// Name returns the name closest to s, or "" when none is close: the one that is the same
// but for capitals, else at most two letters may differ, and fewer than the name has.
func Name(s string, names []string) string {
	for _, n := range names {
		if strings.EqualFold(s, n) {
			return n
		}
	}
	best, dist := "", 3
	for _, n := range names {
		if d := Distance(s, n); d < dist && d < len(n) && d < len(s) {
			best, dist = n, d
		}
	}
	return best
}

// Distance is the number of bytes to insert, delete or replace to turn a into b.
func Distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diag := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diag
			if a[i-1] != b[j-1] {
				cost++
			}
			diag = row[j]
			row[j] = min(cost, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}
