// Package edit holds the currency of cupatch: an [Edit] is one changed word.
//
// Plans, reports, dry runs, writing, undoing and verification are lists of edits and
// nothing else. Bytes change in one place, [Apply], and only where the old word is what
// the edit says.
package edit
