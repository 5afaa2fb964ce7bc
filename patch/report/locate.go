package report

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/patch/check"
	"github.com/cupatch/cupatch/patch/code"
	"github.com/cupatch/cupatch/patch/edit"
	"github.com/cupatch/cupatch/patch/listing"
)

// A LocateError is an edit of a report that does not fit a file.
type LocateError struct {
	Kernel string
	PC     uint64
	Msg    string
	// Moved says that the kernel may be at another place, where relocating finds it.
	Moved bool
}

func (e *LocateError) Error() string {
	return fmt.Sprintf("kernel %s at %#x: %s", e.Kernel, e.PC, e.Msg)
}

// Is makes [errors.Is] with ErrMismatch work.
func (e *LocateError) Is(target error) bool { return target == edit.ErrMismatch }

// A Located has the edits of one target.
type Located struct {
	Target *code.Target
	Edits  []edit.Edit
}

// Locate finds the places of a report's edits in targets and checks every old word.
// With relocate, a kernel may be at another offset than the report says, or in
// another entry of the same architecture, as long as its code is the same; revert
// exchanges old and new.
func (f *File) Locate(targets []*code.Target, relocate, revert bool) ([]Located, error) {
	var out []Located
	at := map[*code.Target]int{}
	seen := map[*elfx.Kernel][]bool{} // by instruction
	count := map[string]int{}         // of edits, by entry
	for i := range f.Edits {
		count[f.Edits[i].Entry]++
	}
	kernels := kernelsByName(targets)
	var texts code.Texts
	for i := range f.Edits {
		re := &f.Edits[i]
		t, k, err := f.find(re, kernels[string(re.Kernel)], relocate, revert)
		if err != nil {
			return nil, err
		}
		if seen[k] == nil {
			seen[k] = make([]bool, k.Size/isa.WordSize)
		}
		if word := &seen[k][re.PC/isa.WordSize]; *word {
			return nil, &LocateError{Kernel: string(re.Kernel), PC: re.PC, Msg: "two edits of the same word"}
		} else {
			*word = true
		}
		e, err := re.edit(t, k, revert, &texts)
		if err != nil {
			return nil, err
		}
		n, ok := at[t]
		if !ok {
			n = len(out)
			at[t] = n
			out = append(out, Located{Target: t, Edits: make([]edit.Edit, 0, count[re.Entry])})
		}
		out[n].Edits = append(out[n].Edits, e)
	}
	return out, nil
}

// A place is a kernel of a target.
type place struct {
	target *code.Target
	kernel *elfx.Kernel
}

// kernelsByName returns the kernels of targets by their names.
func kernelsByName(targets []*code.Target) map[string][]place {
	out := map[string][]place{}
	for _, t := range targets {
		for i := range t.Cubin.Kernels() {
			k := &t.Cubin.Kernels()[i]
			out[k.Name] = append(out[k.Name], place{t, k})
		}
	}
	return out
}

// find returns the target and kernel that an edit means; named are the kernels of its name.
func (f *File) find(e *Edit, named []place, relocate, revert bool) (*code.Target, *elfx.Kernel, error) {
	var hit place
	hits := 0
	var own place // of the entry that the edit names
	var why *LocateError
	for _, p := range named {
		if e.Entry != "" && e.Entry != p.target.Entry && !relocate {
			continue
		}
		if err := f.fits(e, p.target, p.kernel, relocate, revert); err != nil {
			why = err
			continue
		}
		hits++
		if hit = p; own.target == nil && p.target.Entry == e.Entry {
			own = p
		}
	}
	switch {
	case hits == 1:
		return hit.target, hit.kernel, nil
	case own.target != nil:
		return own.target, own.kernel, nil
	case hits > 1:
		return nil, nil, &LocateError{Kernel: string(e.Kernel), PC: e.PC, Msg: fmt.Sprintf("%d entries have this kernel; the edit must name one", hits)}
	case why != nil:
		return nil, nil, why
	}
	return nil, nil, &LocateError{Kernel: string(e.Kernel), PC: e.PC, Msg: "the file has no such kernel", Moved: e.Entry != "" && f.kernel(e) != nil}
}

// fits checks that a kernel is the one that an edit was made for, as far as the
// report tells.
func (f *File) fits(e *Edit, t *code.Target, k *elfx.Kernel, relocate, revert bool) *LocateError {
	if e.PC+isa.WordSize > uint64(k.Size) {
		return &LocateError{Kernel: string(e.Kernel), PC: e.PC, Msg: fmt.Sprintf("beyond the kernel's %d bytes", k.Size)}
	}
	if relocate {
		rk := f.kernel(e)
		if rk == nil {
			return &LocateError{Kernel: string(e.Kernel), PC: e.PC, Msg: "the report has no code hash of this kernel, which relocating needs"}
		}
		want := rk.Input
		if revert {
			want = rk.Output
		}
		if rk.Arch != t.Cubin.Arch {
			return &LocateError{Kernel: string(e.Kernel), PC: e.PC, Msg: fmt.Sprintf("the report is for %s, the cubin is %s", rk.Arch, t.Cubin.Arch)}
		}
		if code.Hash(k.Data()) != want {
			return &LocateError{Kernel: string(e.Kernel), PC: e.PC, Msg: "the kernel's code is not the code that the report was made for"}
		}
		return nil
	}
	if e.Offset != nil && *e.Offset != uint64(k.Offset)+e.PC {
		msg := fmt.Sprintf("the report has it at offset %#x of the cubin, here it is at %#x", *e.Offset, uint64(k.Offset)+e.PC)
		return &LocateError{Kernel: string(e.Kernel), PC: e.PC, Msg: msg, Moved: f.kernel(e) != nil}
	}
	return nil
}

// kernel returns what the report says of the kernel of an edit.
func (f *File) kernel(e *Edit) *Kernel {
	for i := range f.Kernels {
		if k := &f.Kernels[i]; k.Kernel == e.Kernel && k.Entry == e.Entry {
			return k
		}
	}
	return nil
}

// edit turns a report's edit into one of the cubin at hand, and checks the old word.
func (e *Edit) edit(t *code.Target, k *elfx.Kernel, revert bool, texts *code.Texts) (edit.Edit, error) {
	w := isa.LoadWord(k.Data()[e.PC:])
	out := edit.Edit{
		Entry: t.Entry, Kernel: k.Name, PC: e.PC, Offset: uint64(k.Offset) + e.PC, FileOffset: t.OffsetInFile(k.Offset + int64(e.PC)),
		Old: isa.Word(*e.Old), Rule: e.Rule,
	}
	var err error
	if out.New, err = e.newWord(t.Table, t.Cubin.Arch, revert); err != nil {
		return out, &LocateError{Kernel: string(e.Kernel), PC: e.PC, Msg: err.Error()}
	}
	if revert {
		out.Old, out.New = out.New, out.Old
	}
	if t.Table != nil {
		out.OldText = texts.Text(t.Table, out.Old, e.PC, "")
		out.NewText = texts.Text(t.Table, out.New, e.PC, out.OldText)
	}
	if w != out.Old {
		return out, &edit.OldWordError{Edit: out, Found: w, Done: w == out.New}
	}
	return out, nil
}

// newWord returns the word that an edit makes: new, else what new_text says. The two
// must not contradict each other.
func (e *Edit) newWord(t *isa.Table, arch string, revert bool) (isa.Word, error) {
	switch {
	case e.New != nil:
		if t == nil || revert {
			return isa.Word(*e.New), nil
		}
		return isa.Word(*e.New), e.checkText(t)
	case revert:
		return isa.Word{}, errors.New("the report has no new word, so it cannot be undone")
	case t == nil:
		return isa.Word{}, errors.New("new_text needs an instruction table for " + arch)
	}
	in, err := e.newInst()
	if err != nil {
		return isa.Word{}, err
	}
	w, err := check.EncodeLine(t, &in, isa.Word(*e.Old), nil)
	if err != nil {
		return w, fmt.Errorf("new_text: %w", err)
	}
	return w, nil
}

// newInst reads new_text, which may start with a control code, and new_control.
func (e *Edit) newInst() (listing.Inst, error) {
	in := listing.Inst{PC: e.PC}
	code, text, _, err := listing.SplitControl(e.NewText)
	if err != nil {
		return in, fmt.Errorf("new_text: %w", err)
	}
	in.Control, in.Text = code, text
	if e.NewControl == "" {
		return in, nil
	}
	c, err := isa.ParseControl(e.NewControl)
	if err != nil {
		return in, fmt.Errorf("new_control: %w", err)
	}
	if code != nil && *code != c {
		return in, fmt.Errorf("new_text says %s, new_control %s", code, c)
	}
	in.Control = &c
	return in, nil
}

// checkText sees that new_text and new_control, where they are given, say what new says.
func (e *Edit) checkText(t *isa.Table) error {
	in, err := e.newInst()
	if err != nil {
		return err
	}
	now := isa.Word(*e.New)
	if c := isa.ControlOf(now); in.Control != nil {
		c.Reuse, c.Batch = in.Control.Reuse, in.Control.Batch // they stand in the text
		if *in.Control != c {
			return fmt.Errorf("new has the control code %s, the text says %s", isa.ControlOf(now), in.Control)
		}
	}
	text := t.Text(t.Decode(now), e.PC)
	if in.Text == "" || in.Text == text {
		return nil
	}
	w, raw, err := listing.ParseRaw(in.Text)
	if !raw && err == nil {
		w, err = check.EncodeOver(t, in.Text, e.PC, now)
	}
	var hidden *check.HiddenError
	if err != nil && !errors.As(err, &hidden) {
		return fmt.Errorf("new_text: %w", err)
	}
	if hidden != nil || !w.Xor(now).AndNot(code.ControlMask).IsZero() || t.Text(t.Decode(w), e.PC) != text && !raw {
		return fmt.Errorf("new is %q, new_text says %q", text, in.Text)
	}
	return nil
}

// Kernels describes the kernels of a cubin that edits touch, before and after.
func Kernels(t *code.Target, edits []edit.Edit, after []byte) []Kernel {
	touched := map[uint64]bool{} // by the kernel's offset
	for _, e := range edits {
		touched[e.Offset-e.PC] = true
	}
	var out []Kernel
	for i := range t.Cubin.Kernels() {
		k := &t.Cubin.Kernels()[i]
		if !touched[uint64(k.Offset)] {
			continue
		}
		out = append(out, Kernel{
			Entry: t.Entry, Arch: t.Cubin.Arch, Kernel: Name(k.Name), Offset: uint64(k.Offset), Size: int(k.Size),
			Input: code.Hash(k.Data()), Output: code.Hash(after[k.Offset : k.Offset+k.Size]),
		})
	}
	return out
}

// ForFile returns the part of a report that is about a file: the one with its hash,
// else the one with its name, else the only one. With revert the file is the output.
func (r *Report) ForFile(name string, hash *Hash, revert bool) (*File, error) {
	for i := range r.Files {
		f := &r.Files[i]
		h := f.Input
		if revert {
			h = f.Output
		}
		if h != nil && *h == *hash {
			return f, nil
		}
	}
	for i := range r.Files {
		if f := &r.Files[i]; f.File == name && name != "" {
			return f, nil
		}
	}
	switch len(r.Files) {
	case 0:
		return nil, fmt.Errorf("%w: it has no files", ErrReport)
	case 1:
		return &r.Files[0], nil
	}
	var names []string
	for _, f := range r.Files {
		names = append(names, f.File)
	}
	return nil, fmt.Errorf("%w: it is about %s, none of which is this file by hash or name", ErrReport, strings.Join(names, ", "))
}
