package learn

import "strings"

// Tokens are the pieces of text that the learner moves about: a modifier with its
// dot, a number with its sign, a name, a blank, or one other character.

func isWordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '?'
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// tokenize splits text; joining the tokens gives the text again.
func tokenize(text string) []string {
	var toks []string
	for i := 0; i < len(text); {
		n := tokenLen(text[i:], i == 0 || !isWordByte(text[i-1]))
		toks = append(toks, text[i:i+n])
		i += n
	}
	return toks
}

// tokenLen returns the length of the token that starts s. fresh says that no word
// byte stands before it, so that a sign may belong to a number.
func tokenLen(s string, fresh bool) int {
	i := 0
	switch {
	case s[0] == '.' && len(s) > 1 && isWordByte(s[1]):
		for i = 1; i < len(s) && isWordByte(s[i]); i++ {
		}
		return i
	case (s[0] == '-' || s[0] == '+') && fresh && len(s) > 1:
		if n := numberLen(s[1:]); n > 0 {
			return n + 1
		}
		return 1
	}
	if n := numberLen(s); n > 0 {
		return n
	}
	for i < len(s) && isWordByte(s[i]) {
		i++
	}
	return max(i, 1)
}

// numberLen returns the length of the number, INF or NAN that starts s, or 0.
func numberLen(s string) int {
	if s == "" {
		return 0
	}
	for _, name := range []string{"INF", "QNAN", "SNAN"} {
		if strings.HasPrefix(s, name) && (len(s) == len(name) || !isWordByte(s[len(name)])) {
			return len(name)
		}
	}
	if !isDigit(s[0]) {
		return 0
	}
	i := 0
	if strings.HasPrefix(s, "0x") {
		for i = 2; i < len(s) && isWordByte(s[i]); i++ {
		}
		return i
	}
	for i < len(s) && isDigit(s[i]) {
		i++
	}
	if i+1 < len(s) && s[i] == '.' && isDigit(s[i+1]) {
		for i++; i < len(s) && isDigit(s[i]); i++ {
		}
	}
	if i+2 < len(s) && s[i] == 'e' && (s[i+1] == '+' || s[i+1] == '-') && isDigit(s[i+2]) {
		for i += 2; i < len(s) && isDigit(s[i]); i++ {
		}
	}
	// A name that starts with a digit, such as 1D_ARRAY, is no number.
	for i < len(s) && isWordByte(s[i]) {
		i++
	}
	return i
}

// A hunk replaces the base tokens lo to hi-1 with other tokens.
type hunk struct {
	lo, hi int
	repl   []string
}

// diff returns the smallest set of hunks that turn base into other. Hunks do not
// touch; a hunk that could stand in several places stands in the leftmost.
func diff(base, other []string) []hunk {
	n, m := len(base), len(other)
	pre := 0
	for pre < n && pre < m && base[pre] == other[pre] {
		pre++
	}
	suf := 0
	for suf < n-pre && suf < m-pre && base[n-1-suf] == other[m-1-suf] {
		suf++
	}
	var hs []hunk
	if pre == n && pre == m {
		return nil
	}
	hs = lcs(base[pre:n-suf], other[pre:m-suf])
	for i := range hs {
		hs[i].lo += pre
		hs[i].hi += pre
	}
	for i := range hs {
		limit := 0
		if i > 0 {
			limit = hs[i-1].hi
		}
		hs[i] = shiftLeft(base, hs[i], limit)
	}
	return hs
}

// shiftLeft moves a pure deletion or insertion as far left as it can go.
func shiftLeft(base []string, h hunk, limit int) hunk {
	for h.lo > limit {
		prev := base[h.lo-1]
		switch {
		case len(h.repl) == 0 && h.hi > h.lo && base[h.hi-1] == prev:
			h.lo--
			h.hi--
		case h.hi == h.lo && len(h.repl) > 0 && h.repl[len(h.repl)-1] == prev:
			h.repl = append([]string{prev}, h.repl[:len(h.repl)-1]...)
			h.lo--
			h.hi--
		default:
			return h
		}
	}
	return h
}

// lcs is the plain longest-common-subsequence diff; texts have some 60 tokens.
func lcs(a, b []string) []hunk {
	n, m := len(a), len(b)
	l := make([]int16, (n+1)*(m+1))
	at := func(i, j int) int { return i*(m+1) + j }
	for i := n - 1; i >= 0; i-- {
		for j := m - 1; j >= 0; j-- {
			if a[i] == b[j] {
				l[at(i, j)] = l[at(i+1, j+1)] + weight(a[i])
			}
			l[at(i, j)] = max(l[at(i, j)], l[at(i+1, j)], l[at(i, j+1)])
		}
	}
	var hs []hunk
	i, j := 0, 0
	for i < n || j < m {
		if i < n && j < m && a[i] == b[j] && l[at(i, j)] == l[at(i+1, j+1)]+weight(a[i]) {
			i++
			j++
			continue
		}
		h := hunk{lo: i}
		start := j
		for i < n || j < m {
			if i < n && j < m && a[i] == b[j] && l[at(i, j)] == l[at(i+1, j+1)]+weight(a[i]) {
				break
			}
			if j < m && (i == n || l[at(i, j+1)] >= l[at(i+1, j)]) {
				j++
			} else {
				i++
			}
		}
		h.hi, h.repl = i, b[start:j]
		hs = append(hs, h)
	}
	return hs
}

// weight makes names and numbers count for more than punctuation in an alignment.
func weight(tok string) int16 {
	if isWordByte(tok[len(tok)-1]) {
		return 8
	}
	return 3
}
