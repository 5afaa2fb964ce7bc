package check

import "github.com/cupatch/cupatch/isa"

// InheritDefaults gives the variants vs the default bits and ranks of the variants of base,
// a related architecture, that have the same class and opcode; the others get zeros.
func InheritDefaults(vs, base []*isa.Variant) {
	type key struct {
		opcode int
		class  string
	}
	keyOf := func(v *isa.Variant) key { return key{v.Value.Opcode(), v.Class} }
	from := map[key]*isa.Variant{}
	for _, v := range base {
		from[keyOf(v)] = v
	}
	for _, v := range vs {
		b := from[keyOf(v)]
		if b == nil {
			b = &isa.Variant{}
		}
		v.Default, v.Rank = b.Default.AndNot(v.Mask), b.Rank
	}
}

// FitDefaults sets the default bits of the variants vs, which the words of real code
// decide: those that encoding from text alone must give where the text leaves a choice.
// It returns how many variants it changed. words should not hold a word twice.
//
// Of the bits that neither text nor legality depends on, the pattern that is most
// frequent counts. Then the words that still do not come back say which other bits to
// prefer. A change stays only if more words come back with it.
func FitDefaults(arch isa.Arch, vs []*isa.Variant, words []isa.Word) int {
	t := isa.NewTable(arch, vs)
	groups := map[*isa.Variant][]isa.Word{}
	for _, w := range words {
		if in := t.Decode(w); in.Status == isa.StatusKnown {
			groups[in.Variant] = append(groups[in.Variant], w)
		}
	}
	changed := rankVariants(t, vs, groups)
	for _, v := range vs {
		ws := groups[v]
		if len(ws) == 0 {
			continue
		}
		ws = ws[:min(len(ws), maxFit)]
		old := v.Default
		before, _ := comeBack(t, v, ws)
		v.Default = mostFrequent(ws, v.Ignored)
		preferBits(arch, vs, v, ws)
		if after, _ := comeBack(isa.NewTable(arch, vs), v, ws); after <= before {
			v.Default = old
		}
		if v.Default != old {
			changed++
		}
	}
	return changed
}

// rankVariants raises the rank of variants whose words' texts encode as another variant
// that has fewer words, and returns how many it raised.
func rankVariants(t *isa.Table, vs []*isa.Variant, groups map[*isa.Variant][]isa.Word) int {
	raised := 0
	for _, v := range vs {
		rank := v.Rank
		for _, w := range groups[v][:min(len(groups[v]), maxFit)] {
			got, err := t.Encode(t.Text(t.Decode(w), 0), 0, nil)
			if err != nil {
				continue
			}
			if x := t.Decode(got).Variant; x != v && len(groups[x]) < len(groups[v]) && x.Rank < 255 {
				rank = max(rank, x.Rank+1)
			}
		}
		if rank != v.Rank {
			v.Rank = rank
			raised++
		}
	}
	return raised
}

// mostFrequent returns the most frequent value of the bits of mask, of several the
// lowest.
func mostFrequent(ws []isa.Word, mask isa.Word) isa.Word {
	count := map[isa.Word]int{}
	var best isa.Word
	for _, w := range ws {
		x := w.And(mask)
		count[x]++
		if n := count[x]; n > count[best] || n == count[best] && less(x, best) {
			best = x
		}
	}
	return best
}

func less(a, b isa.Word) bool { return a.Hi < b.Hi || a.Hi == b.Hi && a.Lo < b.Lo }

// maxFit is the number of words of a variant that preferBits looks at.
const maxFit = 2000

// preferBits adds to v's default bits that make more of ws come back from their text.
func preferBits(arch isa.Arch, vs []*isa.Variant, v *isa.Variant, ws []isa.Word) {
	t := isa.NewTable(arch, vs)
	for range 4 {
		good, diff := comeBack(t, v, ws)
		if good == len(ws) || diff == (isa.Word{}) {
			return
		}
		old := v.Default
		v.Default = old.Xor(diff)
		if again, _ := comeBack(t, v, ws); again <= good {
			v.Default = old
			return
		}
	}
}

// comeBack returns how many of ws, words of v, their texts encode to, and the most
// frequent difference of the others, control bits aside.
func comeBack(t *isa.Table, v *isa.Variant, ws []isa.Word) (good int, diff isa.Word) {
	count := map[isa.Word]int{}
	for _, w := range ws {
		got, err := t.Encode(t.Text(t.Decode(w), 0), 0, nil)
		if err != nil {
			continue
		}
		d := isa.ControlOf(w).Set(got).Xor(w)
		d.Hi &= 1<<61 - 1
		switch {
		case d.IsZero():
			good++
		case d.And(v.Mask).IsZero():
			count[d]++
			if n := count[d]; n > count[diff] || n == count[diff] && less(d, diff) {
				diff = d
			}
		}
	}
	return good, diff
}
