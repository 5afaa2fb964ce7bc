package isa

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"sync"
)

// A RegFile is one of the register files that instructions name.
type RegFile uint8

// The register files. The last register of R, UR, P and UP is a constant (RZ, URZ, PT,
// UPT): it is never read or written.
const (
	FileR  RegFile = iota // R0–R254, 32 bits for each thread
	FileUR                // UR0–UR62, from sm_100 on UR0–UR254: 32 bits for the warp
	FileP                 // P0–P6, one bit for each thread
	FileUP                // UP0–UP6, one bit for the warp
	FileB                 // B0–B15, the barriers of convergence
	numFiles
)

var fileNames = [numFiles]string{"R", "UR", "P", "UP", "B"}

// String returns the letters before the numbers of f's registers.
func (f RegFile) String() string { return fileNames[f] }

// namesOfFiles has the names that Names returns.
var namesOfFiles [numFiles]struct {
	once  sync.Once
	names [256]string
}

// Names returns the names of f's registers 0 to 255, such as R0 to R255. They must not be
// changed.
func (f RegFile) Names() *[256]string {
	x := &namesOfFiles[f]
	x.once.Do(func() {
		for n := range x.names {
			x.names[n] = f.String() + strconv.Itoa(n)
		}
	})
	return &x.names
}

// A RegSet is a set of registers of all files. It is a value; the zero RegSet is empty.
type RegSet struct {
	R, UR [4]uint64 // register n is bit n%64 of element n/64
	P, UP uint8     // register n is bit n
	B     uint16
}

// Has reports whether register n of file f is in s.
func (s *RegSet) Has(f RegFile, n int) bool {
	switch f {
	case FileR:
		return n>>8 == 0 && s.R[n>>6]>>(n&63)&1 != 0
	case FileUR:
		return n>>8 == 0 && s.UR[n>>6]>>(n&63)&1 != 0
	case FileP:
		return n>>3 == 0 && s.P>>n&1 != 0
	case FileUP:
		return n>>3 == 0 && s.UP>>n&1 != 0
	}
	return f == FileB && n>>4 == 0 && s.B>>n&1 != 0
}

// Add puts count registers of file f, from first on, into s; registers that the file
// does not have are left out.
func (s *RegSet) Add(f RegFile, first, count int) {
	switch f {
	case FileR:
		addRun(&s.R, first, min(count, 256-first))
	case FileUR:
		addRun(&s.UR, first, min(count, 256-first))
	case FileP:
		s.P |= uint8(shortRun(first, count))
	case FileUP:
		s.UP |= uint8(shortRun(first, count))
	case FileB:
		s.B |= shortRun(first, count)
	}
}

func addRun(set *[4]uint64, first, count int) {
	for count > 0 {
		n := min(count, 64-first&63)
		set[first>>6&3] |= ^uint64(0) >> (64 - n) << (first & 63)
		first, count = first+n, count-n
	}
}

func shortRun(first, count int) uint16 {
	return uint16((uint32(1)<<min(count, 16) - 1) << min(first, 16))
}

// Union returns the set of what is in s or in t.
func (s RegSet) Union(t RegSet) RegSet {
	for i := range s.R {
		s.R[i] |= t.R[i]
		s.UR[i] |= t.UR[i]
	}
	s.P, s.UP, s.B = s.P|t.P, s.UP|t.UP, s.B|t.B
	return s
}

// Minus returns the set of what is in s and not in t.
func (s RegSet) Minus(t RegSet) RegSet {
	for i := range s.R {
		s.R[i] &^= t.R[i]
		s.UR[i] &^= t.UR[i]
	}
	s.P, s.UP, s.B = s.P&^t.P, s.UP&^t.UP, s.B&^t.B
	return s
}

// IsEmpty reports whether no register is in s.
func (s *RegSet) IsEmpty() bool { return *s == RegSet{} }

// Len returns the number of registers of file f in s.
func (s *RegSet) Len(f RegFile) int {
	n := 0
	switch f {
	case FileR:
		for _, x := range s.R {
			n += bits.OnesCount64(x)
		}
	case FileUR:
		for _, x := range s.UR {
			n += bits.OnesCount64(x)
		}
	case FileP:
		n = bits.OnesCount8(s.P)
	case FileUP:
		n = bits.OnesCount8(s.UP)
	case FileB:
		n = bits.OnesCount16(s.B)
	}
	return n
}

// Each calls fn for each register of s, in the order of files and numbers.
func (s *RegSet) Each(fn func(f RegFile, n int)) {
	each := func(f RegFile, base int, x uint64) {
		for ; x != 0; x &= x - 1 {
			fn(f, base+bits.TrailingZeros64(x))
		}
	}
	for i, x := range s.R {
		each(FileR, 64*i, x)
	}
	for i, x := range s.UR {
		each(FileUR, 64*i, x)
	}
	each(FileP, 0, uint64(s.P))
	each(FileUP, 0, uint64(s.UP))
	each(FileB, 0, uint64(s.B))
}

// String returns the registers in order, runs of at least three joined: `R4-R7 UR4 P0`.
func (s RegSet) String() string {
	var parts []string
	for f := range numFiles {
		for n := 0; n < 256; n++ {
			end := n
			for s.Has(f, end) {
				end++
			}
			switch end - n {
			case 0:
				continue
			case 1, 2:
				end = n + 1
				parts = append(parts, f.String()+strconv.Itoa(n))
			default:
				parts = append(parts, fmt.Sprintf("%s%d-%s%d", f, n, f, end-1))
			}
			n = end - 1
		}
	}
	return strings.Join(parts, " ")
}
