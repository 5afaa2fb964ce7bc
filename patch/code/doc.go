// Package code looks at the instructions of one kernel: decoded, as text, as operands,
// with the basic blocks and loops that their branches make.
//
// A [Target] is a cubin with its place in a file and its instruction table, a [Kernel] is
// the code of one of its kernels, and a [State] is that code while it is being changed.
// The package knows no rules and writes nothing.
package code
