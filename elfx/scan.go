package elfx

import (
	"bytes"
	"errors"
	"runtime"
	"slices"
	"sync"
)

// An Account says what the bytes of a region are. The parts add up to Total.
type Account struct {
	Headers int64 // of containers and entries
	Payload int64 // stored bytes of entries, without padding
	Padding int64 // zero bytes: after payloads and between containers
	Damaged int64 // bytes of entries and containers whose headers make no sense
	Other   int64 // bytes that are none of these: not zero, and in no container
}

// Total returns the sum of the parts.
func (a Account) Total() int64 { return a.Headers + a.Payload + a.Padding + a.Damaged + a.Other }

// Account adds up what the bytes of the region are.
func (r *Region) Account() Account {
	a := Account{Padding: r.zeros, Other: r.other}
	data := r.File.root().data
	for _, c := range r.Containers {
		a.Headers += c.HeaderSize
		a.Damaged += c.damaged
		for _, e := range c.Entries {
			if e.Parent != nil || e.HeaderSize == 0 && c.Kind == ContainerFatbin {
				continue
			}
			a.Headers += e.HeaderSize
			a.Payload += e.StoredSize
			pad := data[e.PayloadOffset+e.StoredSize : e.PayloadOffset+e.PayloadSize]
			zeros := countZeros(pad)
			a.Padding += zeros
			a.Other += int64(len(pad)) - zeros
		}
	}
	return a
}

func countZeros(b []byte) int64 {
	if isZero(b) {
		return int64(len(b))
	}
	return int64(bytes.Count(b, []byte{0}))
}

func isZero(b []byte) bool {
	for len(b) >= 8 {
		if le.Uint64(b) != 0 {
			return false
		}
		b = b[8:]
	}
	for _, x := range b {
		if x != 0 {
			return false
		}
	}
	return true
}

// A finder returns the places in a region where a container may start, in order. It
// searches a stretch at a time, and each stretch once.
type finder struct {
	r    *Region
	data []byte
	end  int64
	hits []int64 // in the stretch that has been searched
	stop int64   // where that stretch ends
}

const (
	scanStretch  = 4 << 20   // for one of several goroutines
	scanWorkers  = 8         // at most
	cachedWindow = 256 << 10 // is searched for both magic numbers while the processor's cache holds it
)

// find returns the first place at or after pos, which never decreases, or the end.
func (s *finder) find(pos int64) int64 {
	for {
		for len(s.hits) > 0 && s.hits[0] < pos {
			s.hits = s.hits[1:]
		}
		if len(s.hits) > 0 {
			return s.hits[0]
		}
		if pos = max(pos, s.stop); pos >= s.end {
			return s.end
		}
		s.fill(pos)
	}
}

// fill searches the next stretch, in parallel where containers are not to be expected.
// The pages that were looked at are given back.
func (s *finder) fill(pos int64) {
	if s.r.Dedicated {
		s.stop = min(pos+cachedWindow, s.end)
		s.hits = s.collect(pos, s.stop)
		return
	}
	errs := make([]error, scanWorkers)
	parts := make([][]int64, min(runtime.GOMAXPROCS(0), scanWorkers))
	var wg sync.WaitGroup
	for i := range parts {
		if pos >= s.end {
			break
		}
		from, to := pos, min(pos+scanStretch, s.end)
		wg.Go(func() {
			defer CatchFault(&errs[i])()
			parts[i] = s.collect(from, to)
			s.r.File.drop(from, to)
		})
		pos = to
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil && s.r.File.Err == nil {
		s.r.File.Err = err
	}
	s.stop, s.hits = pos, slices.Concat(parts...)
}

// collect returns the places between pos and stop, in order.
func (s *finder) collect(pos, stop int64) []int64 {
	var hits []int64
	for ; pos < stop; pos += cachedWindow {
		to := min(pos+cachedWindow, stop)
		for _, magic := range [][]byte{fatbinMagicBytes, elfMagic} {
			// What starts in the window may end after it.
			b := s.data[:min(to+int64(len(magic))-1, s.end)]
			for at := pos; ; at++ {
				i := bytes.Index(b[at:], magic)
				if i < 0 {
					break
				}
				if at += int64(i); s.plausible(at) {
					hits = append(hits, at)
				}
			}
		}
	}
	slices.Sort(hits)
	return hits
}

// plausible reports whether the magic number at a place is worth a closer look.
func (s *finder) plausible(at int64) bool {
	b := s.data[at:s.end]
	if b[0] == fatbinMagicBytes[0] {
		return s.r.Dedicated || plausibleFatbin(b)
	}
	return isCubin(b)
}

// scan finds the containers of a region. In a dedicated region whatever has the magic
// number is a container, damaged or not; elsewhere each candidate has to convince.
func (f *File) scan(r *Region) {
	data := f.root().data
	end := r.Offset + r.Size
	places := &finder{r: r, data: data, end: end}
	budget := 1<<16 + r.Size/8 // section headers to look at for bare cubins
	gap := r.Offset            // everything before it is accounted for
	for pos := r.Offset; pos < end; {
		at := places.find(pos)
		if at == end {
			break
		}
		size := f.tryContainer(r, at, end, &budget)
		if size == 0 {
			pos = at + 1
			continue
		}
		r.gap(data[gap:at])
		pos, gap = at+size, at+size
	}
	r.gap(data[gap:end])
}

// gap accounts for bytes between containers. A byte that is not zero ends the look at
// them soon in data that is no padding.
func (r *Region) gap(b []byte) {
	if isZero(b) {
		r.zeros += int64(len(b))
	} else {
		r.other += int64(len(b))
	}
}

// tryContainer adds the container at a plausible place, if it is one, and returns its
// size.
func (f *File) tryContainer(r *Region, at, end int64, budget *int64) int64 {
	data := f.root().data
	if data[at] == fatbinMagicBytes[0] {
		c := f.parseFatbin(r, at, end)
		r.Containers = append(r.Containers, c)
		return c.Size
	}
	size := cubinExtent(data[at:end], budget)
	if size == 0 {
		return 0
	}
	f.addCubin(r, at, size)
	return size
}

// cubinExtent returns the size of the cubin at the start of b, which goes on with
// other things: the end of its headers and sections. It returns 0 where the headers
// make no sense or the budget is used up.
func cubinExtent(b []byte, budget *int64) int64 {
	h, err := parseELFHeader(b)
	if err != nil || h.Shnum == 0 {
		return 0
	}
	if *budget -= int64(h.Shnum); *budget < 0 {
		return 0
	}
	end := max(h.Shoff+uint64(h.Shnum)*sectHeaderSize, elfHeaderSize)
	if h.Phnum > 0 {
		end = max(end, h.Phoff+uint64(h.Phnum)*progHeaderSize)
	}
	for i := range uint64(h.Shnum) {
		s := b[h.Shoff+i*sectHeaderSize:]
		if !inFile(le.Uint32(s[4:])) {
			continue
		}
		off, size := le.Uint64(s[24:]), le.Uint64(s[32:])
		if off > uint64(len(b)) || size > uint64(len(b))-off {
			return 0
		}
		end = max(end, off+size)
	}
	return int64(end)
}
