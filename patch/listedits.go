package patch

import (
	"fmt"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/isa"
)

// ListingEdits compares an edited listing with a cubin and returns the edits that
// turn the cubin into what the listing says. Lines that say what stands there are no
// edits; a line whose --hex word is not what stands there is an error. What a rule may not
// make of an instruction is refused here too, unless it is allowed.
func ListingEdits(name string, list []ListedInst, t *Target, allow Allow) ([]Edit, error) {
	var edits []Edit
	seen := map[string]bool{}
	codes := map[*elfx.Kernel]*codeState{}
	for i := range list {
		in := &list[i]
		fail := func(format string, args ...any) error {
			return &ListingError{name, in.Line, fmt.Errorf(format, args...)}
		}
		k, err := listedKernel(in, t)
		if err != nil {
			return nil, fail("%v", err)
		}
		if !sameArch(in.Arch, t.Cubin.Arch) {
			return nil, fail("the listing is of %s, the cubin is %s: %w", in.Arch, t.Cubin.Arch, ErrMismatch)
		}
		if !in.HasPC {
			return nil, fail("no address before the instruction")
		}
		if in.PC%isa.WordSize != 0 || in.PC+isa.WordSize > uint64(k.Size) {
			return nil, fail("address %#x is none of the kernel's %d bytes", in.PC, k.Size)
		}
		key := fmt.Sprintf("%s %d", k.Name, in.PC)
		if seen[key] {
			return nil, fail("address %#x stands there twice", in.PC)
		}
		seen[key] = true
		old := isa.LoadWord(k.Data()[in.PC:])
		if in.Word != nil && *in.Word != old {
			return nil, &ListingError{name, in.Line, &OldWordError{Edit: Edit{Kernel: k.Name, PC: in.PC, Old: *in.Word}, Found: old}}
		}
		if codes[k] == nil {
			codes[k] = newCodeState(KernelCode(k, Options{Entry: t.Entry}), t.Table)
		}
		w, err := in.encodeIn(codes[k], old, allow)
		if err != nil {
			return nil, fail("%w", err)
		}
		if w == old {
			continue
		}
		e := Edit{
			Entry: t.Entry, Kernel: k.Name, PC: in.PC, Offset: uint64(k.Offset) + in.PC, FileOffset: int64(uint64(k.Offset) + in.PC),
			Old: old, New: w, OldText: t.Table.Text(t.Table.Decode(old), in.PC), NewText: t.Table.Text(t.Table.Decode(w), in.PC),
			Rule: fmt.Sprintf("line %d", in.Line),
		}
		if t.FileOffset != nil {
			e.FileOffset = t.FileOffset(int64(e.Offset))
		}
		edits = append(edits, e)
	}
	return edits, nil
}

// sameArch reports whether the architecture in a header, "" for none, is that of a cubin.
func sameArch(header, cubin string) bool {
	a, err1 := isa.ParseArch(header)
	b, err2 := isa.ParseArch(cubin)
	return header == "" || err1 != nil || err2 != nil || a == b
}

// listedKernel returns the kernel that a line of a listing belongs to.
func listedKernel(in *ListedInst, t *Target) (*elfx.Kernel, error) {
	ks := t.Cubin.Kernels()
	if in.Kernel == "" {
		if len(ks) == 1 {
			return &ks[0], nil
		}
		return nil, fmt.Errorf("no `// kernel NAME` line above, and the cubin has %d kernels", len(ks))
	}
	for i := range ks {
		if ks[i].Name == in.Kernel {
			return &ks[i], nil
		}
	}
	return nil, fmt.Errorf("the cubin has no kernel %s", in.Kernel)
}
