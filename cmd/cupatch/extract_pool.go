package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/cupatch/cupatch/elfx"
)

// inFlight bounds the decompressed bytes that are being written at one time.
const inFlight = 256 << 20

// keepBuffer bounds the memory that a worker keeps between entries.
const keepBuffer = 32 << 20

// An extractJob is an entry and the name of its file.
type extractJob struct {
	entry *elfx.Entry
	name  string
	size  int64
	err   error
}

// writeAll writes the files with several workers. The names are printed in order.
func (x *extraction) writeAll(jobs []extractJob) error {
	if len(jobs) == 0 {
		return nil
	}
	if err := os.MkdirAll(x.dir, 0o777); err != nil {
		return err
	}
	b := &budget{free: inFlight}
	b.more.L = &b.mu
	queue := make(chan *extractJob)
	var wg sync.WaitGroup
	for range min(x.jobs, len(jobs)) {
		wg.Go(func() {
			var buf []byte // serves one entry after another
			for j := range queue {
				cost := b.take(j.entry)
				if fault := catchFault(func() { buf, j.err = x.writeOne(j, buf) }); fault != nil {
					j.err = fault
				}
				b.give(cost)
			}
		})
	}
	for i := range jobs {
		queue <- &jobs[i]
	}
	close(queue)
	wg.Wait()
	var there []string
	for i := range jobs {
		j := &jobs[i]
		if errors.Is(j.err, fs.ErrExist) {
			there = append(there, filepath.Join(x.dir, j.name))
			continue
		}
		if j.err != nil {
			x.fail(j.err)
			continue
		}
		x.written++
		x.bytes += j.size
		if !x.quiet {
			fmt.Fprintln(x.stdout, filepath.Join(x.dir, j.name))
		}
	}
	if len(there) > 0 {
		x.fail(existsError(there))
	}
	return nil
}

// existsError says that files are in the way.
func existsError(paths []string) error {
	err := fmt.Errorf("%s exists already", paths[0])
	if n := len(paths) - 1; n > 0 {
		err = fmt.Errorf("%s and %s exist already", paths[0], plural(n, "other file", "other files"))
	}
	return &exitError{code: 2, err: err, hint: "--force replaces files that exist"}
}

// writeOne writes the file of a job and returns the memory for the next one.
func (x *extraction) writeOne(j *extractJob, buf []byte) ([]byte, error) {
	if n := j.entry.Size; !j.entry.Shared() && int64(cap(buf)) < n && n < keepBuffer {
		buf = make([]byte, 0, n+n/4)
	}
	data, err := entryData(j.entry, buf)
	if err != nil {
		return buf, err
	}
	defer j.entry.Done()
	j.size = int64(len(data))
	return buf, x.create(filepath.Join(x.dir, j.name), func(w io.Writer) error { _, err := w.Write(data); return err })
}

// A budget hands out bytes of memory.
type budget struct {
	mu   sync.Mutex
	more sync.Cond
	free int64
}

// take waits until the entry fits. One that is larger than everything goes alone.
func (b *budget) take(e *elfx.Entry) int64 {
	if e.Shared() && e.Parent == nil {
		return 0
	}
	cost := min(e.Size, inFlight)
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.free < cost {
		b.more.Wait()
	}
	b.free -= cost
	return cost
}

func (b *budget) give(cost int64) {
	b.mu.Lock()
	b.free += cost
	b.mu.Unlock()
	b.more.Broadcast()
}
