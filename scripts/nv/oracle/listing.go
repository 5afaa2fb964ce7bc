package oracle

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// An Instr is one instruction of a `cuobjdump -sass` listing.
type Instr struct {
	Kernel string // mangled name
	PC     uint64
	Text   string // with guard, without " ;", right-trimmed; empty for a word that prints nothing
	Word   Word
}

// ParseSass reads a `cuobjdump -sass` listing.
func ParseSass(listing []byte) ([]Instr, error) {
	var out []Instr
	kernel, half := "", false
	for len(listing) > 0 {
		line, rest, _ := bytes.Cut(listing, []byte("\n"))
		listing = rest
		l := strings.TrimSpace(string(line))
		if name, ok := strings.CutPrefix(l, "Function : "); ok {
			kernel = name
			continue
		}
		if hi, ok := word(l); ok && half {
			out[len(out)-1].Word.Hi = hi
			half = false
		} else if pc, text, lo, ok := splitLine(l); ok {
			if half {
				return nil, fmt.Errorf("listing: no second half of the word before %q", l)
			}
			out = append(out, Instr{Kernel: kernel, PC: pc, Text: text, Word: Word{Lo: lo}})
			half = true
		}
	}
	return out, nil
}

// word reads a comment such as `/* 0x00000a00ff017b82 */`.
func word(s string) (uint64, bool) {
	s, ok1 := strings.CutPrefix(s, "/* 0x")
	s, ok2 := strings.CutSuffix(s, " */")
	v, err := strconv.ParseUint(s, 16, 64)
	return v, ok1 && ok2 && err == nil
}

// splitLine takes a line of nvdisasm or cuobjdump apart, such as
//
//	/*0010*/  @!P0 BRA 0x130;  /* 0x0000000400008947 */
//
// into address, text and, if it is there, the low half of the word.
func splitLine(line string) (pc uint64, text string, lo uint64, ok bool) {
	s, ok := strings.CutPrefix(strings.TrimSpace(line), "/*")
	if !ok {
		return 0, "", 0, false
	}
	addr, text, ok := strings.Cut(s, "*/")
	pc, err := strconv.ParseUint(addr, 16, 64)
	if !ok || len(addr) < 4 || err != nil {
		return 0, "", 0, false
	}
	if i := strings.LastIndex(text, "/* 0x"); i >= 0 {
		if v, ok := word(text[i:]); ok {
			text, lo = text[:i], v
		}
	}
	text = strings.TrimSuffix(strings.TrimSpace(text), ";")
	return pc, strings.TrimRight(text, " "), lo, true
}
