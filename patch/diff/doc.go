// Package diff compares compiled GPU code, instruction by instruction, and says what
// kind of difference there is: none, another wrapping, only scheduling, only registers,
// only modifiers, or other code, and where.
//
// [Files] compares two files of any kind that package elfx reads.
// [Code.Hash] computes a hash of a kernel that is equal where the code is.
//
// # Promise
//
// Nothing is called the same that was not read. A word that the instruction tables do
// not know is compared by its bits and counted. Bits that the text does not show count
// like those that it shows. A file or an entry that cannot be read, and a comparison
// that had nothing to compare, are errors.
//
// # Limits
//
// What a change does to the meaning of a program is not known here. A branch through a
// register is compared by the register, not by where it leads.
//
// # Security
//
// Input may come from anywhere: the alignment of instructions has a budget, and the
// memory is bounded by the largest entries and a small record for each kernel.
package diff
