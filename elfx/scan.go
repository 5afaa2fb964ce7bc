package elfx

import "bytes"

// An Account says what the bytes of a region are. The parts add up to Total.
type Account struct {
	Headers int64 // of containers and entries
	Payload int64 // stored bytes of entries, without padding
	Padding int64 // zero bytes: behind payloads and between containers
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

// A finder returns the next place of a magic number at or after a position. It looks
// at each byte once.
type finder struct {
	magic []byte
	next  int64
	valid bool
}

func (s *finder) find(f *File, pos, end int64) int64 {
	if s.valid && s.next >= pos {
		return s.next
	}
	s.valid, s.next = true, end
	data := f.root().data
	for pos < end {
		stop := min(pos+scanStep, end)
		// The next stretch starts inside the magic number, in case it lies across.
		if i := bytes.Index(data[pos:min(stop+int64(len(s.magic))-1, end)], s.magic); i >= 0 {
			s.next = pos + int64(i)
			return s.next
		}
		f.drop(pos, stop)
		pos = stop
	}
	return s.next
}

// scanStep is how much is searched before its pages are given back.
const scanStep = 8 << 20

// scan finds the containers of a region. In a dedicated region whatever has the magic
// number is a container, damaged or not; elsewhere each candidate has to convince.
func (f *File) scan(r *Region) {
	data := f.root().data
	end := r.Offset + r.Size
	fat, elf := &finder{magic: fatbinMagicBytes}, &finder{magic: elfMagic}
	budget := 1<<16 + r.Size/8 // section headers to look at for bare cubins
	gap := r.Offset            // everything before it is accounted for
	for pos := r.Offset; pos < end; {
		at := min(fat.find(f, pos, end), elf.find(f, pos, end))
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

// tryContainer adds the container at the magic number at, if it is one, and returns
// its size.
func (f *File) tryContainer(r *Region, at, end int64, budget *int64) int64 {
	data := f.root().data
	if data[at] == fatbinMagicBytes[0] {
		if !plausibleFatbin(data[at:end]) && !r.Dedicated {
			return 0
		}
		c := f.parseFatbin(r, at, end)
		r.Containers = append(r.Containers, c)
		return c.Size
	}
	if !isCubin(data[at:end]) {
		return 0
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
