package oracletest

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// An Instr is one instruction of a `cuobjdump -sass` listing.
type Instr struct {
	Kernel string // mangled name
	PC     uint64
	Text   string // with guard, without " ;", right-trimmed; empty for a word that prints nothing
	Word   Word
}

// Sass returns the instructions that `cuobjdump -sass` prints for a cubin file. For sm_70
// and sm_72, which version 13 does not know, pass a tool of "cuobjdump12"; "" means the
// current one.
func Sass(tb testing.TB, tool, file string) []Instr {
	tb.Helper()
	if tool == "" {
		tool = "cuobjdump"
	}
	return ParseSass(tb, Run(tb, tool, "-sass", file))
}

// ParseSass reads a `cuobjdump -sass` listing.
func ParseSass(tb testing.TB, listing []byte) []Instr {
	tb.Helper()
	var out []Instr
	kernel, half := "", false
	for len(listing) > 0 {
		line, rest, _ := bytes.Cut(listing, []byte("\n"))
		listing = rest
		l := string(line)
		if name, ok := strings.CutPrefix(strings.TrimSpace(l), "Function : "); ok {
			kernel = name
			continue
		}
		if pc, text, lo, ok := splitLine(l); ok {
			out = append(out, Instr{Kernel: kernel, PC: pc, Text: text, Word: Word{Lo: lo}})
			half = true
			continue
		}
		if m := secondHalf.FindStringSubmatch(l); m != nil && half {
			hi, err := strconv.ParseUint(m[1], 16, 64)
			if err != nil {
				tb.Fatalf("listing line %q: %v", l, err)
			}
			out[len(out)-1].Word.Hi = hi
			half = false
		}
	}
	return out
}

var (
	instrLine  = regexp.MustCompile(`^\s*/\*([0-9a-f]{4,})\*/(.*)$`)
	lowHalf    = regexp.MustCompile(`^(.*?)\s*/\* 0x([0-9a-f]{16}) \*/\s*$`)
	secondHalf = regexp.MustCompile(`^\s*/\* 0x([0-9a-f]{16}) \*/\s*$`)
)

// splitLine takes a line of nvdisasm or cuobjdump apart: address, text and, if it is
// there, the low half of the word.
func splitLine(line string) (pc uint64, text string, lo uint64, ok bool) {
	m := instrLine.FindStringSubmatch(line)
	if m == nil {
		return 0, "", 0, false
	}
	pc, err := strconv.ParseUint(m[1], 16, 64)
	if err != nil {
		return 0, "", 0, false
	}
	text = m[2]
	if h := lowHalf.FindStringSubmatch(text); h != nil {
		text = h[1]
		if lo, err = strconv.ParseUint(h[2], 16, 64); err != nil {
			return 0, "", 0, false
		}
	}
	text = strings.TrimSpace(text)
	text = strings.TrimSuffix(text, ";")
	return pc, strings.TrimRight(text, " "), lo, true
}
