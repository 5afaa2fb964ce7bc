//go:build !(linux && amd64)

package gpu

import (
	"context"
	"fmt"
	"io"
	"runtime"
)

func startRemote(context.Context, io.Writer) (caller, error) {
	return nil, fmt.Errorf("%w: kernels can be run on Linux with an x86-64 processor only, not on %s/%s", ErrNoDriver, runtime.GOOS, runtime.GOARCH)
}
