package listing

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cupatch/cupatch/isa"
)

// Assemble encodes a listing. Addresses may be missing; they then follow each other
// from 0.
func Assemble(t *isa.Table, name, text string) ([]byte, error) {
	list, err := Parse(name, strings.NewReader(text))
	if err != nil {
		return nil, err
	}
	var out []byte
	for i := range list {
		in := &list[i]
		pc := uint64(len(out))
		if in.HasPC && in.PC != pc {
			return nil, &Error{name, in.Line, fmt.Errorf("address %#x where %#x follows", in.PC, pc)}
		}
		l := isa.Line{PC: pc, Control: isa.DefaultControl, HasControl: true, Text: in.Text}
		if in.Control != nil {
			l.Control = *in.Control
		}
		w, err := t.EncodeLine(l, nil, nil)
		if err != nil {
			return nil, &Error{name, in.Line, err}
		}
		out = append(out, make([]byte, isa.WordSize)...)
		w.Store(out[pc:])
	}
	if out == nil {
		return nil, errors.New(name + ": no instructions")
	}
	return out, nil
}
