package main

import (
	"hash/maphash"
	"strconv"
	"sync"

	"github.com/cupatch/cupatch/elfx"
)

// The listing of a file, as JSON writes it. Offsets are from the start of the file.

type lsFile struct {
	Name     string       `json:"file"`
	Kind     string       `json:"kind"`
	Size     int64        `json:"size"`
	Offset   int64        `json:"offset,omitempty"`
	Error    string       `json:"error,omitempty"`
	Sections []*lsSection `json:"sections,omitempty"`
	Members  []*lsFile    `json:"members,omitempty"`
	For      *lsFor       `json:"for,omitempty"`
}

type lsSection struct {
	Name       string         `json:"name,omitempty"`
	Offset     int64          `json:"offset"`
	Size       int64          `json:"size"`
	Account    *lsAccount     `json:"account,omitempty"`
	Containers []*lsContainer `json:"containers"`
}

type lsAccount struct {
	Headers int64 `json:"headers"`
	Payload int64 `json:"payload"`
	Padding int64 `json:"padding"`
	Damaged int64 `json:"damaged"`
	Other   int64 `json:"other"`
}

type lsContainer struct {
	Kind    string     `json:"kind"`
	Offset  int64      `json:"offset"`
	Size    int64      `json:"size"`
	Error   string     `json:"error,omitempty"`
	Loads   *lsLoad    `json:"loads,omitempty"`
	Unread  string     `json:"never_loaded,omitempty"` // why it has no Loads
	Count   int        `json:"entry_count"`            // also those that were not asked for
	Entries []*lsEntry `json:"entries"`
}

// An lsLoad is what a driver does with a container for the device of --for.
type lsLoad struct {
	How   string `json:"how"`
	Entry int    `json:"entry,omitempty"`
	Arch  string `json:"arch,omitempty"`
}

// An lsFor sums up the loads of a file.
type lsFor struct {
	Device  string `json:"device"`
	Cubin   int    `json:"cubin"`
	PTX     int    `json:"ptx"`
	Nothing int    `json:"nothing"`
}

type lsEntry struct {
	Number      int         `json:"entry"`
	ID          string      `json:"id"`
	Kind        string      `json:"kind"`
	Arch        string      `json:"arch,omitempty"`
	CubinArch   string      `json:"cubin_arch,omitempty"`
	Disagree    bool        `json:"arch_disagrees,omitempty"`
	Compression string      `json:"compression"`
	Offset      int64       `json:"offset"`
	Stored      int64       `json:"stored"`
	Size        int64       `json:"size"`
	Name        string      `json:"name,omitempty"`
	Options     string      `json:"options,omitempty"`
	Flags       []string    `json:"flags,omitempty"`
	PTXVersion  string      `json:"ptx_version,omitempty"`
	Toolkit     string      `json:"toolkit,omitempty"`
	ABI         int         `json:"abi,omitempty"`
	Relocatable bool        `json:"relocatable,omitempty"`
	Debug       bool        `json:"debug,omitempty"`
	Mercury     bool        `json:"mercury,omitempty"`
	Obfuscated  bool        `json:"obfuscated,omitempty"`
	PartOf      int         `json:"part_of,omitempty"`
	DuplicateOf string      `json:"duplicate_of,omitempty"`
	Loaded      bool        `json:"loaded,omitempty"`
	Error       string      `json:"error,omitempty"`
	Kernels     []*lsKernel `json:"kernels,omitempty"`
}

type lsKernel struct {
	Name         string `json:"name"`
	Demangled    string `json:"demangled,omitempty"`
	Entry        bool   `json:"entry"`
	Offset       int64  `json:"offset"`
	Size         int64  `json:"size"`
	Instructions int    `json:"instructions"`
	Registers    int    `json:"registers"`
	Shared       int    `json:"shared"`
	Local        int    `json:"local"`
	Stack        int    `json:"stack"`
	Params       int    `json:"params"`
	Barriers     int    `json:"barriers"`
}

// describeFile lists a file and its members, narrowed to what was asked for.
func (r *lsRun) describeFile(f *elfx.File, selected map[*elfx.Entry]bool) *lsFile {
	out := &lsFile{Name: f.Name, Kind: f.Kind.String(), Size: f.Size, Offset: f.Offset, Error: r.problem(f.Err)}
	if r.device != 0 {
		out.For = &lsFor{Device: "sm_" + strconv.Itoa(r.device)}
	}
	for _, reg := range f.Regions {
		s := &lsSection{Name: reg.Name, Offset: reg.Offset, Size: reg.Size}
		if reg.Dedicated && f.Kind != elfx.FileCubin {
			a := reg.Account()
			s.Account = &lsAccount{a.Headers, a.Payload, a.Padding, a.Damaged, a.Other}
		}
		for _, c := range reg.Containers {
			if lc := r.describeContainer(c, selected, out.For); lc != nil {
				s.Containers = append(s.Containers, lc)
			}
		}
		if len(s.Containers) > 0 || !r.filtered(selected) {
			out.Sections = append(out.Sections, s)
		}
	}
	for _, m := range f.Members {
		if lm := r.describeFile(m, selected); len(lm.Sections) > 0 || lm.Error != "" {
			out.Members = append(out.Members, lm)
		}
	}
	return out
}

// describeContainer lists a container, or returns nil when nothing in it was asked for.
func (r *lsRun) describeContainer(c *elfx.Container, selected map[*elfx.Entry]bool, sum *lsFor) *lsContainer {
	out := &lsContainer{Kind: c.Kind.String(), Offset: c.Offset, Size: c.Size, Count: len(c.Entries), Error: r.problem(c.Err)}
	var chosen *elfx.Entry
	if sum != nil {
		out.Unread = neverLoaded(c)
	}
	if sum != nil && out.Unread == "" {
		e, how := c.Choose(r.device)
		chosen, out.Loads = e, &lsLoad{How: how.String()}
		if e != nil {
			out.Loads.Entry, out.Loads.Arch = e.Number, e.Target()
		}
		switch how {
		case elfx.LoadCubin:
			sum.Cubin++
		case elfx.LoadPTX:
			sum.PTX++
		default:
			sum.Nothing++
		}
	}
	for _, e := range c.Entries {
		if selected != nil && !selected[e] || !r.archWanted(e) {
			continue
		}
		if le := r.describeEntry(e, e == chosen); le != nil {
			out.Entries = append(out.Entries, le)
		}
	}
	if len(out.Entries) == 0 && (r.filtered(selected) || len(c.Entries) > 0) {
		return nil
	}
	r.totals.Containers++
	return out
}

// neverLoaded says why a driver never loads the container as it is, or nothing.
func neverLoaded(c *elfx.Container) string {
	r := c.Region
	switch {
	case r.Name == "__nv_relfatbin" || r.Name == "__nv_rel" || relocatable(c):
		return "for the linker"
	case r.File.Kind == elfx.FileFatbin && c != r.Containers[0]:
		return "not the first fatbin of the file, which alone is read"
	}
	return ""
}

// relocatable reports whether the container holds device code for the linker: the units
// of a program built with -rdc=true. Its cubins are all of one type.
func relocatable(c *elfx.Container) bool {
	for _, e := range c.Entries {
		if e.Kind == elfx.KindELF {
			if c, err := e.Cubin(); err == nil {
				return c.Type == 1
			}
		}
	}
	return false
}

// describeEntry lists an entry, or returns nil when it has none of the kernels asked for.
func (r *lsRun) describeEntry(e *elfx.Entry, loaded bool) *lsEntry {
	out := &lsEntry{
		Number: e.Number, ID: e.ID(), Kind: e.Kind.String(), Arch: e.Target(), Compression: e.Compression.String(),
		Offset: e.Offset, Stored: e.StoredSize, Size: e.Size, Name: e.Name, Options: e.Options, Flags: e.FlagNames(),
		Debug: e.Flags&elfx.FlagDebug != 0, Obfuscated: e.Obfuscated(), Loaded: loaded,
	}
	if e.Kind == elfx.KindUnknown {
		out.Kind += " " + strconv.Itoa(int(e.RawKind))
	}
	if e.Parent != nil {
		out.PartOf = e.Parent.Number
		out.Compression = e.Parent.Compression.String()
	}
	if e.Kind == elfx.KindPTX {
		out.PTXVersion = strconv.Itoa(e.Major) + "." + strconv.Itoa(e.Minor)
	}
	if e.Kind == elfx.KindELF {
		r.describeCubin(e, out)
	} else if e.Err != nil {
		out.Error = r.problem(e.Err)
	}
	if len(r.kernels) > 0 && len(out.Kernels) == 0 {
		return nil
	}
	if r.short {
		out.Kernels = nil
	}
	r.count(e, out)
	e.Done()
	return out
}

// A contentSum tells the contents of cubins apart.
type contentSum struct {
	size int
	sums [2]uint64
}

// A contentHash makes contentSums: two hashes of 64 bits, each with a key of this run that
// nobody who makes files can know.
type contentHash [2]maphash.Seed

func newContentHash() contentHash { return contentHash{maphash.MakeSeed(), maphash.MakeSeed()} }

func (h *contentHash) of(data []byte) contentSum {
	return contentSum{len(data), [2]uint64{maphash.Bytes(h[0], data), maphash.Bytes(h[1], data)}}
}

// An lsCubin is what a cubin itself says.
type lsCubin struct {
	arch, toolkit        string
	abi                  int
	relocatable, mercury bool
	disagrees            bool
	kernels              []*lsKernel
	sum                  contentSum // zero but for the size where no other cubin has that size
	err                  error
}

// readCubins reads the cubins of a file that are asked for, several at once. In a file of
// its own, neither in a zip file nor in a directory, only what has the size of something
// else can have its content, and the rest need not be read as a whole.
func (r *lsRun) readCubins(f *elfx.File, selected map[*elfx.Entry]bool) map[*elfx.Entry]*lsCubin {
	entries := r.cubins(f, selected)
	list := make([]*lsCubin, len(entries))
	sizes := make(map[int64]int, len(entries))
	for _, e := range entries {
		sizes[e.Size]++
	}
	var bufs sync.Pool // of *[]byte, for what is decompressed
	inParallel(len(entries), r.jobs, func(i int) {
		buf, _ := bufs.Get().(*[]byte)
		if buf == nil {
			buf = new([]byte)
		}
		list[i] = r.readCubin(entries[i], buf, f.Name != r.only || sizes[entries[i].Size] > 1)
		entries[i].Done()
		bufs.Put(buf)
	})
	out := make(map[*elfx.Entry]*lsCubin, len(entries))
	for i, e := range entries {
		out[e] = list[i]
	}
	return out
}

// readCubin reads a cubin, and sums its content if others may have the same.
func (r *lsRun) readCubin(e *elfx.Entry, buf *[]byte, others bool) *lsCubin {
	c, err := e.CubinIn(*buf)
	if err != nil {
		return &lsCubin{err: err}
	}
	if !e.Shared() {
		*buf = c.Data()
	}
	out := &lsCubin{
		arch: c.Arch, toolkit: c.Toolkit, abi: int(c.ABI), relocatable: c.Type == 1, mercury: c.HasMercury(),
		disagrees: !e.Fits(c),
		sum:       contentSum{size: len(c.Data())},
	}
	if others || int64(out.sum.size) != e.Size {
		out.sum = r.contents.of(c.Data())
	}
	for _, k := range r.kernelsOf(c, false) {
		lk := &lsKernel{
			Name: k.Name, Entry: k.Entry, Offset: k.Offset, Size: k.Size, Instructions: k.Instructions(),
			Registers: k.Regs, Shared: k.Shared, Local: k.Local, Stack: k.Stack, Params: k.Params, Barriers: k.Barriers,
		}
		if !r.short && (r.json || !r.mangled) {
			if d := k.Demangled(); d != k.Name {
				lk.Demangled = d
			}
		}
		out.kernels = append(out.kernels, lk)
	}
	return out
}

// describeCubin adds what the cubin itself says.
func (r *lsRun) describeCubin(e *elfx.Entry, out *lsEntry) {
	c := r.read[e]
	if c.err != nil {
		out.Error = r.problem(c.err)
		return
	}
	out.CubinArch, out.Toolkit, out.ABI = c.arch, c.toolkit, c.abi
	out.Relocatable, out.Mercury, out.Disagree, out.Kernels = c.relocatable, c.mercury, c.disagrees, c.kernels
	for _, k := range c.kernels {
		if k.Entry {
			r.totals.Kernels++
		} else {
			r.totals.Functions++
		}
	}
	r.markDuplicate(e, c.sum, out)
}

// markDuplicate finds out whether an earlier cubin has the same content.
func (r *lsRun) markDuplicate(e *elfx.Entry, sum contentSum, out *lsEntry) {
	if id, ok := r.seen[sum]; ok {
		out.DuplicateOf = id
		r.totals.Duplicates++
		return
	}
	r.seen[sum] = e.ID()
}

func (r *lsRun) count(e *elfx.Entry, out *lsEntry) {
	r.totals.Entries++
	r.totals.Kinds[e.Kind.String()]++
	if e.Parent == nil {
		r.totals.Stored += e.StoredSize
	}
	if e.Kind != elfx.KindConcat {
		r.totals.Size += e.Size
	}
}
