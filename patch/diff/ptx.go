package diff

import (
	"bytes"
	"strings"
)

// plainPTX returns the tokens of PTX, one a line, without what means nothing: comments,
// the times and sizes in .file directives, and the parts of names that change from build
// to build, unless two names would become one.
func plainPTX(src []byte) []byte {
	names := map[string]string{} // stable name to the one that became it
	unclear := map[string]bool{}
	marked := hasInternalMark(src)
	eachPTXToken(src, func(t []byte) {
		if !marked || !hasInternalMark(t) {
			return
		}
		s := StableName(string(t))
		if old, ok := names[s]; ok && old != string(t) {
			unclear[s] = true
		}
		names[s] = string(t)
	})
	out := make([]byte, 0, len(src))
	file := 0 // tokens since .file
	eachPTXToken(src, func(t []byte) {
		switch {
		case string(t) == ".file":
			file = 1
		case file >= 3 && (string(t) == "," || isDigit(t[0])): // .file N "NAME", TIME, SIZE
			return
		case file >= 3:
			file = 0
		case file > 0:
			file++
		}
		if marked && hasInternalMark(t) {
			if s := StableName(string(t)); !unclear[s] {
				t = []byte(s)
			}
		}
		out = append(append(out, t...), '\n')
	})
	return out
}

func hasInternalMark(t []byte) bool {
	if len(t) < len(internalMarks[0]) { // the shortest
		return false
	}
	for _, mark := range internalMarks {
		if bytes.Contains(t, []byte(mark)) {
			return true
		}
	}
	return false
}

// eachPTXToken calls fn with the tokens of PTX: words, strings, and characters that are
// neither. Comments and white space are none.
func eachPTXToken(src []byte, fn func([]byte)) {
	for len(src) > 0 {
		n := 1
		switch {
		case strings.IndexByte(" \t\r\n", src[0]) >= 0:
			src = src[1:]
			continue
		case bytes.HasPrefix(src, []byte("//")):
			if n = bytes.IndexByte(src, '\n'); n < 0 {
				return
			}
			src = src[n:]
			continue
		case bytes.HasPrefix(src, []byte("/*")):
			if n = bytes.Index(src[2:], []byte("*/")); n < 0 {
				return
			}
			src = src[n+4:]
			continue
		case src[0] == '"':
			if n = bytes.IndexByte(src[1:], '"') + 2; n < 2 {
				n = len(src)
			}
		default:
			for n = 0; n < len(src) && isWordByte(src[n]); n++ {
			}
			n = max(n, 1)
		}
		fn(src[:n])
		src = src[n:]
	}
}

// isWordByte reports whether a byte is part of a word of PTX: a name, a number, an
// instruction with its suffixes.
func isWordByte(b byte) bool {
	return isDigit(b) || b|0x20 >= 'a' && b|0x20 <= 'z' || b == '_' || b == '$' || b == '%' || b == '.' || b >= 0x80
}
