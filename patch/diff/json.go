package diff

import (
	"encoding/json"
	"io"

	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/patch"
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
	Relocations  []Change         `json:"relocations,omitempty"`
	Modifiers    []ModifierChange `json:"modifiers,omitempty"`
	Opcodes      []OpcodeDelta    `json:"opcodes,omitempty"`
	Changes      []jsonOp         `json:"changes,omitempty"`
}

type jsonOp struct {
	Op     string      `json:"op"`
	Kinds  []string    `json:"kinds,omitempty"`
	A      *jsonInst   `json:"a,omitempty"`
	B      *jsonInst   `json:"b,omitempty"`
	Fields []jsonField `json:"fields,omitempty"`
}

type jsonInst struct {
	PC      uint64           `json:"pc"`
	Word    patch.ReportWord `json:"word"`
	Control string           `json:"control"`
	Text    string           `json:"text"`
}

type jsonField struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	A    string `json:"a"`
	B    string `json:"b"`
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

// kernelJSON returns the JSON form of a pair of kernels.
func kernelJSON(k *KernelDiff) *jsonKernel {
	j := &jsonKernel{
		Arch: k.Arch, Name: k.NameA, EntryA: k.EntryA, EntryB: k.EntryB, PairedBy: k.PairedBy.String(), Similarity: k.Similarity,
		Class: k.Class.String(), Kinds: k.Kinds.nonNil(), Instructions: k.Instructions, Unknown: k.Unknown, Counts: k.Counts,
		Deleted: k.Deleted, Inserted: k.Inserted, Moved: k.Moved, Resources: k.Resources, Data: k.Data, Relocations: k.Relocs,
		Modifiers: k.Modifiers, Opcodes: k.Opcodes,
	}
	if k.NameA != k.NameB {
		j.NameB = k.NameB
	}
	for _, o := range k.Ops {
		op := jsonOp{Op: o.Kind.String(), Kinds: o.Kinds.List()}
		if o.A >= 0 {
			op.A = k.A.json(int(o.A))
		}
		if o.B >= 0 {
			op.B = k.B.json(int(o.B))
		}
		for _, f := range k.Fields(o) {
			op.Fields = append(op.Fields, jsonField{f.Kind.String(), f.Name, f.A, f.B})
		}
		j.Changes = append(j.Changes, op)
	}
	return j
}

func (k Kinds) nonNil() []string { return append([]string{}, k.List()...) }

func (c *Code) json(i int) *jsonInst {
	w := c.Word(i)
	return &jsonInst{PC: c.PC(i), Word: patch.ReportWord(w), Control: isa.ControlOf(w).String(), Text: c.Text(i)}
}

// A JSONWriter writes a result as JSON while the comparison runs: its Kernel method is
// for [Options.Visit].
type JSONWriter struct {
	w io.Writer
	n int
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
	b, err := json.Marshal(kernelJSON(k))
	if err != nil {
		return err
	}
	sep := ",\n"
	if j.n++; j.n == 1 {
		sep = j.head()
	}
	_, err = j.w.Write(append([]byte(sep), b...))
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
