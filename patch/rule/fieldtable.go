package rule

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/isa/kernel"
	"github.com/cupatch/cupatch/patch/code"
)

// A field is a name that a rule may say whatever the architecture: in a condition, and
// left of = where it can be set. One more is a row of fieldTable and a line in
// docs/rules.md. Names of modifier groups and operands come from the instruction table.
type field struct {
	name string
	kind fieldKind // of fields with literals of their own
	of   subject
	// What it reads; one of num, text, regs and truth gives its type, num before text. A set
	// of registers, regs, is text where it is not compared with a register.
	num   func(*evalCtx, *code.View) (int64, bool)
	text  func(*evalCtx, *code.View) (string, bool)
	regs  func(*evalCtx, *code.View) (isa.RegSet, bool)
	truth func(*evalCtx, *code.View) (bool, bool)
	// What num can be; nil: any number.
	can *numberRange
	// How it is set: bits that hold a number up to most, or a flag.
	bits isa.Field
	most int64
	flag bool
	// Why it cannot be set, and what to do instead, which may be nothing.
	fixed, instead string
}

// A subject is what a field speaks of.
type subject uint8

const (
	ofInst subject = iota
	ofKernel
	ofRun
)

// A fieldKind tells what a name in a condition reads, where that matters for what it is
// compared with.
type fieldKind uint8

const (
	fieldPlain fieldKind = iota
	fieldYield
	fieldBar
	fieldWait
	fieldGuard
	fieldKernel
	fieldArch
	fieldEntry
	fieldOpcode  // a mnemonic
	fieldRegs    // a set of registers: == asks whether one is in it
	fieldFrom    // where an address comes from
	fieldBits    // bits[a..b]
	fieldGroup   // a modifier group
	fieldOperand // an operand
)

// numberIn returns the reader of a number that stands in bits of the word.
func numberIn(f isa.Field) func(*evalCtx, *code.View) (int64, bool) {
	return func(_ *evalCtx, v *code.View) (int64, bool) { return int64(f.Get(v.Inst.Word)), true }
}

// reuseFlag returns the row of a reuse flag: bits 122–124 where bit 109 is 1.
func reuseFlag(slot int) field {
	return field{name: "reuse." + string(rune('a'+slot)), flag: true, bits: isa.Bits(122+slot, 122+slot),
		truth: func(_ *evalCtx, v *code.View) (bool, bool) {
			return isa.ControlOf(v.Inst.Word).Reuse>>slot&1 != 0, true
		}}
}

const cannotBeSet = "%s cannot be set"

var anyCount = &numberRange{most: math.MaxInt64}

// fieldTable has the fields in the order in which messages list them.
var fieldTable = []field{
	{name: "stall", num: numberIn(isa.StallField), can: &numberRange{most: 15}, bits: isa.StallField, most: 15},
	{name: "yield", kind: fieldYield, flag: true, bits: isa.YieldField,
		text: func(_ *evalCtx, v *code.View) (string, bool) {
			if isa.ControlOf(v.Inst.Word).Yield {
				return "Y", true
			}
			return "-", true
		}},
	{name: "wbar", kind: fieldBar, num: numberIn(isa.WBarField), can: &numberRange{most: 7}, bits: isa.WBarField, most: 5},
	{name: "rbar", kind: fieldBar, num: numberIn(isa.RBarField), can: &numberRange{most: 7}, bits: isa.RBarField, most: 5},
	{name: "wait", kind: fieldWait, num: numberIn(isa.WaitField), can: &numberRange{most: 63}, bits: isa.WaitField, most: 63},
	{name: "batch", can: &numberRange{most: 7}, bits: isa.ReuseField, most: 7,
		num: func(_ *evalCtx, v *code.View) (int64, bool) {
			c := isa.ControlOf(v.Inst.Word)
			return int64(c.Batch), c.Yield
		}},
	reuseFlag(0), reuseFlag(1), reuseFlag(2),
	{name: "guard", kind: fieldGuard, fixed: "a guard is set with @", instead: "@P0 or @!P0 sets, @! negates, @- takes away",
		text: func(_ *evalCtx, v *code.View) (string, bool) { return v.Guard(), true }},
	{name: "width", can: &numberRange{least: widths[0], most: widths[len(widths)-1], oneOf: widths},
		fixed: "width is read from the instruction; set its modifier", instead: ".64 or size=64",
		num: func(_ *evalCtx, v *code.View) (int64, bool) {
			n := v.Inst.Memory().Bytes
			return int64(n) * 8, n > 0
		}},
	{name: "pc", can: &numberRange{most: math.MaxInt64, step: isa.WordSize}, fixed: cannotBeSet,
		num: func(_ *evalCtx, v *code.View) (int64, bool) { return int64(v.PC()), true }},
	{name: "block", can: anyCount, fixed: cannotBeSet,
		num: func(ctx *evalCtx, v *code.View) (int64, bool) { return int64(ctx.code.Flow().Block(v.Index)), true }},
	{name: "loop", can: anyCount, fixed: cannotBeSet,
		num: func(ctx *evalCtx, v *code.View) (int64, bool) { return int64(ctx.code.Flow().LoopDepth(v.Index)), true }},
	{name: "line", can: anyCount, fixed: cannotBeSet,
		num: func(ctx *evalCtx, v *code.View) (int64, bool) {
			s := ctx.code.Line(v.Index)
			if s == nil {
				return 0, false
			}
			return int64(s.Line), true
		}},
	{name: "source", fixed: cannotBeSet,
		text: func(ctx *evalCtx, v *code.View) (string, bool) {
			s := ctx.code.Line(v.Index)
			if s == nil {
				return "", false
			}
			return s.File, true
		}},
	{name: "innermost", fixed: cannotBeSet,
		truth: func(ctx *evalCtx, v *code.View) (bool, bool) { return ctx.code.Flow().Innermost(v.Index), true }},
	{name: "loop_header", fixed: cannotBeSet,
		truth: func(ctx *evalCtx, v *code.View) (bool, bool) { return ctx.code.Flow().InHeader(v.Index), true }},
	{name: "opcode", kind: fieldOpcode, fixed: "opcode is read from the instruction; change it with a whole instruction in quotes",
		text: func(_ *evalCtx, v *code.View) (string, bool) {
			name := v.Inst.Mnemonic()
			return name, name != ""
		}},
	{name: "reads", kind: fieldRegs, fixed: cannotBeSet,
		regs: func(_ *evalCtx, v *code.View) (isa.RegSet, bool) {
			return v.Inst.Effects().Reads, v.Inst.HasEffects()
		}},
	{name: "writes", kind: fieldRegs, fixed: cannotBeSet,
		regs: func(_ *evalCtx, v *code.View) (isa.RegSet, bool) {
			return v.Inst.Effects().Writes, v.Inst.HasEffects()
		}},
	{name: "live", kind: fieldRegs, fixed: cannotBeSet,
		regs: func(ctx *evalCtx, v *code.View) (isa.RegSet, bool) { return ctx.code.Live(v.Index), true }},
	{name: "pressure", can: anyCount, fixed: cannotBeSet,
		num: func(ctx *evalCtx, v *code.View) (int64, bool) { return int64(ctx.code.Pressure(v.Index).R), true }},
	{name: "from", kind: fieldFrom, fixed: cannotBeSet,
		text: func(ctx *evalCtx, v *code.View) (string, bool) {
			o := ctx.code.Origin(v.Index)
			return o.String(), o.Kind == kernel.OriginConstant
		}},
	{name: "param", can: anyCount, fixed: cannotBeSet,
		num: func(ctx *evalCtx, v *code.View) (int64, bool) {
			n, ok := ctx.code.Param(v.Index)
			return int64(n), ok
		}},
	{name: "bits[a..b]", kind: fieldBits}, // read by bitsExpr, set by compileBits
	{name: "kernel", kind: fieldKernel, of: ofKernel, fixed: cannotBeSet,
		text: func(ctx *evalCtx, _ *code.View) (string, bool) { return ctx.code.Name, true }},
	{name: "arch", kind: fieldArch, of: ofKernel, fixed: cannotBeSet,
		text: func(ctx *evalCtx, _ *code.View) (string, bool) { return ctx.code.arch, true }},
	{name: "entry", kind: fieldEntry, of: ofKernel, can: &numberRange{least: 1, most: math.MaxInt64}, fixed: cannotBeSet,
		num: func(ctx *evalCtx, _ *code.View) (int64, bool) {
			n, err := strconv.ParseInt(ctx.code.Entry, 10, 64) // "" for a bare cubin
			return n, err == nil
		},
		text: func(ctx *evalCtx, _ *code.View) (string, bool) { return ctx.code.Entry, ctx.code.Entry != "" }},
	{name: "file", of: ofKernel, fixed: cannotBeSet,
		text: func(ctx *evalCtx, _ *code.View) (string, bool) { return ctx.code.File, true }},
	{name: "i", of: ofRun, fixed: cannotBeSet,
		num: func(ctx *evalCtx, _ *code.View) (int64, bool) { return int64(ctx.runPos()), true }},
	{name: "n", of: ofRun, fixed: cannotBeSet,
		num: func(ctx *evalCtx, _ *code.View) (int64, bool) { return int64(ctx.runLen()), true }},
}

// fieldNames finds the rows of fieldTable.
var fieldNames = func() map[string]*field {
	m := map[string]*field{}
	for i := range fieldTable {
		m[fieldTable[i].name] = &fieldTable[i]
	}
	return m
}()

// listedFields returns the names for a message, those of a run aside.
func listedFields() []string {
	var out []string
	for i := range fieldTable {
		if f := &fieldTable[i]; f.of != ofRun {
			out = append(out, f.name)
		}
	}
	return out
}

// otherWords cannot be labels, as fields cannot: they mean something else in a condition.
var otherWords = strings.Fields("dst imm prev next seen and or not in matches contains startsWith endsWith true false nil let if else param max min abs len")

// reserved reports whether a name cannot be a label.
func reserved(name string) bool {
	return slices.Contains(otherWords, name) || slices.ContainsFunc(fieldTable, func(f field) bool {
		head := f.name
		if i := strings.IndexAny(head, ".["); i >= 0 {
			head = head[:i]
		}
		return head == name
	})
}
