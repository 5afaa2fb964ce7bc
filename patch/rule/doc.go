// Package rule is the rule language, MATCH [if CONDITION] => CHANGES: it parses rules,
// makes them ready for an architecture, and plans the edits that they make.
//
// Planning is pure: it reads code and returns edits. A plan either does all that its
// rules say or returns an error with the rule, the column and what would have worked.
//
// # Security
//
// Rules may come from anywhere. None makes the package panic or run without bound: the
// search for windows has a budget, and conditions run in a sandbox without access to
// anything but the instruction.
package rule
