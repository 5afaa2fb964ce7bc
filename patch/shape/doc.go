// Package shape changes the shape of kernels: instructions are inserted, deleted and moved,
// and everything that refers to code follows.
//
// A Draft collects what is to become of one kernel and turns it into edits; Apply makes the
// edits in a cubin. The package knows nothing of rules and listings.
//
// # What follows
//
// Relative branches, calls and the addresses that calls return to, jump tables, symbols,
// relocations, attributes that list instructions, line tables, unwinding, and the places of
// everything in the file. A kernel with something that is not understood is refused with
// [elfx.ErrCannotFollow] or [kernel.ErrUnknownAddress]; see docs/shape.md.
package shape
