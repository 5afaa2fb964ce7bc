package diff

import (
	"cmp"
	"slices"
	"strings"
)

// A Pairing is the reason for which two kernels are compared with each other.
type Pairing uint8

// The reasons.
const (
	ByName       Pairing = iota // the same architecture and name
	ByCode                      // the same architecture and code under different names
	BySimilarity                // the most alike among the rest
)

var pairingNames = [...]string{"name", "code", "similarity"}

func (p Pairing) String() string { return pairingNames[p] }

// A kernelPair is two kernels to compare.
type kernelPair struct {
	a, b *kernelRec
	by   Pairing
	like float64 // of BySimilarity: 0 to 1
	far  int     // how much of the names differs
}

// minLikeness is how alike two kernels with different names must be to be compared.
const minLikeness = 0.5

// A matcher pairs the kernels of two files.
type matcher struct {
	pairs []kernelPair
	taken map[*kernelRec]bool
	order map[*kernelRec]int // place in the file
}

// pairKernels pairs kernels: by architecture and name, first in cubins that are partners,
// where several have one name by their code and then by likeness; then by their code;
// then by likeness. The rest stays
// without partner. It pairs b with a as it pairs a with b.
func pairKernels(a, b []*kernelRec) (pairs []kernelPair, onlyA, onlyB []*kernelRec) {
	m := &matcher{taken: map[*kernelRec]bool{}, order: map[*kernelRec]int{}}
	for _, list := range [][]*kernelRec{a, b} {
		for i, k := range list {
			m.order[k] = i
		}
	}
	// The strictest agreement goes first, so that duplicates find their likes. A kernel stays
	// in its cubin where that is possible, and keeps its name, hashes in it included.
	for _, cubin := range []func(*kernelRec) *entryRec{(*kernelRec).home, func(*kernelRec) *entryRec { return nil }} {
		for _, name := range []func(*kernelRec) string{func(k *kernelRec) string { return k.name }, func(k *kernelRec) string { return k.stable }} {
			m.equal(a, b, ByName, func(k *kernelRec) pairKey { return pairKey{k.entry.arch, name(k), k.code, cubin(k)} })
			m.named(a, b, func(k *kernelRec) pairKey { return pairKey{arch: k.entry.arch, name: name(k), cubin: cubin(k)} })
		}
	}
	m.equal(a, b, ByCode, func(k *kernelRec) pairKey { return pairKey{arch: k.entry.arch, code: k.code, cubin: k.home()} })
	m.equal(a, b, ByCode, func(k *kernelRec) pairKey { return pairKey{arch: k.entry.arch, code: k.code} })
	m.similar(a, b)
	slices.SortFunc(m.pairs, func(x, y kernelPair) int { return cmp.Compare(m.order[x.a], m.order[y.a]) })
	return m.pairs, m.left(a), m.left(b)
}

// A pairKey is what kernels have in common that are paired.
type pairKey struct {
	arch, name string
	code       Hash
	cubin      *entryRec
}

// home returns the cubin that a kernel is in, for the second file its partner in the
// first, so that both have the same; one without partner is its own.
func (k *kernelRec) home() *entryRec {
	if e := k.entry; e.side == 1 && e.partner != nil {
		return e.partner
	}
	return k.entry
}

// equal pairs kernels with equal keys, in order.
func (m *matcher) equal(a, b []*kernelRec, by Pairing, keyOf func(*kernelRec) pairKey) {
	theirs := map[pairKey][]*kernelRec{}
	for _, k := range m.left(b) {
		theirs[keyOf(k)] = append(theirs[keyOf(k)], k)
	}
	for _, k := range m.left(a) {
		if list := theirs[keyOf(k)]; len(list) > 0 {
			m.pair(kernelPair{a: k, b: list[0], by: by})
			theirs[keyOf(k)] = list[1:]
		}
	}
}

// named pairs kernels of one name, the most alike first where there are several.
func (m *matcher) named(a, b []*kernelRec, keyOf func(*kernelRec) pairKey) {
	groups := map[pairKey]*[2][]*kernelRec{}
	for side, list := range [][]*kernelRec{a, b} {
		for _, k := range m.left(list) {
			g := groups[keyOf(k)]
			if g == nil {
				g = &[2][]*kernelRec{}
				groups[keyOf(k)] = g
			}
			g[side] = append(g[side], k)
		}
	}
	for _, g := range groups {
		x, y := g[0], g[1]
		if len(x) > 1 || len(y) > 1 {
			var found []kernelPair
			for _, k := range x[:min(len(x), maxCandidates)] {
				for _, o := range y[:min(len(y), maxCandidates)] {
					found = append(found, kernelPair{a: k, b: o, by: ByName, like: k.sketch.likeness(&o.sketch)})
				}
			}
			m.best(found)
		}
		// What is left of very many is paired in order.
		x, y = m.left(x), m.left(y)
		for i := range min(len(x), len(y)) {
			m.pair(kernelPair{a: x[i], b: y[i], by: ByName})
		}
	}
}

func (m *matcher) pair(p kernelPair) {
	m.taken[p.a], m.taken[p.b] = true, true
	m.pairs = append(m.pairs, p)
}

// left returns the kernels without a partner.
func (m *matcher) left(list []*kernelRec) []*kernelRec {
	var out []*kernelRec
	for _, k := range list {
		if !m.taken[k] {
			out = append(out, k)
		}
	}
	return out
}

// best takes pairs of kernels that have no partner yet, the most alike first.
func (m *matcher) best(found []kernelPair) {
	slices.SortFunc(found, m.compare)
	for _, p := range found {
		if !m.taken[p.a] && !m.taken[p.b] {
			m.pair(p)
		}
	}
}

// compare orders pairs of kernels, the most alike first, and does not depend on which
// file is the first.
func (m *matcher) compare(x, y kernelPair) int {
	if x.like != y.like || x.far != y.far {
		return cmp.Or(cmp.Compare(y.like, x.like), cmp.Compare(x.far, y.far))
	}
	i, j, k, l := m.order[x.a], m.order[x.b], m.order[y.a], m.order[y.b]
	return cmp.Or(cmp.Compare(min(x.a.name, x.b.name), min(y.a.name, y.b.name)), cmp.Compare(abs(i-j), abs(k-l)), cmp.Compare(i+j, k+l))
}

// Bounds of the kernels of the other file that one is held against, and of those of them
// that are kept.
const (
	maxCandidates = 256
	maxKept       = 16
)

// similar pairs the kernels that are left by likeness, the most alike first. Only
// kernels of similar length are tried.
func (m *matcher) similar(a, b []*kernelRec) {
	lists := map[string]*[2][]*kernelRec{}
	for side, list := range [][]*kernelRec{a, b} {
		for _, k := range m.left(list) {
			if lists[k.entry.arch] == nil {
				lists[k.entry.arch] = &[2][]*kernelRec{}
			}
			lists[k.entry.arch][side] = append(lists[k.entry.arch][side], k)
		}
	}
	for _, l := range lists {
		for _, list := range l {
			slices.SortStableFunc(list, func(x, y *kernelRec) int { return cmp.Compare(x.n, y.n) })
		}
		// From both sides, as what is near depends on the side.
		var found []kernelPair
		for side := range l {
			for _, k := range l[side] {
				found = append(found, m.likes(k, l[1-side], side == 1)...)
			}
		}
		m.best(found)
	}
}

// likes returns k with its likes in a list that is sorted by length; swap says that the
// list is of the first file.
func (m *matcher) likes(k *kernelRec, list []*kernelRec, swap bool) []kernelPair {
	at, _ := slices.BinarySearchFunc(list, k.n, func(x *kernelRec, n int) int { return cmp.Compare(x.n, n) })
	var out []kernelPair
	for _, o := range list[max(at-maxCandidates/2, 0):min(at+maxCandidates/2, len(list))] {
		if like := k.sketch.likeness(&o.sketch); like >= minLikeness {
			p := kernelPair{a: k, b: o, by: BySimilarity, like: like}
			if swap {
				p.a, p.b = o, k
			}
			out = append(out, p)
		}
	}
	// Names can be long, so they are looked at where it may matter.
	slices.SortStableFunc(out, func(x, y kernelPair) int { return cmp.Compare(y.like, x.like) })
	out = out[:min(len(out), 4*maxKept)]
	for i := range out {
		out[i].far = nameDistance(out[i])
	}
	slices.SortFunc(out, m.compare)
	return out[:min(len(out), maxKept)]
}

// nameDistance is how much of the names of a pair differs: what is left without the
// beginning and the end that they share.
func nameDistance(p kernelPair) int {
	x, y := p.a.name, p.b.name
	for x != "" && y != "" && x[0] == y[0] {
		x, y = x[1:], y[1:]
	}
	for x != "" && strings.HasSuffix(y, x[len(x)-1:]) {
		x, y = x[:len(x)-1], y[:len(y)-1]
	}
	return len(x) + len(y)
}
