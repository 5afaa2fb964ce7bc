package listing

import (
	"bytes"
	"fmt"
	"math/bits"

	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/patch/code"
	"github.com/cupatch/cupatch/patch/edit"
)

// AppendDiff appends the edits of one kernel as a unified diff of its listing, with
// so many lines of context. Lines count from the first instruction.
func AppendDiff(dst []byte, t *isa.Table, c *code.Kernel, name string, edits []edit.Edit, context int) []byte {
	if len(edits) == 0 {
		return dst
	}
	var style Style
	n := len(c.Data) / isa.WordSize
	dst = fmt.Appendf(dst, "--- %s %s\n+++ %s %s\n", name, quoteName(c.Name), name, quoteName(c.Name))
	for i := 0; i < len(edits); {
		j := i
		at := func(k int) int { return int(edits[k].PC / isa.WordSize) }
		for j+1 < len(edits) && at(j+1)-at(j) <= 2*context+1 {
			j++
		}
		lo, hi := max(at(i)-context, 0), min(at(j)+context+1, n)
		dst = fmt.Appendf(dst, "@@ -%d,%d +%d,%d @@\n", lo+1, hi-lo, lo+1, hi-lo)
		for k := lo; k < hi; {
			pc := uint64(k) * isa.WordSize
			if i > j || at(i) != k {
				dst = append(dst, ' ')
				dst = style.AppendLine(dst, t, isa.LoadWord(c.Data[pc:]), pc)
				k++
				continue
			}
			first := i
			for i <= j && at(i) == k {
				dst = append(dst, '-')
				dst = style.AppendLine(dst, t, edits[i].Old, edits[i].PC)
				i++
				k++
			}
			for _, e := range edits[first:i] {
				dst = append(dst, '+')
				dst = appendNew(dst, style, t, e)
			}
		}
	}
	return dst
}

// appendNew appends the line of an edit's new word.
func appendNew(dst []byte, style Style, t *isa.Table, e edit.Edit) []byte {
	start := len(dst)
	dst = style.AppendLine(dst, t, e.New, e.PC)
	if read(dst[start:]) != read(style.AppendLine(nil, t, e.Old, e.PC)) {
		return dst
	}
	dst = append(dst[:len(dst)-1], " // "...)
	return append(append(dst, differingBits(e.Old, e.New)...), '\n')
}

// read returns a line of a listing without its comment.
func read(line []byte) string {
	text, _, _ := bytes.Cut(line, []byte(" ;"))
	return string(text)
}

// differingBits names the bits from the first to the last in which two words differ, as
// rules write them, and their values: bits[122..122] 0x0 -> 0x1.
func differingBits(old, now isa.Word) string {
	d := old.Xor(now)
	lo, hi := bits.TrailingZeros64(d.Lo), 63-bits.LeadingZeros64(d.Lo)
	if d.Hi != 0 {
		hi = 127 - bits.LeadingZeros64(d.Hi)
	}
	if d.Lo == 0 {
		lo = 64 + bits.TrailingZeros64(d.Hi)
	}
	if hi-lo > 63 {
		return fmt.Sprintf("word %s -> %s", old, now)
	}
	f := isa.Bits(lo, hi)
	return fmt.Sprintf("bits[%d..%d] %#x -> %#x", lo, hi, f.Get(old), f.Get(now))
}
