package elfx

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrCannotFollow says that something in a cubin refers to code in a way that is not
// understood, so that the code cannot move.
var ErrCannotFollow = errors.New("cannot follow moved code")

// A CodeMove says how the code of a section changes its shape. Places are counted in
// instructions of Step bytes.
type CodeMove struct {
	Kernel string // name of the kernel or function whose section it is
	Code   []byte // of the section, as it is to be
	Step   int    // bytes of an instruction

	Inst   []int // place of each old instruction, -1 where it is gone
	Label  []int // place that control goes to where it went to an old instruction, and to the end
	Return []int // the same for the address after a call that returns

	Exits     []int // places of new instructions that end the thread
	FuncTable bool  // the code calls functions whose addresses it reads from a table
}

// A codeMover has what MoveCode works with.
type codeMover struct {
	*CodeMove
	cubin    *Cubin
	kernel   *Kernel
	contents map[int][]byte // of the sections that change
	shifts   map[int]shifts // of what relocations point at, by section
}

// shifts says where bytes of a section are that is written anew: pairs of an old offset
// and a new one, ascending.
type shifts [][2]uint64

func (s shifts) at(off uint64) uint64 {
	i, found := slices.BinarySearchFunc(s, off, func(p [2]uint64, off uint64) int {
		switch {
		case p[0] < off:
			return -1
		case p[0] > off:
			return 1
		}
		return 0
	})
	if !found {
		i--
	}
	if i < 0 {
		return off
	}
	return off - s[i][0] + s[i][1]
}

// MoveCode returns the cubin with the code of one section in another shape. All that the
// file says of places in the code follows: symbols, relocations, attributes, jump tables,
// line tables and unwinding. What the instructions themselves say is the caller's to
// change. Where something is not understood the error is ErrCannotFollow.
//
// Capsule Mercury is another form of the code and stays as it is.
func (c *Cubin) MoveCode(m CodeMove) ([]byte, error) {
	w := &codeMover{CodeMove: &m, cubin: c, contents: map[int][]byte{}, shifts: map[int]shifts{}}
	for i := range c.kernels {
		if c.kernels[i].Name == m.Kernel {
			w.kernel = &c.kernels[i]
		}
	}
	if w.kernel == nil {
		return nil, fmt.Errorf("the cubin has no kernel %s", Printable(m.Kernel))
	}
	if n := int(w.kernel.Size) / m.Step; len(m.Inst) != n || len(m.Label) != n+1 || len(m.Return) != n+1 {
		return nil, fmt.Errorf("a move of %d instructions, where there are %d", len(m.Inst), n)
	}
	for _, step := range []func() error{w.sections, w.lines, w.frames, w.registers, w.attributes, w.tables, w.relocations, w.symbols} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	w.contents[w.kernel.Index] = m.Code
	return c.Resized(w.contents)
}

// content returns the bytes of a section, to be changed.
func (w *codeMover) content(i int) []byte {
	if w.contents[i] == nil {
		w.contents[i] = slices.Clone(w.cubin.SectionData(&w.cubin.sections[i]))
	}
	return w.contents[i]
}

func (w *codeMover) cannot(format string, args ...any) error {
	return fmt.Errorf("kernel %s: %s: %w", Printable(w.kernel.Name), fmt.Sprintf(format, args...), ErrCannotFollow)
}

// to returns the byte offset that an old one in the code becomes by a table of places.
func (w *codeMover) to(places []int, off uint64) (uint64, bool) {
	i := off / uint64(w.Step)
	if off%uint64(w.Step) != 0 || i >= uint64(len(places)) || places[i] < 0 {
		return 0, false
	}
	return uint64(places[i] * w.Step), true
}

// codeBlind has the debug sections that say nothing of places in code.
var codeBlind = map[string]bool{
	".debug_line": true, ".debug_frame": true, ".nv_debug_line_sass": true, ".nv_debug_info_reg_sass": true, // moved here
	".debug_str": true, ".debug_line_str": true, ".debug_abbrev": true, ".debug_pubnames": true, ".debug_pubtypes": true, ".debug_macinfo": true,
	ptxText: true, ".nv_debug_info_reg_type": true, ".nv_debug_source": true,
}

// sections refuses what is not followed.
func (w *codeMover) sections() error {
	for i := range w.cubin.sections {
		s := &w.cubin.sections[i]
		if !s.HasData() || s.Size == 0 {
			continue
		}
		if (strings.HasPrefix(s.Name, ".debug_") || strings.HasPrefix(s.Name, ".nv_debug_")) && !codeBlind[s.Name] {
			return w.cannot("section %s", s.Name)
		}
		if s.Name == ".text" {
			return w.cannot("section .text of several functions")
		}
	}
	return nil
}

// symbols moves the symbols in the code, and their ends.
func (w *codeMover) symbols() error {
	table := -1
	for i := range w.cubin.sections {
		if w.cubin.sections[i].Type == shtSymtab {
			table = i
			break
		}
	}
	for i := range w.cubin.symbols {
		s := &w.cubin.symbols[i]
		if int(s.Section) != w.kernel.Index {
			continue
		}
		from, ok1 := w.to(w.Label, s.Value)
		end, ok2 := w.to(w.Label, s.Value+s.Size)
		if !ok1 || !ok2 || end < from {
			return w.cannot("symbol %s at %#x, %d bytes", Printable(w.cubin.symbolName(i)), s.Value, s.Size)
		}
		b := w.content(table)[i*symbolSize:]
		le.PutUint64(b[8:], from)
		le.PutUint64(b[16:], end-from)
	}
	return nil
}

// Relocation types whose addend of REL stands in data, with its size in bytes.
var plainRelocs = map[uint32]int{1: 4, 2: 8}

// relocations moves the relocations of the code, and what others say of places in it.
func (w *codeMover) relocations() error {
	for i := range w.cubin.sections {
		s := &w.cubin.sections[i]
		size := relSize
		switch s.Type {
		case shtRela:
			size = relaSize
		case shtRel:
		default:
			continue
		}
		if err := w.relocationsIn(s, size); err != nil {
			return err
		}
	}
	return nil
}

func (w *codeMover) relocationsIn(s *Section, size int) error {
	target := int(s.Info)
	var out []byte
	changed := false
	old := w.cubin.SectionData(s)
	for n, r := range w.cubin.Relocs(s) {
		b := slices.Clone(old[n*size : (n+1)*size])
		off := r.Offset
		if target == w.kernel.Index {
			step := uint64(w.Step)
			at, ok := w.to(w.Inst, off/step*step)
			if !ok {
				changed = true
				continue // of an instruction that is gone
			}
			off = at + off%step
		} else if m := w.shifts[target]; m != nil {
			off = m.at(off)
		}
		le.PutUint64(b, off)
		if uint64(r.SymbolIndex) < uint64(len(w.cubin.symbols)) && int(w.cubin.symbols[r.SymbolIndex].Section) == w.kernel.Index {
			if err := w.addend(b, s, target, r, off); err != nil {
				return err
			}
		}
		changed = changed || !slices.Equal(b, old[n*size:(n+1)*size])
		out = append(out, b...)
	}
	if changed {
		w.contents[s.Index] = append(make([]byte, 0, len(out)), out...)
	}
	return nil
}

// addend changes what a relocation adds to a symbol of the code. b is its record, off
// where it points now.
func (w *codeMover) addend(b []byte, s *Section, target int, r Reloc, off uint64) error {
	sym := &w.cubin.symbols[r.SymbolIndex]
	base, ok := w.to(w.Label, sym.Value)
	if !ok {
		return w.cannot("symbol %s", Printable(r.Symbol))
	}
	moved := func(add uint64) (uint64, error) {
		places := w.Label
		if target == w.kernel.Index && add != 0 {
			places = w.Return // code that puts a place into a register returns there
		}
		to, ok := w.to(places, sym.Value+add)
		if !ok {
			return 0, w.cannot("%s: relocation at %#x to %s+%#x", s.Name, r.Offset, Printable(r.Symbol), add)
		}
		return to - base, nil
	}
	if s.Type == shtRela {
		add, err := moved(uint64(r.Addend))
		le.PutUint64(b[16:], add)
		return err
	}
	if target < 0 || target >= len(w.cubin.sections) || !w.cubin.sections[target].HasData() {
		return w.cannot("%s: relocations of section %d", s.Name, target)
	}
	data := w.cubin.SectionData(&w.cubin.sections[target])
	n := plainRelocs[r.Type]
	if target == w.kernel.Index || n == 0 {
		return w.codeAddend(s, data, r)
	}
	if r.Offset+uint64(n) > uint64(len(data)) {
		return w.cannot("%s: relocation at %#x, beyond the section", s.Name, r.Offset)
	}
	now := w.content(target)[off:]
	if n == 4 {
		add, err := moved(uint64(le.Uint32(data[r.Offset:])))
		le.PutUint32(now, uint32(add))
		return err
	}
	add, err := moved(le.Uint64(data[r.Offset:]))
	le.PutUint64(now, add)
	return err
}

// codeAddend sees that a relocation of an instruction that holds its addend itself adds
// nothing: the bits from 34 on, where addresses stand, are zero.
func (w *codeMover) codeAddend(s *Section, data []byte, r Reloc) error {
	at := r.Offset &^ 15
	if at+16 > uint64(len(data)) || le.Uint64(data[at:])>>34 != 0 || le.Uint64(data[at+8:])&0xffff != 0 {
		return w.cannot("%s: relocation of type %d at %#x with an addend in the instruction", s.Name, r.Type, r.Offset)
	}
	return nil
}
