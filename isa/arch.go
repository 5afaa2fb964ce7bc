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
