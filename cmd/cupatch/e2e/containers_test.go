package e2e

import (
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"encoding/binary"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/scripts/nv/oracle"
	"github.com/cupatch/cupatch/scripts/nv/oracletest"
)

// long skips a test unless the long ones are wanted.
func long(t *testing.T) {
	if os.Getenv("CUPATCH_LONG") == "" {
		t.Skip("a long test: set CUPATCH_LONG=1")
	}
}

// libraries are files of the public corpus (scripts/corpus), one for each way in which
// fatbins are stored, with the architecture that is patched.
var libraries = []struct {
	name, path, arch string
	grows            bool
}{
	{"stored", "xformers-0.0.35/xformers/_C.so", "sm_80", false},
	{"LZ4", "ctranslate2-4.8.5/ctranslate2.libs/libctranslate2-*", "sm_86", false},
	{"zstd", "torchvision-0.29.2/torchvision.libs/libnvjpeg.*", "sm_86", false},
	{"zstd for size", "bitsandbytes-0.50.2/bitsandbytes/libbitsandbytes_cuda132.so", "sm_89", true},
	{"stored, LZ4 relocatable", "bitsandbytes-0.50.2/bitsandbytes/libbitsandbytes_cuda118.so", "sm_80", false},
	{"stored, LZ4 relocatable, 12.8", "bitsandbytes-0.50.2/bitsandbytes/libbitsandbytes_cuda128.so", "sm_90", false},
}

// TestLibraries sets EF on every LDG.E of one architecture in real libraries. What
// cuobjdump extracts then differs in the planned words and nothing else, the rest of the
// file is as it was, and revert leads back.
func TestLibraries(t *testing.T) {
	long(t)
	oracletest.Tool(t, "cuobjdump")
	for _, l := range libraries {
		t.Run(l.name, func(t *testing.T) {
			found, _ := filepath.Glob(filepath.Join(oracle.CacheDir(), "corpus", l.path))
			if len(found) == 0 {
				t.Skip("no corpus, run scripts/corpus")
			}
			dir := t.TempDir()
			name := func(s string) string { return filepath.Join(dir, s) }
			cupatch(t, "patch", "-q", "-a", l.arch, "-e", "LDG.E => .EF", "--no-warn", "all",
				"--report", name("report"), "--keep-original", "-o", name("out.so"), found[0])
			p := &patched{old: open(t, found[0]), now: open(t, name("out.so")), words: planned(t, name("report"))}
			if len(p.words) == 0 {
				t.Fatal("nothing was planned")
			}
			if grew := p.now.Size > p.old.Size; grew != l.grows {
				t.Errorf("%d bytes became %d", p.old.Size, p.now.Size)
			}
			p.checkEntries(t, l.arch)
			p.checkExtracted(t)
			p.checkHost(t)
			checkLint(t, found[0], name("out.so"))

			cupatch(t, "revert", "-q", "-o", name("very.so"), name("report"), name("out.so"))
			same(t, found[0], name("very.so"))
			if err := os.Remove(name("report.original")); err != nil {
				t.Fatal(err)
			}
			cupatch(t, "revert", "-q", "-o", name("back.so"), name("report"), name("out.so"))
			if l.name == "stored" {
				same(t, found[0], name("back.so"))
			}
			back := &patched{old: p.old, now: open(t, name("back.so"))}
			back.checkEntries(t, "")
		})
	}
}

func open(t *testing.T, path string) *elfx.File {
	t.Helper()
	f, err := elfx.OpenFile(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// A word is an instruction that a report changes: where it is in its cubin, and what it
// becomes.
type word struct {
	offset   int64
	old, new [16]byte
}

// planned reads a report: words by the number of their entry.
func planned(t *testing.T, path string) map[int][]word {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var report struct {
		Files []struct {
			Edits []struct {
				Entry    string
				Offset   int64
				Old, New [2]string
			}
		}
	}
	if err := json.Unmarshal(data, &report); err != nil {
		t.Fatal(err)
	}
	out := map[int][]word{}
	for _, e := range report.Files[0].Edits {
		n, err := strconv.Atoi(e.Entry)
		if err != nil {
			t.Fatal(err)
		}
		w := word{offset: e.Offset}
		for i := range 2 {
			old, err1 := strconv.ParseUint(e.Old[i], 0, 64)
			now, err2 := strconv.ParseUint(e.New[i], 0, 64)
			if err1 != nil || err2 != nil {
				t.Fatalf("words %v, %v", e.Old, e.New)
			}
			binary.LittleEndian.PutUint64(w.old[8*i:], old)
			binary.LittleEndian.PutUint64(w.new[8*i:], now)
		}
		out[n] = append(out[n], w)
	}
	return out
}

// patched is a file before and after, and the words that are to differ.
type patched struct {
	old, now *elfx.File
	words    map[int][]word
}

// want returns what an entry of the old file becomes.
func (p *patched) want(t *testing.T, e *elfx.Entry) []byte {
	t.Helper()
	data, err := e.Data()
	if err != nil {
		t.Fatal(err)
	}
	data = bytes.Clone(data)
	for _, w := range p.words[e.Number] {
		if !bytes.Equal(data[w.offset:w.offset+16], w.old[:]) {
			t.Fatalf("entry %d at 0x%x is %x, the report says %x", e.Number, w.offset, data[w.offset:w.offset+16], w.old)
		}
		copy(data[w.offset:], w.new[:])
	}
	return data
}

// checkEntries compares every entry: the planned words differ, entries without any are
// stored as they were.
func (p *patched) checkEntries(t *testing.T, arch string) {
	t.Helper()
	if len(p.old.Entries()) != len(p.now.Entries()) {
		t.Fatalf("%d entries became %d", len(p.old.Entries()), len(p.now.Entries()))
	}
	for i, a := range p.old.Entries() {
		b := p.now.Entries()[i]
		got, err := b.Data()
		if err != nil || !bytes.Equal(got, p.want(t, a)) {
			t.Errorf("entry %d is not what was planned: %v", a.Number, err)
		}
		n := len(p.words[a.Number])
		if n > 0 && a.Arch() != arch {
			t.Errorf("entry %d for %s was changed", a.Number, a.Arch())
		}
		if n == 0 && arch != "" && !bytes.Equal(a.Raw(), b.Raw()) {
			t.Errorf("entry %d is stored in another way", a.Number)
		}
	}
}

// extracted returns how often cuobjdump extracts each content from a file.
func extracted(t *testing.T, path string) map[[sha256.Size]byte]int {
	t.Helper()
	dir := t.TempDir()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(oracletest.Tool(t, "cuobjdump"), "-all", "-xelf", "all", path)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("cuobjdump %s: %v: %s", path, err, out)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*.cubin"))
	got := map[[sha256.Size]byte]int{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		got[sha256.Sum256(b)]++
	}
	return got
}

// checkExtracted compares what cuobjdump extracts from both files with the old cubins
// and with those that have the planned words changed.
func (p *patched) checkExtracted(t *testing.T) {
	t.Helper()
	old, now := extracted(t, p.old.Name), extracted(t, p.now.Name)
	for _, e := range p.old.Entries() {
		if e.Kind != elfx.KindELF {
			continue
		}
		data, err := e.Data()
		if err != nil {
			t.Fatal(err)
		}
		old[sha256.Sum256(data)]--
		now[sha256.Sum256(p.want(t, e))]--
	}
	for _, m := range []map[[sha256.Size]byte]int{old, now} {
		for _, n := range m {
			if n != 0 {
				t.Fatalf("cuobjdump extracts other cubins: %d of one kind too many", n)
			}
		}
	}
}

// checkHost compares the host's part of the file with the standard library's reader:
// sections, and symbols outside the fatbins. Where a fatbin moved, the sections that
// point to it may differ in the words that do.
func (p *patched) checkHost(t *testing.T) {
	t.Helper()
	a, b := hostELF(t, p.old), hostELF(t, p.now)
	moved := map[elf.SectionIndex]bool{}
	for i, s := range a.Sections {
		n := b.Sections[i]
		if n.Name != s.Name || n.Type != s.Type || n.Flags != s.Flags {
			t.Fatalf("section %d: %v became %v", i, s.SectionHeader, n.SectionHeader)
		}
		fatbin := s.Name == ".nv_fatbin" || s.Name == "__nv_relfatbin"
		if s.Offset != n.Offset {
			moved[elf.SectionIndex(i)] = true
			if !fatbin || p.old.Size == p.now.Size {
				t.Errorf("section %s moved", s.Name)
			}
		}
		if fatbin || s.Type == elf.SHT_NOBITS {
			continue
		}
		old, now := sectionData(t, s), sectionData(t, n)
		if points := regexp.MustCompile(`^\.(rela?|symtab|dynsym|nvFatBinSegment)`).MatchString(s.Name); len(old) != len(now) ||
			!bytes.Equal(old, now) && (!points || p.old.Size == p.now.Size) {
			t.Errorf("section %s changed", s.Name)
		}
	}
	compareSymbols(t, a, b, moved)
}

func hostELF(t *testing.T, f *elfx.File) *elf.File {
	t.Helper()
	e, err := elf.NewFile(bytes.NewReader(f.Data()))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func sectionData(t *testing.T, s *elf.Section) []byte {
	t.Helper()
	b, err := s.Data()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// compareSymbols compares the symbols outside the moved sections.
func compareSymbols(t *testing.T, a, b *elf.File, moved map[elf.SectionIndex]bool) {
	t.Helper()
	for _, table := range []func(*elf.File) ([]elf.Symbol, error){(*elf.File).Symbols, (*elf.File).DynamicSymbols} {
		old, _ := table(a) // a table that is missing has no symbols
		now, _ := table(b)
		if len(old) != len(now) {
			t.Fatalf("%d symbols became %d", len(old), len(now))
		}
		for i, s := range old {
			if !moved[s.Section] && s != now[i] {
				t.Errorf("symbol %v became %v", s, now[i])
			}
		}
	}
}

// checkLint sees that eu-elflint has nothing to say of the new file that it does not
// say of the old one.
func checkLint(t *testing.T, old, now string) {
	t.Helper()
	if _, err := exec.LookPath("eu-elflint"); err != nil {
		return
	}
	lint := func(path string) []string {
		out, _ := exec.Command("eu-elflint", "--gnu-ld", path).CombinedOutput()
		return strings.Split(regexp.MustCompile(`\b(0x[0-9a-f]+|\d+)\b`).ReplaceAllString(string(out), "N"), "\n")
	}
	before := lint(old)
	for _, line := range lint(now) {
		if !slices.Contains(before, line) {
			t.Errorf("eu-elflint says of %s: %s", filepath.Base(now), line)
		}
	}
}
