package elfx

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

// integrated has the devices of one major version that do not run cubins of the
// others of that version, nor the others theirs: the Tegra line.
var integrated = map[int]bool{53: true, 62: true, 72: true, 87: true, 101: true, 110: true}

// runsOn reports whether code for sm+suffix runs as it is on a device. The rules are
// those of the CUDA programming guide, section "Compute Capabilities and binary
// compatibility": the same major version with a minor version that is not higher;
// `a` only on that very device; `f` within the family, which is the major version.
func runsOn(sm int, suffix string, device int) bool {
	if sm == device {
		return true
	}
	if suffix == "a" || sm/10 != device/10 || sm > device {
		return false
	}
	return !integrated[sm] && !integrated[device]
}

// compilesFor reports whether PTX for sm+suffix can be compiled for a device.
func compilesFor(sm int, suffix string, device int) bool {
	switch suffix {
	case "a":
		return sm == device
	case "f":
		return runsOn(sm, suffix, device)
	}
	return sm <= device
}

// Choose returns the entry of the container that a driver would load for a device of
// compute capability device (89 for sm_89), and how. A cubin that runs as it is wins
// over PTX; the highest architecture wins; among equals `a` wins over `f` and `f` over
// plain, then the first entry. CUDA_FORCE_PTX_JIT=1 turns the first rule around.
func (c *Container) Choose(device int) (*Entry, Loading) {
	var cubin, ptx *Entry
	for _, e := range c.Entries {
		switch {
		case e.Err != nil || e.SM == 0:
		case e.Kind == KindELF && runsOn(e.SM, e.Suffix, device) && better(e, cubin):
			cubin = e
		case e.Kind == KindPTX && compilesFor(e.SM, e.Suffix, device) && better(e, ptx):
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

// better reports whether e is preferred to old, which may be nil.
func better(e, old *Entry) bool {
	if old == nil || e.SM != old.SM {
		return old == nil || e.SM > old.SM
	}
	return suffixRank(e.Suffix) > suffixRank(old.Suffix)
}

func suffixRank(s string) int {
	switch s {
	case "a":
		return 2
	case "f":
		return 1
	}
	return 0
}
