package elfx

import (
	"errors"
	"fmt"
	"strings"
)

// Sentinels for [errors.Is].
var (
	// ErrFormat matches every FormatError.
	ErrFormat = errors.New("damaged file")
	// ErrUnsupported says that the data is well formed, as far as one can tell, and
	// of a kind that this package does not decode or change.
	ErrUnsupported = errors.New("not supported")
	// ErrTooLarge says that a declared size is above the limit.
	ErrTooLarge = errors.New("too large")
	// ErrNoCode says that a file holds no GPU code that this package can find.
	ErrNoCode = errors.New("no GPU code found")
	// ErrGrow says that a change needs a larger file, and that the kind of file or
	// the options do not allow it.
	ErrGrow = errors.New("the file would have to grow")
)

// A FormatError describes bytes that are not what the format demands.
type FormatError struct {
	Section string // section, header or record that is damaged; "" for the file itself
	Offset  int64  // where, from the start of the data that was parsed
	Msg     string
}

func (e *FormatError) Error() string {
	if e.Section == "" {
		return fmt.Sprintf("offset 0x%x: %s", e.Offset, e.Msg)
	}
	return fmt.Sprintf("%s: offset 0x%x: %s", e.Section, e.Offset, e.Msg)
}

// Is makes every FormatError match [ErrFormat].
func (e *FormatError) Is(target error) bool { return target == ErrFormat }

// A NoEntryError says that a selector names no entry of a file. See [File.Select].
type NoEntryError struct {
	File     string
	Selector string
	Entries  int      // how many the file has
	Targets  []string // their architectures
}

func (e *NoEntryError) Error() string {
	return fmt.Sprintf("%s: no entry %q among %d entries (%s)", e.File, e.Selector, e.Entries, strings.Join(e.Targets, ", "))
}

func formatErrorf(section string, offset int64, format string, args ...any) *FormatError {
	return &FormatError{Section: section, Offset: offset, Msg: fmt.Sprintf(format, args...)}
}
