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

// resourceChanges compares what two kernels need of the machine and how they may be
// launched.
func resourceChanges(a, b *Code) []Change {
	var out []Change
	x, y := a.Kernel, b.Kernel
	for _, r := range []struct {
		name string
		a, b int
	}{
		{"registers", x.Regs, y.Regs}, {"stack", x.Stack, y.Stack}, {"frame", x.Frame, y.Frame}, {"local memory", x.Local, y.Local},
		{"shared memory", x.Shared, y.Shared}, {"barriers", x.Barriers, y.Barriers},
		{"parameters", x.Params, y.Params}, {"constant bank 0", x.Constant, y.Constant},
	} {
		if r.a != r.b {
			out = append(out, Change{r.name, fmt.Sprint(r.a), fmt.Sprint(r.b)})
		}
	}
	if sa, sb := a.localStores, b.localStores; sa != sb {
		out = append(out, Change{"local stores (spills)", fmt.Sprint(sa), fmt.Sprint(sb)})
	}
	if la, lb := a.localLoads, b.localLoads; la != lb {
		out = append(out, Change{"local loads (spills)", fmt.Sprint(la), fmt.Sprint(lb)})
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
			name := anonymous(r.Symbol, c.Kernel.Name)
			if r.Symbol == c.Kernel.Name {
				name = "<self>"
			}
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

// dataChanges compares the constant banks that belong to two kernels. Words that are
// addresses in the code are the same when they mean the same instruction.
func dataChanges(ca, cb *elfx.Cubin, d *CodeDiff) []Change {
	x, y := ownBanks(ca, d.A.Kernel), ownBanks(cb, d.B.Kernel)
	names := map[string]bool{}
	for n := range x {
		names[n] = true
	}
	for n := range y {
		names[n] = true
	}
	var out []Change
	for n := range names {
		if what := d.bankChange(x[n], y[n]); what != "" {
			out = append(out, Change{n, fmt.Sprintf("%d bytes", len(x[n])), fmt.Sprintf("%d bytes, %s", len(y[n]), what)})
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out
}

// ownBanks returns the constant banks of a kernel but for bank 0, which is filled at
// the launch.
func ownBanks(c *elfx.Cubin, k *elfx.Kernel) map[string][]byte {
	out := map[string][]byte{}
	for i := range c.Sections() {
		s := &c.Sections()[i]
		rest, ok := strings.CutPrefix(s.Name, ".nv.constant")
		bank, name, dot := strings.Cut(rest, ".")
		if ok && dot && name == k.Name && bank != "0" {
			out["constant bank "+bank] = c.SectionData(s)
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
