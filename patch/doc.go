// Package patch changes compiled GPU code by rules and proves that nothing else
// moved.
//
// A [Rule] says which instructions it means and what to change in them. A plan
// turns rules and a cubin into a list of [Edit] values; the dry run, the report,
// the writing, the undoing and the verification all work from that list and from
// nothing else. Planning is pure. Bytes change in one place, [Apply], and only
// where the old word is what the edit says.
//
// The package promises that a plan either does all that its rules say or returns an
// error with the rule, the column and what would have worked. It refuses changes
// that it knows the hardware cannot take (see [Allow]); it does not know whether an
// allowed change keeps the program's meaning.
//
// # Security
//
// Rules, recipes, reports and listings may come from anywhere. No input makes the
// package panic or run without bound: the search for windows has a budget, and
// conditions run in a sandbox without access to anything but the instruction.
package patch
