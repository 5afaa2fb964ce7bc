package diff

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cupatch/cupatch/elfx"
)

// sections compares what a cubin and its partner hold beside the code of their kernels,
// and notes why they differ. pairs are those of the cubin's kernels.
func (c *comparer) sections(e *entryRec, pairs []kernelPair) {
	c.noted[e] = true
	if e.hash == e.partner.hash {
		return
	}
	x, err1 := c.cache[0].get(e)
	y, err2 := c.cache[1].get(e.partner)
	if err := errors.Join(err1, err2); err != nil {
		c.r.Errors = append(c.r.Errors, err)
		return
	}
	s := &sectionDiff{
		a: x.Cubin, b: y.Cubin, where: e.where(), rename: map[string]string{}, names: [2]map[int32]string{{}, {}}, seen: map[Note]int{},
		told: map[string]bool{}, part: c.opt.Kernel != nil,
	}
	for _, p := range pairs {
		if p.b.entry == e.partner {
			s.rename[p.a.name] = p.b.name
			name := min(x.kernelName(p.a.index), y.kernelName(p.b.index))
			s.names[0][int32(p.a.index)], s.names[1][int32(p.b.index)] = name, name
		}
	}
	s.headers()
	s.facts(x, y)
	s.contents()
	if len(s.notes) == 0 && !s.part && !sameLayout(x.Cubin, y.Cubin) {
		s.note(Metadata, "layout", "the same sections at other places, or other bytes between them")
	}
	for _, n := range s.notes {
		if more := s.seen[n]; more > 1 {
			n.Text += fmt.Sprintf(" (%d sections)", more)
		}
		c.note(n)
	}
}

// sameLayout reports whether two cubins are the same but for the words of their kernels.
func sameLayout(a, b *elfx.Cubin) bool {
	p, q := a.Data(), b.Data()
	if len(p) != len(q) || len(a.Kernels()) != len(b.Kernels()) {
		return false
	}
	at := int64(0)
	code := slices.SortedFunc(slices.Values(a.Kernels()), func(x, y elfx.Kernel) int { return cmp.Compare(x.Offset, y.Offset) })
	for _, k := range code {
		if !bytes.Equal(p[at:k.Offset], q[at:k.Offset]) {
			return false
		}
		at = k.Offset + k.Size
	}
	return bytes.Equal(p[at:], q[at:])
}

// A sectionDiff compares the sections of two cubins.
type sectionDiff struct {
	a, b   *elfx.Cubin
	where  string
	rename map[string]string   // names of kernels of a as b has them
	names  [2]map[int32]string // of kernels of a and b: the names that their facts get, one for both of a pair
	part   bool                // only some of the kernels are compared
	notes  []Note
	seen   map[Note]int
	told   map[string]bool // sections of which facts differ

	kernels [2]map[string]*elfx.Kernel // by name
}

// note adds a note; the same one again is only counted.
func (s *sectionDiff) note(k Kinds, what, format string, args ...any) {
	n := Note{Kind: k, Where: s.where, What: what, Text: fmt.Sprintf(format, args...)}
	if s.seen[n]++; s.seen[n] == 1 {
		s.notes = append(s.notes, n)
	}
}

// headers says in words what the ELF header and the notes say of the origin.
func (s *sectionDiff) headers() {
	for _, f := range []struct {
		kind       Kinds
		what, a, b string
	}{
		{Metadata, "toolkit", orNone(s.a.Toolkit), orNone(s.b.Toolkit)},
		{Loader, "ELF layout", s.a.Layout.String(), s.b.Layout.String()},
		{Loader, "virtual architecture", fmt.Sprintf("compute_%d", s.a.VirtualSM), fmt.Sprintf("compute_%d", s.b.VirtualSM)},
	} {
		if f.a != f.b {
			s.note(f.kind, f.what, "%s → %s", f.a, f.b)
		}
	}
}

// facts compares what a loader sees of the cubins as a whole. Where only some kernels are
// compared, what may be about the others is left out.
func (s *sectionDiff) facts(x, y *Module) {
	rename := func(side int, m *Module) func(i int32) string {
		return func(i int32) string {
			if name, ok := s.names[side][i]; ok {
				return name
			}
			return m.kernelName(int(i))
		}
	}
	for _, c := range compareFacts(x.facts(rename(0, x)), y.facts(rename(1, y))) {
		if s.part && c.Kind&Data == 0 && c.Group != fileHeader || c.Group == fileHeader && s.a.Layout != s.b.Layout {
			continue
		}
		s.told[c.Group] = true
		switch {
		case c.Lone > 0:
			s.note(c.Kind, c.Group, "only the %s file has it", sideNames[c.Lone-1])
		case c.wholes[0] != nil && c.wholes[1] != nil:
			s.note(c.Kind, c.Name, "%s", bytesText(s.a.SectionData(c.wholes[0]), s.b.SectionData(c.wholes[1]), c.wholes[0], c.wholes[1]))
		default:
			s.note(c.Kind, c.Name, "%s → %s", c.A, c.B)
		}
	}
}

// key returns the name under which a section of a is looked for in b.
func (s *sectionDiff) key(x *elfx.Section) string {
	for i := strings.IndexByte(x.Name, '.'); i >= 0; {
		if to, ok := s.rename[x.Name[i+1:]]; ok {
			return x.Name[:i+1] + to
		}
		next := strings.IndexByte(x.Name[i+1:], '.')
		if next < 0 {
			break
		}
		i += next + 1
	}
	return x.Name
}

// contents compares the sections by name; where several have one name, in order.
func (s *sectionDiff) contents() {
	theirs := map[string][]*elfx.Section{}
	for i := range s.b.Sections() {
		x := &s.b.Sections()[i]
		theirs[x.Name] = append(theirs[x.Name], x)
	}
	var order []int
	for i := range s.a.Sections() {
		x := &s.a.Sections()[i]
		key := s.key(x)
		list := theirs[key]
		if len(list) == 0 {
			s.lone(x, "only the first file has it")
			continue
		}
		theirs[key] = list[1:]
		order = append(order, list[0].Index)
		s.section(x, list[0])
	}
	for i := range s.b.Sections() {
		x := &s.b.Sections()[i]
		if slices.Contains(theirs[x.Name], x) {
			s.lone(x, "only the second file has it")
		}
	}
	if !slices.IsSorted(order) {
		s.note(Metadata, "order", "the sections are in another order")
	}
}

// lone notes a section without a partner, unless it is code or facts have told of it.
func (s *sectionDiff) lone(x *elfx.Section, text string) {
	if !isCode(x.Name) && !s.told[StableName(x.Name)] {
		s.note(Metadata, group(x.Name), "%s", text)
	}
}

// isCode tells the sections that are compared instruction by instruction, and what the
// labels in them come from.
func isCode(name string) bool {
	return strings.HasPrefix(name, ".text") || strings.HasPrefix(name, ".rel.text.") || strings.HasPrefix(name, ".rela.text.")
}

// ownedPrefixes are the sections that exist for each kernel.
var ownedPrefixes = []string{
	".nv.info.", ".nv.constant0.", ".nv.constant1.", ".nv.constant2.", ".nv.constant3.", ".nv.constant4.", ".nv.constant5.", ".nv.shared.", ".nv.local.",
	".nv.merc.", ".nv.capmerc.", ".rela.nv.", ".rel.nv.",
}

// group returns the name of a section without the kernel that it belongs to.
func group(name string) string {
	for _, p := range ownedPrefixes {
		if strings.HasPrefix(name, p) {
			return p + "*"
		}
	}
	return name
}

// section says how two sections of one name differ in what no loader sees: facts have
// told of the rest.
func (s *sectionDiff) section(x, y *elfx.Section) {
	if isCode(x.Name) || s.told[StableName(x.Name)] {
		return
	}
	p, q := s.a.SectionData(x), s.b.SectionData(y)
	if bytes.Equal(p, q) && x.Size == y.Size {
		return
	}
	switch {
	case x.Name == ".debug_line":
		s.debugLine(p, q)
	case strings.HasPrefix(x.Name, ".debug_"), strings.HasPrefix(x.Name, ".nv_debug"), strings.Contains(x.Name, ".debug_"):
		s.note(Metadata, x.Name, "debug information differs, %s", bytesText(p, q, x, y))
	case x.Type == shtNote:
		s.note(Metadata, x.Name, "%s", stringsText(p, q))
	case x.Type == shtSymtab:
		s.symbols()
	case x.Type == shtStrtab:
		s.note(Metadata, x.Name, "%s", namesText("names", tableStrings(p), tableStrings(q)))
	case strings.HasPrefix(x.Name, ".nv.info."):
		s.note(Metadata, group(x.Name), "%s", attributesText(s.kernelInfo(0, x), s.kernelInfo(1, y), false))
	case x.Name == ".nv.info":
		s.note(Metadata, x.Name, "%s", attributesText(s.a.Info(), s.b.Info(), true))
	case strings.HasPrefix(x.Name, ".nv.capmerc."), strings.HasPrefix(x.Name, ".nv.merc."):
		s.note(Metadata, group(x.Name), "Mercury code or what belongs to it differs")
	default:
		s.note(Metadata, group(x.Name), "%s", bytesText(p, q, x, y))
	}
}

// bytesText says how two stretches of bytes differ.
func bytesText(p, q []byte, x, y *elfx.Section) string {
	if x.Size != y.Size {
		return fmt.Sprintf("%d → %d bytes", x.Size, y.Size)
	}
	n := 0
	first := -1
	for i := range min(len(p), len(q)) {
		if p[i] != q[i] {
			if n++; first < 0 {
				first = i
			}
		}
	}
	if first < 0 {
		return "of another kind"
	}
	return fmt.Sprintf("%d of %d bytes differ, the first at %#x", n, len(p), first)
}

// symbols compares the names in the symbol tables.
func (s *sectionDiff) symbols() {
	names := func(c *elfx.Cubin) []string {
		var out []string
		for i := range c.Symbols() {
			if n := c.Symbols()[i].Name; n != "" {
				out = append(out, n)
			}
		}
		slices.Sort(out)
		return out
	}
	s.note(Metadata, ".symtab", "%s", namesText("symbols", names(s.a), names(s.b)))
}

// namesText says in which names two tables differ.
func namesText(what string, x, y []string) string {
	gone, fresh := without(x, y), without(y, x)
	if len(gone)+len(fresh) == 0 {
		return fmt.Sprintf("the same %s in another order, or with other values", what)
	}
	if slices.Equal(stableNames(gone), stableNames(fresh)) {
		return fmt.Sprintf("only hashes that the compiler makes of paths and options differ in the %s, such as %s → %s", what, gone[0], fresh[0])
	}
	return fmt.Sprintf("%s only in the first file: %s; only in the second: %s", what, list(gone), list(fresh))
}

// stableNames returns the stable forms of names, sorted.
func stableNames(names []string) []string {
	var out []string
	for _, n := range names {
		out = append(out, StableName(n))
	}
	slices.Sort(out)
	return out
}

// tableStrings returns the strings of a string table, sorted.
func tableStrings(b []byte) []string {
	var out []string
	for _, s := range bytes.Split(b, []byte{0}) {
		if len(s) > 0 {
			out = append(out, string(s))
		}
	}
	slices.Sort(out)
	return out
}

// kernelInfo returns the attributes in section x of the first or second cubin, which is
// that of a kernel.
func (s *sectionDiff) kernelInfo(side int, x *elfx.Section) []elfx.Attr {
	if s.kernels[side] == nil {
		s.kernels[side] = map[string]*elfx.Kernel{}
		list := []*elfx.Cubin{s.a, s.b}[side].Kernels()
		for i := range list {
			s.kernels[side][list[i].Name] = &list[i]
		}
	}
	if k := s.kernels[side][strings.TrimPrefix(x.Name, ".nv.info.")]; k != nil {
		return k.Info()
	}
	return nil
}

// attributesText says which attributes differ. The number of a symbol does not count: with
// symbols it is the first word of each, else that of one.
func attributesText(x, y []elfx.Attr, symbols bool) string {
	texts := func(list []elfx.Attr) []string {
		var out []string
		for _, a := range list {
			value := a.String()
			if symbols || a.Name() == "PARAM_CBANK" {
				_, value, _ = strings.Cut(value, " ")
			}
			out = append(out, a.Name()+" "+value)
		}
		slices.Sort(out)
		return out
	}
	p, q := texts(x), texts(y)
	var names []string
	for _, t := range append(without(p, q), without(q, p)...) {
		name, _, _ := strings.Cut(t, " ")
		names = append(names, name)
	}
	slices.Sort(names)
	if names = slices.Compact(names); names == nil {
		return "the same attributes in another order, or for other numbers of symbols"
	}
	return "attributes differ: " + list(names)
}

// without returns the elements of x, sorted, that y, sorted, has not.
func without(x, y []string) []string {
	var out []string
	for _, s := range x {
		if _, ok := slices.BinarySearch(y, s); !ok {
			out = append(out, s)
		}
	}
	return slices.Compact(out)
}

// list shortens a list of names.
func list(names []string) string {
	const show = 4
	if len(names) == 0 {
		return "none"
	}
	if len(names) <= show {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:show], ", "), len(names)-show)
}
