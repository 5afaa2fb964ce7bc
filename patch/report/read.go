package report

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/cupatch/cupatch/isa"
)

// ErrReport matches errors about a report that makes no sense.
var ErrReport = errors.New("bad report")

// Parse reads a report, from cupatch or from any program. Unknown keys are
// refused: a misspelled one must not be overlooked. What a program has to give is format,
// and for each edit kernel or in, pc, old, and new or new_text.
func Parse(data []byte) (*Report, error) { return Read(bytes.NewReader(data)) }

// Read is Parse for a report that need not be in memory as a whole. from is at its
// beginning; it is read once more to say where a mistake is.
func Read(from io.ReadSeeker) (*Report, error) {
	r := &reader{dec: json.NewDecoder(bufio.NewReaderSize(from, 1<<16)), known: map[string]string{}}
	r.dec.DisallowUnknownFields()
	rep := &Report{}
	err := r.object(map[string]func() error{
		"format": r.into(&rep.Format), "tool": r.into(&rep.Tool), "relative": r.into(&rep.Relative), "summary": r.into(&rep.Summary),
		"rules":    func() error { return readList(r, "rules", &rep.Rules, r.decode) },
		"warnings": func() error { return readList(r, "warnings", &rep.Warnings, r.decode) },
		"files":    func() error { return readList(r, "files", &rep.Files, func(f any) error { return r.file(f.(*File)) }) },
	})
	switch {
	case err == io.EOF && r.dec.InputOffset() == 0:
		return nil, fmt.Errorf("%w: the file is empty", ErrReport)
	case err != nil:
		return nil, r.lineError(from, err)
	}
	if _, err := r.dec.Token(); err != io.EOF {
		return nil, fmt.Errorf("%w: something follows the report", ErrReport)
	}
	return rep, rep.check()
}

// check sees that a report that was read says what it has to.
func (r *Report) check() error {
	if r.Format != Format && r.Format != oldFormat {
		return fmt.Errorf("%w: format is %q, this program reads %q and %q", ErrReport, r.Format, oldFormat, Format)
	}
	for _, f := range r.Files {
		for i := range f.Edits {
			e := &f.Edits[i]
			err := e.name(f.Kernels)
			switch {
			case err != nil:
			case e.Kernel == "" || e.Old == nil:
				err = errors.New("kernel, pc and old are needed")
			case e.New == nil && e.NewText == "":
				err = errors.New("neither new nor new_text")
			case e.PC%isa.WordSize != 0:
				err = fmt.Errorf("pc %#x is no multiple of %d", e.PC, isa.WordSize)
			}
			if err != nil {
				return fmt.Errorf("%w: edit %d of %s: %w", ErrReport, i+1, f.File, err)
			}
		}
	}
	return nil
}

// name gives an edit the kernel that it names by its number.
func (e *Edit) name(kernels []Kernel) error {
	if e.In == nil {
		return nil
	}
	if *e.In < 0 || *e.In >= len(kernels) {
		return fmt.Errorf("in is %d, and the report has %d kernels of the file", *e.In, len(kernels))
	}
	if e.Kernel != "" || e.Entry != "" {
		return errors.New("in stands for kernel and entry, and does not go with them")
	}
	k := &kernels[*e.In]
	e.In, e.Entry, e.Kernel = nil, k.Entry, k.Kernel
	return nil
}

// A reader reads a report value by value.
type reader struct {
	dec   *json.Decoder
	path  []string          // keys around the value that is being read
	known map[string]string // texts of edits, each of which is kept once
	// Memory for what edits point to.
	words   []Word
	numbers []int
	offsets []uint64
	places  []int64
}

// object reads an object of which fields reads the values.
func (r *reader) object(fields map[string]func() error) error {
	if ok, err := r.open('{', "an object"); err != nil || !ok {
		return err
	}
	for r.dec.More() {
		t, err := r.dec.Token()
		if err != nil {
			return err
		}
		key, _ := t.(string)
		read := fields[strings.ToLower(key)]
		if read == nil {
			return fmt.Errorf("unknown field %q", key)
		}
		r.path = append(r.path, key)
		if err := read(); err != nil {
			return err
		}
		r.path = r.path[:len(r.path)-1]
	}
	_, err := r.dec.Token()
	return err
}

// open takes the beginning of an object or a list; it reports false for null.
func (r *reader) open(want json.Delim, what string) (bool, error) {
	t, err := r.dec.Token()
	switch {
	case err != nil:
		return false, err
	case t == want:
		return true, nil
	case t == nil:
		return false, nil
	}
	return false, fmt.Errorf("%s%s where %s belongs", r.prefix(), kindOfToken(t), what)
}

// prefix names the value that is being read.
func (r *reader) prefix() string {
	if len(r.path) == 0 {
		return ""
	}
	return strings.Join(r.path, ".") + ": "
}

// kindOfToken names what a token begins.
func kindOfToken(t json.Token) string {
	switch t := t.(type) {
	case json.Delim:
		if t == '{' {
			return "object"
		}
		return "array"
	case string:
		return "string"
	case bool:
		return "bool"
	}
	return "number"
}

// into returns what reads a value into v.
func (r *reader) into(v any) func() error { return func() error { return r.decode(v) } }

// readList reads a list, the elements one by one.
func readList[T any](r *reader, name string, list *[]T, read func(v any) error) error {
	*list = nil
	if ok, err := r.open('[', "a list"); err != nil || !ok {
		return err
	}
	*list = []T{}
	var x T
	for r.dec.More() {
		x = *new(T)
		if err := read(&x); err != nil {
			return err
		}
		*list = append(*list, x)
	}
	_, err := r.dec.Token()
	return err
}

func (r *reader) file(f *File) error {
	return r.object(map[string]func() error{
		"file": r.into(&f.File), "input": r.into(&f.Input), "output": r.into(&f.Output),
		"kernels": func() error { return readList(r, "kernels", &f.Kernels, r.decode) },
		"edits":   func() error { return readList(r, "edits", &f.Edits, func(e any) error { return r.edit(e.(*Edit)) }) },
	})
}

// edit reads an edit, and keeps what it points to in memory of many.
func (r *reader) edit(e *Edit) error {
	if err := r.decode(e); err != nil {
		return err
	}
	e.In, e.Offset, e.FileOffset = kept(&r.numbers, e.In), kept(&r.offsets, e.Offset), kept(&r.places, e.FileOffset)
	e.Old, e.New = kept(&r.words, e.Old), kept(&r.words, e.New)
	if len(r.known) > maxKnown {
		clear(r.known)
	}
	for _, s := range [...]*string{&e.Entry, (*string)(&e.Kernel), &e.OldText, &e.NewText, &e.OldControl, &e.NewControl, &e.Rule} {
		if same, ok := r.known[*s]; ok {
			*s = same
		} else {
			r.known[*s] = *s
		}
	}
	return nil
}

// maxKnown is how many texts are looked at for one that is the same.
const maxKnown = 1 << 16

// kept returns a copy of x in the memory at block, of which there is more when it is full.
func kept[T any](block *[]T, x *T) *T {
	if x == nil {
		return nil
	}
	if len(*block) == cap(*block) {
		*block = make([]T, 0, 4096)
	}
	*block = append(*block, *x)
	return &(*block)[len(*block)-1]
}

// A valueError is an error of a value, with its place.
type valueError struct {
	off int64
	err error
}

func (e *valueError) Error() string { return e.err.Error() }
func (e *valueError) Unwrap() error { return e.err }

// decode reads a value into v.
func (r *reader) decode(v any) error {
	start := r.dec.InputOffset()
	err := r.dec.Decode(v)
	var se *json.SyntaxError
	var te *json.UnmarshalTypeError
	switch {
	case errors.As(err, &te):
		if te.Field == "" {
			te.Field = strings.Join(r.path, ".")
		} else {
			te.Field = strings.Join(append(slices.Clone(r.path), te.Field), ".")
		}
		return &valueError{start + 1 + te.Offset, err}
	case errors.As(err, &se):
		rest, _ := io.ReadAll(r.dec.Buffered())
		value := bytes.TrimLeft(rest, " \t\r\n,:")
		if json.Unmarshal(value, new(any)) != nil {
			errors.As(json.Unmarshal(value, new(any)), &se)
		}
		return &valueError{start + int64(len(rest)-len(value)) + se.Offset, se}
	case err != nil && err != io.EOF && !errors.Is(err, io.ErrUnexpectedEOF):
		return &valueError{start + 1, err}
	}
	return err
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

// lineError gives an error its line.
func (r *reader) lineError(from io.ReadSeeker, err error) error {
	off := r.dec.InputOffset()
	var ve *valueError
	if errors.As(err, &ve) {
		off = ve.off
	}
	var te *json.UnmarshalTypeError
	switch {
	case errors.As(err, &te):
		err = fmt.Errorf("%s: %s where %s belongs", te.Field, te.Value, jsonKind(te.Type.Kind()))
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		off = 1 << 62
		err = errors.New("the report ends too early")
	}
	line := 1
	if _, serr := from.Seek(0, io.SeekStart); serr == nil {
		line += newlines(io.LimitReader(from, off))
	}
	return fmt.Errorf("%w: line %d: %s", ErrReport, line, strings.TrimPrefix(err.Error(), "json: "))
}

// newlines counts the newlines in what is read.
func newlines(r io.Reader) int {
	n := 0
	buf := make([]byte, 1<<16)
	for {
		k, err := r.Read(buf)
		n += bytes.Count(buf[:k], []byte("\n"))
		if err != nil {
			return n
		}
	}
}
