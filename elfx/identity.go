package elfx

import (
	"os"
	"strconv"
	"strings"
)

// An entry is named by the file that was opened and by its number in it, lib.so#12. Where
// the file is a bare cubin its name alone is enough for people.

// Tag returns the entry's number as selectors write it: #12.
func (e *Entry) Tag() string { return "#" + strconv.Itoa(e.Number) }

// ID returns the selector that names the entry: FILE#NUMBER.
func (e *Entry) ID() string { return JoinSelector(e.File.root().Name, strconv.Itoa(e.Number)) }

// Label returns what names the entry in edits, reports and listings: its number, "" for
// a bare cubin.
func (e *Entry) Label() string {
	if e.File.Kind == FileCubin {
		return ""
	}
	return strconv.Itoa(e.Number)
}

// NumberOf returns the number of the entry of that label: 1 for that of a bare cubin, 0 for no
// number.
func NumberOf(label string) int {
	if label == "" {
		return 1
	}
	n, _ := strconv.Atoi(label)
	return max(n, 0)
}

// Where returns what names the entry in messages: its ID, the name of the file for a bare
// cubin.
func (e *Entry) Where() string {
	if e.File.Kind == FileCubin {
		return e.File.Name
	}
	return e.ID()
}

// JoinSelector returns FILE#SELECTOR, or the file where there is no selector.
func JoinSelector(file, selector string) string {
	if selector == "" {
		return file
	}
	return file + "#" + selector
}

// SplitSelector splits FILE#SELECTOR at the last #. ok says that there is one.
func SplitSelector(s string) (file, selector string, ok bool) {
	i := strings.LastIndexByte(s, '#')
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}

// CutSelector splits an argument FILE#SELECTOR. A file that exists under the whole name
// has no selector.
func CutSelector(arg string) (path, selector string) {
	path, selector, ok := SplitSelector(arg)
	if ok {
		if _, err := os.Lstat(arg); err == nil {
			return arg, ""
		}
	}
	return path, selector
}
