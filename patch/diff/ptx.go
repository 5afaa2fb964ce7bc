package diff

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"slices"
	"strings"
)

// hashPTX returns the hash of PTX without what means nothing: that of its tokens, one a
// line, without comments, the times and sizes in .file directives, and the parts of names
// that change from build to build, unless two names would become one.
func hashPTX(src []byte) Hash {
	h := &ptxHasher{ptxScanner: ptxScanner{src: src}, sum: sha256.New()}
	if marks := internalPlaces(src); len(marks) > 0 {
		h.rename = stableTokens(src, marks)
		h.marks = marks
	}
	h.tokens()
	h.flush()
	return Hash(h.sum.Sum(nil))
}

// stableTokens returns the names in src that have one of the marks, each with the form
// of it that stays from build to build, unless another name has the same.
func stableTokens(src []byte, marks []int) map[string]string {
	rename := map[string]string{}
	became := map[string]string{} // stable name to the one that became it
	unclear := map[string]bool{}
	h := ptxHasher{ptxScanner: ptxScanner{src: src}, marks: marks}
	for {
		h.at = h.careful()
		start, end := h.next()
		if start == end {
			break
		}
		if !h.marked(start, end) {
			continue
		}
		name := string(src[start:end])
		if _, ok := rename[name]; ok {
			continue
		}
		stable := StableName(name)
		if old, ok := became[stable]; ok && old != name {
			unclear[stable] = true
		}
		rename[name], became[stable] = stable, name
	}
	for name, stable := range rename {
		if unclear[stable] {
			rename[name] = name
		}
	}
	return rename
}

// A needle is a text that is looked for by its byte that is rarest in PTX.
type needle struct {
	text string
	at   int // of that byte
}

func newNeedle(text string, rare byte) needle { return needle{text, strings.IndexByte(text, rare)} }

var (
	internalNeedles = [...]needle{newNeedle(internalMarks[0], 'R'), newNeedle(internalMarks[1], 'G'), newNeedle(internalMarks[2], 'c')}
	fileNeedle      = newNeedle(".file", 'l')
)

// next returns the first place of n in src that is not before from, len(src) for none.
func (n *needle) next(src []byte, from int) int {
	for at := from + n.at; at < len(src); at++ {
		i := bytes.IndexByte(src[at:], n.text[n.at])
		if i < 0 {
			break
		}
		at += i
		if start := at - n.at; start+len(n.text) <= len(src) && string(src[start:start+len(n.text)]) == n.text {
			return start
		}
	}
	return len(src)
}

// internalPlaces returns where src has one of internalMarks, in order.
func internalPlaces(src []byte) []int {
	var out []int
	for _, n := range internalNeedles {
		for i := n.next(src, 0); i < len(src); i = n.next(src, i+len(n.text)) {
			out = append(out, i)
		}
	}
	slices.Sort(out)
	return out
}

// A ptxHasher writes the tokens of PTX to a hash.
type ptxHasher struct {
	ptxScanner
	sum    hash.Hash
	marks  []int
	rename map[string]string
	file   int // tokens since .file, 0 elsewhere
	// Where the next quote, slash and ".file" are, len(src) for none: what lies before
	// them needs no care.
	quote, slash, files int
	// Tokens that are still to be hashed.
	block [ptxBlock]byte
	n     int
}

// Of ptxPiece bytes come at most 3*ptxPiece bytes of tokens: each may be one, with its
// newline, and end a word before it, with its own.
const (
	ptxBlock = 16 << 10
	ptxPiece = ptxBlock / 8
)

// write adds to the tokens.
func (h *ptxHasher) write(s []byte) {
	if len(s) > len(h.block)-h.n {
		h.flush()
		if len(s) > len(h.block) {
			h.sum.Write(s)
			return
		}
	}
	h.n += copy(h.block[h.n:], s)
}

func (h *ptxHasher) flush() {
	h.sum.Write(h.block[:h.n])
	h.n = 0
}

// tokens writes all tokens.
func (h *ptxHasher) tokens() {
	for h.at < len(h.src) {
		if h.file == 0 {
			h.plain(h.careful())
		}
		start, end := h.next()
		if start == end {
			return
		}
		t := h.src[start:end]
		if h.file > 0 || t[0] == '.' {
			if h.meansNothing(t) {
				continue
			}
		}
		h.write(h.stable(start, end))
		h.write(newline)
	}
}

var newline = []byte{'\n'}

// careful returns where the next token is that may be more than its bytes: a comment, a
// string, .file, a name with a mark.
func (h *ptxHasher) careful() int {
	if h.quote <= h.at {
		h.quote = h.find('"')
	}
	if h.slash <= h.at {
		h.slash = h.find('/')
	}
	if h.files <= h.at {
		h.files = fileNeedle.next(h.src, h.at)
	}
	stop := min(h.quote, h.slash, h.files)
	if stop == h.files && stop > h.at && ptxKinds[h.src[stop-1]] == ptxWord { // within a word
		for stop > h.at && ptxKinds[h.src[stop-1]] == ptxWord {
			stop--
		}
	}
	for len(h.marks) > 0 && h.marks[0] < h.at {
		h.marks = h.marks[1:]
	}
	if len(h.marks) > 0 && h.marks[0] < stop {
		for stop = h.marks[0]; stop > h.at && ptxKinds[h.src[stop-1]] == ptxWord; stop-- {
		}
	}
	return stop
}

// find returns the first place of c that is not before the next token, len(src) for none.
func (h *ptxHasher) find(c byte) int {
	if i := bytes.IndexByte(h.src[h.at:], c); i >= 0 {
		return h.at + i
	}
	return len(h.src)
}

// ptxTexts has what a byte adds to the tokens, after no word and after a byte of a word: up
// to three bytes, and above them their number.
var ptxTexts = func() (t [2][256]uint32) {
	for inWord := range t {
		for c, kind := range ptxKinds {
			var text [4]byte
			add := func(b byte) { text[text[3]] = b; text[3]++ }
			if inWord == 1 && kind != ptxWord {
				add('\n')
			}
			if kind != ptxBlank {
				add(byte(c))
			}
			if kind&ptxOther != 0 {
				add('\n')
			}
			t[inWord][c] = binary.LittleEndian.Uint32(text[:])
		}
	}
	return t
}()

// plain writes the tokens before stop, where one ends; words and single characters are
// all there is. It takes no decision for a byte, which makes it quick.
func (h *ptxHasher) plain(stop int) {
	inWord := uint8(0)
	for h.at < stop {
		if h.n > len(h.block)-3*ptxPiece-4 {
			h.flush()
		}
		end := min(h.at+ptxPiece, stop)
		n := h.n
		for _, c := range h.src[h.at:end] {
			text := ptxTexts[inWord&1][c]
			inWord = ptxKinds[c] & ptxWord
			binary.LittleEndian.PutUint32(h.block[n:], text)
			n += int(text >> 24)
		}
		h.n, h.at = n, end
	}
	if inWord != 0 {
		h.write(newline)
	}
}

// meansNothing reports whether a token is the time or the size in a line
// .file N "NAME", TIME, SIZE.
func (h *ptxHasher) meansNothing(t []byte) bool {
	switch {
	case string(t) == ".file":
		h.file = 1
	case h.file >= 3 && (string(t) == "," || isDigit(t[0])):
		return true
	case h.file >= 3:
		h.file = 0
	case h.file > 0:
		h.file++
	}
	return false
}

// stable returns what stands for the token at start to end.
func (h *ptxHasher) stable(start, end int) []byte {
	t := h.src[start:end]
	if h.marked(start, end) {
		return []byte(h.rename[string(t)])
	}
	return t
}

// marked reports whether the token at start to end, after those that were asked about
// before, has a mark.
func (h *ptxHasher) marked(start, end int) bool {
	for len(h.marks) > 0 && h.marks[0] < start { // in a comment
		h.marks = h.marks[1:]
	}
	return len(h.marks) > 0 && h.marks[0] < end
}

// A ptxScanner finds the tokens of PTX: words, strings, and characters that are neither.
// Comments and white space are none.
type ptxScanner struct {
	src []byte
	at  int
}

// The kinds of bytes in PTX: a bit for parts of words, one for what is a token by itself,
// and one for what may be more.
const (
	ptxBlank uint8 = 0
	ptxWord  uint8 = 1 // part of a name, a number, an instruction with its suffixes
	ptxOther uint8 = 2
	ptxSlash       = ptxOther | 4 // may begin a comment
	ptxQuote       = ptxOther | 8 // begins a string
)

var ptxKinds = func() (t [256]uint8) {
	for c := range t {
		switch b := byte(c); {
		case b == ' ', b == '\t', b == '\r', b == '\n':
			t[c] = ptxBlank
		case isDigit(b), b|0x20 >= 'a' && b|0x20 <= 'z', b == '_', b == '$', b == '%', b == '.', b >= 0x80:
			t[c] = ptxWord
		case b == '/':
			t[c] = ptxSlash
		case b == '"':
			t[c] = ptxQuote
		default:
			t[c] = ptxOther
		}
	}
	return t
}()

// next returns where the next token starts and ends, which is the same place at the end.
func (s *ptxScanner) next() (start, end int) {
	src, i := s.src, s.at
	for i < len(src) {
		switch ptxKinds[src[i]] {
		case ptxBlank:
			i++
			continue
		case ptxWord:
			start = i
			for i++; i < len(src) && ptxKinds[src[i]] == ptxWord; i++ {
			}
			s.at = i
			return start, i
		case ptxSlash:
			if n := commentLen(src[i:]); n > 0 {
				i += n
				continue
			}
		case ptxQuote:
			n := bytes.IndexByte(src[i+1:], '"') + 2
			if n < 2 {
				n = len(src) - i
			}
			s.at = i + n
			return i, i + n
		}
		s.at = i + 1
		return i, i + 1
	}
	s.at = len(src)
	return s.at, s.at
}

// commentLen returns the length of the comment that src begins with, 0 for none. One
// without an end goes to the end.
func commentLen(src []byte) int {
	switch {
	case bytes.HasPrefix(src, []byte("//")):
		if n := bytes.IndexByte(src, '\n'); n >= 0 {
			return n
		}
		return len(src)
	case bytes.HasPrefix(src, []byte("/*")):
		if n := bytes.Index(src[2:], []byte("*/")); n >= 0 {
			return n + 4
		}
		return len(src)
	}
	return 0
}
