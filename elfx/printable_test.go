package elfx

import (
	"strings"
	"testing"
)

func TestPrintable(t *testing.T) {
	for name, want := range map[string]string{
		"_Z4gemmPf": "_Z4gemmPf", "void f<(int)3>(float*)": "void f<(int)3>(float*)", "größe": "größe", "": "",
		"o\x1b[31m": `"o\x1b[31m"`, "a\nb": `"a\nb"`, "a\rb": `"a\rb"`, "\u009b31m": `"\u009b31m"`, "a\x80": `"a\x80"`,
		`"a\nb"`: `"\"a\\nb\""`, "\u202egnp": `"\u202egnp"`, "a\x7f": `"a\x7f"`,
	} {
		if got := Printable(name); got != want {
			t.Errorf("%q is shown as %s, want %s", name, got, want)
		}
	}
	for b := range 256 {
		if got := Printable(string([]byte{'a', byte(b)})); strings.ContainsAny(got, "\x00\n\r\x1b\x7f") {
			t.Errorf("byte 0x%02x: %q", b, got)
		}
	}
}
