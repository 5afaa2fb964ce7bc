package gpu

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
	"unsafe"
)

// The arena is memory that this process and the launcher share:
//
//	0   address of the arena in the launcher
//	8   addresses of dlopen, dlsym and dlerror
//	32  how many calls there are
//	64  calls: function, result, twelve arguments, 8 bytes each
//	64K strings and small results
//	1M  data on its way to or from the GPU
const (
	arenaSize    = 17 << 20
	arenaCount   = 32
	arenaCalls   = 64
	arenaSmall   = 64 << 10
	arenaData    = arenaSmall + smallSize
	callSize     = 112
	exitPatience = 3 * time.Second
)

// A remote is a running launcher. It is used by one goroutine at a time.
type remote struct {
	ctx   context.Context
	cmd   *exec.Cmd
	req   *os.File // a byte for each batch of calls
	ack   *os.File // a byte for each batch that is done
	arena []byte
	base  uint64 // address of the arena in the launcher
	small int    // how much of the small part is taken
	stop  func() bool
	dead  error
}

// startRemote starts a launcher. What the driver and kernels print goes to out. The
// launcher is killed when ctx ends. Some systems forbid to execute files in memory; there
// a temporary file serves.
func startRemote(ctx context.Context, out io.Writer) (caller, error) {
	return startBy(ctx, out, (*remote).inMemory, (*remote).inTemp)
}

// startBy starts a launcher by the first of several ways that works.
func startBy(ctx context.Context, out io.Writer, ways ...func(*remote, []byte, *os.File, io.Writer) error) (caller, error) {
	program, err := launcherProgram()
	if err != nil {
		return nil, err
	}
	arena, err := memfd("cupatch-arena")
	if err != nil {
		return nil, err
	}
	defer arena.Close()
	r := &remote{ctx: ctx}
	if err := arena.Truncate(arenaSize); err != nil {
		return nil, fmt.Errorf("launcher: %w", err)
	}
	if r.arena, err = syscall.Mmap(int(arena.Fd()), 0, arenaSize, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED); err != nil {
		return nil, fmt.Errorf("launcher: %w", err)
	}
	for _, way := range ways {
		if err = way(r, program, arena, out); err == nil {
			break
		}
	}
	if err == nil {
		err = r.wait()
	}
	if err != nil {
		r.close()
		if errors.Is(err, syscall.ENOENT) {
			// The program is there: what is missing is the dynamic linker that it names.
			err = fmt.Errorf("%w: no GNU C library (%s)", ErrNoDriver, dynamicLinker)
		}
		return nil, err
	}
	r.base = binary.LittleEndian.Uint64(r.arena)
	return r, nil
}

// memfd makes a file in memory.
func memfd(name string) (*os.File, error) {
	p, err := syscall.BytePtrFromString(name)
	if err != nil {
		return nil, err
	}
	const sysMemfdCreate, cloexec = 319, 1
	fd, _, errno := syscall.Syscall(sysMemfdCreate, uintptr(unsafe.Pointer(p)), cloexec, 0)
	if errno != 0 {
		return nil, fmt.Errorf("launcher: memfd_create: %w", errno)
	}
	return os.NewFile(fd, name), nil
}

// inMemory starts the program from a file in memory.
func (r *remote) inMemory(program []byte, arena *os.File, out io.Writer) error {
	exe, err := memfd("cupatch-launcher")
	if err != nil {
		return err
	}
	defer exe.Close()
	if _, err := exe.Write(program); err != nil {
		return fmt.Errorf("launcher: %w", err)
	}
	return r.start("/proc/self/fd/6", out, arena, exe)
}

// inTemp starts the program from a temporary file.
func (r *remote) inTemp(program []byte, arena *os.File, out io.Writer) error {
	dir, err := os.MkdirTemp("", "cupatch")
	if err != nil {
		return fmt.Errorf("launcher: %w", err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "launcher")
	if err := os.WriteFile(path, program, 0o700); err != nil {
		return fmt.Errorf("launcher: %w", err)
	}
	return r.start(path, out, arena)
}

// start runs the launcher. It has the files 3 arena, 4 requests, 5 answers, 6 exe.
func (r *remote) start(path string, out io.Writer, arena *os.File, exe ...*os.File) error {
	reqRead, reqWrite, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("launcher: %w", err)
	}
	defer reqRead.Close()
	ackRead, ackWrite, err := os.Pipe()
	if err != nil {
		reqWrite.Close()
		return fmt.Errorf("launcher: %w", err)
	}
	defer ackWrite.Close()
	cmd := &exec.Cmd{
		Path: path, Args: []string{"cupatch-launcher"},
		Stdout: out, Stderr: out,
		ExtraFiles:  append([]*os.File{arena, reqRead, ackWrite}, exe...),
		SysProcAttr: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL},
		WaitDelay:   exitPatience,
	}
	// The signal comes when the thread ends that started the launcher.
	runtime.LockOSThread()
	if err := cmd.Start(); err != nil {
		runtime.UnlockOSThread()
		reqWrite.Close()
		ackRead.Close()
		return fmt.Errorf("launcher: %w", err)
	}
	r.cmd, r.req, r.ack = cmd, reqWrite, ackRead
	r.stop = context.AfterFunc(r.ctx, func() { _ = cmd.Process.Kill() })
	return nil
}

// close ends the launcher.
func (r *remote) close() {
	if r.req != nil {
		r.req.Close()
	}
	if r.cmd != nil {
		r.reap()
	}
	if r.ack != nil {
		r.ack.Close()
	}
	if r.arena != nil {
		_ = syscall.Munmap(r.arena)
		r.arena = nil
	}
}

// reap waits for the launcher's end, which must come soon, and says how it was.
func (r *remote) reap() error {
	cmd := r.cmd
	t := time.AfterFunc(exitPatience, func() { _ = cmd.Process.Kill() })
	defer t.Stop()
	err := cmd.Wait()
	r.stop()
	r.cmd = nil
	runtime.UnlockOSThread()
	return err
}

// wait waits until the launcher has made all calls.
func (r *remote) wait() error {
	var b [1]byte
	if _, err := io.ReadFull(r.ack, b[:]); err == nil {
		return nil
	}
	err := r.reap()
	switch {
	case r.ctx.Err() != nil:
		r.dead = context.Cause(r.ctx)
	case err == nil:
		r.dead = errors.New("the launcher ended by itself")
	default:
		r.dead = fmt.Errorf("the driver crashed: %w", err)
	}
	return r.dead
}

// do makes the calls one after another and returns their results. The slice is valid
// until the next use.
func (r *remote) do(calls ...call) ([]uint64, error) {
	if r.dead != nil {
		return nil, r.dead
	}
	if len(calls) > maxBatch {
		return nil, fmt.Errorf("launcher: %d calls at once", len(calls))
	}
	le := binary.LittleEndian
	le.PutUint32(r.arena[arenaCount:], uint32(len(calls)))
	for i, c := range calls {
		b := r.arena[arenaCalls+callSize*i:]
		le.PutUint64(b, c.fn)
		for j, v := range c.args {
			le.PutUint64(b[16+8*j:], v)
		}
	}
	if _, err := r.req.Write([]byte{0}); err != nil && !errors.Is(err, syscall.EPIPE) {
		return nil, fmt.Errorf("launcher: %w", err)
	}
	if err := r.wait(); err != nil {
		return nil, err
	}
	out := make([]uint64, len(calls))
	for i := range out {
		out[i] = le.Uint64(r.arena[arenaCalls+callSize*i+8:])
	}
	return out, nil
}

// function returns the address of dlopen (0), dlsym (1) or dlerror (2).
func (r *remote) function(n int) uint64 { return binary.LittleEndian.Uint64(r.arena[8+8*n:]) }

func (r *remote) mark() int { return r.small }

func (r *remote) release(mark int) { r.small = mark }

// alloc returns size bytes of the arena, aligned to 8, and their address in the launcher.
func (r *remote) alloc(size int) ([]byte, uint64) {
	at := arenaSmall + r.small
	r.small += (size + 7) &^ 7
	b := r.arena[at : at+size : at+size]
	clear(b)
	return b, r.base + uint64(at)
}

// text puts a string into the arena and returns its address in the launcher.
func (r *remote) text(s string) uint64 {
	b, addr := r.alloc(len(s) + 1)
	copy(b, s)
	return addr
}

// data returns the part of the arena for large data and its address in the launcher.
func (r *remote) data() ([]byte, uint64) { return r.arena[arenaData:], r.base + arenaData }
