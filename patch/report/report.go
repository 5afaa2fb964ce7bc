package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/patch/check"
	"github.com/cupatch/cupatch/patch/code"
	"github.com/cupatch/cupatch/patch/edit"
	"github.com/cupatch/cupatch/patch/rule"
)

// Format names the report's schema, docs/report.schema.json, and its version. In that of
// version 1, which is read too, every edit has the name of its kernel.
const (
	Format    = "cupatch-report-2"
	oldFormat = "cupatch-report-1"
)

// A Report records edits so that they can be replayed, undone and verified. The same
// input gives the same bytes: it holds no times and no machine names.
type Report struct {
	Format   string    `json:"format"`
	Tool     string    `json:"tool,omitempty"`
	Relative bool      `json:"relative,omitempty"` // applying it to its own output changes more
	Rules    []Rule    `json:"rules,omitempty"`
	Files    []File    `json:"files"`
	Summary  *Summary  `json:"summary,omitempty"`
	Warnings []Warning `json:"warnings,omitempty"`
}

// A Rule is a rule and what it did.
type Rule struct {
	Name     string `json:"name"`
	Rule     string `json:"rule"`
	Relative bool   `json:"relative,omitempty"`
	Matches  int    `json:"matches"`
	Edits    int    `json:"edits"`
	Refused  int    `json:"refused,omitempty"`
}

// A File has the edits of one file.
type File struct {
	File    string   `json:"file,omitempty"`
	Input   *Hash    `json:"input,omitempty"`
	Output  *Hash    `json:"output,omitempty"`
	Kernels []Kernel `json:"kernels,omitempty"`
	Edits   []Edit   `json:"edits"`

	made [][]edit.Edit // are written after Edits
}

// Add adds edits to a report that will be written. They are not copied.
func (f *File) Add(edits []edit.Edit) { f.made = append(f.made, edits) }

// A Hash identifies a file.
type Hash struct {
	SHA256 string `json:"sha256"`
	Size   int64  `json:"size"`
}

// A Kernel identifies a kernel that edits touch.
type Kernel struct {
	Entry  string `json:"entry,omitempty"`
	Arch   string `json:"arch"`
	Kernel Name   `json:"kernel"`
	Offset uint64 `json:"offset"` // in the cubin
	Size   int    `json:"size"`
	Input  string `json:"code_sha256"`        // of its code before
	Output string `json:"output_code_sha256"` // and after
}

// A Edit is an edit. Kernel or in, pc and old are needed; of new and new_text one is.
type Edit struct {
	// In is the number of the kernel in File.Kernels, from 0 on. It stands for Entry and
	// Kernel, which a report that was read has in any case.
	In         *int    `json:"in,omitempty"`
	Entry      string  `json:"entry,omitempty"` // number in the container
	Kernel     Name    `json:"kernel,omitempty"`
	PC         uint64  `json:"pc"`
	Offset     *uint64 `json:"offset,omitempty"`      // in the cubin
	FileOffset *int64  `json:"file_offset,omitempty"` // absent: the cubin is compressed
	Old        *Word   `json:"old"`
	New        *Word   `json:"new,omitempty"`
	OldText    string  `json:"old_text,omitempty"`
	NewText    string  `json:"new_text,omitempty"`
	OldControl string  `json:"old_control,omitempty"`
	NewControl string  `json:"new_control,omitempty"`
	Rule       string  `json:"rule,omitempty"`
}

// A Word is an instruction: the low and the high 64 bits, in hex.
type Word isa.Word

// MarshalJSON writes ["0xLO", "0xHI"].
func (w Word) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, `["0x%016x","0x%016x"]`, w.Lo, w.Hi), nil
}

// UnmarshalJSON reads what MarshalJSON writes.
func (w *Word) UnmarshalJSON(b []byte) error {
	var s []string
	if err := json.Unmarshal(b, &s); err != nil || len(s) != 2 {
		return fmt.Errorf(`word %s: want ["0xLO", "0xHI"]`, b)
	}
	for i, p := range []*uint64{&w.Lo, &w.Hi} {
		v, err := strconv.ParseUint(s[i], 0, 64)
		if err != nil {
			return fmt.Errorf(`word %s: %q is no 64-bit number`, b, s[i])
		}
		*p = v
	}
	return nil
}

// A Summary is a Summary's totals.
type Summary struct {
	Kernels int `json:"kernels"`
	Seen    int `json:"seen"`
	Matched int `json:"matched"`
	Changed int `json:"changed"`
	Same    int `json:"already_so"`
	Refused int `json:"refused"`
}

// A Warning is a Warning.
type Warning struct {
	Name    string `json:"name"`
	File    string `json:"file,omitempty"`
	Entry   string `json:"entry,omitempty"`
	Kernel  Name   `json:"kernel,omitempty"`
	PC      uint64 `json:"pc"`
	Message string `json:"message"`
}

// HashOf returns the identity of a file's bytes.
func HashOf(data []byte) *Hash {
	return &Hash{SHA256: code.Hash(data), Size: int64(len(data))}
}

// New starts a report of what rules do; tool names the program and its version.
func New(tool string, rules []*rule.Rule, sum *rule.Summary) *Report {
	r := &Report{Format: Format, Tool: tool, Relative: sum.Relative(), Files: []File{}}
	for _, x := range rules {
		rr := Rule{Name: x.Label(), Rule: x.Source()}
		for _, c := range sum.Rules {
			if c.Rule == rr.Name {
				rr.Relative, rr.Matches, rr.Edits, rr.Refused = c.Relative, c.Matches, c.Edits, c.Refused
			}
		}
		r.Rules = append(r.Rules, rr)
	}
	r.Summary = &Summary{sum.Kernels, sum.Seen, sum.Matched, sum.Changed, sum.Same, sum.Refused}
	return r
}

// AddWarnings records warnings about a file.
func (r *Report) AddWarnings(file string, ws []check.Warning) {
	for _, w := range ws {
		r.Warnings = append(r.Warnings, Warning{Name: w.Name, File: file, Entry: w.Entry, Kernel: Name(w.Kernel), PC: w.PC, Message: w.Msg})
	}
}

// NewEdit returns an edit as a report writes it.
func NewEdit(e edit.Edit) Edit {
	off := e.Offset
	r := Edit{
		Entry: e.Entry, Kernel: Name(e.Kernel), PC: e.PC, Offset: &off, Old: (*Word)(&e.Old), New: (*Word)(&e.New),
		OldText: e.OldText, NewText: e.NewText, OldControl: isa.ControlOf(e.Old).String(), NewControl: isa.ControlOf(e.New).String(),
		Rule: e.Rule,
	}
	if e.FileOffset >= 0 {
		fo := e.FileOffset
		r.FileOffset = &fo
	}
	return r
}

// Marshal returns the report as JSON, as WriteTo writes it.
func (r *Report) Marshal() ([]byte, error) {
	var b bytes.Buffer
	_, err := r.WriteTo(&b)
	return b.Bytes(), err
}

// WriteTo writes the report as JSON, with one edit, kernel, rule or warning a line. It
// keeps none of it in memory.
func (r *Report) WriteTo(to io.Writer) (int64, error) {
	w := &writer{to: to, named: r.Format == oldFormat}
	w.enc = json.NewEncoder(&w.b)
	w.enc.SetEscapeHTML(false)
	w.object(func() {
		w.value("format", r.Format)
		if r.Tool != "" {
			w.value("tool", r.Tool)
		}
		if r.Relative {
			w.value("relative", true)
		}
		writeList(w, "rules", r.Rules)
		w.list("files", len(r.Files), func(i int) { w.file(&r.Files[i]) })
		if r.Summary != nil {
			w.value("summary", r.Summary)
		}
		writeList(w, "warnings", r.Warnings)
	})
	w.b.WriteByte('\n')
	w.flush()
	return w.size, w.err
}

// A writer writes JSON with a line for each element of a list.
type writer struct {
	to    io.Writer
	size  int64
	enc   *json.Encoder // to b
	b     bytes.Buffer
	comma bool // something stands before in this object
	named bool // each edit has the name of its kernel
	err   error
}

// writerBlock is how much JSON is written at a time, in bytes.
const writerBlock = 64 << 10

func (w *writer) flush() {
	if w.err == nil {
		n, err := w.to.Write(w.b.Bytes())
		w.size, w.err = w.size+int64(n), err
	}
	w.b.Reset()
}

func (w *writer) marshal(v any) {
	if err := w.enc.Encode(v); err != nil {
		w.err = err
		return
	}
	w.b.Truncate(w.b.Len() - 1) // Encode ends with a newline
	if w.b.Len() >= writerBlock {
		w.flush()
	}
}

func (w *writer) object(fill func()) {
	w.b.WriteByte('{')
	w.comma = false
	fill()
	w.b.WriteString("}")
	w.comma = true
}

func (w *writer) key(name string) {
	if w.comma {
		w.b.WriteByte(',')
	}
	w.comma = true
	w.b.WriteString("\n\"" + name + "\": ")
}

func (w *writer) value(name string, v any) {
	w.key(name)
	w.marshal(v)
}

// list writes an array; an empty one too.
func (w *writer) list(name string, n int, element func(i int)) {
	w.key(name)
	w.b.WriteByte('[')
	for i := range n {
		w.element(i)
		element(i)
	}
	w.b.WriteByte(']')
	w.comma = true
}

// element begins the line of element i of a list.
func (w *writer) element(i int) {
	if i > 0 {
		w.b.WriteByte(',')
	}
	w.b.WriteByte('\n')
}

// writeList writes an array unless it is empty.
func writeList[T any](w *writer, name string, list []T) {
	if len(list) > 0 {
		w.list(name, len(list), func(i int) { w.marshal(list[i]) })
	}
}

func (w *writer) file(f *File) {
	w.object(func() {
		if f.File != "" {
			w.value("file", f.File)
		}
		if f.Input != nil {
			w.value("input", f.Input)
		}
		if f.Output != nil {
			w.value("output", f.Output)
		}
		writeList(w, "kernels", f.Kernels)
		w.edits(f)
	})
}

// edits writes the edits of a file, which name their kernels by their numbers.
func (w *writer) edits(f *File) {
	type place struct{ entry, kernel string }
	numbers := map[place]*int{}
	for i, k := range f.Kernels {
		if !w.named {
			numbers[place{k.Entry, string(k.Kernel)}] = &i
		}
	}
	w.key("edits")
	w.b.WriteByte('[')
	n := 0
	write := func(e Edit) {
		if e.In = numbers[place{e.Entry, string(e.Kernel)}]; e.In != nil {
			e.Entry, e.Kernel = "", ""
		}
		w.element(n)
		w.marshal(&e)
		n++
	}
	for _, e := range f.Edits {
		write(e)
	}
	for _, list := range f.made {
		for i := range list {
			write(NewEdit(list[i]))
		}
	}
	w.b.WriteByte(']')
	w.comma = true
}
