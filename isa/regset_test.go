package isa

import (
	"slices"
	"strconv"
	"testing"
)

func TestRegSet(t *testing.T) {
	var s RegSet
	for _, r := range []struct {
		file         RegFile
		first, count int
	}{
		{FileR, 62, 4}, {FileR, 254, 4}, {FileUR, 0, 1}, {FileUR, 253, 2}, {FileP, 6, 4}, {FileUP, 1, 2}, {FileB, 15, 1}, {FileR, 7, 0},
	} {
		s.Add(r.file, r.first, r.count)
	}
	if got, want := s.String(), "R62-R65 R254 R255 UR0 UR253 UR254 P6 P7 UP1 UP2 B15"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for f, want := range []int{6, 3, 2, 2, 1} {
		if got := s.Len(RegFile(f)); got != want {
			t.Errorf("%d registers of %s, want %d", got, RegFile(f), want)
		}
	}
	var u RegSet
	u.Add(FileR, 64, 128)
	if !u.Has(FileR, 191) || u.Has(FileR, 192) || u.Has(FileR, -1) || u.Has(FileR, 256) {
		t.Error("R64–R191")
	}
	if got, want := s.Minus(u).Minus(RegSet{P: 0xff, UP: 0xff}).String(), "R62 R63 R254 R255 UR0 UR253 UR254 B15"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	d, all := s.Minus(s), s.Union(u)
	if !d.IsEmpty() || all.Len(FileR) != 132 {
		t.Error("minus itself, or union")
	}
}

// Each register of each file is told apart from every other.
func TestRegSetEach(t *testing.T) {
	for f, n := range []int{256, 256, 8, 8, 16} {
		for i := range n {
			var s RegSet
			s.Add(RegFile(f), i, 1)
			var each []string
			s.Each(func(f RegFile, n int) { each = append(each, f.String(), strconv.Itoa(n)) })
			if want := []string{RegFile(f).String(), strconv.Itoa(i)}; !slices.Equal(each, want) {
				t.Fatalf("Each calls with %s, want %s", each, want)
			}
			for k := -1; k <= n; k++ {
				if s.Has(RegFile(f), k) != (k == i) {
					t.Fatalf("%s%d in the set of %s%d", RegFile(f), k, RegFile(f), i)
				}
			}
		}
	}
}
