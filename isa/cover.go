package isa

// A cube is a pattern of index bits: those in free may be anything, the others are
// as in value.
type cube struct {
	value, free uint32
	entry       uint16
}

// digit returns bit b of c as 0, 1 or -.
func (c cube) digit(b int) byte {
	if c.free>>b&1 != 0 {
		return '-'
	}
	return '0' + byte(c.value>>b&1)
}

// cover returns patterns that say the same as table, of which the first that fits an
// index counts. The most frequent entry comes last, as the one for everything else. The
// others grow, one bit at a time, over entries that are the same or already covered.
func cover(table []uint16) []cube {
	all := uint32(len(table) - 1)
	last := mostFrequent(table)
	covered := make([]bool, len(table))
	var cubes []cube
	left := 0
	for i, x := range table {
		if x == last {
			left++
		}
		if x == last || covered[i] {
			continue
		}
		c := cube{uint32(i), 0, x}
		for bit := (all + 1) >> 1; bit > 0; bit >>= 1 {
			if c.fits(table, covered, bit) {
				c.free |= bit
				c.value &^= bit
			}
		}
		c.each(func(j uint32) bool { covered[j] = true; return true })
		cubes = append(cubes, c)
	}
	if left > 0 {
		cubes = append(cubes, cube{0, all, last})
	}
	return cubes
}

// fits reports whether c may also leave bit free.
func (c cube) fits(table []uint16, covered []bool, bit uint32) bool {
	c.value ^= bit
	return c.each(func(j uint32) bool { return covered[j] || table[j] == c.entry })
}

// each calls f with every index that fits c until f returns false; it reports
// whether f never did.
func (c cube) each(f func(uint32) bool) bool {
	for s := c.free; ; s = (s - 1) & c.free {
		if !f(c.value | s) {
			return false
		}
		if s == 0 {
			return true
		}
	}
}

// mostFrequent returns the entry that table has most often, the lowest of several.
func mostFrequent(table []uint16) uint16 {
	count := map[uint16]int{}
	best := table[0]
	for _, x := range table {
		count[x]++
	}
	for x, n := range count {
		if n > count[best] || n == count[best] && x < best {
			best = x
		}
	}
	return best
}
