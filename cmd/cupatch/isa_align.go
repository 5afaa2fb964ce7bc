package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/isa/habits"
	"github.com/cupatch/cupatch/patch/code"
)

const alignHead = `# Of which powers of two the operands of instructions are multiples in code of ptxas.
# cupatch isa learn --align makes this file; docs/effects.md says how to read it.
`

// learnAlign counts what the operands of all instructions in files are multiples of and
// writes that to out.
func (e *env) learnAlign(files []string, out string) error {
	count := habits.NewAlign()
	words, status, err := e.eachInstruction(files, func(in isa.Inst) { count.Add(in) })
	if err != nil {
		return err
	}
	text := count.Text()
	if err := os.WriteFile(out, []byte(alignHead+text), 0o644); err != nil {
		return err
	}
	e.notef("%d classes, %d different instructions", strings.Count(text, "\n"), words)
	return silent(status)
}

// checkAlign prints the instructions in files with operands that are not what they are in
// ptxas code by the table in file, or that of the program.
func (e *env) checkAlign(files []string, file string) error {
	misaligned := isa.Inst.Misaligned
	if file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		t, err := isa.ParseAlign(string(text))
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		misaligned = func(in isa.Inst) []isa.Misalignment { return t.Misaligned(in) }
	}
	bad := 0
	words, status, err := e.eachInstruction(files, func(in isa.Inst) {
		if list := misaligned(in); len(list) > 0 {
			bad++
			fmt.Fprintf(e.stdout, "%s %s: %s\n", in.Word, in.Variant.Class, list[0])
		}
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(e.stdout, "%d different instructions, %d of them not aligned\n", words, bad)
	if bad > 0 {
		status = worse(status, 1)
	}
	return silent(status)
}

// eachInstruction calls do for the instructions of all kernels in files, each different one
// of an architecture once, and returns how many there are. Control codes do not make them
// different.
func (e *env) eachInstruction(files []string, do func(isa.Inst)) (n, status int, err error) {
	if len(files) == 0 {
		return 0, 0, e.usagef("whose code? name files or folders")
	}
	known := map[*isa.Table]map[isa.Word]bool{}
	status, err = e.eachFile(files, nil, func(f *elfx.File, _ map[*elfx.Entry]bool) error {
		for _, x := range f.Entries() {
			c, err := x.Cubin()
			if err != nil {
				continue // PTX, or damage that other commands report
			}
			t, err := code.TableOf(c)
			if err != nil {
				continue
			}
			if known[t] == nil {
				known[t] = map[isa.Word]bool{}
			}
			for _, k := range c.Kernels() {
				eachNew(t, known[t], k.Data(), do)
			}
		}
		return nil
	})
	for _, m := range known {
		n += len(m)
	}
	return n, status, err
}

// eachNew calls do for the instructions of data that are not among the known ones.
func eachNew(t *isa.Table, known map[isa.Word]bool, data []byte, do func(isa.Inst)) {
	for ; len(data) >= isa.WordSize; data = data[isa.WordSize:] {
		w := isa.LoadWord(data)
		if key := w.AndNot(code.ControlMask); !known[key] {
			known[key] = true
			do(t.Decode(w))
		}
	}
}
