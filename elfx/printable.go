package elfx

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printable returns a name from a file in a form that is safe to show: a name with
// characters that would move a cursor, end a line or change a terminal, or that is not
// UTF-8, is quoted as Go quotes strings. So is one that starts with a quotation mark, so
// that different names are shown differently.
func Printable(name string) string {
	if strings.HasPrefix(name, `"`) || !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(name)
	}
	return name
}
