package isa

import (
	"fmt"
	"strconv"
	"strings"
)

// An Arch names an architecture: the SM number and its suffix ("", "a" or "f").
type Arch struct {
	SM     int
	Suffix string
}

// String returns the usual name, `sm_90a`.
func (a Arch) String() string { return "sm_" + strconv.Itoa(a.SM) + a.Suffix }

// Less orders architectures by SM number, then suffix.
func (a Arch) Less(b Arch) bool {
	if a.SM != b.SM {
		return a.SM < b.SM
	}
	return a.Suffix < b.Suffix
}

// ParseArch reads an architecture as people type it: sm_90, sm90a, SM_90a, 90a,
// compute_90.
func ParseArch(s string) (Arch, error) {
	t := strings.ToLower(strings.TrimSpace(s))
	t = strings.TrimPrefix(strings.TrimPrefix(t, "sm"), "compute")
	t = strings.TrimPrefix(t, "_")
	n := strings.TrimRight(t, "af")
	suffix := t[len(n):]
	sm, err := strconv.ParseUint(n, 10, 16)
	if err != nil || len(suffix) > 1 || sm < 10 || sm > 999 {
		return Arch{}, fmt.Errorf("%q is no architecture; write it like sm_90 or sm_90a", s)
	}
	return Arch{int(sm), suffix}, nil
}
