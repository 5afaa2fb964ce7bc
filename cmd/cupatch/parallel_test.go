package main

import (
	"errors"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
)

func TestInOrder(t *testing.T) {
	for _, jobs := range []int{1, 2, 5} {
		var running, most atomic.Int32
		var got []int
		err := inOrder(jobs, 3, func(submit func(func() int) bool) {
			for i := range 100 {
				submit(func() int {
					n := running.Add(1)
					for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
					}
					runtime.Gosched()
					running.Add(-1)
					return i
				})
			}
		}, func(i int) error { got = append(got, i); return nil })
		if err != nil || len(got) != 100 || !slices.IsSorted(got) {
			t.Errorf("%d jobs: %v, %v", jobs, got, err)
		}
		if int(most.Load()) > jobs {
			t.Errorf("%d jobs: %d at once", jobs, most.Load())
		}
	}
}

// An error of use ends the work, and nothing runs any more when it is returned.
func TestInOrderStops(t *testing.T) {
	stop := errors.New("stop")
	for _, jobs := range []int{1, 4} {
		var running, started atomic.Int32
		refused := false
		err := inOrder(jobs, 2, func(submit func(func() int) bool) {
			for i := range 1000 {
				if refused = !submit(func() int { started.Add(1); running.Add(1); defer running.Add(-1); return i }); refused {
					return
				}
			}
		}, func(i int) error {
			if i == 3 {
				return stop
			}
			return nil
		})
		if err != stop || !refused || started.Load() > 100 || running.Load() != 0 {
			t.Errorf("%d jobs: %v, %d started, %d running", jobs, err, started.Load(), running.Load())
		}
	}
}
