package elfx

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func mustOpen(t testing.TB, name string, data []byte) *File {
	t.Helper()
	f, err := Open(name, data, nil)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// describe writes an entry in one line.
func describe(e *Entry) string {
	return strings.TrimRight(fmt.Sprintf("#%d %s %s %s %d %s", e.Number, e.Kind, e.Target(), e.Compression, e.Size, e.Name), " ")
}

// The fatbins were made from files of the test data; testdata/BUILD has the commands.
// What comes out must be what went in (fatbinary drops the comments of PTX).
func TestFatbinEntries(t *testing.T) {
	control := []string{"cubin/new/sm_75/control.cubin", "cubin/old/sm_80/control.cubin", "cubin/new/sm_90/control.cubin"}
	tests := []struct {
		file    string
		entries []string
		from    []string
	}{
		{"stored", []string{"#1 elf sm_75 stored 9384", "#2 elf sm_80 stored 9256", "#3 elf sm_90 stored 10568", "#4 ptx compute_90 stored 3424"}, control},
		{"lz4", []string{"#1 elf sm_75 lz4 9384", "#2 elf sm_80 lz4 9256", "#3 elf sm_90 lz4 10568", "#4 ptx compute_90 lz4 3417"}, control},
		{"zstd", []string{"#1 elf sm_75 zstd 9384", "#2 elf sm_80 zstd 9256", "#3 elf sm_90 zstd 10568", "#4 ptx compute_90 zstd 3417"}, control},
		{
			"default",
			[]string{"#1 elf sm_80 stored 9768", "#2 elf sm_90a stored 4608", "#3 elf sm_100a stored 10496", "#4 ptx compute_80 zstd 691"},
			[]string{"cubin/new/sm_80/control.cubin", "cubin/new/sm_90a/tensor90a.cubin", "cubin/new/sm_100a/tensor100a.cubin"},
		},
		{
			"concat",
			[]string{"#1 concat  zstd 36288", "#2 elf sm_80 stored 9768", "#3 elf sm_90 stored 10568", "#4 elf sm_90 stored 15952"},
			[]string{"", "cubin/new/sm_80/control.cubin", "cubin/new/sm_90/control.cubin", "cubin/new/sm_90/proof.cubin"},
		},
		{
			"relocatable",
			[]string{"#1 elf sm_80 zstd 12320 unit.cu", "#2 elf sm_90 zstd 12852 unit.cu"},
			[]string{"cubin/new/sm_80/calls_rel.cubin", "cubin/new/sm_90/calls_rel.cubin"},
		},
	}
	for _, tt := range tests {
		f := mustOpen(t, tt.file, mustRead(t, "fatbin/"+tt.file+".fatbin"))
		if f.Kind != FileFatbin || f.Damage() != nil {
			t.Errorf("%s: %s, %v", tt.file, f.Kind, f.Damage())
		}
		var got []string
		for i, e := range f.Entries() {
			got = append(got, describe(e))
			if i >= len(tt.from) || tt.from[i] == "" {
				continue
			}
			data, err := e.Data()
			want := mustRead(t, tt.from[i])
			if err != nil || !bytes.HasPrefix(data, want) || !isZero(data[len(want):]) {
				t.Errorf("%s: #%d is not %s: %d bytes, want %d; %v", tt.file, e.Number, tt.from[i], len(data), len(want), err)
			}
		}
		if d := cmp.Diff(tt.entries, got); d != "" {
			t.Errorf("%s: entries (-want +got):\n%s", tt.file, d)
		}
		checkAccounts(t, f)
	}
}

// checkAccounts fails unless every byte of the fatbin sections is accounted for.
func checkAccounts(t *testing.T, f *File) {
	t.Helper()
	for m := range f.All() {
		for _, r := range m.Regions {
			a := r.Account()
			if a.Total() != r.Size || r.Dedicated && (a.Damaged != 0 || a.Other != 0) {
				t.Errorf("%s: section %q of %d bytes: %+v, in all %d", m.Name, r.Name, r.Size, a, a.Total())
			}
		}
	}
}

// A library with fatbins back to back, one of them empty, a cubin bare in its data, a
// magic number in its code, and a fatbin in a section that is not loaded.
func TestHostSections(t *testing.T) {
	data := hostFile(t)
	f := mustOpen(t, "lib.so", data)
	if f.Kind != FileShared || f.Damage() != nil {
		t.Errorf("%s, %v", f.Kind, f.Damage())
	}
	var got []string
	for _, r := range f.Regions {
		for _, c := range r.Containers {
			got = append(got, fmt.Sprintf("%s %s %d entries", r.Name, c.Kind, len(c.Entries)))
		}
	}
	want := []string{".nv_fatbin fatbin 4 entries", ".nv_fatbin fatbin 0 entries", ".nv_fatbin fatbin 4 entries", ".data cubin 1 entries"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("containers (-want +got):\n%s", d)
	}
	checkAccounts(t, f)
	last := f.Entries()[8]
	cubin := mustRead(t, "cubin/new/sm_80/cache.cubin")
	if b, err := last.Data(); err != nil || !bytes.Equal(b, cubin) {
		t.Errorf("the cubin in .data: %d bytes, want %d; %v", len(b), len(cubin), err)
	}
	if off := last.FileOffset(0); !bytes.Equal(data[off:off+int64(len(cubin))], cubin) {
		t.Errorf("the cubin in .data is not at 0x%x", off)
	}
}

func TestArchive(t *testing.T) {
	f := mustOpen(t, "lib.a", archiveFile(t))
	if f.Kind != FileArchive || len(f.Members) != 2 || len(f.Entries()) != 8 {
		t.Fatalf("%s, %d members, %d entries", f.Kind, len(f.Members), len(f.Entries()))
	}
	if n := f.Members[0].Name; n != "lib.a(an_object_with_a_long_name.o)" {
		t.Errorf("first member %s", n)
	}
	want := mustRead(t, "cubin/new/sm_75/control.cubin")
	for _, n := range []int{1, 5} {
		if b, err := f.Entries()[n-1].Data(); err != nil || !bytes.Equal(b, want) {
			t.Errorf("entry #%d: %d bytes, %v", n, len(b), err)
		}
	}
	checkAccounts(t, f)
}

// makePE returns a PE file with one section.
func makePE(name string, content []byte) []byte {
	b := make([]byte, 0x200)
	copy(b, "MZ")
	le.PutUint32(b[peOffsetField:], 0x80)
	copy(b[0x80:], "PE\x00\x00")
	le.PutUint16(b[0x84:], 0x8664)
	le.PutUint16(b[0x86:], 1)
	s := b[0x84+coffHeaderSize:]
	copy(s[:8], name)
	padded := append(bytes.Clone(content), make([]byte, 512-len(content)%512)...)
	le.PutUint32(s[8:], uint32(len(content)))
	le.PutUint32(s[12:], 0x1000)
	le.PutUint32(s[16:], uint32(len(padded)))
	le.PutUint32(s[20:], 0x200)
	return append(b, padded...)
}

func TestPE(t *testing.T) {
	f := mustOpen(t, "foo.dll", makePE(".nv_fatb", mustRead(t, "fatbin/zstd.fatbin")))
	if f.Kind != FilePE || len(f.Entries()) != 4 {
		t.Fatalf("%s, %d entries", f.Kind, len(f.Entries()))
	}
	checkAccounts(t, f)
	if _, _, err := f.Prune(func(*Entry) bool { return false }); !errors.Is(err, ErrUnsupported) {
		t.Errorf("a PE file was pruned: %v", err)
	}
}

// Entries of PE files are changed in their places, and nothing else is. A file that is
// signed, or where something does not fit, stays.
func TestPEIsWritten(t *testing.T) {
	data := makePE(".nv_fatb", mustRead(t, "fatbin/stored.fatbin"))
	f := mustOpen(t, "foo.dll", data)
	e := f.Entries()[1]
	old := entryBytes(t, e)
	out, _, err := f.Rewrite(map[*Entry][]byte{e: flip(old)}, RewriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := bytes.Clone(data)
	want[int(e.FileOffset(0))+len(old)/2] ^= 0x55
	if !bytes.Equal(out.Bytes(), want) {
		t.Error("more or less than the one byte changed")
	}

	z := mustOpen(t, "foo.dll", makePE(".nv_fatb", mustRead(t, "fatbin/zstd.fatbin")))
	first := z.Entries()[0]
	if _, _, err := z.Rewrite(map[*Entry][]byte{first: noise(t, entryBytes(t, first), 500, 1)}, RewriteOptions{}); !errors.Is(err, ErrGrow) {
		t.Errorf("an entry that does not fit: %v", err)
	}
}

func TestSignedPE(t *testing.T) {
	const opt = 0x84 + coffHeaderSize
	data := makePE(".nv_fatb", mustRead(t, "fatbin/stored.fatbin"))
	// Room for an optional header of 64-bit addresses with 16 directories, of 240 bytes.
	data = append(append(bytes.Clone(data[:opt]), make([]byte, 240)...), data[opt:]...)
	copy(data[0x200:], data[0x200+240:])
	data = data[:len(data)-240]
	le.PutUint16(data[0x84+16:], 240)
	le.PutUint16(data[opt:], pe32Plus)
	le.PutUint32(data[opt+108:], 16)
	if why := mustOpen(t, "a.dll", data).ReadOnly(); why != "" {
		t.Errorf("without a signature: %s", why)
	}
	le.PutUint32(data[opt+144:], uint32(len(data)))
	le.PutUint32(data[opt+148:], 8)
	f := mustOpen(t, "a.dll", data)
	_, _, err := f.Rewrite(map[*Entry][]byte{f.Entries()[0]: flip(entryBytes(t, f.Entries()[0]))}, RewriteOptions{})
	if !strings.Contains(f.ReadOnly(), "signed") || !errors.Is(err, ErrUnsupported) {
		t.Errorf("read only %q, %v", f.ReadOnly(), err)
	}
}

// One bad entry does not hide the others. Each case damages the second entry of four.
func TestDamagedEntry(t *testing.T) {
	for _, file := range []string{"stored", "lz4", "zstd"} {
		good := mustRead(t, "fatbin/"+file+".fatbin")
		second := mustOpen(t, file, good).Entries()[1]
		for name, damage := range map[string]func(b []byte){
			"payload size": func(b []byte) { le.PutUint64(b[second.Offset+8:], 1<<50) },
			"header size":  func(b []byte) { le.PutUint32(b[second.Offset+4:], 1<<31) },
			"small header": func(b []byte) { le.PutUint32(b[second.Offset+4:], 8) },
			"compressed size": func(b []byte) {
				le.PutUint32(b[second.Offset+16:], 1<<31)
				le.PutUint64(b[second.Offset+40:], FlagZstd)
			},
			"decompressed size": func(b []byte) {
				le.PutUint64(b[second.Offset+56:], 1<<62)
				le.PutUint64(b[second.Offset+40:], FlagZstd)
			},
		} {
			b := bytes.Clone(good)
			damage(b)
			f := mustOpen(t, file, b)
			if len(f.Entries()) != 4 {
				t.Errorf("%s, %s: %d entries", file, name, len(f.Entries()))
				continue
			}
			for i, e := range f.Entries() {
				_, err := e.Data()
				if (err != nil) != (i == 1) || err != nil && !strings.Contains(err.Error(), "entry #2") {
					t.Errorf("%s, %s: entry #%d: %v", file, name, e.Number, err)
				}
			}
			for _, r := range f.Regions {
				if a := r.Account(); a.Total() != r.Size {
					t.Errorf("%s, %s: %+v is not %d", file, name, a, r.Size)
				}
			}
		}
	}
}

func TestDamagedPayload(t *testing.T) {
	for _, file := range []string{"lz4", "zstd"} {
		b := bytes.Clone(mustRead(t, "fatbin/"+file+".fatbin"))
		e := mustOpen(t, file, b).Entries()[0]
		for i := range int64(64) {
			b[e.PayloadOffset+i] = 0xff
		}
		f := mustOpen(t, file, b)
		for _, e := range f.Entries() {
			if _, err := e.Cubin(); (err != nil) != (e.Number == 1 || e.Kind == KindPTX) {
				t.Errorf("%s: entry #%d: %v", file, e.Number, err)
			}
		}
	}
}

// Bug 11 of other readers: a truncated file says by how many bytes.
func TestTruncatedFatbin(t *testing.T) {
	b := mustRead(t, "fatbin/stored.fatbin")
	f := mustOpen(t, "cut.fatbin", b[:len(b)-1000])
	if err := f.Damage(); err == nil || !strings.Contains(err.Error(), "truncated by 1000 bytes") {
		t.Errorf("damage: %v", err)
	}
	if n := len(f.Entries()); n != 4 {
		t.Errorf("%d entries, want 3 good ones and the one that is cut", n)
	}
	if f.Entries()[3].Err == nil || f.Entries()[2].Err != nil {
		t.Errorf("errors: %v, %v", f.Entries()[2].Err, f.Entries()[3].Err)
	}
}

func TestTooLarge(t *testing.T) {
	f, err := Open("z", mustRead(t, "fatbin/zstd.fatbin"), &Options{MaxEntry: 9300})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range f.Entries() {
		if _, err := e.Data(); errors.Is(err, ErrTooLarge) != (e.Size > 9300) {
			t.Errorf("entry #%d of %d bytes: %v", e.Number, e.Size, err)
		}
	}
}

// A bomb is refused with its numbers and before memory is spent on it.
func TestBomb(t *testing.T) {
	for _, file := range []string{"lz4", "zstd"} {
		b := bytes.Clone(mustRead(t, "fatbin/"+file+".fatbin"))
		e := mustOpen(t, file, b).Entries()[0]
		le.PutUint64(b[e.Offset+offSize:], 3<<30)
		f := mustOpen(t, file, b)
		n := allocated(func() {
			_, err := f.Entries()[0].Data()
			if err == nil || !strings.Contains(err.Error(), "3221225472") {
				t.Errorf("%s: %v", file, err)
			}
		})
		if n > 1<<20 {
			t.Errorf("%s: %d bytes allocated", file, n)
		}
	}
}

func TestOldAndUnknownKinds(t *testing.T) {
	b := bytes.Clone(mustRead(t, "fatbin/stored.fatbin"))
	entries := mustOpen(t, "f", b).Entries()
	le.PutUint64(b[entries[0].Offset+40:], FlagOldPacking|Flag64Bit)
	le.PutUint16(b[entries[1].Offset:], 0x40)
	le.PutUint16(b[entries[2].Offset:], rawLTOIR)
	le.PutUint64(b[entries[2].Offset+40:], FlagZstd|FlagObfuscated)
	f := mustOpen(t, "f", b)
	if _, err := f.Entries()[0].Data(); !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "older than 9") {
		t.Errorf("old compression: %v", err)
	}
	if e := f.Entries()[1]; e.Kind != KindUnknown || e.RawKind != 0x40 || e.Err != nil {
		t.Errorf("unknown kind: %s, 0x%x, %v", e.Kind, e.RawKind, e.Err)
	}
	if _, err := f.Entries()[2].Data(); !errors.Is(err, ErrUnsupported) {
		t.Errorf("obfuscated LTO IR: %v", err)
	}
}

func TestNoCode(t *testing.T) {
	for _, b := range [][]byte{nil, []byte("hello"), bytes.Repeat([]byte{0x50, 0xed, 0x55}, 100), makeELF(etDyn)} {
		if f, err := Open("x", b, nil); f != nil || !errors.Is(err, ErrNoCode) {
			t.Errorf("%.10q: %v, %v", b, f, err)
		}
	}
}

func TestSelect(t *testing.T) {
	f := mustOpen(t, "lib.fatbin", mustRead(t, "fatbin/default.fatbin"))
	for sel, want := range map[string]string{
		"": "1 2 3 4", "2": "2", "2-3": "2 3", "sm_90a": "2", "90a": "2", "SM90a": "2", "compute_80": "4", "sm80": "1",
		"ptx": "4", "elf": "1 2 3", "4,1": "1 4", "sm_100a": "3",
	} {
		entries, err := f.Select(sel)
		if err != nil {
			t.Errorf("%q: %v", sel, err)
		}
		var got []string
		for _, e := range entries {
			got = append(got, fmt.Sprint(e.Number))
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%q: entries %s, want %s", sel, s, want)
		}
	}
	for sel, want := range map[string]string{
		"5": "compute_80, sm_80, sm_90a, sm_100a", "sm_90": "no entry", "foo": "want a number", "3-2": "want a number", "0": "no entry",
	} {
		if _, err := f.Select(sel); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one with %q", sel, err, want)
		}
	}
}

// Which devices run code for a target, from the tables of the CUDA programming guide:
// binary compatibility within a major version and not across it, none to or from the Tegra
// devices, `a` for one device, and the family-specific targets 100f (10.0, 10.3), 103f
// (10.3), 101f and 110f (Tegra), 120f (12.0, 12.1) and 121f (12.1).
func TestRunsOn(t *testing.T) {
	devices := []int{50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 89, 90, 100, 101, 103, 110, 120, 121}
	for target, want := range map[string][]int{
		"50": {50, 52}, "52": {52}, "53": {53}, "60": {60, 61}, "61": {61}, "62": {62}, "70": {70, 75}, "72": {72}, "75": {75},
		"80": {80, 86, 89}, "86": {86, 89}, "87": {87}, "89": {89}, "90": {90}, "90a": {90},
		"100": {100, 103}, "100f": {100, 103}, "100a": {100}, "101": {101}, "101f": {101}, "101a": {101},
		"103": {103}, "103f": {103}, "103a": {103}, "110": {110}, "110f": {110}, "110a": {110},
		"120": {120, 121}, "120f": {120, 121}, "120a": {120}, "121": {121}, "121f": {121}, "121a": {121},
	} {
		sm, suffix, _, err := ParseArch(target)
		if err != nil {
			t.Fatal(err)
		}
		var got []int
		for _, d := range devices {
			if (Target{sm, suffix}).RunsOn(d) {
				got = append(got, d)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("sm_%s runs on %v, want %v", target, got, want)
		}
	}
}

// PTX is compiled for every later device, PTX for `a` for its own only, PTX for `f` for
// its family.
func TestCompilesFor(t *testing.T) {
	for _, tt := range []struct {
		target Target
		device int
		want   bool
	}{
		{Target{52, ""}, 121, true}, {Target{90, ""}, 89, false}, {Target{86, ""}, 87, true}, {Target{90, "a"}, 90, true},
		{Target{90, "a"}, 100, false}, {Target{100, "f"}, 103, true}, {Target{100, "f"}, 120, false}, {Target{100, "f"}, 110, false},
	} {
		if got := tt.target.CompilesFor(tt.device); got != tt.want {
			t.Errorf("compute_%d%s for sm_%d: %v", tt.target.SM, tt.target.Suffix, tt.device, got)
		}
	}
}

// Among what runs on sm_100 the driver prefers the most specific.
func TestChooseSuffix(t *testing.T) {
	for _, tt := range []struct {
		flags []uint64
		want  uint64
	}{{[]uint64{0, FlagFamily, FlagAccel}, FlagAccel}, {[]uint64{0, FlagFamily}, FlagFamily}, {[]uint64{FlagAccel, 0}, FlagAccel}} {
		var b []byte
		for _, flag := range tt.flags {
			b = append(b, makeEntry(rawELF, 100, flag, make([]byte, 64))...)
		}
		e, _ := mustOpen(t, "f", makeFatbin(b)).Regions[0].Containers[0].Choose(100)
		if e == nil || e.Flags&(FlagAccel|FlagFamily) != tt.want {
			t.Errorf("of flags %x: %+v", tt.flags, e)
		}
	}
}

func TestChoose(t *testing.T) {
	c := mustOpen(t, "f", mustRead(t, "fatbin/stored.fatbin")).Regions[0].Containers[0] // sm_75, 80, 90, compute_90
	for device, want := range map[int]string{
		75: "cubin #1", 86: "cubin #2", 89: "cubin #2", 90: "cubin #3", 100: "ptx #4", 120: "ptx #4", 70: "nothing", 87: "nothing",
	} {
		e, how := c.Choose(device)
		got := how.String()
		if e != nil {
			got += fmt.Sprintf(" #%d", e.Number)
		}
		if got != want {
			t.Errorf("sm_%d: %s, want %s", device, got, want)
		}
	}
}

// A cubin does not record the suffix f: its entry is found under both names, and the
// entry's name is the one that is shown.
func TestFamilyEntries(t *testing.T) {
	cubin := mustRead(t, "cubin/new/sm_100/cache.cubin")
	cubin = append(bytes.Clone(cubin), make([]byte, alignUp(len(cubin), 8)-len(cubin))...)
	var b []byte
	for _, flag := range []uint64{0, FlagFamily, FlagAccel} {
		b = append(b, makeEntry(rawELF, 100, flag, cubin)...)
	}
	f := mustOpen(t, "f", makeFatbin(b))
	for sel, want := range map[string]int{"sm_100": 2, "sm_100f": 1, "sm_100a": 1} {
		if got, err := f.Select(sel); err != nil || len(got) != want {
			t.Errorf("%s: %d entries, %v; want %d", sel, len(got), err, want)
		}
	}
	for i, want := range []string{"sm_100", "sm_100f", "sm_100"} {
		c, err := f.Entries()[i].Cubin()
		if err != nil {
			t.Fatal(err)
		}
		if got := f.Entries()[i].ArchOf(c); got != want {
			t.Errorf("entry #%d: %s, want %s", i+1, got, want)
		}
	}
}
