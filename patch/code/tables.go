package code

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/isa"
)

// TablesVar is the environment variable that names a folder with instruction tables of the
// user's own, sm_90.txt and so on, which come before those of the program.
const TablesVar = "CUPATCH_TABLES"

// ErrOldArch says that a cubin has 8-byte instructions.
var ErrOldArch = errors.New("instructions before sm_70 are not supported")

// Unsupported reports whether an error says that there is no table for an architecture,
// which is no fault of the file.
func Unsupported(err error) bool {
	var unknown *isa.UnknownArchError
	return errors.Is(err, ErrOldArch) || errors.As(err, &unknown)
}

// TableOf returns the instruction table of a cubin: see [TableFor]. The error for code
// before sm_70 is [ErrOldArch].
func TableOf(c *elfx.Cubin) (*isa.Table, error) {
	if c.InstructionSize() != isa.WordSize {
		return nil, fmt.Errorf("%s: %w", c.Arch, ErrOldArch)
	}
	a, err := isa.ParseArch(c.Arch)
	if err != nil {
		return nil, err
	}
	return TableFor(a)
}

// own holds the tables that were read, by path.
var own sync.Map

// TableFor returns the instruction table of an architecture: the one in the folder that
// [TablesVar] names, where it has one, else [isa.Load]'s. A file is read once.
func TableFor(a isa.Arch) (*isa.Table, error) {
	dir, err := ownFolder()
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, a.String()+".txt")
	if _, err := os.Stat(path); dir == "" || errors.Is(err, fs.ErrNotExist) {
		return isa.Load(a)
	}
	read, _ := own.LoadOrStore(path, sync.OnceValues(func() (*isa.Table, error) { return ReadTable(path) }))
	return read.(func() (*isa.Table, error))()
}

// ownFolder returns the folder that [TablesVar] names, "" for none.
func ownFolder() (string, error) {
	dir := os.Getenv(TablesVar)
	if dir == "" {
		return "", nil
	}
	if _, err := os.Stat(dir); err != nil {
		return "", fmt.Errorf("%s: %w", TablesVar, err)
	}
	return dir, nil
}

// Tables returns the tables of all architectures that have one, as [TableFor] returns them,
// in order of the architectures.
func Tables() ([]*isa.Table, error) {
	arches := slices.Clone(isa.Arches())
	dir, err := ownFolder()
	if err != nil {
		return nil, err
	}
	if dir != "" {
		names, err := filepath.Glob(filepath.Join(dir, "sm_*.txt"))
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			a, err := isa.ParseArch(strings.TrimSuffix(filepath.Base(name), ".txt"))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			arches = append(arches, a)
		}
	}
	slices.SortFunc(arches, isa.Arch.Compare)
	var out []*isa.Table
	for _, a := range slices.Compact(arches) {
		t, err := TableFor(a)
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}

// ReadTable reads the table in a file.
func ReadTable(path string) (*isa.Table, error) {
	f, err := ReadTableFile(path)
	if err != nil {
		return nil, err
	}
	return isa.NewTable(f.Arch, f.Variants), nil
}

// ReadTableFile reads a file with a table, and the tables that it is based on from the
// same folder.
func ReadTableFile(path string) (*isa.TableFile, error) {
	return readTableFile(path, nil)
}

func readTableFile(path string, above []string) (*isa.TableFile, error) {
	for _, p := range above {
		if p == path {
			return nil, fmt.Errorf("%s: the table is based on itself", path)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	f, err := isa.ParseTable(string(text), func(a isa.Arch) (*isa.TableFile, error) {
		return readTableFile(filepath.Join(filepath.Dir(path), a.String()+".txt"), append(above, path))
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}
