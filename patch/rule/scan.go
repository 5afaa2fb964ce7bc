package rule

import (
	"fmt"
	"strings"

	"github.com/cupatch/cupatch/patch/internal/ascii"
)

// maxDepth bounds the nesting of brackets.
const maxDepth = 100

// scanTop walks the bytes of s that stand outside quotes and brackets, in order,
// until visit returns false. It reports an unclosed quote or bracket, or a bracket
// that closes nothing, by its position and a message; pos is -1 when all is well.
func scanTop(s string, visit func(i int) bool) (pos int, msg string) {
	var open []int
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '"', '\'', '`':
			end := closeQuote(s, i)
			if end < 0 {
				return i, fmt.Sprintf("quote %c is never closed", c)
			}
			if len(open) == 0 && !visit(i) {
				return -1, ""
			}
			i = end
			continue
		case '(', '[', '{':
			if len(open) == 0 && !visit(i) {
				return -1, ""
			}
			if open = append(open, i); len(open) > maxDepth {
				return i, "brackets nested too deeply"
			}
			continue
		case ')', ']', '}':
			if len(open) == 0 || !pairs(s[open[len(open)-1]], c) {
				return i, fmt.Sprintf("%c closes nothing", c)
			}
			open = open[:len(open)-1]
			continue
		}
		if len(open) == 0 && !visit(i) {
			return -1, ""
		}
	}
	if len(open) > 0 {
		i := open[len(open)-1]
		return i, fmt.Sprintf("%c is never closed", s[i])
	}
	return -1, ""
}

func pairs(open, close byte) bool {
	return open == '(' && close == ')' || open == '[' && close == ']' || open == '{' && close == '}'
}

// closeQuote returns the index of the quote that closes the one at i, or -1. A
// backslash protects the next byte except in back quotes.
func closeQuote(s string, i int) int {
	q := s[i]
	for j := i + 1; j < len(s); j++ {
		switch {
		case s[j] == '\\' && q != '`':
			j++
		case s[j] == q:
			return j
		}
	}
	return -1
}

// splitArrow returns the position of the first `=>` outside quotes and brackets, or
// -1.
func splitArrow(s string) (at, badPos int, badMsg string) {
	at = -1
	badPos, badMsg = scanTop(s, func(i int) bool {
		if strings.HasPrefix(s[i:], "=>") {
			at = i
			return false
		}
		return true
	})
	return at, badPos, badMsg
}

// splitIf returns the position of the first word `if` outside quotes and brackets,
// or -1.
func splitIf(s string) int {
	at := -1
	scanTop(s, func(i int) bool {
		if strings.HasPrefix(s[i:], "if") && (i == 0 || ascii.Space(s[i-1]) || s[i-1] == '}') && (i+2 == len(s) || ascii.Space(s[i+2]) || s[i+2] == '(') {
			at = i
			return false
		}
		return true
	})
	return at
}

// A span is a piece of a text and its position in it.
type span struct {
	text string
	pos  int
}

// splitSemi splits s at each `;` outside quotes and brackets.
func splitSemi(s string) []span {
	var parts []span
	start := 0
	scanTop(s, func(i int) bool {
		if s[i] == ';' {
			parts = append(parts, span{s[start:i], start})
			start = i + 1
		}
		return true
	})
	return append(parts, span{s[start:], start})
}

// isPatternByte tells the bytes of an opcode or atom pattern.
func isPatternByte(c byte) bool { return ascii.Name(c) || c == '*' || c == '?' }

// A scanner reads tokens from a part of a rule.
type scanner struct {
	s string
	i int
}

func (sc *scanner) space() {
	for sc.i < len(sc.s) && ascii.Space(sc.s[sc.i]) {
		sc.i++
	}
}

func (sc *scanner) done() bool { return sc.i >= len(sc.s) }

// peek returns the next byte, or 0 at the end.
func (sc *scanner) peek() byte {
	if sc.done() {
		return 0
	}
	return sc.s[sc.i]
}

// has consumes prefix if it comes next.
func (sc *scanner) has(prefix string) bool {
	if strings.HasPrefix(sc.s[sc.i:], prefix) {
		sc.i += len(prefix)
		return true
	}
	return false
}

// while consumes the longest text whose bytes all satisfy ok.
func (sc *scanner) while(ok func(byte) bool) string {
	start := sc.i
	for sc.i < len(sc.s) && ok(sc.s[sc.i]) {
		sc.i++
	}
	return sc.s[start:sc.i]
}

// token consumes everything up to a blank outside quotes and brackets.
func (sc *scanner) token() string {
	rest := sc.s[sc.i:]
	end := len(rest)
	scanTop(rest, func(i int) bool {
		if ascii.Space(rest[i]) {
			end = i
			return false
		}
		return true
	})
	sc.i += end
	return rest[:end]
}

// wordAt returns what is at the scanner up to the next blank, for messages.
func (sc *scanner) wordAt() string {
	rest := sc.s[sc.i:]
	if i := strings.IndexAny(rest, " \t\r\n;"); i > 0 {
		rest = rest[:i]
	}
	if len(rest) > 40 {
		rest = rest[:40] + "…"
	}
	return rest
}

// label consumes `name:` if it comes next and returns the name.
func (sc *scanner) label() (string, bool) {
	start := sc.i
	if !ascii.NameStart(sc.peek()) {
		return "", false
	}
	name := sc.while(ascii.Name)
	sc.space()
	if sc.has(":") {
		return name, true
	}
	sc.i = start
	return "", false
}
