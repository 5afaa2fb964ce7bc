package gpu

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cupatch/cupatch/elfx"
)

// A Dim is a size in three dimensions.
type Dim struct {
	X uint32 `json:"x"`
	Y uint32 `json:"y"`
	Z uint32 `json:"z"`
}

func (d Dim) String() string { return fmt.Sprintf("%d,%d,%d", d.X, d.Y, d.Z) }

// Count returns the product of the three.
func (d Dim) Count() uint64 { return uint64(d.X) * uint64(d.Y) * uint64(d.Z) }

// Limits of the hardware, the same for all architectures from sm_70 on (CUDA programming
// guide, technical specifications for each compute capability).
var (
	gridLimit  = Dim{1<<31 - 1, 65535, 65535}
	blockLimit = Dim{1024, 1024, 64}
)

const maxThreads = 1024

// ParseGrid reads X, X,Y or X,Y,Z as the number of blocks.
func ParseGrid(s string) (Dim, error) { return parseDim(s, gridLimit) }

// ParseBlock reads X, X,Y or X,Y,Z as the number of threads of a block.
func ParseBlock(s string) (Dim, error) {
	d, err := parseDim(s, blockLimit)
	if err == nil && d.Count() > maxThreads {
		err = fmt.Errorf("%q: %d threads, more than the %d that a block may have", s, d.Count(), maxThreads)
	}
	return d, err
}

func parseDim(s string, limit Dim) (Dim, error) {
	d := Dim{1, 1, 1}
	parts := strings.Split(s, ",")
	if len(parts) > 3 {
		return d, fmt.Errorf("%q: want X, X,Y or X,Y,Z", s)
	}
	to, most := []*uint32{&d.X, &d.Y, &d.Z}, []uint32{limit.X, limit.Y, limit.Z}
	for i, p := range parts {
		v, err := strconv.ParseUint(strings.TrimSpace(p), 0, 64)
		if err != nil {
			return d, fmt.Errorf("%q: want X, X,Y or X,Y,Z", s)
		}
		if v < 1 || v > uint64(most[i]) {
			return d, fmt.Errorf("%q: %c is %d: want 1 to %d", s, "XYZ"[i], v, most[i])
		}
		*to[i] = uint32(v)
	}
	return d, nil
}

// A Launch says how a kernel is run.
type Launch struct {
	Grid   Dim
	Block  Dim
	Shared uint32 // bytes of dynamic shared memory
	Args   []*Arg
	Check  int  // how many times, from fresh buffers, the results are looked at; at least 1
	Warmup int  // launches that are not timed
	Repeat int  // launches that are timed; 0 for none
	Reset  bool // buffers get their first contents back before each timed launch
	Cold   bool // the L2 cache is filled with other data before each timed launch
}

// A Program is a kernel to run.
type Program struct {
	Name   string // of its file, for messages
	Cubin  *elfx.Cubin
	Kernel *elfx.Kernel
}

// Fit checks that the launch suits a kernel: its arguments are as many and as large as
// the cubin's .nv.info says the parameters are.
func (l *Launch) Fit(k *elfx.Kernel) error {
	if !k.Entry {
		return fmt.Errorf("%s is a device function: only kernels can be launched", k.Demangled())
	}
	list := k.ParamList()
	if len(list) == 0 {
		if _, size := l.layout(k); size != k.Params {
			return fmt.Errorf("kernel %s takes %d bytes of parameters, the arguments have %d", k.Demangled(), k.Params, size)
		}
		return nil
	}
	if len(list) != len(l.Args) {
		return fmt.Errorf("kernel %s takes %d arguments (%s), not %d", k.Demangled(), len(list), paramSizes(list), len(l.Args))
	}
	for i, p := range list {
		if p.Size != l.Args[i].Size() {
			return fmt.Errorf("argument %d: %q has %d bytes, the parameter of kernel %s %d (%s)", i+1, l.Args[i].Text, l.Args[i].Size(), k.Demangled(), p.Size, paramSizes(list))
		}
		if p.Offset < 0 || p.Offset+p.Size > maxParams {
			return fmt.Errorf("kernel %s: parameter %d lies at byte %d", k.Demangled(), i+1, p.Offset)
		}
	}
	return nil
}

// maxParams is the most that parameters may take, in bytes (CUDA 12.1 and later).
const maxParams = 32764

// paramSizes lists the sizes of parameters: "of 8, 8 and 4 bytes".
func paramSizes(list []elfx.Param) string {
	var s strings.Builder
	for i, p := range list {
		switch {
		case i > 0 && i == len(list)-1:
			s.WriteString(" and ")
		case i > 0:
			s.WriteString(", ")
		}
		s.WriteString(strconv.Itoa(p.Size))
	}
	return s.String() + " bytes"
}

// layout returns where each argument lies among the parameters, and how long they are
// together: as the cubin says, else each one aligned to its size.
func (l *Launch) layout(k *elfx.Kernel) (offsets []int, size int) {
	list := k.ParamList()
	for i, a := range l.Args {
		off := 0
		if len(list) > 0 {
			off = list[i].Offset
		} else if align := min(a.Size(), 8); align > 0 && align&(align-1) == 0 {
			off = (size + align - 1) &^ (align - 1)
		} else {
			off = (size + 3) &^ 3
		}
		offsets = append(offsets, off)
		size = max(size, off+a.Size())
	}
	return offsets, size
}

// Runs reports whether the device runs a cubin as it is. See [elfx.Target.RunsOn].
func (d *Device) Runs(c *elfx.Cubin) bool { return target(c).RunsOn(d.SM) }

// target returns what a cubin is made for.
func target(c *elfx.Cubin) elfx.Target { return elfx.Target{SM: c.SM, Suffix: c.Suffix} }

// Best returns the program that the device runs best, which is the one for the latest
// architecture, or nil if it runs none.
func (d *Device) Best(list []*Program) *Program {
	var fit []*Program
	for _, p := range list {
		if d.Runs(p.Cubin) {
			fit = append(fit, p)
		}
	}
	if len(fit) == 0 {
		return nil
	}
	return slices.MaxFunc(fit, func(a, b *Program) int { return target(a.Cubin).Compare(target(b.Cubin)) })
}
