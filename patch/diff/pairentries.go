package diff

import (
	"cmp"
	"slices"
)

// pairEntries pairs the cubins of two files, of the same architecture: those with the
// same bytes, then those that have the most kernels in common, then, in order, those
// without kernels. It sets the partners and pairs b with a as it pairs a with b.
func pairEntries(a, b []*entryRec) {
	pairEqual(a, b)
	pairAlike(a, b)
	for _, e := range a {
		for _, o := range b {
			if e.partner == nil && o.partner == nil && e.arch == o.arch && !e.code && !o.code {
				e.partner, o.partner = o, e
			}
		}
	}
}

// pairEqual pairs the cubins with the same bytes, in order.
func pairEqual(a, b []*entryRec) {
	theirs := map[Hash][]*entryRec{}
	for _, o := range b {
		theirs[o.hash] = append(theirs[o.hash], o)
	}
	for _, e := range a {
		if list := theirs[e.hash]; len(list) > 0 {
			e.partner, list[0].partner = list[0], e
			theirs[e.hash] = list[1:]
		}
	}
}

// An entryPair is two cubins that have kernels in common.
type entryPair struct {
	a, b   *entryRec
	i, j   int // their places
	common int // kernels of one name, those with the same code twice
}

// pairAlike pairs the cubins that are left by their kernels. Of many cubins with a kernel
// of one name those at places nearest to each other are looked at.
func pairAlike(a, b []*entryRec) {
	theirs := map[pairKey][]int{}
	for j, o := range b {
		if o.partner != nil {
			continue
		}
		for _, k := range o.kernels {
			key := pairKey{arch: o.arch, name: k.stable}
			theirs[key] = append(theirs[key], j)
		}
	}
	var found []entryPair
	for i, e := range a {
		if e.partner != nil {
			continue
		}
		common := map[int]int{}
		for _, k := range e.kernels {
			for _, j := range nearest(theirs[pairKey{arch: e.arch, name: k.stable}], i) {
				common[j]++
				if slices.ContainsFunc(b[j].kernels, func(o *kernelRec) bool { return o.stable == k.stable && o.code == k.code }) {
					common[j]++
				}
			}
		}
		for j, n := range common {
			found = append(found, entryPair{e, b[j], i, j, n})
		}
	}
	slices.SortFunc(found, func(x, y entryPair) int {
		return cmp.Or(cmp.Compare(y.common, x.common), cmp.Compare(abs(x.i-x.j), abs(y.i-y.j)), cmp.Compare(x.i+x.j, y.i+y.j), cmp.Compare(x.i, y.i))
	})
	for _, p := range found {
		if p.a.partner == nil && p.b.partner == nil {
			p.a.partner, p.b.partner = p.b, p.a
		}
	}
}

// maxAlike bounds the cubins that one is held against because of one kernel.
const maxAlike = 32

// nearest returns at most maxAlike numbers of a sorted list, those nearest to i.
func nearest(list []int, i int) []int {
	if len(list) <= maxAlike {
		return list
	}
	at, _ := slices.BinarySearch(list, i)
	from := min(max(at-maxAlike/2, 0), len(list)-maxAlike)
	return list[from : from+maxAlike]
}
