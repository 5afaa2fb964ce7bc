package diff

import (
	"math/rand"
	"testing"
)

// lcs returns the length of the longest common subsequence, by the textbook.
func lcs(a, b []uint64) int {
	row := make([]int, len(b)+1)
	for i := range a {
		diag := 0
		for j := range b {
			up := row[j+1]
			if a[i] == b[j] {
				row[j+1] = diag + 1
			} else {
				row[j+1] = max(row[j+1], row[j])
			}
			diag = up
		}
	}
	return row[len(b)]
}

// checkAlignment checks that match pairs equal elements in order, and returns how many.
func checkAlignment(t *testing.T, a, b []uint64, match []int32) int {
	t.Helper()
	last, n := int32(-1), 0
	for i, j := range match {
		if j < 0 {
			continue
		}
		if j <= last || int(j) >= len(b) || a[i] != b[j] {
			t.Fatalf("element %d of %v is paired with %d of %v after %d", i, a, j, b, last)
		}
		last = j
		n++
	}
	return n
}

func TestMyersIsShortest(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	for range 3000 {
		a, b := make([]uint64, r.Intn(30)), make([]uint64, r.Intn(30))
		for i := range a {
			a[i] = uint64(r.Intn(4))
		}
		for i := range b {
			b[i] = uint64(r.Intn(4))
		}
		al := newAligner(a, b)
		al.myers(0, len(al.a), 0, len(al.b))
		if got, want := checkAlignment(t, a, b, al.result(len(a))), lcs(a, b); got != want {
			t.Fatalf("%v and %v: %d pairs, want %d", a, b, got, want)
		}
	}
}

func TestAlignFollowsEdits(t *testing.T) {
	r := rand.New(rand.NewSource(2))
	a := make([]uint64, 100000)
	for i := range a {
		a[i] = uint64(r.Intn(3000))
	}
	var b []uint64
	kept := 0
	for _, x := range a {
		switch r.Intn(20) {
		case 0:
		case 1:
			b = append(b, x, uint64(r.Intn(3000)))
			kept++
		default:
			b = append(b, x)
			kept++
		}
	}
	if n := checkAlignment(t, a, b, alignKeys(a, b)); n < kept*99/100 {
		t.Errorf("%d of %d elements found again", n, kept)
	}
}

// TestAlignBounded aligns sequences that have nothing in common but a few values over
// and over.
func TestAlignBounded(t *testing.T) {
	r := rand.New(rand.NewSource(3))
	a, b := make([]uint64, 50000), make([]uint64, 60000)
	for i := range a {
		a[i] = uint64(r.Intn(3))
	}
	for i := range b {
		b[i] = uint64(r.Intn(3)) + 2
	}
	checkAlignment(t, a, b, alignKeys(a, b))
}
