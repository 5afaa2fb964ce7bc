package gpu

import (
	"errors"
	"fmt"
	"time"
)

// ErrNoDriver says that no kernel can be run on this machine: it has no driver, no GPU,
// or is of a kind that this package does not support.
var ErrNoDriver = errors.New("no NVIDIA driver")

// A DriverError is an error that the driver reported.
type DriverError struct {
	Call string // the function, such as cuLaunchKernel
	Code int    // CUresult
	Name string // such as CUDA_ERROR_ILLEGAL_ADDRESS
	Text string // the driver's explanation
}

func (e *DriverError) Error() string {
	if e.Name == "" {
		return fmt.Sprintf("%s: error %d", e.Call, e.Code)
	}
	return fmt.Sprintf("%s: %s (%s)", e.Call, e.Text, e.Name)
}

// Values of CUresult.
const (
	cudaOutOfMemory  = 2
	cudaNoDevice     = 100
	cudaInvalidImage = 200
	cudaNoBinary     = 209
)

// A KernelError says that a kernel did not run to its end: it faulted, ran out of time,
// or could not be launched.
type KernelError struct {
	Program string
	Err     error
}

func (e *KernelError) Error() string { return fmt.Sprintf("%s: %v", e.Program, e.Err) }

func (e *KernelError) Unwrap() error { return e.Err }

// A TimeoutError is the cause of a context that ends a run for its length.
type TimeoutError struct{ Limit time.Duration }

func (e *TimeoutError) Error() string { return fmt.Sprintf("still running after %v", e.Limit) }
