package patch

import (
	"fmt"

	"github.com/cupatch/cupatch/isa"
)

// AppendDiff appends the edits of one kernel as a unified diff of its listing, with
// so many lines of context. Lines count from the first instruction.
func AppendDiff(dst []byte, t *isa.Table, c *Code, name string, edits []Edit, context int) []byte {
	if len(edits) == 0 {
		return dst
	}
	var style ListingStyle
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
				dst = style.AppendLine(dst, t, e.New, e.PC)
			}
		}
	}
	return dst
}
