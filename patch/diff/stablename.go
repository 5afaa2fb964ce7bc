package diff

import (
	"strconv"
	"strings"
)

// internalMarks begin what NVIDIA's compilers put into names with internal linkage.
var internalMarks = []string{"_INTERNAL_", "_GLOBAL__N__", "__nv_static_"}

// StableName returns a name without what changes in it from build to build. The
// compilers make names with internal linkage unique by a part that depends on the path of
// the source file, on the options and on the number of the process:
//
//	36_INTERNAL_b96781cf_10_kernels_cu_9e0c38a6_647
//	│           │        │  │          │        └ process, may be missing
//	│           │        │  │          └ hash
//	│           │        │  └ source file
//	│           │        └ length of its name
//	│           └ hash
//	└ length of all that follows
//
// _GLOBAL__N__ stands in the place of _INTERNAL_ for anonymous namespaces; in names of
// variables it is __nv_static_36__.
func StableName(name string) string {
	for _, mark := range internalMarks {
		for from := 0; ; {
			i := strings.Index(name[from:], mark)
			if i < 0 {
				break
			}
			i += from
			from = i + len(mark)
			if start, end, file, ok := internalPart(name, i, mark); ok {
				put := mark + "<hash>_" + file
				name = name[:start] + put + name[end:]
				from = start + len(put)
			}
		}
	}
	return name
}

// internalPart finds the part of name that has the mark at i: where it starts and ends, and
// the source file in it.
func internalPart(name string, i int, mark string) (start, end int, file string, ok bool) {
	start, rest := i, i+len(mark)
	length := 0
	if mark == "__nv_static_" {
		digits := leadingDigits(name[rest:])
		length = atoi(digits)
		rest += len(digits) + 1
		if rest >= len(name) || name[rest-1] != '_' || name[rest] != '_' {
			return 0, 0, "", false
		}
		end = rest + length
		rest++
	} else {
		for start > 0 && isDigit(name[start-1]) {
			start--
		}
		length = atoi(name[start:i])
		end = i + length
	}
	if length < 12 || end > len(name) || end < rest+11 || !isHex(name[rest:rest+8]) || name[rest+8] != '_' {
		return 0, 0, "", false
	}
	part := name[rest+9 : end]
	digits := leadingDigits(part)
	n := atoi(digits)
	part = part[len(digits):]
	if n == 0 || n+1 > len(part) || part[0] != '_' {
		return 0, 0, "", false
	}
	return start, end, part[1 : 1+n], true
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isHex(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }

func leadingDigits(s string) string {
	n := 0
	for n < len(s) && isDigit(s[n]) {
		n++
	}
	return s[:n]
}

// atoi returns the number that s is, 0 for none or one that no name is as long as.
func atoi(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil || n > 1<<16 {
		return 0
	}
	return n
}
