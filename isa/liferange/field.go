package liferange

import (
	"math/rand/v2"
	"slices"

	"github.com/cupatch/cupatch/isa"
)

// A candidate is a field that may name registers.
type candidate struct {
	file   isa.RegFile
	field  isa.Field
	invert bool
	add    int
	// settable is false where modifiers share the field's bits: its values are then taken
	// as they come.
	settable bool
	printed  bool // the text has it
	long     bool // more than a few registers
}

// value returns the number of the register that c names in w, and false for none.
func (c *candidate) value(w isa.Word) (int, bool) {
	v := c.field.Get(w)
	all := uint64(1)<<c.field.Width() - 1
	if c.invert {
		v ^= all
	}
	return int(v) + c.add, v != all
}

// end returns the number of registers of the file.
func (c *candidate) end() int { return 1<<c.field.Width() - 1 }

var fileOfKind = map[isa.Kind]isa.RegFile{
	isa.KindReg: isa.FileR, isa.KindUReg: isa.FileUR, isa.KindPred: isa.FileP, isa.KindUPred: isa.FileUP,
}

// candidates returns the fields of v that print registers, and those where registers
// usually stand.
func candidates(v *isa.Variant, arch isa.Arch) []candidate {
	var cs []candidate
	var modifiers, odd isa.Word
	for i := range v.Template {
		p := &v.Template[i]
		for _, t := range p.Tests {
			if t.Kind == isa.TestValue && t.Field.Width() < 8 {
				modifiers = modifiers.Or(t.Field.Mask())
			}
		}
		for _, alt := range p.Alts {
			for _, e := range alt {
				file, ok := fileOfKind[e.Slot.Kind]
				if e.Lit != "" || !ok || e.Slot.Field.Width() > 8 {
					continue
				}
				if e.Slot.Shift != 0 || e.Slot.Add != 0 || !hasWidth(file, e.Slot.Field.Width()) {
					// A part of a register's number, or the next register.
					odd = odd.Or(e.Slot.Field.Mask())
					continue
				}
				cs = addCandidate(cs, candidate{file: file, field: e.Slot.Field, invert: e.Slot.Xor != 0, settable: true, printed: true})
			}
		}
	}
	for _, c := range usual(arch) {
		m := c.field.Mask()
		if m.And(v.Mask).IsZero() && !slices.ContainsFunc(cs, func(k candidate) bool {
			return k.file == c.file && !k.field.Mask().And(m).IsZero()
		}) {
			c.settable = !m.And(odd).IsZero()
			c.printed = c.settable
			cs = append(cs, c)
		}
	}
	for i := range cs {
		if m := cs[i].field.Mask(); !m.And(modifiers.AndNot(odd)).IsZero() && m.And(odd).IsZero() || !m.And(v.Mask).IsZero() {
			cs[i].settable = false
		}
	}
	return cs
}

// hasWidth reports whether numbers of registers of f have so many bits.
func hasWidth(f isa.RegFile, n int) bool {
	switch f {
	case isa.FileR:
		return n == 8
	case isa.FileUR:
		return n == 6 || n == 8
	}
	return n == 3
}

func addCandidate(cs []candidate, c candidate) []candidate {
	for i := range cs {
		k := &cs[i]
		if k.file == c.file && slices.Equal(k.field, c.field) && k.invert == c.invert && k.add == c.add {
			return cs
		}
	}
	return append(cs, c)
}

// usual returns the fields in which most classes have registers.
func usual(arch isa.Arch) []candidate {
	var cs []candidate
	top := 5
	if arch.SM >= 100 {
		top = 7
	}
	for _, lo := range []int{16, 24, 32, 64} {
		cs = append(cs, candidate{file: isa.FileR, field: isa.Bits(lo, lo+7)}, candidate{file: isa.FileUR, field: isa.Bits(lo, lo+top)})
	}
	if arch.SM >= 100 {
		cs = append(cs, candidate{file: isa.FileUR, field: isa.Bits(40, 47)})
	}
	for _, lo := range []int{64, 68, 77, 81, 84, 87} {
		for _, f := range []isa.RegFile{isa.FileP, isa.FileUP} {
			cs = append(cs, candidate{file: f, field: isa.Bits(lo, lo+2)})
		}
	}
	return cs
}

// place returns settings of the settable candidates that keep their registers apart, and
// the bits set. One in eight names no register.
func place(cs []candidate, r *rand.Rand) (with, fixed isa.Word) {
	order := r.Perm(len(cs))
	used := map[isa.RegFile]int{}
	wide := r.IntN(4) == 0 // room for one long run
	for i, k := range order {
		if cs[k].long {
			order[0], order[i] = order[i], order[0]
			wide = r.IntN(4) != 0
			break
		}
	}
	preds := map[isa.RegFile][]int{isa.FileP: r.Perm(7), isa.FileUP: r.Perm(7)}
	for _, i := range order {
		c := &cs[i]
		m := c.field.Mask()
		if !c.settable || !m.And(fixed).IsZero() {
			continue
		}
		n := used[c.file]
		used[c.file]++
		lo, hi := shown(c.file)
		var v int
		switch {
		case r.IntN(8) == 0:
			v = c.end()
		case c.file == isa.FileP || c.file == isa.FileUP:
			v = preds[c.file][n%7]
		case wide && n == 0:
			v = lo + r.IntN(8)
		case wide:
			v = lo + (hi-lo)*(9+2*(n%4-1))/16 + r.IntN(4)
		default:
			v = lo + (hi-lo)*(n%4)/4 + r.IntN(4)
		}
		v = max(0, min(v-c.add, c.end()))
		if c.invert {
			v ^= c.end()
		}
		with, fixed = with.Or(c.field.MustSet(isa.Word{}, uint64(v))), fixed.Or(m)
	}
	return with, fixed
}

// shown returns the registers of a file, from lo up to hi, that nvdisasm marks: of UR only
// UR4 to UR62.
func shown(f isa.RegFile) (lo, hi int) {
	switch f {
	case isa.FileR:
		return 0, 255
	case isa.FileUR:
		return 4, 63
	}
	return 0, 7
}

// compare returns the effects of w that nvdisasm shows, by p and by its marks. It does not
// show runs of UR that start below UR4, nor UR63 and those above it: what marks say of the
// registers of such a run counts for nothing.
func compare(p *isa.EffectProgram, w isa.Word, marks isa.Effects) (got, want isa.Effects) {
	var buf [16]isa.Access
	var hidden isa.RegSet
	got, want = p.Effects(w), marks
	got.Reads.UR, got.Writes.UR = [4]uint64{}, [4]uint64{}
	lo, hi := shown(isa.FileUR)
	hidden.Add(isa.FileUR, hi, 256-hi)
	for _, a := range p.Accesses(buf[:0], w) {
		switch {
		case a.File != isa.FileUR:
			continue
		case a.First < lo:
			hidden.Add(a.File, a.First, a.Count)
			continue
		}
		if a.Reads {
			got.Reads.Add(a.File, a.First, a.Count)
		}
		if a.Writes {
			got.Writes.Add(a.File, a.First, a.Count)
		}
	}
	got.Reads, got.Writes = got.Reads.Minus(hidden), got.Writes.Minus(hidden)
	want.Reads, want.Writes = want.Reads.Minus(hidden), want.Writes.Minus(hidden)
	return got, want
}

// unknown stands for a count that an answer does not show.
const unknown = -1

// attribute returns for each candidate how many of the registers of set, from the one
// that it names on, are its own; unknown where other candidates come in between.
func attribute(cs []candidate, w isa.Word, set *isa.RegSet, implied *isa.RegSet) []int {
	out := make([]int, len(cs))
	for i := range cs {
		c := &cs[i]
		v, ok := c.value(w)
		if !ok {
			out[i] = unknown
			continue
		}
		lo, next := shown(c.file)
		clear := lo <= v && v < next
		for k := range cs {
			d := &cs[k]
			if u, ok := d.value(w); ok && k != i && d.file == c.file {
				if u == v && !samePlace(c, d) {
					clear = false
				}
				if u > v {
					next = min(next, u)
				}
				if u < v && full(set, c.file, u, v) {
					clear = false
				}
			}
		}
		n := 0
		for v+n < next && set.Has(c.file, v+n) && !implied.Has(c.file, v+n) {
			n++
		}
		out[i] = n
		if !clear || v+n == next && n > 0 && c.file != isa.FileP && c.file != isa.FileUP || implied.Has(c.file, v) {
			out[i] = unknown
		}
	}
	return out
}

// samePlace reports whether two candidates are the same bits read in different ways.
func samePlace(c, d *candidate) bool { return slices.Equal(c.field, d.field) && c.invert == d.invert }

// full reports whether set has all registers from lo up to hi.
func full(set *isa.RegSet, f isa.RegFile, lo, hi int) bool {
	for n := lo; n < hi; n++ {
		if !set.Has(f, n) {
			return false
		}
	}
	return true
}
