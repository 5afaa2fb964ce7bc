package diff

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/isa"
)

// A Module is a cubin with what its sections, symbols and attributes belong to: to one
// of its kernels, or to the cubin as a whole.
type Module struct {
	Cubin *elfx.Cubin
	Table *isa.Table // nil where the architecture is not known

	parts    sync.Once
	owner    []int32         // by section: index of the kernel, -1 for none
	role     []string        // by section: its name without that of the kernel
	sections [][]int32       // by kernel: its sections
	symbols  [][]int32       // by kernel: the symbols in its sections
	info     [][]elfx.Attr   // by kernel: the attributes of .nv.info that name it
	common   []elfx.Attr     // the others
	relocate map[int][]int32 // by section: the sections with its relocations

	kernels     sync.Once
	kernelNames []string
	stableNames []string // of kernels: StableName

	naming sync.Once
	names  []string         // by symbol
	rank   map[int32]string // of symbols whose name is that of another
}

// NewModule returns the module of a cubin; t may be nil. See [TableFor].
func NewModule(c *elfx.Cubin, t *isa.Table) *Module { return &Module{Cubin: c, Table: t} }

// Code makes the code of kernel i ready for comparing.
func (m *Module) Code(i int) *Code { return newCode(m, i) }

// CodeOf is Code for k, one of the cubin's kernels.
func (m *Module) CodeOf(k *elfx.Kernel) *Code {
	i, _ := slices.BinarySearchFunc(m.Cubin.Kernels(), k.Index, func(x elfx.Kernel, index int) int { return cmp.Compare(x.Index, index) })
	return newCode(m, i)
}

// split finds out what belongs to which kernel.
func (m *Module) split() {
	c := m.Cubin
	n := len(c.Kernels())
	m.sections, m.symbols, m.info = make([][]int32, n), make([][]int32, n), make([][]elfx.Attr, n)
	m.owner, m.role, m.relocate = make([]int32, len(c.Sections())), make([]string, len(c.Sections())), map[int][]int32{}
	byName := make(map[string]int32, n)
	for i := range c.Kernels() {
		byName[c.Kernels()[i].Name] = int32(i)
	}
	for i := range c.Sections() {
		s := &c.Sections()[i]
		m.owner[i], m.role[i] = ownerOf(s.Name, byName)
		if k := m.owner[i]; k >= 0 {
			m.sections[k] = append(m.sections[k], int32(i))
		}
		if s.Type == shtRela || s.Type == shtRel {
			m.relocate[int(s.Info)] = append(m.relocate[int(s.Info)], int32(i))
		}
	}
	for i := range c.Symbols() {
		if k := m.kernelOf(uint32(i)); k >= 0 {
			m.symbols[k] = append(m.symbols[k], int32(i))
		}
	}
	for _, a := range c.Info() {
		k := int32(-1)
		if w := a.Words(); len(w) > 0 && slices.Contains(symbolAttrs, a.Name()) {
			k = m.kernelOf(w[0])
		}
		if k >= 0 {
			m.info[k] = append(m.info[k], a)
		} else {
			m.common = append(m.common, a)
		}
	}
}

// symbolAttrs are the attributes of .nv.info that begin with the number of a symbol.
var symbolAttrs = []string{"REGCOUNT", "FRAME_SIZE", "MIN_STACK_SIZE", "MAX_STACK_SIZE"}

// ownerOf returns the kernel that a section belongs to by its name, -1 for none, and the
// name without that of the kernel.
func ownerOf(section string, kernels map[string]int32) (kernel int32, role string) {
	for i := 1; i < len(section); i++ {
		if section[i] != '.' {
			continue
		}
		if k, ok := kernels[section[i+1:]]; ok {
			return k, section[:i]
		}
	}
	if k, ok := kernels[""]; ok && section == ".text" {
		return k, section
	}
	return -1, section
}

// kernelOf returns the kernel in whose sections a symbol lies, -1 for none.
func (m *Module) kernelOf(symbol uint32) int32 {
	if int(symbol) >= len(m.Cubin.Symbols()) {
		return -1
	}
	if s := m.Cubin.Symbols()[symbol].Section; int(s) < len(m.owner) {
		return m.owner[s]
	}
	return -1
}

// symbolName returns what a symbol is called: its name, or that of its section, without
// what changes from build to build. Where two symbols of the cubin would be the same
// without it, it stays; where two have one name, they are numbered.
func (m *Module) symbolName(i uint32) string {
	m.naming.Do(m.nameSymbols)
	if int(i) >= len(m.names) {
		return fmt.Sprintf("symbol %d of %d", i, len(m.names))
	}
	if len(m.rank) == 0 {
		return m.names[i]
	}
	return m.names[i] + m.rank[int32(i)]
}

func (m *Module) nameSymbols() {
	list := m.Cubin.Symbols()
	m.names, m.rank = make([]string, len(list)), map[int32]string{}
	stable := make(map[string]string, len(list)) // to one of the names that become it
	unclear := map[string]bool{}
	same := map[string][]int{}
	for i := range list {
		name := m.rawName(i)
		if name == "" {
			continue
		}
		same[name] = append(same[name], i)
		s := StableName(name)
		if other, ok := stable[s]; ok && other != name {
			unclear[s] = true
		}
		stable[s] = name
	}
	for name, places := range same {
		text := StableName(name)
		if unclear[text] {
			text = name
		}
		slices.SortStableFunc(places, func(i, j int) int {
			return cmp.Or(cmp.Compare(list[i].Section, list[j].Section), cmp.Compare(list[i].Value, list[j].Value))
		})
		rank := 0
		for n, i := range places {
			m.names[i] = text
			if n > 0 && (list[i].Section != list[places[n-1]].Section || list[i].Value != list[places[n-1]].Value) {
				rank++
			}
			if rank > 0 {
				m.rank[int32(i)] = fmt.Sprintf(" (%d)", rank+1)
			}
		}
	}
}

// rawName returns the name of a symbol as the cubin has it.
func (m *Module) rawName(i int) string {
	s := &m.Cubin.Symbols()[i]
	if s.Name == "" && int(s.Section) < len(m.Cubin.Sections()) {
		return m.Cubin.Sections()[s.Section].Name
	}
	return s.Name
}

// kernelName returns the name of kernel i without what changes from build to build,
// unless the cubin has another kernel of that name.
func (m *Module) kernelName(i int) string {
	m.kernels.Do(m.nameKernels)
	return m.kernelNames[i]
}

func (m *Module) nameKernels() {
	list := m.Cubin.Kernels()
	m.kernelNames, m.stableNames = make([]string, len(list)), make([]string, len(list))
	count := make(map[string]int, len(list))
	for i := range list {
		m.stableNames[i] = StableName(list[i].Name)
		count[m.stableNames[i]]++
	}
	for i, name := range m.stableNames {
		if m.kernelNames[i] = name; count[name] > 1 {
			m.kernelNames[i] = list[i].Name
		}
	}
}

// anonymous returns the name of a symbol with the name of kernel i, which it belongs to,
// left out, so that a renamed kernel refers to the same things.
func (m *Module) anonymous(symbol uint32, i int) string {
	full := m.symbolName(symbol)
	kernel := m.Cubin.Kernels()[i].Name
	if kernel == "" || int(symbol) >= len(m.names) {
		return full
	}
	m.kernels.Do(m.nameKernels)
	name, rank := m.names[symbol], ""
	if len(m.rank) > 0 {
		rank = m.rank[int32(symbol)]
	}
	for _, k := range [...]string{kernel, m.stableNames[i]} {
		if name == k {
			return "<self>" + rank
		}
		if n := len(k) + 1; len(name) > n && name[0] == '$' && name[1:n] == k && name[n] == '$' {
			return "$<self>$" + name[n+1:] + rank
		}
		if s, ok := strings.CutSuffix(name, k); ok && strings.HasSuffix(s, ".") {
			return s + "<self>" + rank
		}
	}
	return full
}

// isDebug tells the sections that no loader looks at: debug information and the note on
// how the toolkit was called.
func isDebug(s *elfx.Section) bool {
	const alloc = 2
	if s.Flags&alloc != 0 {
		return false
	}
	name := s.Name
	for _, p := range []string{".nv.merc", ".rela", ".rel"} {
		name = strings.TrimPrefix(name, p)
	}
	return strings.HasPrefix(name, ".debug_") || strings.HasPrefix(name, ".nv_debug_") || name == ".note.nv.tkinfo"
}
