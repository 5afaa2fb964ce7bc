package shape

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/patch/code"
	"github.com/cupatch/cupatch/patch/edit"
)

// Apply returns the cubin with edits made, those of words and those of shape. Every old word
// is checked first. data is left alone.
func Apply(data []byte, edits []edit.Edit) ([]byte, error) {
	for i := range edits {
		if s := edits[i].Shape; s != nil && s.Op == edit.Restore {
			if len(edits) > 1 {
				return nil, errors.New("sections cannot be restored beside other edits")
			}
			return restore(data, s.Sections)
		}
	}
	out := bytes.Clone(data)
	if err := edit.Apply(out, edits); err != nil || !edit.Shapes(edits) {
		return out, err
	}
	var names []string
	byKernel := map[string][]edit.Edit{}
	for _, e := range edits {
		if byKernel[e.Kernel] == nil {
			names = append(names, e.Kernel)
		}
		byKernel[e.Kernel] = append(byKernel[e.Kernel], e)
	}
	for _, name := range names {
		if !edit.Shapes(byKernel[name]) {
			continue
		}
		c, err := elfx.ParseCubin(out)
		if err != nil {
			return nil, err
		}
		t := &code.Target{Cubin: c}
		if t.Table, err = code.TableOf(c); err != nil {
			return nil, err
		}
		if out, err = applyTo(t, name, byKernel[name]); err != nil {
			return nil, fmt.Errorf("kernel %s: %w", elfx.Printable(name), err)
		}
	}
	return out, nil
}

func restore(data []byte, sections map[int][]byte) ([]byte, error) {
	c, err := elfx.ParseCubin(data)
	if err != nil {
		return nil, err
	}
	for i := range sections {
		if i < 0 || i >= len(c.Sections()) {
			return nil, fmt.Errorf("there is no section %d to restore", i)
		}
	}
	return c.Resized(sections)
}

// Sections returns the contents of the sections of old that now, which was made of it, has
// otherwise: what an edit with Restore needs to lead back. An error says that nothing does.
func Sections(old, now []byte) (map[int][]byte, error) {
	a, err := elfx.ParseCubin(old)
	if err != nil {
		return nil, err
	}
	b, err := elfx.ParseCubin(now)
	if err != nil {
		return nil, err
	}
	if len(a.Sections()) != len(b.Sections()) {
		return nil, errors.New("another number of sections")
	}
	out := map[int][]byte{}
	for i := range a.Sections() {
		s, t := &a.Sections()[i], &b.Sections()[i]
		if x := a.SectionData(s); s.HasData() && !bytes.Equal(x, b.SectionData(t)) {
			out[i] = x
		}
	}
	back, err := restore(now, out)
	if err == nil && !bytes.Equal(back, old) {
		err = errors.New("the sections alone do not lead back")
	}
	return out, err
}

// applyTo makes the edits of one kernel, whose words have their new values already, but for
// those that are inserted or moved.
func applyTo(t *code.Target, name string, edits []edit.Edit) ([]byte, error) {
	k, err := kernelOf(t.Cubin, name)
	if err != nil {
		return nil, err
	}
	p := &plan{target: t, kernel: k, state: code.NewState(t.Kernel(k), t.Table)}
	if err := p.arrange(edits); err != nil {
		return nil, err
	}
	if err := p.pad(); err != nil {
		return nil, err
	}
	return p.write()
}

func kernelOf(c *elfx.Cubin, name string) (*elfx.Kernel, error) {
	for i := range c.Kernels() {
		if k := &c.Kernels()[i]; k.Name == name {
			return k, nil
		}
	}
	return nil, errors.New("the cubin has no such kernel")
}

// An item is an instruction of the new kernel.
type item struct {
	old  int // instruction of the old kernel, -1 for a new one
	word isa.Word
}

// A plan is how a kernel becomes another.
type plan struct {
	target *code.Target
	kernel *elfx.Kernel
	state  *code.State
	items  []item
	inst   []int // place of each old instruction, -1 where it is gone
	label  []int // where what leads to it leads now, and to the end
	back   []int // the same where a call returns to
}

// arrange puts the instructions into their new order.
func (p *plan) arrange(edits []edit.Edit) error {
	n := p.state.N
	leaves := make([]bool, n)
	var placed []edit.Edit
	count := n
	for _, e := range edits {
		i := int(e.PC / isa.WordSize)
		switch {
		case e.Shape == nil:
			continue
		case e.PC%isa.WordSize != 0 || i > n || i == n && e.Shape.Op != edit.Insert:
			return fmt.Errorf("%#x is no instruction of the %d bytes", e.PC, p.kernel.Size)
		}
		if e.Shape.Op != edit.Insert {
			if leaves[i] {
				return fmt.Errorf("two edits of the instruction at %#x", e.PC)
			}
			leaves[i] = true
		}
		switch e.Shape.Op {
		case edit.Insert:
			count++
			placed = append(placed, e)
		case edit.Move:
			placed = append(placed, e)
		case edit.Delete:
			count--
		default:
			return fmt.Errorf("an edit to %s", e.Shape.Op)
		}
	}
	p.items = make([]item, count)
	given := make([]bool, count)
	taken := map[uint64]int{} // places by old addresses whose labels they take
	slices.SortStableFunc(placed, func(a, b edit.Edit) int { return cmp.Compare(a.Shape.NewPC, b.Shape.NewPC) })
	for _, e := range placed {
		j := e.Shape.NewPC / isa.WordSize
		if e.Shape.NewPC%isa.WordSize != 0 || j >= uint64(count) || given[j] {
			return fmt.Errorf("%s to %#x: no place, or one that another edit has", e.Shape.Op, e.Shape.NewPC)
		}
		given[j] = true
		p.items[j] = item{-1, e.New}
		if e.Shape.Op == edit.Move {
			p.items[j].old = int(e.PC / isa.WordSize)
		}
		for _, l := range e.Shape.Labels {
			if _, ok := taken[l]; ok || l%isa.WordSize != 0 || l > uint64(n*isa.WordSize) {
				return fmt.Errorf("two edits take what leads to %#x, or there is no such address", l)
			}
			taken[l] = int(j)
		}
	}
	next := 0
	for i := range n {
		if leaves[i] {
			continue
		}
		for given[next] {
			next++
		}
		p.items[next] = item{i, p.state.Word(i)}
		next++
	}
	p.follow(leaves, taken)
	return nil
}

// follow finds where the old instructions are, and where what leads to them leads. Execution
// starts at 0, and addresses in tables count from there, so that stays.
func (p *plan) follow(leaves []bool, taken map[uint64]int) {
	n := p.state.N
	p.inst, p.label = make([]int, n), make([]int, n+1)
	for i := range p.inst {
		p.inst[i] = -1
	}
	for j, x := range p.items {
		if x.old >= 0 {
			p.inst[x.old] = j
		}
	}
	p.label[n] = len(p.items)
	for i := n; i >= 0; i-- {
		if j, ok := taken[uint64(i*isa.WordSize)]; ok {
			p.label[i] = j
			continue
		}
		if i == n {
			continue
		}
		if p.label[i] = p.inst[i]; leaves[i] {
			p.label[i] = p.label[i+1]
		}
	}
	p.label[0] = 0
}

// alignment is what the size of a kernel is a multiple of, in instructions: 128 bytes.
const alignment = 8

// padding has the least number of NOPs at the end of a kernel, by whether its architecture
// is sm_80 or later: so it is in the cubins of every ptxas from 11.0 to 13.5. It lets the
// instruction fetch run ahead.
func padding(sm int) int {
	if sm >= 80 {
		return alignment
	}
	return 0
}

// pad gives the kernel the NOPs at its end that it needs, and no more. A kernel that had
// fewer than ptxas writes may have fewer.
func (p *plan) pad() error {
	n := p.state.N
	nop, err := p.state.Table.Encode("NOP", 0, nil)
	if err != nil {
		return err
	}
	filler := isa.Drain.Set(nop) // the word that every ptxas fills up with
	had, has := 0, 0
	for had < n && p.state.Word(n-1-had).IsNOP() {
		had++
	}
	for has < len(p.items) && p.items[len(p.items)-1-has].word == filler {
		has++
	}
	if n%alignment != 0 { // not from ptxas: its end stays what it is
		return nil
	}
	core := len(p.items) - has
	least := min(had/alignment*alignment, padding(p.target.Cubin.SM))
	want := (core+least+alignment-1)/alignment*alignment - core
	for ; has < want; has++ {
		p.items = append(p.items, item{-1, filler})
	}
	if has > want {
		end := core + want
		for _, x := range p.items[end:] {
			if x.old >= 0 {
				p.inst[x.old] = -1
			}
		}
		p.items = p.items[:end]
	}
	for i := range p.label {
		if i == n || p.label[i] > len(p.items) {
			p.label[i] = len(p.items)
		}
	}
	return nil
}
