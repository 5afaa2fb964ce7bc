package main

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/patch/code"
	"github.com/cupatch/cupatch/patch/diff"
	"github.com/cupatch/cupatch/patch/listing"
)

// A jsonKernel is a kernel as dis --json prints it.
type jsonKernel struct {
	File         string     `json:"file"`
	Entry        int        `json:"entry,omitempty"` // number in a container
	Arch         string     `json:"arch"`
	Kernel       string     `json:"kernel"`
	Demangled    string     `json:"demangled,omitempty"`
	Registers    int        `json:"registers"`
	Offset       int64      `json:"offset"` // in the cubin
	Size         int64      `json:"size"`
	Instructions []struct{} `json:"instructions"` // empty; appended as text
}

// json appends one line with a kernel and its instructions, or those at the addresses in
// matches.
func (t *disText) json(p *disPrinter, s *disCubin, k *elfx.Kernel, c *code.Kernel, matches []int, notes *listing.Notes) {
	j := jsonKernel{
		File: c.File, Arch: s.target.Cubin.Arch, Kernel: k.Name, Registers: k.Regs, Offset: k.Offset, Size: k.Size,
		Instructions: []struct{}{},
	}
	if c.Entry != "" {
		j.Entry = s.entry.Number
	}
	if d := k.Demangled(); d != k.Name {
		j.Demangled = d
	}
	b, err := json.Marshal(j)
	if err != nil {
		return // strings and numbers always marshal
	}
	if matches == nil {
		t.buf = slices.Grow(t.buf, len(c.Data)/isa.WordSize*jsonSize)
	}
	t.buf = append(t.buf, b[:len(b)-len("]}")]...)
	if matches != nil {
		t.countUnknown(p.Table, c.Data)
		for i, pc := range matches {
			t.instJSON(p, c.Data, pc, i == 0, notes)
		}
	} else {
		for pc := 0; pc+isa.WordSize <= len(c.Data); pc += isa.WordSize {
			if t.instJSON(p, c.Data, pc, pc == 0, notes) == isa.StatusUnknown {
				t.unknown++
			}
		}
	}
	t.buf = append(t.buf, "]}\n"...)
}

// jsonSize is how many bytes the JSON of an instruction takes, mostly.
const jsonSize = 250

// instJSON appends one instruction, with notes unless they are nil.
func (t *disText) instJSON(p *disPrinter, data []byte, pc int, first bool, notes *listing.Notes) isa.Status {
	if !first {
		t.buf = append(t.buf, ',')
	}
	t.buf = strconv.AppendInt(append(t.buf, `{"pc":`...), int64(pc), 10)
	w := isa.LoadWord(data[pc:])
	dst, status, ok := p.json.Append(appendWordJSON(t.buf, w), w.Unscheduled())
	if !ok {
		in := p.Table.Decode(w)
		start := len(dst)
		dst = appendTextJSON(dst, p.Table, in, uint64(pc), &p.parts)
		if status = in.Status; in.Steady() {
			p.json.KeepFor(w.Unscheduled(), status, dst[start:])
		}
	}
	if notes != nil {
		dst = appendNotesJSON(dst, notes, p.Table.Decode(w), pc)
	}
	t.buf = dst
	return status
}

// appendWordJSON appends what comes after the address of an instruction: its word as two
// halves, and its control code.
func appendWordJSON(dst []byte, w isa.Word) []byte {
	dst = isa.AppendHalf(append(dst, `,"word":["0x`...), w.Lo)
	dst = isa.AppendHalf(append(dst, `","0x`...), w.Hi)
	ctl := isa.ControlOf(w)
	dst = append(ctl.Append(append(dst, `"],"control":"`...)), '"')
	if ctl.Batch != 0 {
		dst = append(append(dst, `,"batch":`...), '0'+ctl.Batch)
	}
	return dst
}

// appendTextJSON appends what comes after that: text, and the parts of the text, which
// p is used for.
func appendTextJSON(dst []byte, t *isa.Table, in isa.Inst, pc uint64, p *isa.Parts) []byte {
	text := t.Text(in, pc)
	dst = appendString(append(dst, `,"text":`...), text)
	if in.Status != isa.StatusKnown || in.Variant == nil {
		if in.Status == isa.StatusUnknown {
			dst = append(dst, `,"unknown":true`...)
		}
		return append(dst, '}')
	}
	p.SetText(text)
	if p.Guard != "" {
		dst = appendString(append(dst, `,"guard":`...), p.Guard)
	}
	if p.Mnemonic != "" {
		dst = appendString(append(dst, `,"opcode":`...), p.Mnemonic)
	}
	dst = appendStrings(dst, `,"modifiers":`, p.Mods)
	dst = appendStrings(dst, `,"operands":`, p.Operands)
	dst = appendStrings(dst, `,"names":`, p.Names)
	return append(dst, '}')
}

// appendStrings appends a list with its key, or nothing if it is empty.
func appendStrings(dst []byte, key string, list []string) []byte {
	if len(list) == 0 {
		return dst
	}
	dst = append(append(dst, key...), '[')
	for i, s := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendString(dst, s)
	}
	return append(dst, ']')
}

// plain holds what JSON writes as it is, and as encoding/json does.
var plain = func() (is [256]bool) {
	for c := ' '; c < 0x7f; c++ {
		is[c] = c != '"' && c != '\\' && c != '<' && c != '>' && c != '&'
	}
	return is
}()

// appendString appends s as JSON.
func appendString(dst []byte, s string) []byte {
	for i := range len(s) {
		if !plain[s[i]] {
			b, err := json.Marshal(s)
			if err != nil {
				return dst // strings always marshal
			}
			return append(dst, b...)
		}
	}
	return append(append(append(dst, '"'), s...), '"')
}

// kernelsOf returns the kernels of a cubin that -k lets through, sorted by name if asked.
func (n *narrowing) kernelsOf(c *elfx.Cubin, sorted bool) []*elfx.Kernel {
	var out []*elfx.Kernel
	ks := c.Kernels()
	for i := range ks {
		if n.kernelWanted(&ks[i]) {
			out = append(out, &ks[i])
		}
	}
	if sorted {
		slices.SortStableFunc(out, func(a, b *elfx.Kernel) int {
			return strings.Compare(diff.StableName(a.Name), diff.StableName(b.Name))
		})
	}
	return out
}
