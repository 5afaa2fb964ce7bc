package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/cupatch/cupatch/elfx"
)

// The code of a kernel alone lists as it does in its cubin, and with another base the
// addresses, and the targets of branches with them, are that much higher.
func TestDisRaw(t *testing.T) {
	path := "../../testdata/cubin/new/sm_90/control.cubin"
	c, err := elfx.ParseCubin(read(t, path))
	if err != nil {
		t.Fatal(err)
	}
	k := kernelNamed(t, c, "control_loops")
	code := filepath.Join(t.TempDir(), "code.bin")
	if err := os.WriteFile(code, k.Data(), 0o666); err != nil {
		t.Fatal(err)
	}
	whole, _, status := cupatch(t, nil, "dis", "-k", k.Name, path)
	if status != 0 {
		t.Fatal(status)
	}
	want := whole[strings.Index(whole, "/*0000*/"):]
	if got, stderr, status := cupatch(t, nil, "dis", "--raw", "sm_90", code); got != want || status != 0 {
		t.Errorf("status %d, %s\n%s\nwant\n%s", status, stderr, got, want)
	}
	if got, _, _ := cupatch(t, k.Data(), "dis", "--raw", "sm_90", "-"); got != want {
		t.Error("standard input lists otherwise")
	}
	const base = 0x12340
	address := regexp.MustCompile(`^/\*[0-9a-f]+\*/|(BRA|BSSY\.RECONVERGENT|BSSY) (B0, |!?U?P\d, )*0x[0-9a-f]+`)
	shift := func(line string) string {
		return address.ReplaceAllStringFunc(line, func(s string) string {
			hex := regexp.MustCompile(`[0-9a-f]+(\*/)?$`).FindString(s)
			head, n := strings.TrimSuffix(s, hex), strings.TrimSuffix(hex, "*/")
			v, err := strconv.ParseUint(n, 16, 64)
			if err != nil {
				t.Fatal(line, err)
			}
			return head + strconv.FormatUint(v+base, 16) + strings.TrimPrefix(hex, n)
		})
	}
	var moved []string
	for line := range strings.Lines(want) {
		moved = append(moved, shift(line))
	}
	if !strings.Contains(want, "BRA 0x") || !strings.Contains(want, "BSSY") {
		t.Fatal("the kernel has no branch")
	}
	got, _, _ := cupatch(t, nil, "dis", "--raw", "sm_90", "--base", "0x12340", code)
	if got != strings.Join(moved, "") {
		t.Errorf("with a base:\n%s\nwant\n%s", got, strings.Join(moved, ""))
	}
}

func TestDisRawRefuses(t *testing.T) {
	odd := filepath.Join(t.TempDir(), "odd.bin")
	if err := os.WriteFile(odd, bytes.Repeat([]byte{0}, 40), 0o666); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"40 bytes are no whole number of instructions": {"--raw", "sm_90", odd},
		"a multiple of 16":                {"--raw", "sm_90", "--base", "0x8", odd},
		"--base goes with --raw ARCH":     {"--base", "0x10", odd},
		"--kernel does not go with --raw": {"--raw", "sm_90", "-k", "a", odd},
		`"sm_" is no architecture`:        {"--raw", "sm_", odd},
	} {
		if _, stderr, status := cupatch(t, nil, append([]string{"dis"}, args...)...); status != 2 || !strings.Contains(stderr, want) {
			t.Errorf("%v: status %d, %q, want %q", args, status, stderr, want)
		}
	}
}

func kernelNamed(t *testing.T, c *elfx.Cubin, name string) *elfx.Kernel {
	t.Helper()
	for i := range c.Kernels() {
		if k := &c.Kernels()[i]; k.Name == name {
			return k
		}
	}
	t.Fatalf("no kernel %s", name)
	return nil
}
