package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/patch/gpu"
	"github.com/spf13/pflag"
)

const runUsage = `usage: cupatch run FILE -k KERNEL --grid X,Y,Z --block X,Y,Z --arg ARG… [OPTIONS]

Launches a kernel on the GPU and prints a hash of the final contents of every buffer, and
the time of a launch. With --compare, launches the same kernel of several files in turn,
on the same buffers, and says whether the results are equal, bit by bit.

  -k, --kernel GLOB    the kernel, by its mangled, C++ or bare name
  -a, --arch ARCH      only cubins for ARCH; without it, the best one for the GPU
      --compare FILE   another file with the kernel, such as a patched one; repeatable
      --grid X,Y,Z     blocks; Y and Z may be left out
      --block X,Y,Z    threads of a block
      --shared BYTES   dynamic shared memory
      --arg ARG        an argument of the kernel; repeatable, in order
      --check N        check the results N times, with fresh buffers (default 2)
      --repeat N       timed launches (default 20); 0 for none
      --warmup N       launches before them (default 3)
      --reset          also use fresh buffers for each timed launch
      --cold           fill the L2 cache with other data before each timed launch
      --device N       the GPU, as the driver numbers them (default 0)
      --timeout TIME   give up after this time, such as 30s or 2m (default 60s)
  -n, --dry-run        check the arguments against the kernel; needs no GPU
      --json           the result as one JSON object
      --max-entry N    refuse entries larger than N when decompressed

ARG is one of
  i32:5 u64:0x10 f32:2.5 f32:0f40200000   a scalar of type i8 u8 i16 u16 i32 u32 i64 u64
                                          f16 bf16 f32 f64; 0f and digits are its bits
  buf:TYPE:COUNT[:FILL]                   a buffer; FILL is zeros (default), const(X), iota,
                                          random(SEED) or random(SEED,LO,HI); random
                                          floats lie in [-1, 1)
  buf:TYPE:@FILE                          a buffer with the contents of FILE
  ptr:N ptr:N+BYTES                       the address of the buffer that is argument N
  hex:0011aabb                            bytes, for a structure
  null                                    the null pointer
Integers may end in K, M or G. The sizes must match the kernel's parameters in the
cubin.

Times are measured on the GPU for each launch: median, minimum and quartiles. The
bandwidth counts every byte of every buffer once. The launches run in a separate process,
so a kernel that faults or never ends affects nothing else.

NVIDIA's driver is loaded when needed: libcuda.so.1, or the library that the environment
variable CUPATCH_LIBCUDA names. Linux on x86-64 only.

exit status: 0 done; 1 the results differ, or the kernel faulted or did not end; 2 trouble,
including a missing driver or GPU.

examples:
  cupatch run saxpy.cubin -k saxpy --grid 4096 --block 256 --arg u32:1M --arg f32:2.5 \
      --arg 'buf:f32:1M:random(1)' --arg 'buf:f32:1M:random(2)'
  cupatch run old.cubin --compare tuned.cubin -k gemm --grid 64,64 --block 256 --cold …
`

func init() {
	register(&command{"run", "launch a kernel on a GPU; compare and time two", runUsage, runRun})
}

// A launching is what the options of run say about a launch.
type launching struct {
	grid, block string
	args        []string
	device      int
	timeout     time.Duration
	launch      gpu.Launch
}

func (l *launching) flags(fs *pflag.FlagSet) {
	fs.StringVar(&l.grid, "grid", "", "")
	fs.StringVar(&l.block, "block", "", "")
	fs.StringArrayVar(&l.args, "arg", nil, "")
	fs.Uint32Var(&l.launch.Shared, "shared", 0, "")
	fs.IntVar(&l.launch.Check, "check", 2, "")
	fs.IntVar(&l.launch.Repeat, "repeat", 20, "")
	fs.IntVar(&l.launch.Warmup, "warmup", 3, "")
	fs.BoolVar(&l.launch.Reset, "reset", false, "")
	fs.BoolVar(&l.launch.Cold, "cold", false, "")
	fs.IntVar(&l.device, "device", 0, "")
	fs.DurationVar(&l.timeout, "timeout", time.Minute, "")
}

// maxLaunches bounds --repeat, --warmup and --check.
const maxLaunches = 10000

// parse reads the options' values.
func (l *launching) parse(e *env) error {
	if l.grid == "" || l.block == "" {
		return e.usagef("a launch needs --grid and --block")
	}
	var err error
	if l.launch.Grid, err = gpu.ParseGrid(l.grid); err != nil {
		return e.usagef("--grid %v", err)
	}
	if l.launch.Block, err = gpu.ParseBlock(l.block); err != nil {
		return e.usagef("--block %v", err)
	}
	for _, n := range []struct {
		name       string
		value, low int
	}{{"check", l.launch.Check, 1}, {"repeat", l.launch.Repeat, 0}, {"warmup", l.launch.Warmup, 0}} {
		if n.value < n.low || n.value > maxLaunches {
			return e.usagef("--%s %d: want %d to %d", n.name, n.value, n.low, maxLaunches)
		}
	}
	if l.timeout <= 0 {
		return e.usagef("--timeout %v: want a time such as 30s", l.timeout)
	}
	if l.launch.Args, err = gpu.ParseArgs(l.args); err != nil {
		return e.usageError(err)
	}
	return nil
}

// open takes hold of the GPU in a process of its own, for no longer than the time limit.
func (l *launching) open(e *env) (*gpu.Session, context.CancelFunc, error) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), l.timeout, &gpu.TimeoutError{Limit: l.timeout})
	s, err := gpu.Open(ctx, l.device, e.stderr)
	if err != nil {
		cancel()
		return nil, nil, err
	}
	return s, func() { s.Close(); cancel() }, nil
}

// A gpuRun is one run of run.
type gpuRun struct {
	*env
	narrowing
	launching
	json bool
}

func runRun(e *env, args []string) error {
	r := &gpuRun{env: e}
	fs := e.flags()
	r.narrowing.flags(fs)
	r.launching.flags(fs)
	others := fs.StringArray("compare", nil, "")
	dryRun := fs.BoolP("dry-run", "n", false, "")
	fs.BoolVar(&r.json, "json", false, "")
	files, err := e.parse(fs, args)
	switch {
	case err != nil:
		return err
	case len(files) != 1:
		return e.usagef("run needs one FILE; --compare names another one")
	}
	if len(*others) > maxOthers {
		return e.usagef("--compare: %d files, more than %d", len(*others), maxOthers)
	}
	files = append(files, *others...)
	if err := r.launching.parse(e); err != nil {
		return err
	}
	opt, err := r.options()
	if err != nil {
		return err
	}
	var choices [][]*gpu.Program
	for _, name := range files {
		f, entries, err := e.openOne(name, opt)
		if err != nil {
			return err
		}
		defer f.Close()
		list, err := r.programs(e, f, entries)
		if err != nil {
			return err
		}
		choices = append(choices, list)
	}
	if err := r.fits(choices); err != nil {
		return e.usageError(err)
	}
	if *dryRun {
		return r.describe(choices)
	}
	return r.launchAll(choices)
}

// maxOthers bounds --compare: programs are named A to Z.
const maxOthers = 25

// fits checks the arguments against the parameters of every kernel there is to choose.
func (l *launching) fits(choices [][]*gpu.Program) error {
	for _, list := range choices {
		for _, p := range list {
			if err := l.launch.Fit(p.Kernel); err != nil {
				return fmt.Errorf("%s: %w", p.Name, err)
			}
		}
	}
	return nil
}

// programs returns the kernel that -k names in each cubin of a file that has it.
func (n *narrowing) programs(e *env, f *elfx.File, entries []*elfx.Entry) ([]*gpu.Program, error) {
	var out []*gpu.Program
	var names []string // of kernels
	seen, all := map[string]bool{}, map[string]bool{}
	for _, x := range entries {
		if x.Kind != elfx.KindELF || !n.archWanted(x) {
			continue
		}
		c, err := x.Cubin()
		if err != nil {
			e.warnf("%v", err)
			continue
		}
		for i := range c.Kernels() {
			k := &c.Kernels()[i]
			if !k.Entry {
				continue
			}
			all[k.Demangled()] = true
			if !n.kernelWanted(k) {
				continue
			}
			if !seen[k.Name] {
				seen[k.Name] = true
				names = append(names, k.Demangled())
			}
			out = append(out, &gpu.Program{Name: x.Where(), Cubin: c, Kernel: k})
		}
	}
	switch {
	case len(all) == 0:
		return nil, fmt.Errorf("%s: no kernel%s", f.Name, n.among())
	case len(names) == 0:
		return nil, &exitError{code: 2, err: fmt.Errorf("%s: no kernel %s", f.Name, strings.Join(n.kernels, " or ")), hint: "there are " + someOf(all)}
	case len(names) > 1:
		return nil, &exitError{code: 2, err: fmt.Errorf("%s: %d kernels to choose from", f.Name, len(names)), hint: "-k takes one of " + someOf(all)}
	}
	return out, nil
}

// among says what -a leaves of a file.
func (n *narrowing) among() string {
	if len(n.arches) == 0 {
		return " in it"
	}
	return " for " + strings.Join(n.arches, ", ")
}

// choose picks the program that a device runs best. Two equally good ones are an error.
func choose(list []*gpu.Program, d *gpu.Device) (*gpu.Program, error) {
	best := d.Best(list)
	if best == nil {
		arches := map[string]bool{}
		for _, p := range list {
			arches[p.Cubin.Arch] = true
		}
		return nil, fmt.Errorf("%s: kernel %s is for %s, the GPU (%s) is sm_%d", list[0].Name, list[0].Kernel.Demangled(), someOf(arches), d.Name, d.SM)
	}
	for _, p := range list {
		if p != best && p.Cubin.Arch == best.Cubin.Arch {
			return nil, &exitError{code: 2, err: fmt.Errorf("%s and %s both have the kernel for %s", best.Name, p.Name, p.Cubin.Arch), hint: "name one of them as FILE"}
		}
	}
	return best, nil
}

// launchAll runs one program of each list on the GPU.
func (r *gpuRun) launchAll(choices [][]*gpu.Program) error {
	s, done, err := r.launching.open(r.env)
	if err != nil {
		return err
	}
	defer done()
	var programs []*gpu.Program
	for _, list := range choices {
		p, err := choose(list, s.Device)
		if err != nil {
			return err
		}
		programs = append(programs, p)
	}
	res, err := s.Run(&r.launch, programs...)
	var failed *gpu.KernelError
	if err != nil && !errors.As(err, &failed) {
		return err
	}
	if perr := r.print(s.Device, res, failed); perr != nil {
		return perr
	}
	switch {
	case failed != nil:
		return answerNo("%v", failed)
	case len(programs) > 1 && !res.Identical:
		return silent(1)
	}
	return nil
}
