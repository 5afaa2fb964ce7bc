// Package nearest finds what a misspelled name was meant to be.
package nearest

import "strings"

// Name returns the name closest to s, or "" when none is close: the one that is the same
// but for capitals, else at most two letters may differ, and fewer than the name has. Of
// names as close the one whose start is that of s for longer is taken.
func Name(s string, names []string) string {
	for _, n := range names {
		if strings.EqualFold(s, n) {
			return n
		}
	}
	best, dist := "", 3
	for _, n := range names {
		d := Distance(s, n)
		if d < len(n) && d < len(s) && (d < dist || d == dist && best != "" && common(s, n) > common(s, best)) {
			best, dist = n, d
		}
	}
	return best
}

// common returns the length of the start that a and b share.
func common(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// Distance is the number of bytes to insert, delete or replace, and of neighbors to
// swap, to turn a into b.
func Distance(a, b string) int {
	before, row := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		next := make([]int, len(b)+1)
		next[0] = i
		for j := 1; j <= len(b); j++ {
			cost := row[j-1]
			if a[i-1] != b[j-1] {
				cost++
			}
			next[j] = min(cost, row[j]+1, next[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				next[j] = min(next[j], before[j-2]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}
