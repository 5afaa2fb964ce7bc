package diff

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/patch/internal/patchtest"
)

// TestHashScheme builds, as docs/hash.md says, what the hashes are made of.
func TestHashScheme(t *testing.T) {
	table := patchtest.MiniTable(t)
	src := "L1:\nFFMA R5, R3, R3, R5\n[B0-----:R-:W-:-:S04] @P1 BRA L1\nEXIT\nNOP"
	c := source(t, table, src)
	sum := func(level string, words ...any) Hash {
		b := []byte("cupatch " + level + "\n")
		for _, w := range words {
			switch w := w.(type) {
			case [2]uint64:
				b = append(b, 0)
				b = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(b, w[0]), w[1])
			case [3]uint64: // with a target
				b = append(b, 1)
				b = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(b, w[0]), w[1])
				b = append(binary.LittleEndian.AppendUint32(b, uint32(w[2])), 0)
			}
		}
		return sha256.Sum256(b)
	}
	// The words as nvdisasm reads them, the target of the branch taken out.
	const ctl, ctl4 = 0x000fe2 << 40, 0x001fe8 << 40
	const ffma, bra, exit = 0x0000000303057223, 0x0000000000001947, 0x000000000000794d
	for _, test := range []struct {
		level HashLevel
		want  Hash
	}{
		{HashCode, sum("code 2", [2]uint64{ffma, ctl | 5}, [3]uint64{bra, ctl4 | 0x03800000, 0}, [2]uint64{exit, ctl | 0x03800000})},
		{HashNoControl, sum("nocontrol 2", [2]uint64{ffma, 5}, [3]uint64{bra, 0x03800000, 0}, [2]uint64{exit, 0x03800000})},
		// R5, R3 are 0 and 1; the guard P1 is 0.
		{HashNoRegs, sum("noregs 3", [2]uint64{0x0000000101007223, 0}, [3]uint64{0x0947, 0x03800000, 0}, [2]uint64{exit, 0x03800000})},
		{HashBytes, sha256.Sum256(c.data)},
	} {
		if got := c.Hash(test.level); got != test.want {
			t.Errorf("%s: %s, want %s", test.level, got, test.want)
			for i := range c.norm {
				t.Logf("%s target %d", c.norm[i], c.target[i])
			}
		}
	}
}

// TestHashFollowsClass checks that hashes are equal where the class says so.
func TestHashFollowsClass(t *testing.T) {
	table := patchtest.MiniTable(t)
	for _, test := range []struct {
		old, now string
		equal    string // levels
	}{
		{"EXIT\n", "EXIT\nNOP\n", "code nocontrol noregs"},
		{"S04", "S05", "nocontrol noregs"},
		{"R6", "R7", "noregs"},
		{"LDG.E ", "LDG.E.EL ", ""},
		{"0x4d", "0x4e", ""},
		{"BRA L1", "BRA L2", ""},
	} {
		a, b := source(t, table, program), source(t, table, strings.ReplaceAll(program, test.old, test.now))
		var equal []string
		for level := range numHashLevels {
			if a.Hash(level) == b.Hash(level) {
				equal = append(equal, level.String())
			}
		}
		if got := strings.Join(equal, " "); got != test.equal {
			t.Errorf("%q for %q: equal at %q, want %q", test.now, test.old, got, test.equal)
		}
	}
}

// TestHashWrapping hashes the same kernels in every wrapping.
func TestHashWrapping(t *testing.T) {
	var first map[string]Hash
	for _, path := range []string{"cubin/new/sm_90/pair.cubin", "fatbin/pair_stored.fatbin", "fatbin/pair_lz4.fatbin", "fatbin/pair_zstd.fatbin"} {
		got := map[string]Hash{}
		for _, e := range open(t, path).Entries() {
			c, err := e.Cubin()
			if err != nil {
				t.Fatal(err)
			}
			for i := range c.Kernels() {
				code := NewCode(c, &c.Kernels()[i], tableFor(c))
				for level := range numHashLevels {
					got[fmt.Sprint(code.Kernel.Name, level)] = code.Hash(level)
				}
			}
		}
		if first == nil {
			first = got
		}
		if len(got) != 8 || fmt.Sprint(got) != fmt.Sprint(first) {
			t.Errorf("%s: %v, want %v", path, got, first)
		}
	}
}

// TestRelocated changes what relocations replace, and what they refer to.
func TestRelocated(t *testing.T) {
	data := readCubin(t, pairs+"sm_90/calls_rel.cubin")
	c, err := elfx.ParseCubin(data)
	if err != nil {
		t.Fatal(err)
	}
	var k *elfx.Kernel
	for i := range c.Kernels() {
		if c.Kernels()[i].Name == "calls_system" {
			k = &c.Kernels()[i]
		}
	}
	a := NewCode(c, k, tableFor(c))
	// 0x2d0 is relocated: buffer, R_CUDA_ABS32_LO_32, bits 32–63.
	masked := bytes.Clone(data)
	masked[k.Offset+0x2d0+5] ^= 0x40
	if d := Compare(a, recode(t, masked, k, a.Table)); d.Class != SameCode {
		t.Errorf("a relocated field: class %s, want same-code", d.Class)
	}
	other := bytes.Clone(data)
	other[k.Offset+0x2d0+2] ^= 1
	if d := Compare(a, recode(t, other, k, a.Table)); d.Class == SameCode || d.Class == Identical {
		t.Errorf("another field of that instruction: class %s", d.Class)
	}
	// The same instruction refers to another symbol: buffer becomes the symbol after it.
	moved := bytes.Clone(data)
	section := c.Section(".rela.text.calls_system")
	for at := section.Offset; at < section.Offset+int64(section.Size); at += 24 {
		if binary.LittleEndian.Uint64(moved[at:]) == 0x2d0 {
			moved[at+12]--
		}
	}
	d := Compare(a, recode(t, moved, k, a.Table))
	if d.Class != CodeDiffers || len(d.Ops) != 1 || !strings.Contains(fmt.Sprint(d.Fields(d.Ops[0])), "target: ") {
		t.Errorf("another symbol: class %s, %v", d.Class, d.Ops)
	}
	if a.Hash(HashCode) == recode(t, moved, k, a.Table).Hash(HashCode) {
		t.Error("the hash does not see what a relocation refers to")
	}
}

// TestHashesStay compares the hashes of the test data with those that are on record: they
// change with the version of the scheme only. The record is written anew, with a new
// [HashLevel.Version], by
//
//	CUPATCH_UPDATE=1 go test -run TestHashesStay ./patch/diff
func TestHashesStay(t *testing.T) {
	paths, err := filepath.Glob("../../testdata/cubin/*/*/*.cubin")
	if err != nil || len(paths) == 0 {
		t.Fatal("no test data", err)
	}
	var got strings.Builder
	fmt.Fprintf(&got, "# cubin, then the hashes of the file: %s %s %s\n", HashCode.Scheme(), HashNoControl.Scheme(), HashNoRegs.Scheme())
	for _, path := range paths {
		c, err := elfx.ParseCubin(readCubin(t, path))
		if err != nil {
			t.Fatal(path, err)
		}
		fmt.Fprint(&got, strings.TrimPrefix(filepath.ToSlash(path), "../../testdata/cubin/"))
		m := NewModule(c, tableFor(c))
		for level := HashCode; level < numHashLevels; level++ {
			var lines []string
			for i := range c.Kernels() {
				lines = append(lines, m.Code(i).HashLine(level, m.Code(i).Hash(level)))
			}
			lines = append(lines, m.ModuleLine(level))
			h := FileHash(level, lines)
			fmt.Fprintf(&got, "\t%x", h[:8])
		}
		fmt.Fprintln(&got)
	}
	const record = "testdata/hashes.tsv"
	if os.Getenv("CUPATCH_UPDATE") != "" {
		if err := os.WriteFile(record, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	old := map[string]string{}
	for _, line := range strings.Split(string(want), "\n") {
		path, hashes, _ := strings.Cut(line, "\t")
		old[path] = hashes
	}
	n := 0
	for _, line := range strings.Split(got.String(), "\n") {
		path, hashes, ok := strings.Cut(line, "\t")
		was, known := old[path]
		if !ok || !known { // test data that is newer than the record
			continue
		}
		if n++; hashes != was {
			t.Errorf("%s: %s, on record %s", path, hashes, was)
		}
	}
	if n < len(old)/2 {
		t.Errorf("%d of %d cubins of the record found", n, len(old))
	}
}

func TestFileHash(t *testing.T) {
	a := FileHash(HashCode, []string{"sm_90 x 1", "sm_90 y 2", "sm_90 x 1"})
	if b := FileHash(HashCode, []string{"sm_90 y 2", "sm_90 x 1"}); a != b {
		t.Error("order or repetition changes the hash of a file")
	}
	if want := sha256.Sum256([]byte("cupatch file code 2\nsm_90 x 1\nsm_90 y 2\n")); a != Hash(want) {
		t.Errorf("hash %s, want that of the lines", a)
	}
}
