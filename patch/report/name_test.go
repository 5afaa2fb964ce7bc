package report

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestName writes names and reads them back; what is written is JSON in UTF-8.
func TestName(t *testing.T) {
	for _, name := range []string{
		"", "gemm", "_Z1f<&>", "\xff", "a\x80b\xfec", "\xed\xb2\x80", "ä\xc3", `\udc80`, "\\\xff", `\\udcff`, "\x00\n\"", "😀\xf0\x9f", "\ufffd",
	} {
		b, err := json.Marshal(Name(name))
		if err != nil || !json.Valid(b) || !utf8.Valid(b) {
			t.Errorf("%q: %s, %v", name, b, err)
		}
		var back Name
		if err := json.Unmarshal(b, &back); err != nil || string(back) != name {
			t.Errorf("%q becomes %s, read as %q, %v", name, b, back, err)
		}
	}
	// Strings that others write: pairs of surrogates stay characters, lone halves that are no
	// byte do not become one.
	for text, want := range map[string]string{
		`"\ud83d\ude00"`: "😀", `"\ud83d\udc80"`: "💀", `"\udc7f"`: "\ufffd", `"\\udcff"`: `\udcff`, `"\u0041\udcffB"`: "A\xffB", `"\uDCFE"`: "\xfe",
	} {
		var n Name
		if err := json.Unmarshal([]byte(text), &n); err != nil || string(n) != want {
			t.Errorf("%s: %q, %v, want %q", text, n, err, want)
		}
	}
	var n Name
	if err := json.Unmarshal([]byte("7"), &n); err == nil || !strings.Contains(err.Error(), "number") {
		t.Errorf("a number: %v", err)
	}
}

func FuzzName(f *testing.F) {
	f.Add("gemm")
	f.Add("a\x80\\udc80")
	f.Fuzz(func(t *testing.T, name string) {
		b, err := json.Marshal(Name(name))
		var back Name
		if err == nil {
			err = json.Unmarshal(b, &back)
		}
		if err != nil || string(back) != name {
			t.Errorf("%q becomes %s, read as %q, %v", name, b, back, err)
		}
	})
}
