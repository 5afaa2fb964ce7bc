// Package arch reads names of architectures, for the two packages that know nothing of each
// other: isa and elfx.
package arch

import (
	"fmt"
	"strconv"
	"strings"
)

// Parse reads an architecture as people write it: sm_90, sm90a, SM_90a, 90a, compute_90,
// with the suffix a, f or none. virtual says that it was compute_.
func Parse(s string) (sm int, suffix string, virtual bool, err error) {
	t := strings.ToLower(strings.TrimSpace(s))
	t, virtual = strings.CutPrefix(t, "compute")
	if !virtual {
		t = strings.TrimPrefix(t, "sm")
	}
	t = strings.TrimPrefix(t, "_")
	n := strings.TrimRight(t, "af")
	suffix = t[len(n):]
	v, err := strconv.ParseUint(n, 10, 16)
	if err != nil || len(suffix) > 1 || v < 10 || v > 999 {
		return 0, "", false, fmt.Errorf("%q is no architecture; write it like sm_90 or sm_90a", s)
	}
	return int(v), suffix, virtual, nil
}
