package code

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/isa"
)

// A Target is a cubin that is read and changed: an entry of a file.
type Target struct {
	File  string // as named by the user
	Entry string // number in its container, "" for a bare cubin
	Cubin *elfx.Cubin
	Table *isa.Table // nil where there is none
	// NoTable says why there is no table; nil where there is one.
	NoTable error
	// FileOffset maps an offset in the cubin to one in the file, -1 for none; nil:
	// they are the same.
	FileOffset func(off int64) int64

	lines *lineTables
}

// Open reads the cubin of an entry. A cubin without a table is no error: its words can
// still be replaced.
func Open(e *elfx.Entry) (*Target, error) {
	c, err := e.Cubin()
	if err != nil {
		return nil, err
	}
	t := &Target{File: e.File.Name, Entry: e.Label(), Cubin: c, FileOffset: e.FileOffset, lines: newLineTables(c)}
	t.Table, t.NoTable = TableOf(c)
	return t, nil
}

// Hash returns the hash of a kernel's code that guards and reports use, without
// its prefix.
func Hash(code []byte) string {
	h := sha256.Sum256(code)
	return hex.EncodeToString(h[:])
}

// Kernel returns a kernel of the cubin as a plan sees it.
func (t *Target) Kernel(k *elfx.Kernel) *Kernel {
	return &Kernel{
		File: t.File, Entry: t.Entry, Name: k.Name, Data: k.Data(), Offset: k.Offset, FileOffset: t.OffsetInFile(k.Offset),
		Regs: k.Regs, Demangle: elfx.Demangle, kernel: k, target: t,
	}
}

// OffsetInFile returns the offset in the file of an offset in the cubin, -1 for none.
func (t *Target) OffsetInFile(off int64) int64 {
	if t.FileOffset == nil {
		return off
	}
	return t.FileOffset(off)
}

// Target returns the cubin of the kernel, nil where it is from none.
func (c *Kernel) Target() *Target { return c.target }

// Source returns the kernel as the cubin has it, nil where it is from none.
func (c *Kernel) Source() *elfx.Kernel { return c.kernel }
