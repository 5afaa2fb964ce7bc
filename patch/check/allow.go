package check

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/patch/code"
)

// The kinds of change that a plan refuses unless they are allowed by name.
const (
	RefuseValue     = "value"     // a value that nvdisasm prints as INVALIDn or ???n, or refuses
	RefuseSchedule  = "schedule"  // a stall count, yield and reuse combination that does not exist
	RefuseFootprint = "footprint" // another destination, another width, or registers that the kernel has not
	RefuseAlign     = "align"     // registers and offsets that are not aligned as in ptxas code
	RefuseHidden    = "hidden"    // text that hides an operand
	RefuseClass     = "class"     // bits that turn the instruction into one of another encoding class
	RefuseTarget    = "target"    // a branch to where the kernel has no instruction
	RefuseHazard    = "hazard"    // results that are used before they are ready
)

var refuseKinds = []string{RefuseValue, RefuseSchedule, RefuseFootprint, RefuseAlign, RefuseHidden, RefuseClass, RefuseTarget, RefuseHazard}

// An Allow holds the names of what a plan does in spite of knowing better.
type Allow map[string]bool

// ParseAllow reads names separated by commas: value, schedule, footprint, align,
// hidden, class, target, hazard.
func ParseAllow(s string) (Allow, error) {
	a := Allow{}
	for _, name := range strings.Split(s, ",") {
		name = strings.TrimSpace(name)
		if name == "" {
			continue
		}
		if !slices.Contains(refuseKinds, name) {
			return nil, fmt.Errorf("unknown --allow name %q; want %s", name, strings.Join(refuseKinds, ", "))
		}
		a[name] = true
	}
	return a, nil
}

// with returns the names of both.
func (a Allow) with(b Allow) Allow {
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}

func AllowHint(kind string) string { return "--allow " + kind + " permits it" }

// meaningless says what in now means nothing and did not stand in old, and which bits
// hold it; "" if there is nothing.
func meaningless(t *isa.Table, old, now isa.Inst) (msg string, mask isa.Word) {
	if now.Status != old.Status && (now.Status == isa.StatusIllegal || now.Status == isa.StatusSilent) {
		return fmt.Sprintf("nvdisasm does not print the result, %s", now.Word), code.EveryBit
	}
	if now.Variant == nil {
		return "", mask
	}
	for _, g := range t.Groups(now.Variant) {
		raw := g.Field.Get(now.Word)
		if raw >= uint64(len(g.Values)) || g.Values[raw].Legal || old.Variant == now.Variant && g.Field.Get(old.Word) == raw {
			continue
		}
		return fmt.Sprintf("%s=%s means nothing; %s: %s", g.Name, g.Values[raw].Text, g.Name, code.LegalTexts(g)), g.Field.Mask()
	}
	return "", mask
}

// A footprint is the registers that an instruction writes, or, for a store, those
// that it takes its data from.
type footprint struct {
	reg   int // number of the first
	file  string
	count int
	text  string // the operand, where it is no register of R or UR
}

func (f footprint) String() string {
	switch {
	case f.file == "":
		return f.text
	case f.reg < 0:
		return f.file + "Z"
	case f.count == 1:
		return f.file + strconv.Itoa(f.reg)
	}
	return fmt.Sprintf("%s%d-%s%d", f.file, f.reg, f.file, f.reg+f.count-1)
}

// footprintOf returns the footprint of an instruction: its destination, or the data
// operand of a memory instruction without one.
func footprintOf(v *code.View) (footprint, bool) {
	if v.Inst.Status != isa.StatusKnown {
		return footprint{}, false
	}
	ops := v.Split().Operands
	at := slices.Index(v.Split().Names, "dst")
	if at < 0 && v.Inst.Memory().Bytes > 0 {
		for i := len(ops) - 1; i >= 0 && at < 0; i-- {
			if _, ok := registerNumber(code.Operand(ops[i]).Value()); ok && code.Operand(ops[i]).Address() < 0 {
				at = i
			}
		}
	}
	if at < 0 {
		return footprint{}, false
	}
	text := code.Operand(ops[at]).Value()
	f := footprint{count: 1, text: text}
	if n, ok := registerNumber(text); ok {
		f.reg, f.file = n, strings.TrimRight(text, "0123456789Z")
		f.count = registersFrom(v.Inst, f.file, n)
	}
	return f, true
}

// registersFrom returns how many registers an operand stands for that names register n of a file,
// that which is written or stored.
func registersFrom(in isa.Inst, file string, n int) int {
	if !in.HasEffects() {
		return max(registersOfAccess(in), 1)
	}
	var ops [16]isa.Operand
	count := 1
	for _, o := range in.AppendRegisters(ops[:0]) {
		if o.Kind == isa.OperandRegister && len(o.Field) > 0 && o.File.String() == file && o.First == n {
			count = max(count, o.Count)
		}
	}
	return count
}

// registerNumber returns the number of a register of the files R and UR, -1 for RZ and
// URZ.
func registerNumber(s string) (int, bool) {
	if !code.IsRegister(s) {
		return 0, false
	}
	n, err := strconv.Atoi(strings.TrimLeft(s, "UR"))
	if err != nil {
		return -1, true
	}
	return n, true
}

// effectsOf returns the registers that v reads and writes. Where it is not known, as of the
// classes of a table of the user's own, it is what the names of the operands and the size of
// an access say.
func effectsOf(v *code.View) isa.Effects {
	if v.Inst.HasEffects() || v.Inst.Status != isa.StatusKnown {
		return v.Inst.Effects()
	}
	var e isa.Effects
	var buf [16]isa.Operand
	names := v.State.Table.Operands(v.Inst.Variant)
	for _, o := range v.Inst.AppendOperands(buf[:0]) {
		switch {
		case !o.IsReg || o.First < 0:
		case o.Index >= 0 && o.Index < len(names) && strings.HasPrefix(names[o.Index].Name, "dst"):
			e.Writes.Add(o.File, o.First, max(o.Count, registersOfAccess(v.Inst)))
		default:
			e.Reads.Add(o.File, o.First, o.Count)
		}
	}
	return e
}

// registersOfAccess returns how many registers an access of memory moves for each thread, 0
// where that is not counted.
func registersOfAccess(in isa.Inst) int { return (in.Memory().Bytes + 3) / 4 }
