// Package isa says what the 128 bits of an NVIDIA GPU instruction (SASS, Volta
// and later) mean: it decodes them, prints them exactly as nvdisasm does, and
// encodes text back.
//
// The package promises that every bit survives: an [Inst] keeps its raw [Word],
// and every change starts from that word and touches the named bits only. A word
// that the tables do not know is no error; it prints as `.word` and its guard and
// control code can be read and set like those of any other word.
//
// What the bits mean is data, not code: one table per architecture, learned from
// nvdisasm as a black box and kept as text under isa/tables. The package knows
// nothing of files, ELF or containers.
//
// Which registers an instruction reads and writes is data too: see [Inst.Effects].
//
// # Security
//
// Words and text may come from anywhere; no input makes the package panic, hang or
// allocate more than a small multiple of the input's size.
package isa
