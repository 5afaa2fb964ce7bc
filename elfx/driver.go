package elfx

import "cmp"

// A Target is an architecture that code is made for: sm_100f is {100, "f"}.
type Target struct {
	SM     int
	Suffix string // "", "a" or "f"
}

// integrated has the devices of the Tegra line. The binary compatibility between the
// devices of one major version is one of the others: code for an integrated device runs
// on that device only, and it runs no code for another.
var integrated = map[int]bool{32: true, 53: true, 62: true, 72: true, 87: true, 101: true, 110: true}

// RunsOn reports whether machine code for the target runs on a device, given as 89 for
// compute capability 8.9. The rules are those of the CUDA programming guide ("Binary
// compatibility", "Family-specific features"): the same major version with a minor version
// that is not higher, but for the Tegra line; `a` only on exactly that device; `f` as without
// a suffix, since a family is one major version.
func (t Target) RunsOn(device int) bool {
	switch {
	case t.SM == device:
		return true
	case t.Suffix == "a" || t.SM/10 != device/10 || t.SM > device:
		return false
	}
	return !integrated[t.SM] && !integrated[device]
}

// CompilesFor reports whether a driver compiles PTX for the target on a device.
func (t Target) CompilesFor(device int) bool {
	switch t.Suffix {
	case "a":
		return t.SM == device
	case "f":
		return t.RunsOn(device)
	}
	return t.SM <= device
}

// Compare orders targets that run on one device by preference: the highest architecture
// is the best, and among equals `a` is better than `f` and `f` better than none.
func (t Target) Compare(u Target) int {
	return cmp.Or(cmp.Compare(t.SM, u.SM), cmp.Compare(suffixRank[t.Suffix], suffixRank[u.Suffix]))
}

var suffixRank = map[string]int{"f": 1, "a": 2}

// A Loading is what a driver does with a container for a device.
type Loading uint8

// The ways of loading.
const (
	LoadNothing Loading = iota // there is no code for the device
	LoadCubin                  // a cubin runs as it is
	LoadPTX                    // PTX is compiled by the driver
)

var loadingNames = [...]string{"nothing", "cubin", "ptx"}

func (l Loading) String() string { return loadingNames[l] }

// Choose returns the entry of the container that a driver would load for a device of
// compute capability device (89 for sm_89), and how. A cubin that runs as it is wins
// over PTX, then the best target, then the first entry. CUDA_FORCE_PTX_JIT=1 turns the
// first rule around.
func (c *Container) Choose(device int) (*Entry, Loading) {
	var cubin, ptx *Entry
	better := func(e, old *Entry) bool { return old == nil || e.target().Compare(old.target()) > 0 }
	for _, e := range c.Entries {
		switch {
		case e.Err != nil || e.SM == 0:
		case e.Kind == KindELF && e.target().RunsOn(device) && better(e, cubin):
			cubin = e
		case e.Kind == KindPTX && e.target().CompilesFor(device) && better(e, ptx):
			ptx = e
		}
	}
	if cubin != nil {
		return cubin, LoadCubin
	}
	if ptx != nil {
		return ptx, LoadPTX
	}
	return nil, LoadNothing
}

func (e *Entry) target() Target { return Target{e.SM, e.Suffix} }
