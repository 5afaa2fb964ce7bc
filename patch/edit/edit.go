package edit

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/cupatch/cupatch/isa"
)

// An Edit is one changed word: the currency in which plans, reports, writing and
// verification are counted.
type Edit struct {
	Entry  string // of the container, "" for a bare cubin
	Kernel string // mangled name
	PC     uint64 // offset in the kernel
	Offset uint64 // offset in the cubin
	// FileOffset is the offset in the file, -1 where the cubin is compressed in it.
	FileOffset       int64
	Old, New         isa.Word
	OldText, NewText string // without control codes
	Rule             string // the rules that changed the word, by name or number
	// Shape says that the kernel gets another shape; nil where a word becomes another.
	Shape *Shape
}

// An Op is what an edit does to the shape of a kernel.
type Op uint8

// The operations.
const (
	Insert  Op = iota // New comes in at NewPC; PC is the address of the old instruction after it, Old is nothing
	Delete            // the instruction at PC goes; New is nothing
	Move              // the instruction at PC goes to NewPC; New is its word if it were still at PC
	Restore           // the cubin gets sections back as they were; see Shape.Sections
)

var opNames = [...]string{"insert", "delete", "move", "restore"}

func (o Op) String() string { return opNames[o] }

// A Shape is what an edit does to the shape of a kernel. Instructions that no edit inserts,
// deletes or moves keep their order. Whatever refers to them follows, so that a branch to
// an instruction goes to it wherever it is; where it is deleted or moved, to the one after
// it.
type Shape struct {
	Op    Op
	NewPC uint64 // for Insert and Move: address in the new kernel
	// Labels are old addresses: what goes there comes to the instruction at NewPC instead.
	Labels []uint64
	// Sections are the old contents of sections, by index, for Restore.
	Sections map[int][]byte
}

// Shapes reports whether any edit changes the shape of a kernel.
func Shapes(edits []Edit) bool {
	return slices.ContainsFunc(edits, func(e Edit) bool { return e.Shape != nil })
}

// String returns the edit on one line.
func (e Edit) String() string {
	if e.Shape != nil {
		switch e.Shape.Op {
		case Insert:
			return fmt.Sprintf("%s+%#x: insert %s", e.Kernel, e.PC, e.NewText)
		case Delete:
			return fmt.Sprintf("%s+%#x: delete %s", e.Kernel, e.PC, e.OldText)
		case Move:
			return fmt.Sprintf("%s+%#x: move to %#x %s", e.Kernel, e.PC, e.Shape.NewPC, e.NewText)
		case Restore:
			return "restore sections of the cubin"
		}
	}
	return fmt.Sprintf("%s+%#x: %s → %s", e.Kernel, e.PC, e.OldText, e.NewText)
}

// ErrOldWord matches the error of an edit whose old word is not what is there.
var ErrOldWord = errors.New("the old word is different")

// ErrMismatch matches edits that do not fit a file: another old word, no such kernel,
// another place.
var ErrMismatch = errors.New("the edits do not fit the file")

// An OldWordError is an edit that does not fit the bytes.
type OldWordError struct {
	Edit  Edit
	Found isa.Word
	Done  bool // the new word is there already
}

func (e *OldWordError) Error() string {
	s := fmt.Sprintf("kernel %s at %#x: want the word %s, found %s", e.Edit.Kernel, e.Edit.PC, e.Edit.Old, e.Found)
	if e.Done {
		s += ", which is the new word already"
	}
	return s
}

// Is makes [errors.Is] with ErrOldWord and ErrMismatch work.
func (e *OldWordError) Is(target error) bool { return target == ErrOldWord || target == ErrMismatch }

// Apply writes the new words of edits into the cubin data at their offsets. It first
// checks every old word, and on any error has changed nothing. Of the edits that change the
// shape of a kernel it checks the old words only: package shape makes them.
func Apply(data []byte, edits []Edit) error {
	for _, e := range edits {
		if e.Shape != nil && e.Shape.Op != Delete && e.Shape.Op != Move {
			continue
		}
		if e.Offset > uint64(len(data)) || uint64(len(data))-e.Offset < isa.WordSize {
			return fmt.Errorf("kernel %s at %#x: offset %#x is beyond the %d bytes of the cubin", e.Kernel, e.PC, e.Offset, len(data))
		}
		if w := isa.LoadWord(data[e.Offset:]); w != e.Old {
			return &OldWordError{Edit: e, Found: w, Done: w == e.New}
		}
	}
	for _, e := range edits {
		if e.Shape == nil {
			e.New.Store(data[e.Offset:])
		}
	}
	return nil
}

// Inverted returns the edits that undo edits of words.
func Inverted(edits []Edit) []Edit {
	out := make([]Edit, len(edits))
	for i, e := range edits {
		e.Old, e.New = e.New, e.Old
		e.OldText, e.NewText = e.NewText, e.OldText
		out[i] = e
	}
	return out
}

// CheckApplied proves that now is old with exactly the words of edits changed.
func CheckApplied(old, now []byte, edits []Edit) error {
	want := bytes.Clone(old)
	if err := Apply(want, edits); err != nil {
		return err
	}
	if i := FirstDifference(want, now); i >= 0 {
		return fmt.Errorf("byte %#x differs and belongs to no edit", i)
	}
	return nil
}

// FirstDifference returns the first index at which a and b differ, or -1.
func FirstDifference(a, b []byte) int {
	n := min(len(a), len(b))
	const block = 4096
	for i := 0; i < n; i += block {
		end := min(i+block, n)
		if bytes.Equal(a[i:end], b[i:end]) {
			continue
		}
		for ; ; i++ {
			if a[i] != b[i] {
				return i
			}
		}
	}
	if len(a) != len(b) {
		return n
	}
	return -1
}
