package diff

import (
	"bytes"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/cupatch/cupatch/elfx"
)

// Files compares two files. Entries are read one after another and not kept; what stays
// in memory is a small record for each kernel, and the differences unless opt.Visit
// takes them. The error is that of opt.Visit; what cannot be read is in
// [Result.Errors], and [Result.Err] must be asked before "no difference" is believed.
func Files(a, b *elfx.File, opt Options) (r *Result, err error) {
	defer elfx.CatchFault(&err)()
	if opt.Count == 0 {
		opt.Count = DefaultCount()
	}
	c := &comparer{opt: opt, r: &Result{Count: opt.Count}}
	c.r.SameBytes = sameBytes(a, b)
	for side, f := range []*elfx.File{a, b} {
		c.index[side] = newIndex(f, side, c.jobs(), &opt, c.index[0])
		c.side(f, c.index[side], []*Side{&c.r.A, &c.r.B}[side])
	}
	pairEntries(c.index[0].cubins(), c.index[1].cubins())
	pairs, onlyA, onlyB := pairKernels(c.index[0].kernels(), c.index[1].kernels())
	c.only(&c.r.OnlyA, onlyA)
	c.only(&c.r.OnlyB, onlyB)
	if err := c.run(pairs); err != nil {
		return nil, err
	}
	c.entries(pairs)
	if !c.r.SameBytes {
		c.found(Wrapping)
		c.wrapping()
	}
	return c.r, nil
}

// sameBytes compares two files byte by byte, and gives the memory of what was compared
// back as it goes.
func sameBytes(a, b *elfx.File) bool {
	p, q := a.Data(), b.Data()
	if len(p) != len(q) {
		return false
	}
	from := 0
	for i, e := range a.Entries() {
		end := int(e.PayloadOffset + e.PayloadSize)
		if e.File != a || e.PayloadOffset < 0 || end <= from || end > len(p) {
			continue
		}
		if !bytes.Equal(p[from:end], q[from:end]) {
			return false
		}
		from = end
		e.Done()
		if i < len(b.Entries()) {
			b.Entries()[i].Done()
		}
	}
	return bytes.Equal(p[from:], q[from:])
}

// A comparer is a comparison of two files at work.
type comparer struct {
	opt   Options
	r     *Result
	index [2]*index
	cache [2]cubinCache
	noted map[*entryRec]bool // cubins of the first file whose sections were compared
}

func (c *comparer) found(k Kinds) { c.r.Kinds |= k }

// side fills in what is known of a file after the first pass.
func (c *comparer) side(f *elfx.File, x *index, s *Side) {
	s.Name, s.Kind, s.Size = f.Name, f.Kind.String(), f.Size
	if err := f.Damage(); err != nil {
		c.r.Errors = append(c.r.Errors, err)
	}
	for _, e := range x.entries {
		if e.err != nil {
			s.Unread++
			c.r.Errors = append(c.r.Errors, e.err)
			continue
		}
		if e.entry.Kind == elfx.KindELF {
			s.Cubins++
		}
		for _, k := range e.kernels {
			s.Kernels++
			s.Instructions += k.n
			s.Unknown += k.unknown
		}
	}
}

// only lists the kernels without partners.
func (c *comparer) only(dst *[]KernelRef, list []*kernelRec) {
	for _, k := range list {
		c.found(Unpaired)
		*dst = append(*dst, KernelRef{k.entry.arch, k.name, k.entry.entry.Number, k.n})
	}
}

// run compares the pairs, several at a time, and the sections of the cubins that they
// are in. The results come in the order of the pairs.
func (c *comparer) run(pairs []kernelPair) error {
	c.noted = map[*entryRec]bool{}
	kernels := map[*entryRec][]kernelPair{}
	for _, p := range pairs {
		kernels[p.a.entry] = append(kernels[p.a.entry], p)
	}
	var failed error
	inOrder(c.jobs(), len(pairs), func(i int) *outcome {
		k, err := c.kernel(pairs[i])
		return &outcome{k, err}
	}, func(i int, o *outcome) bool {
		if o.err != nil {
			c.r.Errors = append(c.r.Errors, o.err)
			return true
		}
		if failed = c.take(o.k); failed != nil {
			return false
		}
		if e := pairs[i].a.entry; e.partner != nil && !c.noted[e] {
			c.sections(e, kernels[e])
		}
		return true
	})
	return failed
}

// entries compares the cubins without pairs of kernels, and the entries of other kinds.
// A cubin of which the other file has nothing is said to be missing, unless that is said
// of its kernels.
func (c *comparer) entries(pairs []kernelPair) {
	paired := map[*entryRec]bool{}
	for _, p := range pairs {
		paired[p.a.entry], paired[p.b.entry] = true, true
	}
	for side, x := range c.index {
		for _, e := range x.cubins() {
			if e.code && len(e.kernels) == 0 { // no kernel of it is wanted
				continue
			}
			switch {
			case e.partner == nil && (paired[e] || !e.code):
				c.note(Note{Kind: Unpaired, Where: e.where(), What: "cubin", Text: "only the " + sideNames[side] + " file has it"})
			case side == 0 && e.partner != nil && !c.noted[e]:
				c.sections(e, nil)
			}
		}
	}
	c.heads()
	c.others()
}

// sideNames name the files in notes.
var sideNames = [2]string{"first", "second"}

func (c *comparer) note(n Note) {
	c.found(n.Kind)
	c.r.Notes = append(c.r.Notes, n)
}

// An outcome is a pair of kernels compared, or why it could not be.
type outcome struct {
	k   *KernelDiff
	err error
}

func (c *comparer) jobs() int {
	if c.opt.Jobs > 0 {
		return c.opt.Jobs
	}
	return runtime.GOMAXPROCS(0)
}

// take counts the result for a pair of kernels and hands it on.
func (c *comparer) take(k *KernelDiff) error {
	c.r.Compared++
	c.r.Classes[k.Class]++
	c.found(k.Kinds)
	if k.Kinds != 0 {
		c.r.Rows = append(c.r.Rows, k.row())
	}
	if c.opt.Visit != nil {
		return c.opt.Visit(k)
	}
	c.r.Kernels = append(c.r.Kernels, k)
	return nil
}

// inOrder calls work for 0 to n-1, jobs at a time, and take with the results in order,
// until it returns false.
func inOrder[T any](jobs, n int, work func(int) T, take func(int, T) bool) {
	results := make(chan chan T, jobs)
	stop := make(chan struct{})
	go func() {
		defer close(results)
		for i := range n {
			done := make(chan T, 1)
			select {
			case results <- done:
			case <-stop:
				return
			}
			go func() { done <- work(i) }()
		}
	}()
	i := 0
	for done := range results {
		if !take(i, <-done) {
			close(stop)
			for done := range results {
				<-done
			}
			return
		}
		i++
	}
}

// kernel compares one pair of kernels.
func (c *comparer) kernel(p kernelPair) (k *KernelDiff, err error) {
	defer elfx.CatchFault(&err)()
	k = &KernelDiff{
		Arch: p.a.entry.arch, NameA: p.a.name, NameB: p.b.name, EntryA: p.a.entry.entry.Number, EntryB: p.b.entry.entry.Number,
		PairedBy: p.by, Similarity: p.like, Instructions: [2]int{p.a.n, p.b.n}, Unknown: [2]int{p.a.unknown, p.b.unknown},
	}
	if p.a.entry.hash == p.b.entry.hash && p.a.index == p.b.index {
		k.CodeDiff = &CodeDiff{Class: Identical}
		return k, nil
	}
	x, err := c.cache[0].get(p.a.entry)
	if err != nil {
		return nil, err
	}
	y, err := c.cache[1].get(p.b.entry)
	if err != nil {
		return nil, err
	}
	a, b := x.made(p.a), y.made(p.b)
	k.CodeDiff = Compare(a, b)
	k.Resources = resourceChanges(a, b)
	data, loader := factsOf(k.CodeDiff, k.Resources)
	k.Data, k.Loader = append(dataChanges(k.CodeDiff), data...), loader
	if k.Class == CodeDiffers {
		k.Relocs = relocationChanges(a, b)
	}
	k.Kinds = k.CodeDiff.Kinds
	for _, f := range []struct {
		on   bool
		kind Kinds
	}{{k.Class == SameCode, Metadata}, {p.a.stable != p.b.stable, Names}, {k.Resources != nil, Resources}, {k.Data != nil, Data},
		{k.Loader != nil, Loader}} {
		if f.on {
			k.Kinds |= f.kind
		}
	}
	return k, nil
}

// row returns k in short.
func (k *KernelDiff) row() Row {
	r := Row{
		Arch: k.Arch, NameA: k.NameA, NameB: k.NameB, Class: k.Class, Kinds: k.Kinds, Instructions: k.Instructions,
		Changed: k.Changed, Deleted: k.Deleted, Inserted: k.Inserted, Moved: k.Moved, Modifiers: k.Modifiers,
		Resources: k.Resources, Data: k.Data, Loader: k.Loader,
	}
	for side, c := range []*Code{k.A, k.B} {
		if c != nil {
			r.Registers[side], r.Local[side] = c.Kernel.Regs, c.localLoads+c.localStores
		}
	}
	return r
}

// made returns the code of a kernel of m.
func (m *Module) made(k *kernelRec) *Code {
	if k.made != nil {
		return k.made
	}
	return m.Code(k.index)
}

// What is kept of the cubins of a file that were used last: so many, and as long as they
// are no larger together, in bytes. One is kept whatever its size.
const (
	cacheCount = 8
	cacheBytes = 32 << 20
)

// A cubinCache keeps the cubins that were used last.
type cubinCache struct {
	mu   sync.Mutex
	size int
	keys []*entryRec // the one used last at the end
	vals []*Module
}

func (c *cubinCache) get(e *entryRec) (*Module, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.Index(c.keys, e); i >= 0 {
		v := c.vals[i]
		c.keys = append(slices.Delete(c.keys, i, i+1), e)
		c.vals = append(slices.Delete(c.vals, i, i+1), v)
		return v, nil
	}
	cubin, err := e.entry.Cubin()
	if err != nil {
		return nil, err
	}
	table, err := TableFor(cubin)
	if err != nil {
		return nil, err
	}
	v := NewModule(cubin, table)
	c.keys, c.vals = append(c.keys, e), append(c.vals, v)
	c.size += len(cubin.Data())
	for len(c.keys) > cacheCount || len(c.keys) > 1 && c.size > cacheBytes {
		c.size -= len(c.vals[0].Cubin.Data())
		c.keys[0].entry.Done()
		c.keys, c.vals = slices.Delete(c.keys, 0, 1), slices.Delete(c.vals, 0, 1)
	}
	return v, nil
}

// bare reports whether e is a file of its own.
func (e *entryRec) bare() bool {
	return e.entry.Container != nil && e.entry.Container.Kind == elfx.ContainerCubin
}

// where names an entry, and with its partner both.
func (e *entryRec) where() string {
	switch p := e.partner; {
	case e.bare() && (p == nil || p.bare()):
		return ""
	case p == nil:
		return e.arch + " " + e.entry.Tag()
	default:
		return fmt.Sprintf("%s %s and %s", e.arch, e.entry.Tag(), p.entry.Tag())
	}
}
