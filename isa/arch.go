package isa

import (
	"cmp"
	"strconv"

	"github.com/cupatch/cupatch/internal/arch"
)

// An Arch names an architecture: the SM number and its suffix ("", "a" or "f").
type Arch struct {
	SM     int
	Suffix string
}

// String returns the usual name, `sm_90a`.
func (a Arch) String() string { return "sm_" + strconv.Itoa(a.SM) + a.Suffix }

// Compare orders architectures by SM number, then suffix.
func (a Arch) Compare(b Arch) int {
	return cmp.Or(cmp.Compare(a.SM, b.SM), cmp.Compare(a.Suffix, b.Suffix))
}

// ParseArch reads an architecture as people type it: sm_90, sm90a, SM_90a, 90a,
// compute_90.
func ParseArch(s string) (Arch, error) {
	sm, suffix, _, err := arch.Parse(s)
	if err != nil {
		return Arch{}, err
	}
	return Arch{sm, suffix}, nil
}

// LastRegister returns the number of the last register of a file that holds a value: 254 for R.
func (a Arch) LastRegister(f RegFile) int {
	switch f {
	case FileR:
		return 254
	case FileUR:
		if a.SM < 100 {
			return 62
		}
		return 254
	case FileB:
		return 15
	}
	return 6
}

// TwoBanks reports whether it has been measured that the registers R lie in two banks, the
// even and the odd ones: on Volta and Turing ("Dissecting the NVIDIA Volta GPU
// Architecture via Microbenchmarking", Jia et al., 2018).
func (a Arch) TwoBanks() bool { return a.SM < 80 }
