package diff

import (
	"encoding/json"
	"io"
	"strconv"
	"strings"

	"github.com/cupatch/cupatch/isa"
)

// JSONFormat names the form of the JSON; docs/diff.schema.json describes it. The number
// changes when a reader of the old form would be misled.
const JSONFormat = "cupatch-diff-1"

type jsonKernel struct {
	Arch         string           `json:"arch"`
	Name         string           `json:"name"`
	NameB        string           `json:"name_b,omitempty"` // where it differs
	EntryA       int              `json:"entry_a"`
	EntryB       int              `json:"entry_b"`
	PairedBy     string           `json:"paired_by"`
	Similarity   float64          `json:"similarity,omitempty"`
	Class        string           `json:"class"`
	Kinds        []string         `json:"kinds"`
	Instructions [2]int           `json:"instructions"`
	Unknown      [2]int           `json:"unknown"`
	Counts       map[string]int   `json:"counts,omitempty"`
	Deleted      int              `json:"deleted"`
	Inserted     int              `json:"inserted"`
	Moved        int              `json:"moved"`
	Resources    []Change         `json:"resources,omitempty"`
	Data         []Change         `json:"data,omitempty"`
	Loader       []Change         `json:"loader,omitempty"`
	Relocations  []Change         `json:"relocations,omitempty"`
	Modifiers    []ModifierChange `json:"modifiers,omitempty"`
	Opcodes      []OpcodeDelta    `json:"opcodes,omitempty"`
	// Then come the changes; see appendOps.
}

type jsonNote struct {
	Kind  string `json:"kind"`
	Where string `json:"where,omitempty"`
	What  string `json:"what"`
	Text  string `json:"text"`
}

type jsonEnd struct {
	A         Side           `json:"a"`
	B         Side           `json:"b"`
	Counting  []string       `json:"counting"` // the kinds that count
	Different bool           `json:"different"`
	Verdict   string         `json:"verdict"`
	SameBytes bool           `json:"same_bytes"`
	Kinds     []string       `json:"kinds"` // that were found
	Compared  int            `json:"compared"`
	Classes   map[string]int `json:"classes"`
	OnlyA     []KernelRef    `json:"only_a"`
	OnlyB     []KernelRef    `json:"only_b"`
	Notes     []jsonNote     `json:"notes"`
	Errors    []string       `json:"errors"`
}

// appendKernelJSON appends the JSON form of a pair of kernels to dst.
func appendKernelJSON(dst []byte, k *KernelDiff) ([]byte, error) {
	j := &jsonKernel{
		Arch: k.Arch, Name: k.NameA, EntryA: k.EntryA, EntryB: k.EntryB, PairedBy: k.PairedBy.String(), Similarity: k.Similarity,
		Class: k.Class.String(), Kinds: k.Kinds.nonNil(), Instructions: k.Instructions, Unknown: k.Unknown, Counts: k.Counts,
		Deleted: k.Deleted, Inserted: k.Inserted, Moved: k.Moved, Resources: k.Resources, Data: k.Data, Loader: k.Loader, Relocations: k.Relocs,
		Modifiers: k.Modifiers, Opcodes: k.Opcodes,
	}
	if k.NameA != k.NameB {
		j.NameB = k.NameB
	}
	b, err := json.Marshal(j)
	if err != nil {
		return dst, err
	}
	dst = append(dst, b...)
	if len(k.Ops) == 0 {
		return dst, nil
	}
	dst = appendOps(append(dst[:len(dst)-1], `,"changes":[`...), k)
	return append(dst, "]}"...), nil
}

func (k Kinds) nonNil() []string { return append([]string{}, k.List()...) }

// appendOps appends the differences of k, separated by commas. There may be as many as
// instructions, hence no json.Marshal:
//
//	{"op":"change","kinds":["control"],"a":{…},"b":{…},"fields":[{"kind":…,"name":…,"a":…,"b":…}]}
func appendOps(dst []byte, k *KernelDiff) []byte {
	var fields []FieldChange
	for i, o := range k.Ops {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(append(append(dst, `{"op":"`...), o.Kind.String()...), '"')
		if o.Kinds != 0 {
			dst = append(append(append(dst, `,"kinds":["`...), strings.Join(o.Kinds.List(), `","`)...), `"]`...)
		}
		if o.A >= 0 {
			dst = k.A.appendJSON(append(dst, `,"a":`...), int(o.A))
		}
		if o.B >= 0 {
			dst = k.B.appendJSON(append(dst, `,"b":`...), int(o.B))
		}
		fields = k.appendFields(fields[:0], o)
		for i, f := range fields {
			sep := ","
			if i == 0 {
				sep = `,"fields":[`
			}
			dst = append(dst, sep...)
			dst = appendString(append(dst, `{"kind":`...), f.Kind.String())
			dst = appendString(append(dst, `,"name":`...), f.Name)
			dst = appendString(append(dst, `,"a":`...), f.A)
			dst = appendString(append(dst, `,"b":`...), f.B)
			dst = append(dst, '}')
		}
		if len(fields) > 0 {
			dst = append(dst, ']')
		}
		dst = append(dst, '}')
	}
	return dst
}

// appendJSON appends instruction i: {"pc":…,"word":["0xLO","0xHI"],"control":"[…]","text":"…"}.
func (c *Code) appendJSON(dst []byte, i int) []byte {
	w, pc := c.Word(i), c.PC(i)
	dst = strconv.AppendUint(append(dst, `{"pc":`...), pc, 10)
	dst = isa.AppendHalf(append(dst, `,"word":["0x`...), w.Lo)
	dst = isa.AppendHalf(append(dst, `","0x`...), w.Hi)
	dst = isa.ControlOf(w).Append(append(dst, `"],"control":"`...))
	var text [lineRoom]byte
	return append(appendString(append(dst, `","text":`...), c.appendText(text[:0], w, pc)), '}')
}

// appendString appends s as a JSON string.
func appendString[T string | []byte](dst []byte, s T) []byte {
	for i := range len(s) {
		if x := s[i]; x < ' ' || x > '~' || x == '"' || x == '\\' {
			b, _ := json.Marshal(string(s)) // a string always marshals
			return append(dst, b...)
		}
	}
	return append(append(append(dst, '"'), s...), '"')
}

// A JSONWriter writes a result as JSON while the comparison runs: its Kernel method is
// for [Options.Visit].
type JSONWriter struct {
	w   io.Writer
	n   int
	buf []byte
	// All writes the kernels in which no difference was found, too.
	All bool
}

// NewJSONWriter returns a JSONWriter that writes to w.
func NewJSONWriter(w io.Writer) *JSONWriter { return &JSONWriter{w: w} }

// Kernel writes one pair of kernels.
func (j *JSONWriter) Kernel(k *KernelDiff) error {
	if k.Kinds == 0 && !j.All {
		return nil
	}
	sep := ",\n"
	if j.n++; j.n == 1 {
		sep = j.head()
	}
	var err error
	if j.buf, err = appendKernelJSON(append(j.buf[:0], sep...), k); err != nil {
		return err
	}
	_, err = j.w.Write(j.buf)
	return err
}

func (j *JSONWriter) head() string { return `{"format":"` + JSONFormat + `","kernels":[` + "\n" }

// End writes the rest.
func (j *JSONWriter) End(r *Result) error {
	head := "\n],"
	if j.n == 0 {
		head = j.head() + "],"
	}
	e := jsonEnd{
		A: r.A, B: r.B, Counting: r.Count.nonNil(), Different: r.Different(), Verdict: r.Verdict(), SameBytes: r.SameBytes,
		Kinds: r.Kinds.nonNil(), Compared: r.Compared, Classes: map[string]int{}, OnlyA: append([]KernelRef{}, r.OnlyA...),
		OnlyB: append([]KernelRef{}, r.OnlyB...), Notes: []jsonNote{}, Errors: []string{},
	}
	for c, n := range r.Classes {
		if n > 0 {
			e.Classes[Class(c).String()] = n
		}
	}
	for _, n := range r.Notes {
		e.Notes = append(e.Notes, jsonNote{n.Kind.String(), n.Where, n.What, n.Text})
	}
	for _, err := range r.Errors {
		e.Errors = append(e.Errors, err.Error())
	}
	b, err := json.Marshal(e)
	if err != nil {
		return err
	}
	_, err = j.w.Write(append(append([]byte(head), b[1:]...), '\n'))
	return err
}
