package main

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/patch/code"
	"github.com/cupatch/cupatch/patch/diff"
	"github.com/cupatch/cupatch/patch/report"
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
	Instructions []jsonInst `json:"instructions"`
}

// A jsonInst is an instruction as dis --json prints it.
type jsonInst struct {
	PC        uint64      `json:"pc"`
	Word      report.Word `json:"word"`
	Control   string      `json:"control"`
	Batch     uint8       `json:"batch,omitempty"`
	Text      string      `json:"text"`
	Guard     string      `json:"guard,omitempty"`
	Opcode    string      `json:"opcode,omitempty"`
	Modifiers []string    `json:"modifiers,omitempty"`
	Operands  []string    `json:"operands,omitempty"`
	Names     []string    `json:"names,omitempty"` // of the operands
	Unknown   bool        `json:"unknown,omitempty"`
}

// appendKernelJSON appends one line with a kernel and its instructions, or those at
// the addresses in matches.
func appendKernelJSON(dst []byte, k *elfx.Kernel, c *code.Kernel, t *code.Target, e *elfx.Entry, matches []int) []byte {
	j := jsonKernel{File: c.File, Arch: e.ArchOf(t.Cubin), Kernel: k.Name, Registers: k.Regs, Offset: k.Offset, Size: k.Size, Instructions: []jsonInst{}}
	if c.Entry != "" {
		j.Entry = e.Number
	}
	if d := k.Demangled(); d != k.Name {
		j.Demangled = d
	}
	if matches == nil {
		for off := 0; off+isa.WordSize <= len(c.Data); off += isa.WordSize {
			matches = append(matches, off)
		}
	}
	for _, pc := range matches {
		j.Instructions = append(j.Instructions, newJSONInst(t.Table, isa.LoadWord(c.Data[pc:]), uint64(pc)))
	}
	b, err := json.Marshal(j)
	if err != nil {
		return dst // strings and numbers always marshal
	}
	return append(append(dst, b...), '\n')
}

func newJSONInst(t *isa.Table, w isa.Word, pc uint64) jsonInst {
	in := t.Decode(w)
	p := t.Split(in, pc)
	ctl := isa.ControlOf(w)
	return jsonInst{
		PC: pc, Word: report.Word(w), Control: ctl.String(), Batch: ctl.Batch, Text: t.Text(in, pc),
		Guard: p.Guard, Opcode: p.Mnemonic, Modifiers: p.Mods, Operands: p.Operands, Names: p.Names,
		Unknown: in.Status == isa.StatusUnknown,
	}
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
