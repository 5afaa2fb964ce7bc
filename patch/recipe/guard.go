package recipe

import (
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/patch/code"
	"github.com/cupatch/cupatch/patch/internal/ascii"
)

// checkGuard checks the form of the hashes in [guard.kernels].
func (rc *Recipe) checkGuard() error {
	for _, name := range slices.Sorted(maps.Keys(rc.file.Guard.Kernels)) {
		path := "guard.kernels." + name
		hashes, err := rc.texts(path, rc.file.Guard.Kernels[name])
		if err != nil {
			return err
		}
		for _, h := range hashes {
			if _, _, ok := cutHash(h); !ok {
				return rc.errorf(path, "want sha256: and 64 hexadecimal digits, as cupatch stats prints them, or code2 and 64 digits, as cupatch hash does")
			}
		}
	}
	return nil
}

// cutHash splits the hash of a guard, "sha256:DIGITS" or "code2 DIGITS", into the scheme
// and the digits.
func cutHash(s string) (scheme, digits string, ok bool) {
	scheme, digits, ok = strings.Cut(s, " ")
	if !ok {
		scheme, digits, ok = strings.Cut(s, ":")
	}
	_, err := hex.DecodeString(digits)
	ok = ok && err == nil && len(digits) == 64 && digits == strings.ToLower(digits)
	return scheme, digits, ok && scheme != "" && (scheme == bytesHash || ascii.Digit(scheme[len(scheme)-1]))
}

// bytesHash is the guard's scheme that hashes a kernel's bytes as they are.
const bytesHash = "sha256"

// A KernelHash returns the hash of a kernel's code, in hex, by a scheme of `cupatch hash`
// such as code2; another scheme is an error. Package patch/diff has the schemes.
type KernelHash func(c *elfx.Cubin, k *elfx.Kernel, scheme string) (string, error)

// A GuardError says why a recipe does not apply to a file.
type GuardError struct {
	Pos string // file:line:column of what does not hold
	Msg string
}

func (e *GuardError) Error() string { return e.Pos + ": guard: " + e.Msg }

// HasGuard reports whether the recipe is for some builds only.
func (rc *Recipe) HasGuard() bool { return len(rc.Toolkit) > 0 || len(rc.file.Guard.Kernels) > 0 }

// CheckGuard compares cubins with what the recipe was made for: the toolkit of each,
// and the code hashes of the kernels that [guard.kernels] names. All that differs is
// in the *GuardError. Hashes other than SHA-256 of the bytes are made by hash, which may
// be nil where the recipe has none.
func (rc *Recipe) CheckGuard(cubins []*elfx.Cubin, hash KernelHash) error {
	e := &GuardError{}
	var why []string
	add := func(path, format string, args ...any) {
		if e.Pos == "" {
			e.Pos = rc.index.pos(rc.Name, path)
		}
		if s := fmt.Sprintf(format, args...); !slices.Contains(why, s) {
			why = append(why, s)
		}
	}
	for _, c := range cubins {
		if len(rc.Toolkit) > 0 && c.Toolkit != "" && !slices.Contains(rc.Toolkit, c.Toolkit) {
			add("toolkit", "the cubin for %s was built by toolkit %s, the recipe is for %s", c.Arch, c.Toolkit, strings.Join(rc.Toolkit, ", "))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(rc.file.Guard.Kernels)) {
		path := "guard.kernels." + name
		found, same, err := rc.guardedKernel(name, cubins, hash)
		switch {
		case err != nil:
			return rc.errorf(path, "%v", err)
		case !found:
			add(path, "kernel %s is missing", name)
		case !same:
			add(path, "kernel %s has changed", name)
		}
	}
	if why == nil {
		return nil
	}
	e.Msg = strings.Join(why, "; ")
	return e
}

// guardedKernel reports whether a kernel, by its mangled or C++ name, is there, and
// whether each one of the name has one of the hashes that the guard lists.
func (rc *Recipe) guardedKernel(name string, cubins []*elfx.Cubin, hash KernelHash) (found, same bool, err error) {
	list, _ := rc.texts("", rc.file.Guard.Kernels[name]) // ParseRecipe has checked them
	same = true
	for _, c := range cubins {
		for i := range c.Kernels() {
			k := &c.Kernels()[i]
			if k.Name != name && k.Demangled() != name {
				continue
			}
			found = true
			fits, err := hasHash(c, k, list, hash)
			if err != nil {
				return found, false, err
			}
			same = same && fits
		}
	}
	return found, same, nil
}

// hasHash reports whether a kernel has one of the hashes of a guard.
func hasHash(c *elfx.Cubin, k *elfx.Kernel, list []string, hash KernelHash) (fits bool, err error) {
	for _, h := range list {
		scheme, digits, _ := cutHash(h)
		got := ""
		switch {
		case scheme == bytesHash:
			got = code.Hash(k.Data())
		case hash == nil:
			err = fmt.Errorf("no hash %s", scheme)
		default:
			got, err = hash(c, k, scheme)
		}
		if err != nil {
			return false, err
		}
		fits = fits || got == digits
	}
	return fits, nil
}
