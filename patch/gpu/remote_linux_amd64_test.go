package gpu

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"
)

// TestStartByFile starts the launcher from a temporary file, as where files in memory must
// not be executed, and calls a function of the C library in it.
func TestStartByFile(t *testing.T) {
	refused := func(*remote, []byte, *os.File, io.Writer) error { return os.ErrPermission }
	c, err := startBy(context.Background(), os.Stderr, refused, (*remote).inTemp)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	d := &driver{caller: c, fn: map[string]uint64{}}
	addr, err := d.symbol(0, "snprintf")
	if err != nil || addr == 0 {
		t.Fatal(addr, err)
	}
	// As many arguments as there can be: six in registers, six on the stack.
	buf, at := c.alloc(64)
	out, err := c.do(call{addr, [callArgs]uint64{at, 64, c.text("%d %d %d %d %d %d %d %d %d"), 1, 2, 3, 4, 5, 6, 7, 8, 9}})
	if err != nil || out[0] != 17 || string(buf[:18]) != "1 2 3 4 5 6 7 8 9\x00" {
		t.Errorf("%v, %v, %q", out, err, buf)
	}
}

// TestNoDynamicLinker checks the error where there is no GNU C library.
func TestNoDynamicLinker(t *testing.T) {
	missing := func(r *remote, _ []byte, arena *os.File, out io.Writer) error {
		return r.start("/nonexistent/program", out, arena)
	}
	_, err := startBy(context.Background(), os.Stderr, missing)
	if !errors.Is(err, ErrNoDriver) || err.Error() != "no NVIDIA driver: no GNU C library (/lib64/ld-linux-x86-64.so.2)" {
		t.Errorf("%v", err)
	}
}

// TestKilled checks that the end of the context ends a call that never returns.
func TestKilled(t *testing.T) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), 100*time.Millisecond, &TimeoutError{time.Hour})
	defer cancel()
	c, err := startRemote(ctx, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	d := &driver{caller: c, fn: map[string]uint64{}}
	pause, err := d.symbol(0, "pause")
	if err != nil {
		t.Fatal(err)
	}
	if _, err = c.do(call{fn: pause}); err == nil || !strings.Contains(err.Error(), "still running after 1h0m0s") {
		t.Errorf("%v", err)
	}
	if _, again := c.do(call{fn: pause}); again != err {
		t.Errorf("after the end: %v", again)
	}
}
