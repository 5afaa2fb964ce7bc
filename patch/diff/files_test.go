package diff

import (
	"errors"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/scripts/nv/oracle"
)

// eachCubin calls fn with every kernel of the cubins of the test data, and, where
// CUPATCH_LONG is set, of some of the public corpus.
func eachCubin(t *testing.T, fn func(t *testing.T, data []byte, c *elfx.Cubin, k *elfx.Kernel, r *rand.Rand)) {
	t.Helper()
	paths, err := filepath.Glob("../../testdata/cubin/*/*/*.cubin")
	if err != nil || len(paths) == 0 {
		t.Fatal("no test data", err)
	}
	seed := rand.Int63()
	r := rand.New(rand.NewSource(seed))
	if os.Getenv("CUPATCH_LONG") != "" {
		more, err := filepath.Glob(filepath.Join(oracle.CacheDir(), "cubins", "*", "*.cubin"))
		if err != nil {
			t.Fatal(err)
		}
		r.Shuffle(len(more), func(i, j int) { more[i], more[j] = more[j], more[i] })
		paths = append(paths, more[:min(len(more), 100)]...)
	}
	for _, path := range paths {
		data := readCubin(t, path)
		c, err := elfx.ParseCubin(data)
		if err != nil {
			t.Fatal(path, err)
		}
		for i := range c.Kernels() {
			fn(t, data, c, &c.Kernels()[i], r)
			if t.Failed() {
				t.Fatalf("%s, seed %d", path, seed)
			}
		}
	}
}

// TestDuplicateNames pairs kernels of one name by their code, whatever their order.
func TestDuplicateNames(t *testing.T) {
	rec := func(n int, counts ...uint16) *kernelRec {
		k := &kernelRec{entry: &entryRec{arch: "sm_90"}, name: "k", stable: "k", n: n, code: Hash{byte(n)}}
		copy(k.sketch[:], counts)
		return k
	}
	a := []*kernelRec{rec(10, 9, 1), rec(20, 1, 19), rec(30, 5, 5, 20)}
	b := []*kernelRec{rec(21, 2, 19), rec(31, 5, 6, 20), rec(10, 9, 1), rec(12, 8, 4)}
	for range 2 {
		pairs, onlyA, onlyB := pairKernels(a, b)
		var got []string
		for _, p := range pairs {
			got = append(got, fmt.Sprint(min(p.a.n, p.b.n), "-", max(p.a.n, p.b.n)))
		}
		slices.Sort(got)
		if want := []string{"10-10", "20-21", "30-31"}; !slices.Equal(got, want) || len(onlyA)+len(onlyB) != 1 {
			t.Errorf("pairs %v, want %v; %d and %d left", got, want, len(onlyA), len(onlyB))
		}
		a, b = b, a
	}
}

func open(tb testing.TB, path string) *elfx.File {
	tb.Helper()
	f, err := elfx.OpenFile("../../testdata/"+path, nil)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { f.Close() })
	return f
}

func compareFiles(tb testing.TB, a, b string, opt Options) *Result {
	tb.Helper()
	r, err := Files(open(tb, a), open(tb, b), opt)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// TestSameFile compares everything with itself.
func TestSameFile(t *testing.T) {
	for _, pattern := range []string{"cubin/*/*/*.cubin", "fatbin/*.fatbin"} {
		paths, _ := filepath.Glob("../../testdata/" + pattern)
		for _, path := range paths {
			rel, _ := filepath.Rel("../../testdata", path)
			r := compareFiles(t, rel, rel, Options{})
			if r.Kinds != 0 || r.Classes[Identical] != r.Compared || !r.SameBytes {
				t.Errorf("%s: %s", rel, r)
			}
			if r.Compared == 0 != errors.Is(r.Err(), ErrNothing) {
				t.Errorf("%s: %d kernels compared, error %v", rel, r.Compared, r.Err())
			}
		}
	}
}

// TestKnownPairs compares what ptxas makes of the same source in different ways.
func TestKnownPairs(t *testing.T) {
	for _, arch := range []string{"sm_80", "sm_90"} {
		dir := "cubin/new/" + arch + "/"
		for _, test := range []struct {
			a, b    string
			classes map[string]Class // by kernel of the first file
			kinds   Kinds            // found, aside those of code
			explain string
		}{
			{dir + "pair.cubin", dir + "pair.cubin", map[string]Class{"offset": Identical, "ffma_loop": Identical}, 0, "byte for byte"},
			{dir + "pair.cubin", dir + "pair_lineinfo.cubin", map[string]Class{"offset": Identical, "ffma_loop": Identical}, Metadata | Wrapping, `"-lineinfo `},
			{dir + "pair.cubin", dir + "pair_O1.cubin", map[string]Class{"offset": CodeDiffers, "ffma_loop": CodeDiffers}, Resources | Metadata | Wrapping, `"-O 1 `},
			{dir + "pair.cubin", dir + "pair_maxreg.cubin", map[string]Class{"offset": Identical, "ffma_loop": CodeDiffers}, Resources | Metadata | Wrapping, `"-maxrregcount 32 `},
			{dir + "pair.cubin", dir + "pair_renamed.cubin", map[string]Class{"offset": Identical, "ffma_loop": Identical}, Names | Metadata | Wrapping, "_Z6offsetPKjPjj"},
			{dir + "pair.cubin", dir + "pair_evict.cubin", map[string]Class{"offset": ModifiersOnly, "ffma_loop": Identical}, Metadata | Wrapping, "other modifiers"},
			{dir + "pair.cubin", dir + "pair_constant.cubin", map[string]Class{"offset": CodeDiffers, "ffma_loop": Identical}, Metadata | Wrapping, "1 of 2 kernels"},
		} {
			r := compareFiles(t, test.a, test.b, Options{})
			if err := r.Err(); err != nil {
				t.Errorf("%s: %v", test.b, err)
			}
			for _, k := range r.Kernels {
				if want, ok := test.classes[k.NameA]; !ok || k.Class != want {
					t.Errorf("%s %s: class %s, want %s", test.b, k.NameA, k.Class, want)
				}
			}
			if r.Compared != 2 || r.Kinds&^codeKinds != test.kinds {
				t.Errorf("%s: %d kernels, found %s, want 2 and %s", test.b, r.Compared, r.Kinds&^codeKinds, test.kinds)
			}
			if text := strings.Join(r.Explain(nil), "\n"); !strings.Contains(text, test.explain) {
				t.Errorf("%s: explained as\n%s\nwant %q", test.b, text, test.explain)
			}
			if want := r.Kinds&DefaultCount() != 0; r.Different() != want {
				t.Errorf("%s: different %t, want %t", test.b, r.Different(), want)
			}
		}
	}
}

// TestModifiersNamed checks how a cache hint is reported: ld.global.cs is LDG.E.EF.
func TestModifiersNamed(t *testing.T) {
	r := compareFiles(t, "cubin/new/sm_90/pair.cubin", "cubin/new/sm_90/pair_evict.cubin", Options{})
	if text := r.String(); !strings.Contains(text, "modifiers: 1 LDG: evict none → EF") || !strings.Contains(text, "only modifiers differ") {
		t.Errorf("%s", text)
	}
}

// TestMaxregResources checks the numbers that cuobjdump -res-usage prints for the two.
func TestMaxregResources(t *testing.T) {
	r := compareFiles(t, "cubin/new/sm_90/pair.cubin", "cubin/new/sm_90/pair_maxreg.cubin", Options{})
	text := r.String()
	for _, want := range []string{"registers 53 → 32", "stack 0 → 184", "attribute MAXREG_COUNT 0xff → 0x20"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// TestToolkits compares the two layouts of the ELF file, by two toolkits.
func TestToolkits(t *testing.T) {
	r := compareFiles(t, "cubin/old/sm_90/pair.cubin", "cubin/new/sm_90/pair.cubin", Options{})
	if r.Classes[ControlOnly] != 2 || r.Verdict() != "only scheduling differs; what a loader sees differs" {
		t.Errorf("%s", r.CountsLine())
	}
	text := strings.Join(r.Explain(nil), "\n")
	for _, want := range []string{"toolkit: 12.9 → 13.", "ELF layout: old → new"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestWrapping(t *testing.T) {
	for _, b := range []string{"fatbin/pair_zstd.fatbin", "fatbin/pair_lz4.fatbin", "cubin/new/sm_90/pair.cubin"} {
		r := compareFiles(t, "fatbin/pair_stored.fatbin", b, Options{})
		if r.Kinds != Wrapping || r.Different() || r.Classes[Identical] != 2 || r.Verdict() != "the same cubins in another wrapping" {
			t.Errorf("%s: %s (%s)", b, r.CountsLine(), r.Kinds)
		}
		strict, _ := ParseLevel("bytes")
		if r := compareFiles(t, "fatbin/pair_stored.fatbin", b, Options{Count: strict}); !r.Different() {
			t.Errorf("%s: the same at the level bytes", b)
		}
	}
}

// PTX that is not compressed has more zeros after it, which are no difference.
func TestStoredPTX(t *testing.T) {
	for _, b := range []string{"fatbin/lz4.fatbin", "fatbin/zstd.fatbin"} {
		if r := compareFiles(t, "fatbin/stored.fatbin", b, Options{}); r.Kinds != Wrapping || r.Different() {
			t.Errorf("%s: %s (%s)", b, r.CountsLine(), r.Kinds)
		}
	}
}

// TestNothing compares files that have no kernel in common.
func TestNothing(t *testing.T) {
	for _, p := range [][2]string{
		{"cubin/new/sm_90/nothing.cubin", "cubin/new/sm_90/pair.cubin"}, {"cubin/new/sm_80/pair.cubin", "cubin/new/sm_90/pair.cubin"},
		{"fatbin/ptx.fatbin", "fatbin/ptx.fatbin"},
	} {
		if r := compareFiles(t, p[0], p[1], Options{}); !errors.Is(r.Err(), ErrNothing) {
			t.Errorf("%v: error %v, want that nothing was compared", p, r.Err())
		}
	}
	none := func(*elfx.Kernel) bool { return false }
	if r := compareFiles(t, "cubin/new/sm_90/pair.cubin", "cubin/new/sm_90/pair.cubin", Options{Kernel: none}); !errors.Is(r.Err(), ErrNothing) {
		t.Errorf("no kernel wanted: error %v", r.Err())
	}
}

// TestDamaged compares with a fatbin that is cut off in its last entry: what can be read
// is the same, and yet nothing may be called so.
func TestDamaged(t *testing.T) {
	data, err := os.ReadFile("../../testdata/fatbin/zstd.fatbin")
	if err != nil {
		t.Fatal(err)
	}
	b, err := elfx.Open("cut", data[:len(data)-900], nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Files(open(t, "fatbin/stored.fatbin"), b, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if r.Err() == nil || errors.Is(r.Err(), ErrNothing) || !strings.HasPrefix(r.Verdict(), "not everything could be read; ") {
		t.Errorf("%s; error %v, want the damage", r.Verdict(), r.Err())
	}
}

// TestNames pairs kernels with all the characters that mangling gives.
func TestNames(t *testing.T) {
	r := compareFiles(t, "cubin/new/sm_90/names.cubin", "cubin/new/sm_90/names.cubin", Options{})
	if r.Compared != 17 {
		t.Errorf("%d kernels compared, want 17", r.Compared)
	}
}

// TestSymmetric compares unlike cubins both ways.
func TestSymmetric(t *testing.T) {
	for _, p := range [][2]string{
		{"cubin/new/sm_80/arith.cubin", "cubin/old/sm_80/arith.cubin"}, {"cubin/new/sm_90/control.cubin", "cubin/new/sm_90/debug.cubin"},
		{"cubin/new/sm_90/loads.cubin", "cubin/new/sm_90/stores.cubin"}, {"fatbin/stored.fatbin", "fatbin/concat.fatbin"},
	} {
		x, y := compareFiles(t, p[0], p[1], Options{}), compareFiles(t, p[1], p[0], Options{})
		if x.Kinds != y.Kinds || x.Classes != y.Classes || len(x.OnlyA) != len(y.OnlyB) || len(x.OnlyB) != len(y.OnlyA) {
			t.Errorf("%v: %s (%s) one way, %s (%s) the other", p, x.CountsLine(), x.Kinds, y.CountsLine(), y.Kinds)
		}
	}
}

func TestStableName(t *testing.T) {
	for _, test := range []struct{ name, want string }{
		// Names found in public libraries.
		{"_ZN52_INTERNAL_6fc9c46a_16_sparse24_pack_cu_6d241d85_14594cuda3std6ranges3__45__cpo7advanceE",
			"_ZN_INTERNAL_<hash>_sparse24_pack_cu4cuda3std6ranges3__45__cpo7advanceE"},
		{"_ZN36_INTERNAL_2b878043_6_bvh_cu_fc859b204cuda3std3__48unexpectE", "_ZN_INTERNAL_<hash>_bvh_cu4cuda3std3__48unexpectE"},
		{"__nv_static_36__b96781cf_10_kernels_cu_9e0c38a6_647_nf4_dequantization_lut", "__nv_static_<hash>_kernels_cu_nf4_dequantization_lut"},
		{"_ZN70_GLOBAL__N__e027e853_30_causal_depthwise_conv1d_gpu_cu_b141967a_1798614convEPKfS3_S3_Pf",
			"_ZN_GLOBAL__N__<hash>_causal_depthwise_conv1d_gpu_cu4convEPKfS3_S3_Pf"},
		{"_INTERNAL_", "_INTERNAL_"}, {"99_INTERNAL_2b878043_6_bvh", "99_INTERNAL_2b878043_6_bvh"}, {"__nv_static_", "__nv_static_"},
		{"__nv_static_99999999999999999999__", "__nv_static_99999999999999999999__"}, {"gemm", "gemm"}, {"", ""},
	} {
		if got := StableName(test.name); got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}

func FuzzStableName(f *testing.F) {
	f.Add("_ZN36_INTERNAL_2b878043_6_bvh_cu_fc859b204cuda3std3__48unexpectE")
	f.Add("__nv_static_36__b96781cf_10_kernels_cu_9e0c38a6_647_lut")
	f.Fuzz(func(t *testing.T, name string) {
		if once := StableName(name); len(once) > len(name)+len(name)/2 {
			t.Errorf("%q becomes %q", name, once)
		}
	})
}

// TestSummary checks the order of the table and that it stays short.
func TestSummary(t *testing.T) {
	long := strings.Repeat("template", 1000)
	r := &Result{Count: DefaultCount(), Rows: []Row{
		{Arch: "sm_90", NameA: "a|b", NameB: "a|b", Class: ControlOnly, Kinds: Control, Changed: 3},
		{Arch: "sm_90", NameA: long, NameB: long, Class: CodeDiffers, Kinds: Other, Changed: 1},
		{Arch: "sm_90", NameA: "most", NameB: "most", Class: CodeDiffers, Kinds: Other, Inserted: 2},
	}}
	text := r.Summary(SummaryMarkdown, nil)
	most, other, control := strings.Index(text, "most"), strings.Index(text, "templatetemplate"), strings.Index(text, `a\|b`)
	if len(text) > 1000 || most < 0 || most > other || other > control {
		t.Errorf("%d bytes:\n%.2000s", len(text), text)
	}
	for range maxRows {
		r.Rows = append(r.Rows, r.Rows[0])
	}
	if text := r.Summary(SummaryText, nil); !strings.Contains(text, "… and 3 more kernels") || !strings.Contains(text, long) {
		t.Errorf("%.2000s", text)
	}
}
