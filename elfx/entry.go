package elfx

import (
	"fmt"
)

// A Kind is what an entry of a container holds.
type Kind uint8

// The kinds of entry.
const (
	KindUnknown  Kind = iota
	KindELF           // a cubin
	KindPTX           // PTX text
	KindOldCubin      // the text form of a cubin of toolkits before 3.0
	KindLTOIR         // intermediate code for link time optimisation
	KindConcat        // several entries compressed together; they follow as entries of their own
)

var kindNames = [...]string{"unknown", "elf", "ptx", "old-cubin", "lto-ir", "concat"}

func (k Kind) String() string { return kindNames[k] }

// Kinds of the fatbin format, the first field of an entry.
const (
	rawPTX      = 1
	rawELF      = 2
	rawOldCubin = 4
	rawLTOIR    = 8
	rawConcat   = 0x100
)

func kindOf(raw uint16) Kind {
	switch raw {
	case rawPTX:
		return KindPTX
	case rawELF:
		return KindELF
	case rawOldCubin:
		return KindOldCubin
	case rawLTOIR:
		return KindLTOIR
	case rawConcat:
		return KindConcat
	}
	return KindUnknown
}

// A Compression is how the payload of an entry is stored.
type Compression uint8

// The compressions.
const (
	Stored     Compression = iota
	LZ4                    // one raw LZ4 block
	Zstd                   // a zstd frame
	OldPacking             // the compression of toolkits before 9: not decoded
)

var compressionNames = [...]string{"stored", "lz4", "zstd", "old"}

func (c Compression) String() string { return compressionNames[c] }

// Flags of a fatbin entry.
const (
	Flag64Bit      = 0x1
	FlagDebug      = 0x2
	FlagCUDA       = 0x4
	FlagOpenCL     = 0x8
	FlagLinux      = 0x10
	FlagMac        = 0x20
	FlagWindows    = 0x40
	FlagOldPacking = 0x1000
	FlagLZ4        = 0x2000
	FlagZstd       = 0x8000
	FlagObfuscated = 0x10000   // LTO IR that only NVIDIA's tools read
	FlagAccel      = 0x100000  // an `a` target
	FlagFamily     = 0x200000  // an `f` target
	FlagCompat     = 0x1000000 // .nv.compat copied into the entry's header
)

var flagNames = []struct {
	bit  uint64
	name string
}{
	{Flag64Bit, "64bit"}, {FlagDebug, "debug"}, {FlagCUDA, "cuda"}, {FlagOpenCL, "opencl"}, {FlagLinux, "linux"},
	{FlagMac, "mac"}, {FlagWindows, "windows"}, {FlagOldPacking, "old-compression"}, {FlagLZ4, "lz4"}, {FlagZstd, "zstd"},
	{FlagObfuscated, "obfuscated"}, {FlagAccel, "a"}, {FlagFamily, "f"}, {FlagCompat, "compat"},
}

// An Entry is one program of a container: a cubin, PTX, or something else. Offsets
// are from the start of the file that was opened.
type Entry struct {
	Number      int // 1, 2, … within the file that was opened: the 12 of lib.so#12
	File        *File
	Container   *Container
	Kind        Kind
	RawKind     uint16 // as the container writes it; 0 in a bare cubin
	SM          int
	Suffix      string // "", "a" or "f"
	Major       int    // version of the ELF ABI or of PTX
	Minor       int
	Flags       uint64
	Compression Compression
	Name        string // of the source file, often empty
	Options     string // compiler options, such as -O3

	Offset        int64 // of the entry's header
	HeaderSize    int64
	PayloadOffset int64 // of the stored bytes
	PayloadSize   int64 // of the stored bytes with their padding
	StoredSize    int64 // of the stored bytes without padding
	Size          int64 // after decompression

	Parent *Entry // the KindConcat entry whose contents this one is part of, or nil
	Err    error  // damage to the header; the payload cannot be read

	inner int64  // offset in Parent's decompressed payload
	cubin *Cubin // of a file that is one, as it was read
}

// Arch returns the architecture that the container gives, such as sm_90a. The
// cubin's own word for it is [Cubin.Arch].
func (e *Entry) Arch() string {
	if e.SM == 0 {
		return ""
	}
	return fmt.Sprintf("sm_%d%s", e.SM, e.Suffix)
}

// IsFor reports whether the entry is for an architecture as people name it. The suffix f
// is the container's alone, the cubin of an entry for sm_100f says sm_100: both names do.
func (e *Entry) IsFor(sm int, suffix string) bool {
	return e.SM == sm && (e.Suffix == suffix || e.Suffix == "f" && suffix == "")
}

// Fits reports whether c can be the entry's cubin by their architectures.
func (e *Entry) Fits(c *Cubin) bool {
	return c.SM == e.SM && (c.Suffix == e.Suffix || e.Suffix == "f") // which a cubin does not record
}

// ArchOf returns the architecture of the entry's cubin, with the suffix f where the
// entry has it, which the cubin does not record.
func (e *Entry) ArchOf(c *Cubin) string {
	if e.Suffix == "f" && c.SM == e.SM && c.Suffix == "" {
		return e.Arch()
	}
	return c.Arch
}

// Target returns the architecture as nvcc spells it for this kind of entry:
// compute_90a for PTX and LTO IR, else Arch.
func (e *Entry) Target() string {
	if e.SM != 0 && (e.Kind == KindPTX || e.Kind == KindLTOIR) {
		return fmt.Sprintf("compute_%d%s", e.SM, e.Suffix)
	}
	return e.Arch()
}

// FlagNames returns the names of the flags that are set, unknown ones in hex.
func (e *Entry) FlagNames() []string {
	var out []string
	rest := e.Flags
	for _, f := range flagNames {
		if rest&f.bit != 0 {
			out = append(out, f.name)
			rest &^= f.bit
		}
	}
	if rest != 0 {
		out = append(out, fmt.Sprintf("0x%x", rest))
	}
	return out
}

// Obfuscated reports whether the payload is scrambled LTO IR.
func (e *Entry) Obfuscated() bool { return e.Flags&FlagObfuscated != 0 }

// FileOffset returns where byte off of the payload lies in the file, or -1 when the
// payload is compressed or the file itself was unpacked from something else.
func (e *Entry) FileOffset(off int64) int64 {
	if e.File.root().unpacked || e.Compression != Stored || e.Parent != nil && e.Parent.Compression != Stored || off < 0 || off >= e.Size {
		return -1
	}
	return e.PayloadOffset + off
}

// Stored reports whether the payload lies in the file as it is, at FileOffset. Whether
// its memory is the file's is another question: see Shared.
func (e *Entry) Stored() bool { return e.Size > 0 && e.FileOffset(0) >= 0 }

// Shared reports whether Data and DataIn return memory that belongs to the file, or to
// the concatenation that the entry is a part of, and that must not be written to. In a
// member of a zip file that is so of entries that are not Stored, too.
func (e *Entry) Shared() bool { return e.Parent != nil || e.Compression == Stored }

// SizeFields returns the stretches of the file, from and to, in which the entry's header
// tells sizes: they change when its payload does.
func (e *Entry) SizeFields() [][2]int64 {
	return [][2]int64{
		{e.Offset + offPayloadSize, e.Offset + offPackedSize + 4},
		{e.Offset + offSize, e.Offset + offSize + 8},
	}
}

// Inner returns where the entry starts in the decompressed bytes of its Parent.
func (e *Entry) Inner() int64 { return e.inner }

// Raw returns the bytes as they are stored, without padding, or nil for a part of a
// compressed concatenation.
func (e *Entry) Raw() []byte {
	if e.PayloadOffset < 0 {
		return nil
	}
	return e.File.root().data[e.PayloadOffset : e.PayloadOffset+e.StoredSize]
}

// place names the entry in errors.
func (e *Entry) place() string {
	if e.Container != nil && e.Container.Kind == ContainerCubin {
		return e.File.Name
	}
	what := e.Kind.String()
	if t := e.Target(); t != "" {
		what += " " + t
	}
	return fmt.Sprintf("%s: entry %s (%s)", e.File.Name, e.Tag(), what)
}

// Data returns the entry's bytes, decompressed. Entries that are Shared are a slice of
// the file; others are decoded anew by every call, so that the memory is the caller's
// to keep or drop.
func (e *Entry) Data() ([]byte, error) { return e.DataIn(nil) }

// DataIn is like Data, but may use the memory of buf, whose contents are lost, for
// what has to be decompressed.
func (e *Entry) DataIn(buf []byte) ([]byte, error) {
	data, err := e.decode(buf)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", e.place(), err)
	}
	return data, nil
}

func (e *Entry) decode(buf []byte) ([]byte, error) {
	if e.Err != nil {
		return nil, e.Err
	}
	if p := e.Parent; p != nil {
		blob, err := e.File.root().blob(p)
		if err != nil {
			return nil, fmt.Errorf("concatenation %s: %w", p.Tag(), err)
		}
		if e.inner+e.Size > int64(len(blob)) {
			return nil, formatErrorf("concatenation", p.Offset, "bytes 0x%x to 0x%x of 0x%x", e.inner, e.inner+e.Size, len(blob))
		}
		return blob[e.inner : e.inner+e.Size : e.inner+e.Size], nil
	}
	if e.Obfuscated() && e.Compression != Stored {
		return nil, fmt.Errorf("obfuscated LTO IR: %w", ErrUnsupported)
	}
	return unpack(e.Compression, e.Raw(), e.Size, e.File.root().opt.MaxEntry, buf)
}

// Done says that the entry's bytes will not be needed soon. Where the file is mapped,
// the memory that they take is given back; they can still be read again.
func (e *Entry) Done() {
	if e.PayloadOffset >= 0 {
		e.File.drop(e.PayloadOffset, e.PayloadOffset+e.PayloadSize)
	}
}

// Cubin parses the entry's cubin. Entries of other kinds give [ErrUnsupported].
func (e *Entry) Cubin() (*Cubin, error) { return e.CubinIn(nil) }

// CubinIn is like Cubin, but the cubin may use the memory of buf, whose contents are lost,
// for what has to be decompressed: with the next use of buf it is gone.
func (e *Entry) CubinIn(buf []byte) (*Cubin, error) {
	if e.Kind != KindELF && e.Err == nil {
		return nil, fmt.Errorf("%s: no cubin: %w", e.place(), ErrUnsupported)
	}
	if e.cubin != nil {
		return e.cubin, nil
	}
	data, err := e.DataIn(buf)
	if err != nil {
		return nil, err
	}
	c, err := ParseCubin(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", e.place(), err)
	}
	return c, nil
}
