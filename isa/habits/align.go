// Package habits counts what code of ptxas always does and nvdisasm does not say: the
// numbers of registers and the offsets that are always multiples of two, four and so on.
package habits

import (
	"cmp"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strings"

	"github.com/cupatch/cupatch/isa"
)

// An Align counts the operands of instructions. Each different word should be added once.
type Align struct {
	classes map[string]map[isa.AlignKey]*seen
	buf     []isa.AlignPlace
}

// seen is what was seen of an operand.
type seen struct {
	or     uint64 // of all numbers
	words  int
	values map[uint64]bool
}

// maxValues is how many different numbers are counted.
const maxValues = 100

// NewAlign returns a count of nothing.
func NewAlign() *Align { return &Align{classes: map[string]map[isa.AlignKey]*seen{}} }

// Add counts the operands of in.
func (a *Align) Add(in isa.Inst) {
	if in.Status != isa.StatusKnown {
		return
	}
	a.buf = in.AlignPlaces(a.buf[:0])
	for i, p := range a.buf {
		if slices.ContainsFunc(a.buf[:i], func(q isa.AlignPlace) bool { return q.AlignKey == p.AlignKey }) {
			continue // read and written
		}
		class := a.classes[in.Variant.Class]
		if class == nil {
			class = map[isa.AlignKey]*seen{}
			a.classes[in.Variant.Class] = class
		}
		s := class[p.AlignKey]
		if s == nil {
			s = &seen{values: map[uint64]bool{}}
			class[p.AlignKey] = s
		}
		s.or |= p.Value
		s.words++
		if len(s.values) < maxValues {
			s.values[p.Value] = true
		}
	}
}

// Text returns the counts in the form of isa/align.txt, without its comments.
func (a *Align) Text() string {
	var b strings.Builder
	for _, class := range slices.Sorted(maps.Keys(a.classes)) {
		m := a.classes[class]
		keys := slices.SortedFunc(maps.Keys(m), func(x, y isa.AlignKey) int {
			return cmp.Or(cmp.Compare(x.Bit, y.Bit), cmp.Compare(x.String(), y.String()))
		})
		b.WriteString(class)
		for _, k := range keys {
			s := m[k]
			multiple := min(1<<min(bits.TrailingZeros64(s.or), 16), k.Most())
			fmt.Fprintf(&b, " %s=%d:%d:%d", k, multiple, s.words, len(s.values))
		}
		b.WriteByte('\n')
	}
	return b.String()
}
