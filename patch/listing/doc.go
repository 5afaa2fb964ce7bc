// Package listing writes and reads lines of instructions and listings of kernels, in
// every notation of the control code.
//
// What [Style] writes, [Parse] reads back: but for stable listings, which have no
// addresses, a listing names every word that it lists.
package listing
