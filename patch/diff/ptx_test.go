package diff

import (
	"crypto/sha256"
	"regexp"
	"strings"
	"testing"
)

// ptxTokens are the tokens of PTX and its comments, written another way.
var ptxTokens = regexp.MustCompile(`//[^\n]*|(?s:/\*.*?(?:\*/|$))|(?s:"[^"]*"?)|[A-Za-z0-9_$%.\x{80}-\x{10ffff}]+|[^ \t\r\n]`)

// slowPTX is hashPTX, one token at a time.
func slowPTX(src string) Hash {
	var tokens []string
	marked := func(s string) bool {
		return strings.Contains(s, internalMarks[0]) || strings.Contains(s, internalMarks[1]) || strings.Contains(s, internalMarks[2])
	}
	became := map[string]map[string]bool{}
	for _, tok := range ptxTokens.FindAllString(src, -1) {
		if strings.HasPrefix(tok, "//") || strings.HasPrefix(tok, "/*") {
			continue
		}
		tokens = append(tokens, tok)
		if s := StableName(tok); marked(tok) {
			if became[s] == nil {
				became[s] = map[string]bool{}
			}
			became[s][tok] = true
		}
	}
	var out strings.Builder
	file := 0
	for _, tok := range tokens {
		switch {
		case tok == ".file":
			file = 1
		case file >= 3 && (tok == "," || tok[0] >= '0' && tok[0] <= '9'):
			continue
		case file >= 3:
			file = 0
		case file > 0:
			file++
		}
		if s := StableName(tok); marked(tok) && len(became[s]) == 1 {
			tok = s
		}
		out.WriteString(tok + "\n")
	}
	return sha256.Sum256([]byte(out.String()))
}

var ptxExamples = []string{
	"", "x", " \t", "//", "/*", "/* a", "a/b/*c*/d//e\nf", `"a`, `"`, "a.file 1, 2", ".file\t1 \"a.cu\", 1, 2\nmov.u32 %r1,%r2;",
	".file 1 \"a.cu\"\n.file 2 \"b.cu\", 3, 4 .file 5 \"c\"", ".files 1 \"a\", 2, 3", "\"// 36_INTERNAL_b96781cf_10_kernels_cu_9e0c38a6_647\" x // _INTERNAL_\n_INTERNAL_",
	"a36_INTERNAL_b96781cf_10_kernels_cu_9e0c38a6_647 /*36_INTERNAL_c96781cf_10_kernels_cu_9e0c38a6_647*/ b",
	"a36_INTERNAL_b96781cf_10_kernels_cu_9e0c38a6_647 a36_INTERNAL_c96781cf_10_kernels_cu_9e0c38a6_647",
	"__nv_static_36__b96781cf_10_kernels_cu_9e0c38a6_647_x+_GLOBAL__N__ .file36_INTERNAL_b96781cf_10_kernels_cu_9e0c38a6_647",
	strings.Repeat("add.s32 %r1, %r2, %r3; // comment\n\t@%p1 bra $L__BB0_1;\n", 2000), strings.Repeat("w", 3*ptxBlock) + "/" + strings.Repeat(";", 3*ptxBlock),
}

func TestHashPTX(t *testing.T) {
	for _, src := range ptxExamples {
		if hashPTX([]byte(src)) != slowPTX(src) {
			t.Errorf("%.80q: not the hash of its tokens", src)
		}
	}
}

func FuzzHashPTX(f *testing.F) {
	for _, src := range ptxExamples {
		f.Add(src)
	}
	f.Fuzz(func(t *testing.T, src string) {
		if src = strings.ToValidUTF8(src, "?"); hashPTX([]byte(src)) != slowPTX(src) {
			t.Errorf("%.80q: not the hash of its tokens", src)
		}
	})
}
