package diff

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/cupatch/cupatch/elfx"
)

// A Change is something that has a value in each of two files.
type Change struct {
	Name string `json:"name"`
	A    string `json:"a"`
	B    string `json:"b"`
}

func (c Change) String() string { return c.Name + " " + c.A + " → " + c.B }

// A resource is a number of something that a kernel needs.
type resource struct {
	name string
	n    int
}

// inHeader ends the names of resources that the section header of the code states.
const inHeader = " in the section header"

// resources lists what a kernel needs of the machine. The section header of the code states
// some of it once more.
func (c *Code) resources() []resource {
	k := c.Kernel
	s := &c.module.Cubin.Sections()[k.Index]
	return []resource{
		{"registers", k.Regs}, {"stack", k.Stack}, {"frame", k.Frame}, {"local memory", k.Local}, {"shared memory", k.Shared},
		{"barriers", k.Barriers}, {"parameters", k.Params}, {"constant bank 0", k.Constant},
		{"registers" + inHeader, int(s.Info >> 24)}, {"barriers" + inHeader, int(s.Flags & barrierBits >> 20)},
	}
}

// resourceChanges compares what two kernels need of the machine and how they may be
// launched.
func resourceChanges(a, b *Code) []Change {
	var out []Change
	x, y := a.Kernel, b.Kernel
	p, q := a.resources(), b.resources()
	for i, r := range p {
		// The two layouts have different numbers in the section header.
		said := strings.HasSuffix(r.name, inHeader) && (a.module.Cubin.Layout != b.module.Cubin.Layout ||
			slices.ContainsFunc(out, func(c Change) bool { return c.Name+inHeader == r.name }))
		if r.n != q[i].n && !said {
			out = append(out, Change{r.name, fmt.Sprint(r.n), fmt.Sprint(q[i].n)})
		}
	}
	if sa, sb := a.localStores, b.localStores; sa != sb {
		out = append(out, Change{"local stores", fmt.Sprint(sa), fmt.Sprint(sb)})
	}
	if la, lb := a.localLoads, b.localLoads; la != lb {
		out = append(out, Change{"local loads", fmt.Sprint(la), fmt.Sprint(lb)})
	}
	if x.Entry != y.Entry {
		out = append(out, Change{"kernel that can be launched", fmt.Sprint(x.Entry), fmt.Sprint(y.Entry)})
	}
	return append(out, attributeChanges(x, y)...)
}

// addressAttrs are the attributes that list addresses of the code, and those that say
// who made it: the first follow the code, the others are metadata.
var addressAttrs = []string{
	"JUMPTABLE_RELOCS", "INDIRECT_BRANCH_TARGETS", "ATOM16_EMUL_INSTR_REG_MAP", "INSTR_REG_MAP", "EXTERNS",
	"CUDA_API_VERSION", "SW_WAR", "NVSAL_SW_WAR", "LANGUAGE", "MERCURY_ISA_VERSION", "STATISTICS", "PERF_STATISTICS",
	"PER_REG_TARGET_PERF_STATS", "ANNOTATIONS", "TOOLS_PATCH_FUNC", "PAD",
	// Read as parameters and as resources.
	"KPARAM_INFO", "KPARAM_INFO_V2", "CBANK_PARAM_SIZE", "NUM_BARRIERS",
}

// attributes returns the attributes of a kernel that say how it may be launched. One
// whose value is 0 is the same as none.
func attributes(k *elfx.Kernel) map[string]string {
	out := map[string]string{}
	for _, a := range k.Info() {
		name := a.Name()
		if strings.Contains(name, "_OFFSET") || slices.Contains(addressAttrs, name) || len(a.Data) == 0 && a.Value == 0 && a.Format != 1 {
			continue
		}
		value := a.String()
		if name == "PARAM_CBANK" { // a symbol's number, then size and offset
			_, value, _ = strings.Cut(value, " ")
		}
		if value == "" {
			value = "set"
		}
		if old, ok := out[name]; ok {
			value = old + "; " + value
		}
		out[name] = value
	}
	var params []string
	for _, p := range k.ParamList() {
		params = append(params, fmt.Sprintf("%d bytes at %#x", p.Size, p.Offset))
	}
	if params != nil {
		out["parameter list"] = strings.Join(params, ", ")
	}
	return out
}

func attributeChanges(x, y *elfx.Kernel) []Change {
	a, b := attributes(x), attributes(y)
	names := map[string]bool{}
	for n := range a {
		names[n] = true
	}
	for n := range b {
		names[n] = true
	}
	var out []Change
	for n := range names {
		if a[n] != b[n] {
			out = append(out, Change{"attribute " + n, orNone(a[n]), orNone(b[n])})
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out
}

// relocationChanges counts, by symbol, the relocations that only one kernel has or
// that they have in different numbers.
func relocationChanges(a, b *Code) []Change {
	count := map[string][2]int{}
	for side, c := range []*Code{a, b} {
		for _, r := range c.Kernel.Relocs() {
			name := c.module.anonymous(r.SymbolIndex, c.number)
			n := count[name]
			n[side]++
			count[name] = n
		}
	}
	var out []Change
	for name, n := range count {
		if n[0] != n[1] {
			out = append(out, Change{"relocations to " + name, fmt.Sprint(n[0]), fmt.Sprint(n[1])})
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out
}

// factsOf compares what the cubins say of two kernels beside code, constants and
// resources: changes of data, and of what a loader sees. What is among the resources is
// left out.
func factsOf(d *CodeDiff, resources []Change) (data, loader []Change) {
	places := d.Class != CodeDiffers
	list := compareFacts(d.A.facts(places), d.B.facts(places))
	if list == nil {
		return nil, nil
	}
	known := func(c factChange) bool {
		for _, r := range resources {
			if name, ok := resourceAttrs[r.Name]; ok && c.Name == name || c.Name == ".nv.info "+strings.TrimPrefix(r.Name, "attribute ") {
				return true
			}
		}
		return false
	}
	return ofKind(list, Data, known), ofKind(list, Loader, known)
}

// resourceAttrs are the attributes that resources are read from, as [fact] calls them.
var resourceAttrs = map[string]string{
	"registers": ".nv.info REGCOUNT", "stack": ".nv.info MIN_STACK_SIZE", "frame": ".nv.info FRAME_SIZE", "barriers": ".nv.info NUM_BARRIERS",
	"parameters": ".nv.info CBANK_PARAM_SIZE", "attribute parameter list": ".nv.info KPARAM_INFO",
}

// A bank is a constant bank of a kernel.
type bank struct {
	name string
	data []byte
}

// banks returns the constant banks of the kernel of c. What bank 0 holds in the file is
// what the launch leaves alone.
func (c *Code) banks() []bank {
	m := c.module
	m.parts.Do(m.split)
	var out []bank
	for _, i := range m.sections[c.number] {
		if s := &m.Cubin.Sections()[i]; isBank(m.role[i]) {
			out = append(out, bank{"constant bank " + strings.TrimPrefix(m.role[i], ".nv.constant"), m.Cubin.SectionData(s)})
		}
	}
	slices.SortStableFunc(out, func(x, y bank) int { return strings.Compare(x.name, y.name) })
	return out
}

// isBank tells the sections that hold constant banks of a kernel by their names without
// that of the kernel.
func isBank(role string) bool { return strings.HasPrefix(role, ".nv.constant") }

// dataChanges compares the constant banks that belong to two kernels. Words that are
// addresses in the code are the same when they mean the same instruction.
func dataChanges(d *CodeDiff) []Change {
	x, y := d.A.banks(), d.B.banks()
	var out []Change
	for len(x)+len(y) > 0 {
		var p, q bank
		if len(y) == 0 || len(x) > 0 && x[0].name <= y[0].name {
			p, x = x[0], x[1:]
		}
		if len(y) > 0 && (p.name == "" || p.name == y[0].name) {
			q, y = y[0], y[1:]
		}
		name := max(p.name, q.name)
		if name == "constant bank 0" && len(p.data) != len(q.data) {
			continue // one of the resources
		}
		if what := d.bankChange(p.data, q.data); what != "" {
			out = append(out, Change{name, fmt.Sprintf("%d bytes", len(p.data)), fmt.Sprintf("%d bytes, %s", len(q.data), what)})
		}
	}
	return out
}

func (d *CodeDiff) bankChange(p, q []byte) string {
	if len(p) != len(q) {
		return "of another size"
	}
	n, first := 0, 0
	for i := 0; i+4 <= len(p); i += 4 {
		u, v := binary.LittleEndian.Uint32(p[i:]), binary.LittleEndian.Uint32(q[i:])
		if u != v && !d.sameAddress(uint64(u), uint64(v)) {
			if n++; n == 1 {
				first = i
			}
		}
	}
	if tail := len(p) &^ 3; string(p[tail:]) != string(q[tail:]) {
		n++
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("other in %s, the first at %#x", plural(n, "word"), first)
}

// sameAddress reports whether u and v are addresses of corresponding instructions.
func (d *CodeDiff) sameAddress(u, v uint64) bool {
	i, ok1 := d.A.indexAt(u)
	j, ok2 := d.B.indexAt(v)
	if !ok1 || !ok2 {
		return false
	}
	if d.match == nil {
		return i == j
	}
	return d.match[i] == int32(j)
}

// indexAt returns the index of the instruction at an address.
func (c *Code) indexAt(pc uint64) (int, bool) {
	if pc%16 != 0 || pc/16 > 1<<30 {
		return 0, false
	}
	return slices.BinarySearch(c.pos, int32(pc/16))
}
