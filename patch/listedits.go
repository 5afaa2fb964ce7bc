package patch

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/patch/check"
	"github.com/cupatch/cupatch/patch/code"
	"github.com/cupatch/cupatch/patch/edit"
	"github.com/cupatch/cupatch/patch/listing"
)

// ListingEdits compares an edited listing with a cubin and returns the edits that
// turn the cubin into what the listing says. Lines that say what is there are no
// edits; a line whose --hex word is not what is there is an error. What a rule may not
// make of an instruction is refused here too, unless it is allowed, and so is what
// changing instructions in place cannot do: another order, fewer lines where most of the
// kernel is listed, another header.
func ListingEdits(name string, list []listing.Inst, t *code.Target, allow check.Allow) ([]edit.Edit, error) {
	var edits []edit.Edit
	listed := map[*elfx.Kernel]*listedKernel{}
	var order []*listedKernel
	for i := range list {
		in := &list[i]
		fail := func(format string, args ...any) error {
			return &listing.Error{Name: name, Line: in.Line, Err: fmt.Errorf(format, args...)}
		}
		k, err := kernelOfLine(in, t)
		if err != nil {
			return nil, fail("%v", err)
		}
		l := listed[k]
		if l == nil {
			l = &listedKernel{kernel: k, seen: make([]bool, k.Size/isa.WordSize)}
			listed[k], order = l, append(order, l)
		}
		if err := l.add(in, t.Cubin.Arch); err != nil {
			return nil, fail("%w", err)
		}
		old := isa.LoadWord(k.Data()[in.PC:])
		if in.Word != nil && *in.Word != old {
			return nil, &listing.Error{Name: name, Line: in.Line, Err: &edit.OldWordError{Edit: edit.Edit{Kernel: k.Name, PC: in.PC, Old: *in.Word}, Found: old}}
		}
		if l.state == nil {
			l.state = code.NewState(t.Kernel(k), t.Table)
		}
		w, err := check.EncodeLineIn(l.state, in, old, allow)
		if err != nil {
			return nil, fail("%w", err)
		}
		if w == old {
			continue
		}
		e := edit.Edit{
			Entry: t.Entry, Kernel: k.Name, PC: in.PC, Offset: uint64(k.Offset) + in.PC, FileOffset: t.OffsetInFile(k.Offset + int64(in.PC)),
			Old: old, New: w, OldText: t.Table.Text(t.Table.Decode(old), in.PC), NewText: t.Table.Text(t.Table.Decode(w), in.PC),
			Rule: fmt.Sprintf("line %d", in.Line),
		}
		edits = append(edits, e)
	}
	for _, l := range order {
		if err := l.complete(); err != nil {
			return nil, &listing.Error{Name: name, Line: l.line, Err: fmt.Errorf("kernel %s: %w", l.kernel.Name, err)}
		}
	}
	return edits, nil
}

// A listedKernel is what has been seen of the lines of a kernel.
type listedKernel struct {
	kernel *elfx.Kernel
	state  *code.State
	seen   []bool // by instruction
	count  int
	last   uint64 // address of the line before
	line   int    // its number
}

// add takes the next line of the kernel.
func (l *listedKernel) add(in *listing.Inst, arch string) error {
	k := l.kernel
	if err := checkHeader(&in.Header, k, arch); err != nil {
		return err
	}
	switch {
	case !in.HasPC:
		return errors.New("no address before the instruction; apply changes instructions in place, it does not insert any")
	case in.PC%isa.WordSize != 0 || in.PC+isa.WordSize > uint64(k.Size):
		return fmt.Errorf("address %#x is none of the kernel's %d bytes", in.PC, k.Size)
	case l.seen[in.PC/isa.WordSize]:
		return fmt.Errorf("address %#x is listed twice", in.PC)
	case l.count > 0 && in.PC < l.last:
		return fmt.Errorf("address %#x after %#x: apply changes instructions in place, it does not move them", in.PC, l.last)
	}
	l.seen[in.PC/isa.WordSize], l.last, l.line = true, in.PC, in.Line
	l.count++
	return nil
}

// complete refuses that a few instructions of a kernel are missing: they were deleted.
// Where most are missing, the listing has only some, as that of dis -m.
func (l *listedKernel) complete() error {
	if missing := len(l.seen) - l.count; missing == 0 || missing >= l.count {
		return nil
	}
	pc := slices.Index(l.seen, false) * isa.WordSize
	return fmt.Errorf("no line for address %#x: apply changes instructions in place, it does not remove them; "+
		"write NOP, or list only the lines that change", pc)
}

// checkHeader sees that a header says of a kernel what is so. What it does not say is
// right.
func checkHeader(h *listing.KernelHeader, k *elfx.Kernel, arch string) error {
	switch {
	case !listing.SameArch(h.Arch, arch):
		return fmt.Errorf("the listing is of %s, the cubin is %s: %w", h.Arch, arch, edit.ErrMismatch)
	case h.Regs >= 0 && h.Regs != k.Regs:
		return fmt.Errorf("the header says %d registers, the kernel has %d; apply changes instructions alone: %w", h.Regs, k.Regs, edit.ErrMismatch)
	case h.Bytes >= 0 && int64(h.Bytes) != k.Size:
		return fmt.Errorf("the header says %d bytes, the kernel has %d; apply changes instructions alone: %w", h.Bytes, k.Size, edit.ErrMismatch)
	}
	return nil
}

// kernelOfLine returns the kernel that a line of a listing belongs to.
func kernelOfLine(in *listing.Inst, t *code.Target) (*elfx.Kernel, error) {
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
