package gpu

import (
	"bytes"
	"crypto/sha256"
	"math"
)

// check runs every program on fresh buffers and compares what they leave.
func (r *run) check() error {
	r.result.Identical = true
	for round := range max(r.launch.Check, 1) {
		for i, x := range r.list {
			if round == 0 {
				r.result.Programs = append(r.result.Programs, x.outcome)
			}
			err := r.batch(append(r.fresh(), r.start(x)))
			if err == nil {
				err = r.d.cu("cuCtxSynchronize")
			}
			if err != nil {
				r.result.Identical, x.outcome.Identical = false, false
				return &KernelError{Program: x.Name, Err: err}
			}
			if err := r.collect(x, i, round); err != nil {
				return err
			}
		}
	}
	return nil
}

// collect reads the buffers after program x, number i, has run.
func (r *run) collect(x *loaded, i, round int) error {
	for _, b := range r.buffers {
		out := &Buffer{Arg: b.arg + 1, Type: b.a.typ.String(), Count: b.a.count}
		diff, err := r.download(b, out, i == 0 && round == 0)
		if err != nil {
			return err
		}
		out.Changed = out.SHA256 != b.first
		if round == 0 {
			x.outcome.Buffers = append(x.outcome.Buffers, out)
		}
		if diff == nil {
			continue
		}
		r.result.Identical, x.outcome.Identical = false, false
		if x.outcome.Difference == nil {
			diff.Round = round + 1
			x.outcome.Difference = diff
		}
	}
	return nil
}

// download reads a buffer from the GPU. The first time it is kept, later it is compared
// with what was kept.
func (r *run) download(b *buffer, out *Buffer, keep bool) (*Difference, error) {
	h := sha256.New()
	chunk, at := r.d.data()
	if keep {
		b.want = make([]byte, 0, b.a.bytes())
	}
	var diff *Difference
	for off := int64(0); off < b.a.bytes(); off += int64(len(chunk)) {
		part := chunk[:min(int64(len(chunk)), b.a.bytes()-off)]
		if err := r.d.cu("cuMemcpyDtoH_v2", at, b.addr+uint64(off), uint64(len(part))); err != nil {
			return nil, err
		}
		h.Write(part)
		if keep {
			b.want = append(b.want, part...)
		} else if want := b.want[off : off+int64(len(part))]; !bytes.Equal(want, part) {
			diff = b.compare(diff, want, part, off)
		}
	}
	out.SHA256 = sum(h)
	return diff, nil
}

// compare adds the differences of a stretch of a buffer, off bytes from its start.
func (b *buffer) compare(diff *Difference, want, got []byte, off int64) *Difference {
	t := b.a.typ
	for i := 0; i < len(want); i += t.Size() {
		w, g := t.load(want[i:]), t.load(got[i:])
		if w == g {
			continue
		}
		if diff == nil {
			diff = &Difference{Arg: b.arg + 1, Index: (off + int64(i)) / int64(t.Size()), Want: t.Format(w), Got: t.Format(g), Of: b.a.count}
			if diff.Want == diff.Got { // numbers that are not numbers differ in their bits only
				diff.Want, diff.Got = t.hex(w), t.hex(g)
			}
		}
		diff.Count++
	}
	return diff
}

// time launches the programs in turn, times every launch, and works out the figures.
func (r *run) time() error {
	l := r.launch
	cold, err := r.coldCalls()
	if err != nil {
		return err
	}
	var events []uint64 // start and end of each launch, in order
	for range 2 * l.Repeat * len(r.list) {
		e, err := r.d.get("cuEventCreate", 0)
		if err != nil {
			return err
		}
		events = append(events, e)
	}
	calls := r.fresh()
	for range l.Warmup {
		for _, x := range r.list {
			calls = append(calls, r.start(x))
		}
	}
	for i := range l.Repeat * len(r.list) {
		if l.Reset {
			calls = append(calls, r.fresh()...)
		}
		calls = append(calls, cold...)
		calls = append(calls, r.d.prepare("cuEventRecord", events[2*i], 0), r.start(r.list[i%len(r.list)]), r.d.prepare("cuEventRecord", events[2*i+1], 0))
	}
	err = r.batch(calls)
	if err == nil {
		err = r.d.cu("cuCtxSynchronize")
	}
	if err != nil {
		return &KernelError{Program: "timed launches", Err: err}
	}
	return r.elapsed(events)
}

// coldCalls are the calls that fill the L2 cache with other data, if that is asked for.
func (r *run) coldCalls() ([]call, error) {
	if !r.launch.Cold {
		return nil, nil
	}
	size := 2 * int64(r.Device.L2)
	addr, err := r.memory(size)
	if err != nil {
		return nil, err
	}
	return []call{r.d.prepare("cuMemsetD8Async", addr, 0, uint64(size), 0)}, nil
}

// elapsed reads the times off the events.
func (r *run) elapsed(events []uint64) error {
	times := make([][]float64, len(r.list))
	for i := 0; i < len(events); i += 2 {
		bits, err := r.d.get("cuEventElapsedTime", events[i], events[i+1])
		if err != nil {
			return err
		}
		n := i / 2 % len(r.list)
		// Milliseconds, with a resolution of half a microsecond: digits below a
		// nanosecond are the float's.
		ms := float64(math.Float32frombits(uint32(bits)))
		times[n] = append(times[n], math.Round(1e6*ms)/1e3)
	}
	var total int64
	for _, b := range r.buffers {
		total += b.a.bytes()
	}
	for i, x := range r.list {
		x.outcome.Times = newTimes(times[i])
		if m := x.outcome.Times.Median; m > 0 {
			x.outcome.GBs = float64(total) / m / 1000
		}
		if i > 0 {
			x.outcome.Ratio = newRatio(times[0], times[i])
		}
	}
	return nil
}
