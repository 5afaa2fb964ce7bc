// Package stats counts what kernels are made of: opcodes, memory accesses by width and
// cache hint, stalls and scoreboards.
package stats
