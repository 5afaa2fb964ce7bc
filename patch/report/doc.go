// Package report records edits so that they can be replayed, undone and verified, by
// cupatch or by any other program: docs/report.schema.json is the format. It finds the
// places of recorded edits in a file, and refuses those whose old word is another.
package report
