package gpu

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/scripts/nv/fakecuda"
)

const proof = "../../testdata/cubin/new/sm_90/proof.cubin"

// program returns a kernel of a cubin, after change has had its way with the words of
// every kernel, if it is not nil.
func program(t *testing.T, path, kernel string, change func(isa.Word) isa.Word) *Program {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	c, err := elfx.ParseCubin(data)
	if err != nil {
		t.Fatal(err)
	}
	for i := range c.Kernels() {
		k := &c.Kernels()[i]
		if k.Name != kernel {
			continue
		}
		if b := k.Data(); change != nil {
			for ; len(b) > 0; b = b[isa.WordSize:] {
				change(isa.LoadWord(b)).Store(b)
			}
		}
		return &Program{Name: filepath.Base(path), Cubin: c, Kernel: k}
	}
	t.Fatalf("%s: no kernel %s", path, kernel)
	return nil
}

// setting returns a change that sets a field of the words with an opcode.
func setting(opcode uint64, f isa.Field, v uint64) func(isa.Word) isa.Word {
	return func(w isa.Word) isa.Word {
		if w.Lo&0xfff == opcode {
			w = f.MustSet(w, v)
		}
		return w
	}
}

// Opcodes and fields of sm_90: FORMATS of the words in testdata, as nvdisasm prints them.
const (
	opLDG  = 0x981
	opFFMA = 0x823 // with an immediate operand
)

var (
	evict    = isa.Bits(84, 86) // 0 EF, 1 none, 2 EL, 3 LU, 4 EU, 5 NA
	prefetch = isa.Bits(68, 69) // 3: LTC256B
)

// session opens the stand-in for the driver.
func session(t *testing.T, limit time.Duration) *Session {
	t.Helper()
	t.Setenv(LibraryVariable, fakecuda.Build(t))
	ctx, cancel := context.WithTimeoutCause(context.Background(), limit, &TimeoutError{limit})
	t.Cleanup(cancel)
	s, err := Open(ctx, 0, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func arguments(t *testing.T, text string) []*Arg {
	t.Helper()
	args, err := ParseArgs(strings.Fields(text))
	if err != nil {
		t.Fatal(err)
	}
	return args
}

const patience = 20 * time.Second

// floats returns the hash of a buffer of float32.
func floats(n int, f func(i int) float32) string {
	var b []byte
	for i := range n {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(f(i)))
	}
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

// TestRun launches kernels and checks what they leave against what they should compute.
func TestRun(t *testing.T) {
	s := session(t, patience)
	want := Device{Number: 0, Name: "Fake GPU", SM: 90, Processors: 2, L2: 1 << 20, Shared: 232448, Driver: "13.1"}
	if *s.Device != want {
		t.Errorf("device %+v, want %+v", *s.Device, want)
	}
	iota := floats(5<<20, func(i int) float32 { return float32(i) })
	for _, c := range []struct {
		kernel, args string
		arg          int // where the result is
		want         string
	}{
		{"saxpy", "u32:1000 f32:3 buf:f32:1000:iota buf:f32:1000:const(0.5)", 4, floats(1000, func(i int) float32 { return 3*float32(i) + 0.5 })},
		{"copy32", "buf:f32:5M:iota buf:f32:5M u32:5M", 2, iota},
		{"copy128", "buf:f32:5M:iota buf:u8:20M u32:1310720", 2, iota},
		{"reduce", "buf:f32:1K:const(1) buf:f32:4", 2, floats(4, func(int) float32 { return 256 })},
	} {
		res, err := s.Run(&Launch{Grid: Dim{4, 1, 1}, Block: Dim{256, 1, 1}, Args: arguments(t, c.args), Repeat: 3, Warmup: 1, Cold: true, Reset: true}, program(t, proof, c.kernel, nil))
		if err != nil {
			t.Errorf("%s: %v", c.kernel, err)
			continue
		}
		p := res.Programs[0]
		for _, b := range p.Buffers {
			if b.Changed != (b.Arg == c.arg) || b.Changed && b.SHA256 != c.want {
				t.Errorf("%s: argument %d: %+v, want %s", c.kernel, b.Arg, b, c.want)
			}
		}
		if !p.Identical || !res.Identical || p.Kernel != c.kernel || p.Arch != "sm_90" {
			t.Errorf("%s: %+v %+v", c.kernel, res, p)
		}
		if *p.Times != (Times{3, 10, 10, 10, 10, 10}) {
			t.Errorf("%s: times %+v; the stand-in takes 10 microseconds", c.kernel, p.Times)
		}
	}
}

// TestPointers passes a buffer twice, once from its middle on.
func TestPointers(t *testing.T) {
	s := session(t, patience)
	args := arguments(t, "u32:4 f32:1 ptr:4+16 buf:f32:8:iota")
	res, err := s.Run(&Launch{Grid: Dim{1, 1, 1}, Block: Dim{4, 1, 1}, Args: args}, program(t, proof, "saxpy", nil))
	if err != nil {
		t.Fatal(err)
	}
	want := floats(8, func(i int) float32 { return []float32{4, 6, 8, 10, 4, 5, 6, 7}[i] })
	if got := res.Programs[0].Buffers[0]; got.Arg != 4 || got.SHA256 != want {
		t.Errorf("%+v, want %s", got, want)
	}
	if p := res.Programs[0]; p.Times != nil || p.GBs != 0 {
		t.Errorf("times %v without a timed launch", p.Times)
	}
}

// TestCompare patches kernels so that the stand-in is faster, wrong, or broken.
func TestCompare(t *testing.T) {
	saxpy := "u32:1000 f32:3 buf:f32:1000:iota buf:f32:1000:const(0.5)"
	for _, c := range []struct {
		name         string
		kernel, args string
		change       func(isa.Word) isa.Word
		check        func(t *testing.T, res *Result, err error)
	}{
		{"evict first", "saxpy", saxpy, setting(opLDG, evict, 0), func(t *testing.T, res *Result, err error) {
			if err != nil || !res.Identical || res.Programs[1].Difference != nil {
				t.Fatalf("%+v, %v", res, err)
			}
			if r := res.Programs[1].Ratio; *r != (Ratio{0.8, 0.8, 0.8}) {
				t.Errorf("ratio %+v, want 0.8", r)
			}
			// 8,000 bytes in 8 microseconds
			if p := res.Programs[1]; p.Times.Median != 8 || p.GBs != 1 || res.Programs[0].GBs != 0.8 {
				t.Errorf("times %+v, %v GB/s", p.Times, p.GBs)
			}
		}},
		{"prefetch", "saxpy", saxpy, setting(opLDG, prefetch, 3), func(t *testing.T, res *Result, err error) {
			want := Difference{Round: 1, Arg: 4, Index: 999, Want: "2997.5", Got: "2998.5", Count: 1, Of: 1000}
			if d := res.Programs[1].Difference; err != nil || res.Identical || *d != want {
				t.Errorf("%+v %+v, %v, want %+v", res, d, err, want)
			}
		}},
		{"stall", "chain", "buf:f32:1K:iota buf:f32:1K", setting(opFFMA, isa.StallField, 1), func(t *testing.T, res *Result, err error) {
			if d := res.Programs[1].Difference; err != nil || res.Identical || d.Count != 1024 || d.Index != 0 {
				t.Errorf("%+v %+v, %v", res, d, err)
			}
		}},
		{"evict unchanged", "saxpy", saxpy, setting(opLDG, evict, 4), func(t *testing.T, res *Result, err error) {
			var ke *KernelError
			var de *DriverError
			if !errors.As(err, &ke) || !errors.As(err, &de) || de.Code != 700 || de.Name != "CUDA_ERROR_ILLEGAL_ADDRESS" || res.Identical {
				t.Errorf("%+v, %v", res, err)
			}
			if len(res.Programs) != 2 || len(res.Programs[0].Buffers) != 2 || len(res.Programs[1].Buffers) != 0 {
				t.Errorf("what the first kernel left is lost: %+v", res.Programs)
			}
		}},
		{"no allocate", "saxpy", saxpy, setting(opLDG, evict, 5), func(t *testing.T, res *Result, err error) {
			var ke *KernelError
			var te *TimeoutError
			if !errors.As(err, &ke) || !errors.As(err, &te) || te.Limit != time.Second {
				t.Errorf("%+v, %v", res, err)
			}
		}},
		{"last use", "saxpy", saxpy, setting(opLDG, evict, 3), func(t *testing.T, res *Result, err error) {
			if err == nil || !strings.Contains(err.Error(), "the driver crashed: signal: aborted") {
				t.Errorf("%+v, %v", res, err)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			limit := patience
			if c.name == "no allocate" {
				limit = time.Second
			}
			s := session(t, limit)
			l := &Launch{Grid: Dim{4, 1, 1}, Block: Dim{256, 1, 1}, Args: arguments(t, c.args), Check: 2, Warmup: 1, Repeat: 5}
			res, err := s.Run(l, program(t, proof, c.kernel, nil), program(t, proof, c.kernel, c.change))
			c.check(t, res, err)
		})
	}
}

// TestRefused checks what is refused before or while a kernel is loaded.
func TestRefused(t *testing.T) {
	s := session(t, patience)
	broken := program(t, proof, "saxpy", nil)
	broken.Cubin.Data()[0] = 0
	for _, c := range []struct {
		p          *Program
		args, want string
	}{
		{program(t, proof, "saxpy", nil), "u32:1 f64:1 buf:f32:1 buf:f32:1", `argument 2: "f64:1" has 8 bytes, the parameter of kernel saxpy 4 (4, 4, 8 and 8 bytes)`},
		{program(t, proof, "saxpy", nil), "u32:1", "takes 4 arguments (4, 4, 8 and 8 bytes), not 1"},
		{program(t, "../../testdata/cubin/new/sm_80/proof.cubin", "reduce", nil), "null null", "the kernel is for sm_80, device 0 (Fake GPU) is sm_90"},
		{program(t, proof, "reduce", nil), "buf:u8:1G null", "not enough memory on the GPU"},
		{program(t, "../../testdata/cubin/new/sm_90/pair.cubin", "offset", nil), "null null u32:1", "named symbol not found"},
		{broken, "u32:1 f32:1 buf:f32:1 buf:f32:1", "refuses the cubin of toolkit 13.5"},
	} {
		_, err := s.Run(&Launch{Grid: Dim{1, 1, 1}, Block: Dim{1, 1, 1}, Args: arguments(t, c.args)}, c.p)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: %v, want %q", c.p.Kernel.Name, c.args, err, c.want)
		}
	}
	_, err := s.Run(&Launch{Grid: Dim{1, 1, 1}, Block: Dim{1, 1, 1}, Shared: 232449, Args: arguments(t, "null null")}, program(t, proof, "reduce", nil))
	if want := "232449 bytes of dynamic shared memory; a block of device 0 (Fake GPU) may have 232448"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("shared memory: %v, want %q", err, want)
	}
}

// TestNothingToRunWith checks that each way to have no GPU has one line and ErrNoDriver.
func TestNothingToRunWith(t *testing.T) {
	lib := fakecuda.Build(t)
	for _, c := range []struct{ lib, init, want string }{
		{filepath.Join(t.TempDir(), "nosuch.so"), "", "nosuch.so: cannot open shared object file: No such file or directory"},
		{lib, "100", "no NVIDIA driver that finds a GPU: cuInit: no CUDA-capable device is detected (CUDA_ERROR_NO_DEVICE)"},
		{lib, "crash", "the driver crashed: signal: aborted"},
		{lib, "12345", "cuInit: error 12345"},
	} {
		t.Setenv(LibraryVariable, c.lib)
		t.Setenv("FAKECUDA_INIT", c.init)
		if c.init == "" {
			os.Unsetenv("FAKECUDA_INIT")
		}
		s, err := Open(context.Background(), 0, os.Stderr)
		if err == nil {
			s.Close()
		}
		if !errors.Is(err, ErrNoDriver) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%+v: %v", c, err)
		}
	}
	t.Setenv(LibraryVariable, lib)
	os.Unsetenv("FAKECUDA_INIT")
	if _, err := Open(context.Background(), 3, os.Stderr); err == nil || err.Error() != "device 3: there are devices 0 to 0" {
		t.Errorf("device 3: %v", err)
	}
	t.Setenv(LibraryVariable, "libm.so.6")
	if _, err := Open(context.Background(), 0, os.Stderr); err == nil || !strings.Contains(err.Error(), "no function cuInit") {
		t.Errorf("another library: %v", err)
	}
}

// TestBest: the rules themselves are those of package elfx, and tested there.
func TestBest(t *testing.T) {
	list := []*Program{{Cubin: &elfx.Cubin{SM: 80}}, {Cubin: &elfx.Cubin{SM: 86}}, {Cubin: &elfx.Cubin{SM: 89}}, {Cubin: &elfx.Cubin{SM: 90, Suffix: "a"}}}
	if got := (&Device{SM: 86}).Best(list); got != list[1] {
		t.Errorf("best for sm_86: %+v", got)
	}
	for _, sm := range []int{75, 87, 100} {
		if got := (&Device{SM: sm}).Best(list); got != nil {
			t.Errorf("best for sm_%d: %+v", sm, got)
		}
	}
}

func TestTimes(t *testing.T) {
	if got, want := *newTimes([]float64{5, 1, 4, 2, 3}), (Times{5, 1, 3, 2, 4, 5}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := newTimes([]float64{1, 2}).Median; got != 1.5 {
		t.Errorf("median of 1 and 2: %v", got)
	}
	if got := newRatio([]float64{2, 0, 4}, []float64{1, 1, 1}); got.Median != 0.375 {
		t.Errorf("%+v", got)
	}
	if got := newRatio([]float64{0}, []float64{1}); got != nil {
		t.Errorf("%+v without a time", got)
	}
}

// TestLauncherCode assembles the right column of launcher.txt.
func TestLauncherCode(t *testing.T) {
	code, err := launcherCode()
	if err != nil {
		t.Fatal(err)
	}
	as, err := exec.LookPath("as")
	if err != nil {
		t.Skip("no assembler: as is not installed")
	}
	objcopy, err := exec.LookPath("objcopy")
	if err != nil {
		t.Skip("objcopy is not installed")
	}
	var source strings.Builder
	for line := range strings.Lines(launcherSource) {
		if _, text, ok := strings.Cut(line, "\t"); ok && !strings.HasPrefix(line, "#") {
			source.WriteString(text)
		}
	}
	dir := t.TempDir()
	obj, bin := filepath.Join(dir, "o"), filepath.Join(dir, "bin")
	cmd := exec.Command(as, "--64", "-o", obj, "-")
	cmd.Stdin = strings.NewReader(source.String())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Skipf("as does not assemble for x86-64: %v: %s", err, out)
	}
	if out, err := exec.Command(objcopy, "-O", "binary", "-j", ".text", obj, bin).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	want, err := os.ReadFile(bin)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(code, want) {
		t.Errorf("code\n%x\nassembles to\n%x", code, want)
	}
}
