package elfx

import (
	"fmt"
	"io/fs"
	"iter"
	"os"
	"sync"
)

// DefaultMaxEntry is the default of [Options.MaxEntry], 4 GiB.
const DefaultMaxEntry = 4 << 30

// DefaultMaxStream bounds what is read into memory of a pipe, or other file that does not
// say how large it is, unless [Options.MaxEntry] says otherwise: 1 GiB.
const DefaultMaxStream = 1 << 30

// Options are the limits and names for opening a file. The zero value is ready to use.
type Options struct {
	// MaxEntry bounds the decompressed size of one entry, in bytes, and of one member
	// of a zip file; 0 means DefaultMaxEntry.
	MaxEntry int64
}

// A File is what [Open] found in a file: its regions with GPU code, or, for an
// archive, its members, which are Files themselves.
type File struct {
	Name    string
	Kind    FileKind
	Offset  int64 // of this file in the one that was opened: 0, or where a member starts
	Size    int64
	Regions []*Region
	Members []*File
	Err     error // damage to the file's own structure; what was found is still there
	// Info is what the system said of the file when it was opened; nil for data in memory.
	Info fs.FileInfo

	format   *format
	readOnly string // why the file cannot be written; "": it can
	parent   *File
	header   int64  // of a member of an archive: where its header is
	data     []byte // the whole file that was opened; of the root only
	opt      Options
	entries  []*Entry
	release  func() error
	mapped   bool // data is a mapping of a file
	streamed bool // read from a pipe, which has nothing a second time
	unpacked bool // from a zip file: offsets are not those of the user's file

	blobMu   sync.Mutex
	blobOf   *Entry
	blobData []byte
}

// A Region is a stretch of a file that was searched and holds containers: a section
// of a host file, or a whole file.
type Region struct {
	File       *File
	Name       string // of the section; "" for a whole file
	Offset     int64  // in the file that was opened
	Size       int64
	Addr       uint64 // where it is mapped
	Dedicated  bool   // holds nothing but fatbins, by its name or its first bytes
	Containers []*Container
	zeros      int64 // bytes between containers that are zero
	other      int64 // bytes between containers that are not
}

// Open finds the GPU code in the bytes of a file. name is for messages. The File
// keeps data. A file that is damaged gives what could be found, with the damage in
// the Err fields of its parts; [ErrNoCode] says that there was nothing at all.
func Open(name string, data []byte, opt *Options) (*File, error) {
	return open(name, data, opt, false)
}

func open(name string, data []byte, opt *Options, mapped bool) (*File, error) {
	f := &File{Name: name, Size: int64(len(data)), data: data, mapped: mapped}
	if opt != nil {
		f.opt = *opt
	}
	if f.opt.MaxEntry <= 0 {
		f.opt.MaxEntry = DefaultMaxEntry
	}
	f.read()
	for c := range f.containers() {
		for _, e := range c.Entries {
			f.entries = append(f.entries, e)
			e.Number = len(f.entries)
		}
	}
	f.disarm()
	if len(f.entries) == 0 && f.Damage() == nil && !f.hasContainers() {
		return nil, fmt.Errorf("%s: %w", name, ErrNoCode)
	}
	return f, nil
}

// ReadOnly reports why the file cannot be written: it is a member of a zip file, or
// signed. "" means that it can.
func (f *File) ReadOnly() string {
	r := f.root()
	if r.unpacked {
		return "a member of a zip file is read only"
	}
	return r.readOnly
}

// Streamed reports whether the file was read from a pipe: it cannot be opened again.
func (f *File) Streamed() bool { return f.root().streamed }

// Close releases the file. Nothing that came from it may be used afterwards.
func (f *File) Close() error {
	if f.release == nil {
		return nil
	}
	r := f.release
	f.release, f.data = nil, nil
	return r()
}

// drop gives back the memory of a mapped file's bytes, which remain readable.
func (f *File) drop(pos, end int64) {
	if r := f.root(); r.mapped {
		page := int64(os.Getpagesize())
		if pos = alignUp(pos, page); pos < end {
			dropPages(r.data[pos:end])
		}
	}
}

// Entries returns every entry of the file and its members in order of number.
func (f *File) Entries() []*Entry { return f.entries }

// Data returns the bytes that the file was opened with.
func (f *File) Data() []byte { return f.root().data }

func (f *File) root() *File {
	for f.parent != nil {
		f = f.parent
	}
	return f
}

// bytes returns the file's own bytes.
func (f *File) bytes() []byte { return f.root().data[f.Offset : f.Offset+f.Size] }

// All returns the file itself and its members, depth first.
func (f *File) All() iter.Seq[*File] {
	return func(yield func(*File) bool) { f.walk(yield) }
}

func (f *File) walk(yield func(*File) bool) bool {
	if !yield(f) {
		return false
	}
	for _, m := range f.Members {
		if !m.walk(yield) {
			return false
		}
	}
	return true
}

// containers returns every container of the file and its members in order.
func (f *File) containers() iter.Seq[*Container] {
	return func(yield func(*Container) bool) {
		for m := range f.All() {
			for _, r := range m.Regions {
				for _, c := range r.Containers {
					if !yield(c) {
						return
					}
				}
			}
		}
	}
}

func (f *File) hasContainers() bool {
	for range f.containers() {
		return true
	}
	return false
}

// Damage returns the first damage to the structure of the file, its members or its
// containers. Damage to single entries is in their Err fields.
func (f *File) Damage() error {
	for m := range f.All() {
		if m.Err != nil {
			return fmt.Errorf("%s: %w", m.Name, m.Err)
		}
		for _, r := range m.Regions {
			for _, c := range r.Containers {
				if c.Err != nil {
					return fmt.Errorf("%s: %w", m.Name, c.Err)
				}
			}
		}
	}
	return nil
}

// read decides from the content what the file is and fills it in.
func (f *File) read() {
	f.Kind = FileUnknown
	f.format = formatOf(f.bytes())
	f.format.open(f)
}

// scanAll searches the whole file, for want of a structure to go by.
func (f *File) scanAll() {
	f.Regions = nil
	r := f.region("", 0, f.Size, 0)
	f.scan(r)
	if len(r.Containers) == 0 {
		f.Regions = nil
	}
}

// region adds a region; off is from the start of the file itself.
func (f *File) region(name string, off, size int64, addr uint64) *Region {
	r := &Region{File: f, Name: name, Offset: f.Offset + off, Size: size, Addr: addr}
	f.Regions = append(f.Regions, r)
	return r
}

// blob returns the decompressed payload of a concatenation. The last one is kept,
// since its parts are read one after another.
func (f *File) blob(e *Entry) ([]byte, error) {
	f.blobMu.Lock()
	defer f.blobMu.Unlock()
	if f.blobOf == e {
		return f.blobData, nil
	}
	f.blobOf, f.blobData = nil, nil
	data, err := e.decode(nil)
	if err != nil {
		return nil, err
	}
	f.blobOf, f.blobData = e, data
	return data, nil
}
