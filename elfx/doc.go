// Package elfx finds NVIDIA GPU code in files: the sections of a cubin, and the
// cubins inside fatbins, host programs, libraries, objects and archives.
//
// It deals in bytes and offsets only and knows nothing of instructions. Whatever it
// returns from stored data is a slice of the caller's bytes or an offset into them;
// an ELF file is never serialised anew.
//
// # Promise
//
// Every function that reads is total: damaged or hostile input gives an error (a
// [FormatError] names the section and the offset), never a panic, and the memory
// used is a small multiple of the input, or is bounded by [Options.MaxEntry] where
// the input is compressed.
//
// # Limits
//
// Cubins are 64-bit little-endian ELF of machine 190. Host files are 64-bit
// little-endian ELF, PE files (changed in place only), ar archives and zip files (written
// by [RewriteZip] only). The compression of toolkits older than 9 is named but not decoded.
package elfx
