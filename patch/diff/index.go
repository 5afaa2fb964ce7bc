package diff

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/cupatch/cupatch/elfx"
)

// A kernelRec is what the first pass over a file keeps of a kernel.
type kernelRec struct {
	entry   *entryRec
	index   int // in Cubin.Kernels
	name    string
	stable  string // the name without what changes from build to build
	code    Hash
	n       int // instructions without padding
	unknown int
	sketch  sketch
	made    *Code // kept of small files, so that it need not be made again
}

// An entryRec is what the first pass keeps of an entry.
type entryRec struct {
	entry   *elfx.Entry
	side    int // 0 for the first file
	arch    string
	hash    Hash         // of its bytes
	meaning Hash         // of an entry that is no cubin: what meaningOf gives
	code    bool         // it has kernels, wanted or not
	kernels []*kernelRec // that are wanted
	partner *entryRec    // the cubin of the other file that it is compared with
	err     error
}

// maxMade bounds the cubins, in bytes, of which the first pass keeps the code, which
// takes about three times as much memory.
const maxMade = 4 << 20

// A sketch counts pairs of successive opcodes in a few buckets: kernels alike have
// sketches alike.
type sketch [48]uint16

func (c *Code) sketch() (s sketch) {
	last := uint64(0)
	for _, w := range c.norm {
		op := uint64(w.Opcode())
		h := (op*31 + last) * 0x9e3779b97f4a7c15 >> 58 % uint64(len(s))
		if s[h] < 1<<16-1 {
			s[h]++
		}
		last = op
	}
	return s
}

// likeness returns how alike two sketches are, from 0 to 1.
func (s *sketch) likeness(o *sketch) float64 {
	lo, hi := 0, 0
	for i, x := range s {
		lo += int(min(x, o[i]))
		hi += int(max(x, o[i]))
	}
	if hi == 0 {
		return 1
	}
	return float64(lo) / float64(hi)
}

// An index is the result of the first pass over a file: entries in order.
type index struct {
	file    *elfx.File
	entries []*entryRec // those that are wanted
}

// newIndex reads every wanted entry of a file once. Entries that cannot be read are
// there with their error.
// What has the bytes of an entry of other, the index of the first file, is as that is.
func newIndex(f *elfx.File, side, jobs int, opt *Options, other *index) *index {
	x := &index{file: f}
	known := map[Hash]*entryRec{}
	if other != nil {
		for _, r := range other.cubins() {
			known[r.hash] = r
		}
	}
	for _, e := range f.Entries() {
		if e.Kind != elfx.KindConcat && (opt.Entry == nil || opt.Entry(side, e)) {
			x.entries = append(x.entries, &entryRec{entry: e, side: side})
		}
	}
	var wg sync.WaitGroup
	next := make(chan *entryRec)
	for range min(jobs, len(x.entries)) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			var buf []byte
			for r := range next {
				buf = r.read(buf, opt, known)
				r.entry.Done()
			}
		}()
	}
	for _, r := range x.entries {
		next <- r
	}
	close(next)
	wg.Wait()
	return x
}

// contentsOf returns the bytes of an entry, perhaps in the memory of buf. What nobody can
// read, and is no cubin, is taken as it is stored.
func contentsOf(e *elfx.Entry, buf []byte) ([]byte, error) {
	data, err := e.DataIn(buf)
	if errors.Is(err, elfx.ErrUnsupported) && e.Kind != elfx.KindELF {
		return slices.Clone(e.Raw()), nil
	}
	return data, err
}

// read fills in r. It returns memory for the next entry.
func (r *entryRec) read(buf []byte, opt *Options, known map[Hash]*entryRec) []byte {
	defer elfx.CatchFault(&r.err)()
	data, err := contentsOf(r.entry, buf)
	if err != nil {
		r.err = err
		return buf
	}
	if !r.entry.Shared() && cap(data) > cap(buf) {
		buf = data
	}
	r.hash = sha256.Sum256(data)
	if r.entry.Kind != elfx.KindELF {
		r.meaning = meaningOf(r.entry.Kind, data)
		return buf
	}
	if o := known[r.hash]; o != nil {
		r.arch, r.code = o.arch, o.code
		for _, k := range o.kernels {
			same := *k
			same.entry = r
			r.kernels = append(r.kernels, &same)
		}
		return buf
	}
	c, err := elfx.ParseCubin(data)
	if err != nil {
		r.err = fmt.Errorf("%s: %w", r.entry.ID(), err)
		return buf
	}
	r.arch = c.Arch
	table, err := TableFor(c)
	if err != nil {
		r.err = fmt.Errorf("%s: %w", r.entry.ID(), err)
		return buf
	}
	m := NewModule(c, table)
	r.code = len(c.Kernels()) > 0
	keep := r.entry.File.Size <= maxMade && r.entry.Shared() // else the memory is used again
	for i := range c.Kernels() {
		k := &c.Kernels()[i]
		if opt.Kernel != nil && !opt.Kernel(k) {
			continue
		}
		code := m.Code(i)
		rec := &kernelRec{
			entry: r, index: i, name: strings.Clone(k.Name), stable: strings.Clone(m.kernelName(i)), code: code.Hash(HashCode), n: code.Len(), unknown: code.Unknown,
			sketch: code.sketch(),
		}
		if keep {
			rec.made = code
		} else {
			code.Done()
		}
		r.kernels = append(r.kernels, rec)
	}
	return buf
}

// cubins returns the readable cubins of an index.
func (x *index) cubins() []*entryRec {
	var out []*entryRec
	for _, r := range x.entries {
		if r.err == nil && r.entry.Kind == elfx.KindELF {
			out = append(out, r)
		}
	}
	return out
}

// kernels returns the kernels of an index in order.
func (x *index) kernels() []*kernelRec {
	var out []*kernelRec
	for _, r := range x.entries {
		out = append(out, r.kernels...)
	}
	return out
}
