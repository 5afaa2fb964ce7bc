package elfx

import (
	"fmt"
	"strings"
)

// Formats of an attribute record of .nv.info and .nv.compat.
const (
	fmtNone  = 1 // no value
	fmtByte  = 2 // one byte, in a u16
	fmtHalf  = 3 // u16
	fmtSized = 4 // u16 length and that many bytes
)

// Attributes of .nv.info that this package reads.
const (
	attrFrameSize      = 0x11
	attrMinStackSize   = 0x12
	attrKparamInfo     = 0x17
	attrParamCbank     = 0x0a
	attrCbankParamSize = 0x19
	attrBranchTargets  = 0x34
	attrMbarrier       = 0x39
	attrCoroutine      = 0x3a
	attrRegcount       = 0x2f
	attrEmulRegMap     = 0x2e
	attrKparamInfoV2   = 0x45
	attrNumBarriers    = 0x4c
	attrInstrOffsets   = 0x6c
)

// An Attr is a record of .nv.info (or .nv.compat): u8 format, u8 id, then a u16
// value or a u16 length with data.
type Attr struct {
	ID     uint8
	Format uint8
	Value  uint16 // formats 1 to 3
	Data   []byte // format 4: a slice of the cubin
	Offset int64  // of the record, in the cubin
}

// Name returns cuobjdump's name without its prefix EIATTR_, such as REGCOUNT, or
// 0x7f for an attribute that has no known name.
func (a Attr) Name() string {
	if int(a.ID) < len(attrNames) && attrNames[a.ID] != "" {
		return attrNames[a.ID]
	}
	return fmt.Sprintf("0x%02x", a.ID)
}

// Known reports whether the attribute has a name.
func (a Attr) Known() bool { return int(a.ID) < len(attrNames) && attrNames[a.ID] != "" }

// String returns the value: nothing, one number, or the data as 32-bit words (as
// bytes where the length is not a multiple of four), all in hex.
func (a Attr) String() string {
	switch a.Format {
	case fmtByte:
		return fmt.Sprintf("0x%x", a.Value&0xff)
	case fmtHalf:
		return fmt.Sprintf("0x%x", a.Value)
	case fmtSized:
		if len(a.Data)%4 != 0 {
			return fmt.Sprintf("% x", a.Data)
		}
		var b strings.Builder
		for i := 0; i < len(a.Data); i += 4 {
			if i > 0 {
				b.WriteByte(' ')
			}
			fmt.Fprintf(&b, "0x%x", le.Uint32(a.Data[i:]))
		}
		return b.String()
	}
	return ""
}

// Words returns the data of format 4 as 32-bit words; a shorter rest is left out.
func (a Attr) Words() []uint32 {
	w := make([]uint32, len(a.Data)/4)
	for i := range w {
		w[i] = le.Uint32(a.Data[4*i:])
	}
	return w
}

// nextAttr reads the record at the start of b. Base is b's offset in the cubin.
func nextAttr(b []byte, base int64) (a Attr, size int, msg string) {
	if len(b) < 4 {
		return a, 0, "truncated attribute record"
	}
	a = Attr{Format: b[0], ID: b[1], Value: le.Uint16(b[2:]), Offset: base}
	switch a.Format {
	case fmtNone, fmtByte, fmtHalf:
		return a, 4, ""
	case fmtSized:
		n := int(a.Value)
		if 4+n > len(b) {
			return a, 0, fmt.Sprintf("attribute 0x%02x needs %d bytes, the section has %d left", a.ID, n, len(b)-4)
		}
		a.Value, a.Data = 0, b[4:4+n:4+n]
		return a, 4 + n, ""
	}
	return a, 0, fmt.Sprintf("attribute record of unknown format 0x%02x", a.Format)
}

// isInfo reports whether s holds attribute records that this package reads.
func isInfo(s *Section) bool {
	return s.HasData() && (s.Type == shtCudaInfo && strings.HasPrefix(s.Name, ".nv.info") || s.Type == shtCudaCompatInfo)
}

// checkInfo walks every attribute section once, so that the methods that decode
// them later cannot fail.
func (c *Cubin) checkInfo() error {
	for i := range c.sections {
		s := &c.sections[i]
		if !isInfo(s) {
			continue
		}
		b := c.SectionData(s)
		for pos := 0; pos < len(b); {
			_, n, msg := nextAttr(b[pos:], 0)
			if msg != "" {
				return formatErrorf(quoteName(s.Name, i), s.Offset+int64(pos), "%s", msg)
			}
			pos += n
		}
	}
	return nil
}

// eachAttr calls fn with the records of an attribute section that checkInfo has passed.
func (c *Cubin) eachAttr(s *Section, fn func(a Attr)) {
	if s == nil || !isInfo(s) {
		return
	}
	b := c.SectionData(s)
	for pos := 0; pos < len(b); {
		a, n, msg := nextAttr(b[pos:], s.Offset+int64(pos))
		if msg != "" {
			return
		}
		fn(a)
		pos += n
	}
}

// attrs returns the records of an attribute section.
func (c *Cubin) attrs(s *Section) []Attr {
	n := 0
	c.eachAttr(s, func(Attr) { n++ })
	if n == 0 {
		return nil
	}
	out := make([]Attr, 0, n)
	c.eachAttr(s, func(a Attr) { out = append(out, a) })
	return out
}

// Info returns the attributes of the whole cubin, section .nv.info.
func (c *Cubin) Info() []Attr { return c.attrs(c.Section(".nv.info")) }

// InstrOffsets calls fn with every instruction offset that the attribute lists and with
// the number of the 32-bit word of Data that has it. The layouts were read off
// cuobjdump's output for made-up records.
func (a Attr) InstrOffsets(fn func(word int, off uint64)) {
	w := a.Words()
	every := func(first, step int) {
		for i := first; i < len(w); i += step {
			fn(i, uint64(w[i]))
		}
	}
	switch a.ID {
	case attrMbarrier: // records of four: offset, register, immediate, kind
		w = w[:len(w)&^3]
		every(0, 4)
	case attrEmulRegMap: // pairs of offset and registers
		w = w[:len(w)&^1]
		every(0, 2)
	case attrCoroutine: // pairs of id and offset
		every(1, 2)
	case attrInstrOffsets: // kind, then offsets
		every(1, 1)
	case attrBranchTargets:
		at := 0
		branchTargets(w, func(branch uint64, targets []uint32) {
			fn(at, branch)
			for i, t := range targets {
				fn(at+3+i, uint64(t))
			}
			at += 3 + len(targets)
		})
	default:
		if strings.HasSuffix(a.Name(), "_OFFSETS") && !offsetNames[a.ID] {
			every(0, 1)
		}
	}
}

// branchTargets calls fn for each indirect branch in the words of a branch-targets
// attribute: the offset of the branch, two halves, the number of targets, the targets.
func branchTargets(w []uint32, fn func(branch uint64, targets []uint32)) {
	for len(w) >= 3 {
		n := min(int(w[2]), len(w)-3)
		fn(uint64(w[0]), w[3:3+n])
		w = w[3+n:]
	}
}

// offsetNames has the attributes whose name ends in _OFFSETS and whose offsets are
// not into the code.
var offsetNames = map[uint8]bool{0x0b: true, 0x0c: true, 0x14: true}
