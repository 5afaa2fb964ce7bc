package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"

	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/patch/check"
	"github.com/cupatch/cupatch/patch/code"
	"github.com/cupatch/cupatch/patch/edit"
	"github.com/cupatch/cupatch/patch/rule"
)

// Format names the report's schema, docs/report.schema.json, and its version.
const Format = "cupatch-report-1"

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
}

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

// A Edit is an edit. Kernel, pc and old are needed; of new and new_text one is.
type Edit struct {
	Entry      string  `json:"entry,omitempty"` // number in the container
	Kernel     Name    `json:"kernel"`
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

// Marshal returns the report as JSON, with one edit, kernel, rule or warning a line.
func (r *Report) Marshal() ([]byte, error) {
	w := &writer{}
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
	return w.b.Bytes(), w.err
}

// A writer writes JSON with a line for each element of a list.
type writer struct {
	b     bytes.Buffer
	comma bool // something stands before in this object
	err   error
}

func (w *writer) marshal(v any) {
	enc := json.NewEncoder(&w.b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		w.err = err
		return
	}
	w.b.Truncate(w.b.Len() - 1) // Encode ends with a newline
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
		if i > 0 {
			w.b.WriteByte(',')
		}
		w.b.WriteByte('\n')
		element(i)
	}
	w.b.WriteByte(']')
	w.comma = true
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
		w.list("edits", len(f.Edits), func(i int) { w.marshal(&f.Edits[i]) })
	})
}

// ErrReport matches errors about a report that makes no sense.
var ErrReport = errors.New("bad report")

// Parse reads a report, from cupatch or from any program. Unknown keys are
// refused: a misspelled one must not be overlooked. What a program has to give is format,
// and for each edit kernel, pc, old, and new or new_text.
func Parse(data []byte) (*Report, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, fmt.Errorf("%w: the file is empty", ErrReport)
	}
	var r Report
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&r); err != nil {
		return nil, lineError(data, dec.InputOffset(), err)
	}
	if dec.More() {
		return nil, fmt.Errorf("%w: something follows the report", ErrReport)
	}
	if r.Format != Format {
		return nil, fmt.Errorf("%w: format is %q, this program reads %q", ErrReport, r.Format, Format)
	}
	for _, f := range r.Files {
		for i, e := range f.Edits {
			switch {
			case e.Kernel == "" || e.Old == nil:
				return nil, fmt.Errorf("%w: edit %d of %s: kernel, pc and old are needed", ErrReport, i+1, f.File)
			case e.New == nil && e.NewText == "":
				return nil, fmt.Errorf("%w: edit %d of %s: neither new nor new_text", ErrReport, i+1, f.File)
			case e.PC%isa.WordSize != 0:
				return nil, fmt.Errorf("%w: edit %d of %s: pc %#x is no multiple of %d", ErrReport, i+1, f.File, e.PC, isa.WordSize)
			}
		}
	}
	return &r, nil
}

// jsonKind names what a field of a Go kind takes.
func jsonKind(k reflect.Kind) string {
	switch k {
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "a list"
	case reflect.Struct, reflect.Pointer:
		return "an object"
	}
	return "a whole number of at most 64 bits"
}

// lineError gives a decoding error its line.
func lineError(data []byte, off int64, err error) error {
	var se *json.SyntaxError
	var te *json.UnmarshalTypeError
	switch {
	case errors.As(err, &se):
		off = se.Offset
	case errors.As(err, &te):
		off = te.Offset
		err = fmt.Errorf("%s: %s where %s belongs", te.Field, te.Value, jsonKind(te.Type.Kind()))
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		off = int64(len(data))
		err = errors.New("the report ends too early")
	}
	off = min(off, int64(len(data)))
	line := 1 + bytes.Count(data[:off], []byte("\n"))
	return fmt.Errorf("%w: line %d: %s", ErrReport, line, strings.TrimPrefix(err.Error(), "json: "))
}
