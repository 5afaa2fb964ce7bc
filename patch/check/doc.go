// Package check judges changes of instructions, wherever they come from: it refuses what
// it knows to be wrong, unless that is allowed by name (see [Allow]), and warns of what
// deserves a look (see [Lint]).
//
// It does not know whether a change that it lets pass keeps the program's meaning.
package check
