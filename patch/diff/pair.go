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
}

// minLikeness is how alike two kernels with different names must be to be compared.
const minLikeness = 0.5

// A matcher pairs the kernels of two files.
type matcher struct {
	pairs []kernelPair
	taken map[*kernelRec]bool
}

// pairKernels pairs kernels: by architecture and name, where several have one name by
// their code; then by their code; then by likeness. The rest stays without partner.
func pairKernels(a, b []*kernelRec) (pairs []kernelPair, onlyA, onlyB []*kernelRec) {
	m := &matcher{taken: map[*kernelRec]bool{}}
	type key struct {
		arch, name string
		code       Hash
		entry      Hash
	}
	// The strictest agreement goes first, so that duplicates find their likes.
	for i, keyOf := range []func(k *kernelRec) key{
		func(k *kernelRec) key { return key{k.entry.arch, k.stable, k.code, k.entry.hash} },
		func(k *kernelRec) key { return key{k.entry.arch, k.stable, k.code, Hash{}} },
		func(k *kernelRec) key { return key{arch: k.entry.arch, name: k.stable} },
		func(k *kernelRec) key { return key{arch: k.entry.arch, code: k.code} },
	} {
		by := ByName
		if i == 3 {
			by = ByCode
		}
		theirs := map[key][]*kernelRec{}
		for _, k := range b {
			if !m.taken[k] {
				theirs[keyOf(k)] = append(theirs[keyOf(k)], k)
			}
		}
		for _, k := range a {
			if list := theirs[keyOf(k)]; !m.taken[k] && len(list) > 0 {
				m.pair(kernelPair{a: k, b: list[0], by: by})
				theirs[keyOf(k)] = list[1:]
			}
		}
	}
	m.similar(a, b)
	order := map[*kernelRec]int{}
	for i, k := range a {
		order[k] = i
	}
	slices.SortFunc(m.pairs, func(x, y kernelPair) int { return cmp.Compare(order[x.a], order[y.a]) })
	return m.pairs, m.left(a), m.left(b)
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

// maxCandidates bounds the kernels of the other file that one is held against.
const maxCandidates = 256

// similar pairs the kernels that are left by likeness, the most alike first. Only
// kernels of similar length are tried.
func (m *matcher) similar(a, b []*kernelRec) {
	byArch := map[string][]*kernelRec{}
	for _, k := range m.left(b) {
		byArch[k.entry.arch] = append(byArch[k.entry.arch], k)
	}
	for _, list := range byArch {
		slices.SortStableFunc(list, func(x, y *kernelRec) int { return cmp.Compare(x.n, y.n) })
	}
	var found []kernelPair
	for _, k := range m.left(a) {
		list := byArch[k.entry.arch]
		at, _ := slices.BinarySearchFunc(list, k.n, func(x *kernelRec, n int) int { return cmp.Compare(x.n, n) })
		lo, hi := max(at-maxCandidates/2, 0), min(at+maxCandidates/2, len(list))
		for _, o := range list[lo:hi] {
			if like := k.sketch.likeness(&o.sketch); like >= minLikeness {
				found = append(found, kernelPair{k, o, BySimilarity, like})
			}
		}
	}
	slices.SortStableFunc(found, func(x, y kernelPair) int {
		return cmp.Or(cmp.Compare(y.like, x.like), cmp.Compare(nameDistance(x), nameDistance(y)),
			cmp.Compare(min(x.a.name, x.b.name), min(y.a.name, y.b.name)))
	})
	for _, p := range found {
		if !m.taken[p.a] && !m.taken[p.b] {
			m.pair(p)
		}
	}
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
