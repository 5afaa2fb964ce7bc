package main

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/patch"
	"github.com/cupatch/cupatch/patch/code"
)

// inParallel calls fn with 0 to n-1, several at once.
func inParallel(n, jobs int, fn func(i int)) {
	var wg sync.WaitGroup
	next := make(chan int)
	for range min(n, jobs) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range next {
				endOnFault(func() { fn(i) })
			}
		}()
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
}

// inOrder runs the work that produce submits, up to jobs at once, and gives the results to
// use one after another, in the order in which they were submitted. At most ahead results
// wait to be used. An error of use ends everything and is returned; submit then returns
// false. With one job nothing runs at the same time as anything else.
func inOrder[T any](jobs, ahead int, produce func(submit func(work func() T) bool), use func(T) error) (err error) {
	if jobs <= 1 {
		produce(func(work func() T) bool {
			if err == nil {
				err = use(work())
			}
			return err == nil
		})
		return err
	}
	queue := make(chan chan T, ahead)
	running := make(chan struct{}, jobs)
	stop := make(chan struct{})
	go func() {
		defer close(queue)
		produce(func(work func() T) bool {
			result := make(chan T, 1)
			select {
			case queue <- result:
			case <-stop:
				return false
			}
			running <- struct{}{}
			go func() {
				endOnFault(func() { result <- work() })
				<-running
			}()
			return true
		})
	}()
	for result := range queue {
		if v := <-result; err == nil {
			if err = use(v); err != nil {
				close(stop)
			}
		}
	}
	return err
}

// catchFault runs fn and returns the error of a mapped file that became shorter meanwhile.
func catchFault(fn func()) (err error) {
	defer elfx.CatchFault(&err)()
	fn()
	return nil
}

// endOnFault runs fn in a goroutine that has nobody to give such an error to: the program
// ends with it, and leaves no half-written file behind.
func endOnFault(fn func()) {
	if err := catchFault(fn); err != nil {
		patch.RemoveUnfinished()
		fmt.Fprintf(os.Stderr, "cupatch: error: %s\n", printableLines(err.Error()))
		os.Exit(2)
	}
}

// chunkSize is how much code, in bytes, is worked on at a time.
const chunkSize = 16 << 10

// chunks cuts a list of kernels into pieces of about chunkSize, at least one.
func chunks(kernels []*elfx.Kernel) [][]*elfx.Kernel {
	var out [][]*elfx.Kernel
	start, size := 0, int64(0)
	for i, k := range kernels {
		if size += k.Size; size >= chunkSize {
			out = append(out, kernels[start:i+1])
			start, size = i+1, 0
		}
	}
	if start < len(kernels) || out == nil {
		out = append(out, kernels[start:])
	}
	return out
}

// A cubinWalk is work on the kernels of cubins, several at once. S is what is known of a
// cubin, T what comes of some of its kernels.
type cubinWalk[S, T any] struct {
	// begin is called for each cubin in order, with the error of one that cannot be read,
	// and returns the kernels to work on. It may run at the same time as use.
	begin func(e *elfx.Entry, t *code.Target, err error) (S, []*elfx.Kernel)
	// work is called for some kernels of a cubin, or once with none where there is none,
	// at the same time as everything else.
	work func(s S, kernels []*elfx.Kernel) T
	// use gets the results in order.
	use func(s S, v T) error
}

// run works on the cubins of entries. No more of them are open at a time than there are
// jobs, and a few results wait for their turn.
func (w *cubinWalk[S, T]) run(jobs int, entries []*elfx.Entry) error {
	type opened struct {
		entry  *elfx.Entry
		target *code.Target
		err    error
	}
	type result struct {
		state S
		value T
		done  *elfx.Entry // whose last result it is, or nil
	}
	open := func(submit func(func() opened) bool) {
		for _, e := range entries {
			if !submit(func() opened { t, err := code.Open(e); return opened{e, t, err} }) {
				return
			}
		}
	}
	produce := func(submit func(func() result) bool) {
		errStopped := errors.New("stopped")
		_ = inOrder(jobs, jobs, open, func(o opened) error {
			s, kernels := w.begin(o.entry, o.target, o.err)
			pieces := chunks(kernels)
			for i, piece := range pieces {
				var done *elfx.Entry
				if i == len(pieces)-1 {
					done = o.entry
				}
				if !submit(func() result { return result{s, w.work(s, piece), done} }) {
					return errStopped
				}
			}
			return nil
		})
	}
	return inOrder(jobs, 4*jobs, produce, func(r result) error {
		err := w.use(r.state, r.value)
		if r.done != nil {
			r.done.Done()
		}
		return err
	})
}
