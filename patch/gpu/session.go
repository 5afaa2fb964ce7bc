package gpu

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
)

// A Session is a GPU in a launcher process of its own. After a kernel has faulted or run
// out of time, a session is of no more use. It is used by the goroutine that opened it.
type Session struct {
	Device *Device
	d      *driver
}

// Open starts a launcher, loads the driver and takes hold of a device, by its number. The
// end of ctx kills the launcher, whatever it is doing; give the context a [TimeoutError]
// as its cause to bound the time. What kernels and driver print goes to out. Where there
// is nothing to run kernels with, the error is [ErrNoDriver].
func Open(ctx context.Context, device int, out io.Writer) (*Session, error) {
	c, err := startRemote(ctx, out)
	if err != nil {
		return nil, err
	}
	s := &Session{}
	if s.d, err = openDriver(c); err == nil {
		s.Device, err = s.d.device(device)
	}
	if err != nil {
		c.close()
		return nil, err
	}
	return s, nil
}

// Close ends the launcher.
func (s *Session) Close() { s.d.close() }

// A buffer is memory on the GPU for one argument.
type buffer struct {
	arg      int // position from 0
	a        *Arg
	addr     uint64
	pristine uint64 // a copy of the first contents
	first    string // SHA-256 of the first contents
	want     []byte // what the first program left, if others are compared with it
}

// A loaded program has its function and its parameters, both in the launcher.
type loaded struct {
	*Program
	function uint64
	extra    uint64 // the list that tells cuLaunchKernel where the parameters are
	outcome  *Outcome
}

// A run is one launch of programs in a session.
type run struct {
	*Session
	launch  *Launch
	list    []*loaded
	buffers []*buffer
	taken   []uint64 // memory on the GPU
	result  *Result
}

// maxName bounds the name of a kernel, in bytes.
const maxName = 64 << 10

// Run launches programs on the same buffers in turn. First each one is run on fresh
// buffers, Launch.Check times, and what it leaves is compared with what the first one
// left the first time; then launches are timed, in the order A B C A B C. The error is a
// *[KernelError] where a kernel did not run to its end; the result then says what was
// found out before.
func (s *Session) Run(l *Launch, programs ...*Program) (*Result, error) {
	r := &run{Session: s, launch: l, result: &Result{}}
	m := s.d.mark()
	defer s.d.release(m)
	defer r.free()
	room := smallSize - 2*maxName
	for _, p := range programs {
		if err := l.Fit(p.Kernel); err != nil {
			return nil, fmt.Errorf("%s: %w", p.Name, err)
		}
		if !s.Device.Runs(p.Cubin) {
			return nil, fmt.Errorf("%s: the kernel is for %s, device %d (%s) is sm_%d", p.Name, p.Cubin.Arch, s.Device.Number, s.Device.Name, s.Device.SM)
		}
		if int64(l.Shared) > int64(s.Device.Shared) {
			return nil, fmt.Errorf("%s: %d bytes of dynamic shared memory; a block of device %d (%s) may have %d of all kinds", p.Name, l.Shared, s.Device.Number, s.Device.Name, s.Device.Shared)
		}
		_, size := l.layout(p.Kernel)
		if room -= size + 64; room < 0 || len(p.Kernel.Name) > maxName {
			return nil, fmt.Errorf("%s: the parameters of %d programs, or a kernel's name of %d bytes, are too much", p.Name, len(programs), len(p.Kernel.Name))
		}
	}
	if err := r.makeBuffers(); err != nil {
		return nil, err
	}
	for _, p := range programs {
		x, err := r.load(p)
		if err != nil {
			return r.result, err
		}
		r.list = append(r.list, x)
	}
	err := r.check()
	if err == nil && l.Repeat > 0 {
		err = r.time()
	}
	return r.result, err
}

// memory takes size bytes on the GPU.
func (r *run) memory(size int64) (uint64, error) {
	addr, err := r.d.get("cuMemAlloc_v2", uint64(size))
	var de *DriverError
	if errors.As(err, &de) && de.Code == cudaOutOfMemory {
		return 0, fmt.Errorf("%d bytes: not enough memory on the GPU; every buffer is there twice, once to start afresh", size)
	}
	if err == nil {
		r.taken = append(r.taken, addr)
	}
	return addr, err
}

// free gives the memory back. After a kernel has faulted the driver refuses everything,
// and the end of the launcher gives it back.
func (r *run) free() {
	for _, addr := range r.taken {
		if r.d.cu("cuMemFree_v2", addr) != nil {
			return
		}
	}
}

// makeBuffers takes memory for the buffers and fills it.
func (r *run) makeBuffers() error {
	for i, a := range r.launch.Args {
		if a.kind != argBuffer {
			continue
		}
		b := &buffer{arg: i, a: a}
		var err error
		if b.addr, err = r.memory(a.bytes()); err == nil {
			b.pristine, err = r.memory(a.bytes())
		}
		if err == nil {
			b.first, err = r.upload(b)
		}
		if err != nil {
			return fmt.Errorf("argument %d: %q: %w", i+1, a.Text, err)
		}
		r.buffers = append(r.buffers, b)
	}
	return nil
}

// upload makes the first contents of a buffer and returns their hash.
func (r *run) upload(b *buffer) (string, error) {
	h := sha256.New()
	chunk, at := r.d.data()
	size := int64(b.a.typ.Size())
	for off := int64(0); off < b.a.bytes(); off += int64(len(chunk)) {
		part := chunk[:min(int64(len(chunk)), b.a.bytes()-off)]
		b.a.fill(part, off/size)
		h.Write(part)
		if err := r.d.cu("cuMemcpyHtoD_v2", b.pristine+uint64(off), at, uint64(len(part))); err != nil {
			return "", err
		}
	}
	return sum(h), nil
}

func sum(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)) }

// load loads a program and lays out its parameters.
func (r *run) load(p *Program) (*loaded, error) {
	x := &loaded{Program: p, outcome: &Outcome{Name: p.Name, Arch: p.Cubin.Arch, Kernel: p.Kernel.Name, Identical: true}}
	module, err := r.d.loadModule(p.Cubin.Data())
	var de *DriverError
	if errors.As(err, &de) && (de.Code == cudaInvalidImage || de.Code == cudaNoBinary) {
		return nil, fmt.Errorf("%s: the driver, which is for CUDA %s, refuses the cubin of toolkit %s: %w", p.Name, r.Device.Driver, p.Cubin.Toolkit, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.Name, err)
	}
	m := r.d.mark()
	x.function, err = r.d.get("cuModuleGetFunction", module, r.d.text(p.Kernel.Name))
	r.d.release(m)
	if err == nil && r.launch.Shared+uint32(p.Kernel.Shared) > sharedWithoutAsk {
		err = r.d.cu("cuFuncSetAttribute", x.function, funcMaxShared, uint64(r.launch.Shared))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: kernel %s: %w", p.Name, p.Kernel.Demangled(), err)
	}
	x.extra = r.parameters(p)
	return x, nil
}

// parameters writes the parameters of a kernel into the launcher and returns the address
// of the list that cuLaunchKernel takes as its argument extra.
func (r *run) parameters(p *Program) uint64 {
	offsets, size := r.launch.layout(p.Kernel)
	block, at := r.d.alloc(max(size, 1))
	for i, a := range r.launch.Args {
		b := block[offsets[i]:]
		switch a.kind {
		case argBuffer:
			binary.LittleEndian.PutUint64(b, r.buffer(i).addr)
		case argPointer:
			binary.LittleEndian.PutUint64(b, r.buffer(a.ref-1).addr+uint64(a.offset))
		default:
			copy(b, a.value)
		}
	}
	length, lengthAt := r.d.alloc(8)
	binary.LittleEndian.PutUint64(length, uint64(size))
	list, listAt := r.d.alloc(40)
	// CU_LAUNCH_PARAM_BUFFER_POINTER, CU_LAUNCH_PARAM_BUFFER_SIZE, CU_LAUNCH_PARAM_END
	for i, v := range []uint64{1, at, 2, lengthAt, 0} {
		binary.LittleEndian.PutUint64(list[8*i:], v)
	}
	return listAt
}

// buffer returns the buffer of the argument at a position.
func (r *run) buffer(arg int) *buffer {
	return r.buffers[slices.IndexFunc(r.buffers, func(b *buffer) bool { return b.arg == arg })]
}

// start is the call that launches a program.
func (r *run) start(x *loaded) call {
	g, b := r.launch.Grid, r.launch.Block
	return r.d.prepare("cuLaunchKernel", x.function, uint64(g.X), uint64(g.Y), uint64(g.Z), uint64(b.X), uint64(b.Y), uint64(b.Z),
		uint64(r.launch.Shared), 0, 0, x.extra)
}

// fresh are the calls that give the buffers their first contents.
func (r *run) fresh() []call {
	var out []call
	for _, b := range r.buffers {
		out = append(out, r.d.prepare("cuMemcpyDtoDAsync_v2", b.addr, b.pristine, uint64(b.a.bytes()), 0))
	}
	return out
}

// batch makes calls that all return a CUresult, and gives the first error.
func (r *run) batch(calls []call) error {
	for part := range slices.Chunk(calls, maxBatch) {
		out, err := r.d.do(part...)
		if err != nil {
			return err
		}
		for i, v := range out {
			if err := r.d.check(r.name(part[i].fn), v); err != nil {
				return err
			}
		}
	}
	return nil
}

// name returns the name of a function by its address.
func (r *run) name(fn uint64) string {
	for name, addr := range r.d.fn {
		if addr == fn {
			return name
		}
	}
	return "driver"
}
