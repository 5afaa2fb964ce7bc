// Package e2e tests the program as its users run it, on the binaries of testdata.
package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/scripts/nv/oracle"
	"github.com/cupatch/cupatch/scripts/nv/oracletest"
)

const testdata = "../../../testdata"

// built is the folder that program built into, if it did.
var built string

// program builds cupatch once and returns its path.
var program = sync.OnceValues(func() (string, error) {
	var err error
	if built, err = os.MkdirTemp("", "cupatch-e2e"); err != nil {
		return "", err
	}
	path := filepath.Join(built, "cupatch")
	out, err := exec.Command("go", "build", "-o", path, "..").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build: %w: %s", err, out)
	}
	return path, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if built != "" {
		os.RemoveAll(built)
	}
	os.Exit(code)
}

// cupatch runs the program, which must succeed, and returns its standard output.
func cupatch(t *testing.T, args ...string) string {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("cupatch %s: %v\n%s%s", strings.Join(args, " "), err, stdout.Bytes(), stderr.Bytes())
	}
	return stdout.String()
}

// A listed cubin is a line of testdata/LISTINGS.
type listed struct {
	Path   string // below testdata
	Instrs int
	Sum    string
}

func cubins(t *testing.T) []listed {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(testdata, "LISTINGS"))
	if err != nil {
		t.Fatal(err)
	}
	var out []listed
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Split(strings.TrimSpace(line), "\t")
		n, err := strconv.Atoi(f[1])
		if err != nil || len(f) != 3 {
			t.Fatalf("LISTINGS: %q", line)
		}
		out = append(out, listed{f[0], n, f[2]})
	}
	if len(out) < 150 {
		t.Fatalf("LISTINGS has %d cubins", len(out))
	}
	return out
}

// TestListings compares the text of every instruction of every cubin with the recorded
// hash of what cuobjdump prints, and encodes every text back.
func TestListings(t *testing.T) {
	for _, l := range cubins(t) {
		t.Run(l.Path, func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(filepath.Join(testdata, l.Path))
			if err != nil {
				t.Fatal(err)
			}
			cubin, err := elfx.ParseCubin(data)
			if err != nil {
				t.Fatal(err)
			}
			arch, err := isa.ParseArch(cubin.Arch)
			if err != nil {
				t.Fatal(err)
			}
			table, err := isa.Load(arch)
			if err != nil {
				t.Fatal(err)
			}
			kernels := slices.Clone(cubin.Kernels())
			slices.SortFunc(kernels, func(a, b elfx.Kernel) int { return strings.Compare(a.Name, b.Name) })
			var text strings.Builder
			n := 0
			for _, k := range kernels {
				text.WriteString(k.Name + "\n")
				for pc := int64(0); pc < k.Size; pc += isa.WordSize {
					n++
					w := isa.LoadWord(data[k.Offset+pc:])
					s := table.Text(table.Decode(w), uint64(pc))
					fmt.Fprintf(&text, "%04x %s\n", pc, s)
					if back, err := table.Encode(s, uint64(pc), &w); err != nil || back != w {
						t.Errorf("%s at 0x%x: %v: %q is encoded as %v, %v", k.Name, pc, w, s, back, err)
					}
				}
			}
			sum := sha256.Sum256([]byte(text.String()))
			if n != l.Instrs || hex.EncodeToString(sum[:]) != l.Sum {
				t.Errorf("the text of %d instructions is not cuobjdump's of %d; scripts/corpuscheck testdata shows where", n, l.Instrs)
			}
		})
	}
}

// rules are changes with what they do to cuobjdump's text of one instruction.
var rules = []struct {
	rule   string
	change func(string) string
}{
	{"LDG => .EF", func(s string) string {
		return regexp.MustCompile(`^((?:@\S+ )?LDG(?:\.E)?)(?:\.(?:EL|LU|EU|NA|EF))?\b`).ReplaceAllString(s, "$1.EF")
	}},
	{"STG => evict=EL", func(s string) string {
		return regexp.MustCompile(`^((?:@\S+ )?STG(?:\.E)?)(?:\.(?:EL|LU|EU|NA|EF))?\b`).ReplaceAllString(s, "$1.EL")
	}},
	{"IADD3 => wait+=5", func(s string) string { return s }}, // control codes do not show in the text
}

// Bits of the upper half of a word that the rules change.
const (
	evictBits uint64 = 7 << (84 - 64)
	waitBit   uint64 = 1 << (121 - 64)
)

// iadd3 fits what the third rule matches.
var iadd3 = regexp.MustCompile(`^(@\S+ )?IADD3\b`)

// TestPatchRevert patches every cubin and reverts the patch with its report: the result is
// the original. Absolute changes made twice change nothing the second time.
func TestPatchRevert(t *testing.T) {
	for _, l := range cubins(t) {
		t.Run(l.Path, func(t *testing.T) {
			t.Parallel()
			in, dir := filepath.Join(testdata, l.Path), t.TempDir()
			name := func(s string) string { return filepath.Join(dir, s) }
			args := []string{"-q", "--allow-no-match", "-e", rules[0].rule, "-e", rules[1].rule}
			patch := func(more ...string) { cupatch(t, slices.Concat([]string{"patch"}, args, more)...) }
			patch("-o", name("once"), in)
			patch("-o", name("twice"), name("once"))
			same(t, name("once"), name("twice"))
			patch("-e", rules[2].rule, "--report", name("report"), "-o", name("out"), in)
			cupatch(t, "revert", "-q", "-o", name("back"), name("report"), name("out"))
			same(t, in, name("back"))
		})
	}
}

func same(t *testing.T, a, b string) {
	t.Helper()
	x, err := os.ReadFile(a)
	if err != nil {
		t.Fatal(err)
	}
	y, err := os.ReadFile(b)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(x, y) {
		t.Errorf("%s and %s differ", a, b)
	}
}

// TestPatchOracle shows with cuobjdump that a patch makes the change it says, and no other.
func TestPatchOracle(t *testing.T) {
	oracletest.Tool(t, "cuobjdump")
	oracletest.Tool(t, "cuobjdump12")
	for _, l := range cubins(t) {
		if testing.Short() && !strings.Contains(l.Path, "/loads") {
			continue
		}
		if l.Instrs == 0 {
			continue
		}
		t.Run(l.Path, func(t *testing.T) {
			t.Parallel()
			in, dir := filepath.Join(testdata, l.Path), t.TempDir()
			tool := oracle.Current("cuobjdump", filepath.Base(filepath.Dir(in)))
			before := oracletest.Sass(t, tool, in)
			if len(before) != l.Instrs {
				t.Fatalf("%d instructions, want %d", len(before), l.Instrs)
			}
			out := filepath.Join(dir, "out.cubin")
			args := []string{"patch", "-q", "--allow-no-match", "-o", out, in}
			for _, r := range rules {
				args = append(args, "-e", r.rule)
			}
			cupatch(t, args...)
			after := oracletest.Sass(t, tool, out)
			if len(after) != len(before) {
				t.Fatalf("%d instructions after the patch, %d before", len(after), len(before))
			}
			for i, b := range before {
				text := b.Text
				for _, r := range rules {
					text = r.change(text)
				}
				a, word := after[i], b.Word
				if iadd3.MatchString(text) {
					word.Hi |= waitBit
				}
				if text != b.Text { // which bits those are, the text shows
					word.Hi = word.Hi&^evictBits | a.Word.Hi&evictBits
				}
				if a.Kernel != b.Kernel || a.PC != b.PC || a.Text != text || a.Word != word {
					t.Errorf("%s at 0x%x: %q %x became %q %x, want %q", b.Kernel, b.PC, b.Text, b.Word, a.Text, a.Word, text)
				}
			}
		})
	}
}
