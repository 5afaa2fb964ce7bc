package gpu

// callArgs is how many arguments a call takes: cuLaunchKernel has eleven.
const callArgs = 12

// A call is a call of a function of the C library or the driver.
type call struct {
	fn   uint64
	args [callArgs]uint64
}

// maxBatch is how many calls can be made at once.
const maxBatch = 256

// smallSize is how much a caller's alloc and text hand out together, in bytes.
const smallSize = 960 << 10

// A caller makes calls in a process that can load C libraries. It is used by one
// goroutine at a time, the one that made it.
type caller interface {
	// do makes at most maxBatch calls one after another and returns their results.
	do(calls ...call) ([]uint64, error)
	// function returns the address of dlopen (0), dlsym (1) or dlerror (2).
	function(n int) uint64
	// alloc returns size bytes of shared memory, zeroed and aligned to 8, and their
	// address in the other process.
	alloc(size int) ([]byte, uint64)
	// text puts a string into shared memory and returns its address there.
	text(s string) uint64
	// mark says how much alloc and text have handed out; release takes back what they
	// have handed out since.
	mark() int
	release(mark int)
	// data returns the shared memory for large data, and its address there.
	data() ([]byte, uint64)
	close()
}
