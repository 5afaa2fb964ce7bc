// Classcases asks nvdisasm for one word of every encoding class of every instruction table,
// and writes them to isa/testdata/classes, where the tests of package isa read them. It asks
// for the texts of the words in isa/testdata/words.txt too, words that a table once had wrong:
//
//	go run ./isa/internal/classcases NVDISASM OLD
//
// OLD is a version 12 of nvdisasm, which knows sm_70 and sm_72. It fails where nvdisasm does
// not print what the table says.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/isa/internal/cases"
	"github.com/cupatch/cupatch/isa/learn"
)

// samples is the number of words of a class of which the one with the longest text becomes
// the case.
const samples = 12

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: go run ./isa/internal/classcases NVDISASM OLD")
		os.Exit(2)
	}
	err := run(filepath.Join("isa", "testdata", "classes"))
	if err == nil {
		err = answerWords(filepath.Join("isa", "testdata", "words.txt"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "classcases:", err)
		os.Exit(1)
	}
}

func run(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	done := map[isa.Arch]bool{}
	var write func(a isa.Arch) error
	write = func(a isa.Arch) error {
		if done[a] {
			return nil
		}
		done[a] = true
		file, err := isa.LoadFile(a)
		if err != nil {
			return err
		}
		if file.Base != (isa.Arch{}) {
			if err := write(file.Base); err != nil {
				return err
			}
		}
		return writeArch(dir, a, file.Base)
	}
	for _, a := range isa.Arches() {
		if err := write(a); err != nil {
			return fmt.Errorf("%s: %w", a, err)
		}
	}
	return nil
}

// writeArch writes the cases that a does not share with base, whose file is written.
func writeArch(dir string, a, base isa.Arch) error {
	table, err := isa.Load(a)
	if err != nil {
		return err
	}
	o, err := open(a)
	if err != nil {
		return err
	}
	defer o.Close()
	shared, err := sharedCases(o, dir, base, table)
	if err != nil {
		return err
	}
	var vs []*isa.Variant
	for _, v := range table.Variants() {
		if !shared[cases.KeyOf(v.Value, v.Class)] {
			vs = append(vs, v)
		}
	}
	own, err := choose(o, table, vs)
	if err != nil {
		return err
	}
	fmt.Printf("%s: %d classes, %d cases shared with %s\n", a, len(table.Variants()), len(shared), base)
	return cases.Write(dir, a, base, own)
}

// open starts the nvdisasm that knows a.
func open(a isa.Arch) (*learn.Oracle, error) {
	tool := os.Args[1]
	if a.SM < 75 {
		tool = os.Args[2]
	}
	return learn.OpenOracle(tool, a, filepath.Join(os.TempDir(), "classcases"))
}

// answerWords asks for the texts of the words in a file.
func answerWords(name string) error {
	cs, err := cases.ReadWords(name)
	if err != nil {
		return err
	}
	byArch := map[isa.Arch][]int{}
	for i, c := range cs {
		byArch[c.Arch] = append(byArch[c.Arch], i)
	}
	for a, is := range byArch {
		o, err := open(a)
		if err != nil {
			return err
		}
		ws := make([]isa.Word, len(is))
		for k, i := range is {
			ws[k] = cs[i].Word
		}
		said, err := texts(o, ws)
		o.Close()
		if err != nil {
			return err
		}
		for k, i := range is {
			if cs[i].Text = said[k]; said[k] == "" {
				cs[i].Text = cases.Refused
			}
		}
	}
	return cases.WriteWords(name, cs)
}

// sharedCases returns the classes of the table whose case in base's file holds for it
// too.
func sharedCases(o *learn.Oracle, dir string, base isa.Arch, table *isa.Table) (map[cases.Key]bool, error) {
	shared := map[cases.Key]bool{}
	if base == (isa.Arch{}) {
		return shared, nil
	}
	keys := map[cases.Key]bool{}
	for _, v := range table.Variants() {
		keys[cases.KeyOf(v.Value, v.Class)] = true
	}
	cs, err := cases.Read(dir, base, keys)
	if err != nil {
		return nil, err
	}
	said, err := texts(o, words(cs))
	if err != nil {
		return nil, err
	}
	for i, text := range said {
		c := cs[i]
		in := table.Decode(c.Word)
		if text != c.Text || in.Variant == nil || in.Variant.Class != c.Class {
			continue
		}
		if said := say(table, in); said != text {
			return nil, fmt.Errorf("%s: %v: nvdisasm prints %q, the table says %q", c.Class, c.Word, text, said)
		}
		shared[cases.KeyOf(c.Word, c.Class)] = true
	}
	return shared, nil
}

func words(cs []cases.Case) []isa.Word {
	ws := make([]isa.Word, len(cs))
	for i, c := range cs {
		ws[i] = c.Word
	}
	return ws
}

// texts asks for the texts of words at address 0.
func texts(o *learn.Oracle, ws []isa.Word) ([]string, error) {
	answers, err := o.AskAtZero(ws)
	if err != nil {
		return nil, err
	}
	out := make([]string, len(ws))
	for i, a := range answers {
		switch {
		case a.Silent():
			out[i] = cases.Silent
		case a.OK:
			out[i] = a.Text
		}
	}
	return out, nil
}

// say returns the text of a case as the table has it.
func say(table *isa.Table, in isa.Inst) string {
	if in.Status == isa.StatusSilent {
		return cases.Silent
	}
	return table.Text(in, 0)
}

// choose returns a case of each of vs.
func choose(o *learn.Oracle, table *isa.Table, vs []*isa.Variant) ([]cases.Case, error) {
	var all []isa.Word
	end := make([]int, len(vs)) // of each variant's words
	for i, v := range vs {
		ws, _ := learn.TestWords(table, v, samples)
		all = append(append(all, ws...), learn.PlainWords(v)...)
		end[i] = len(all)
	}
	said, err := texts(o, all)
	if err != nil {
		return nil, err
	}
	var out []cases.Case
	for i, start := 0, 0; i < len(vs); i++ {
		c, err := longest(table, vs[i], all[start:end[i]], said[start:end[i]])
		if err != nil {
			return nil, err
		}
		out = append(out, c)
		start = end[i]
	}
	return out, nil
}

// longest returns the case of v: of its words the one with the longest text, as nvdisasm
// said them.
func longest(table *isa.Table, v *isa.Variant, ws []isa.Word, texts []string) (cases.Case, error) {
	best := cases.Case{}
	for i, text := range texts {
		in := table.Decode(ws[i])
		if in.Variant != v || in.BadSched || text == "" || len(text) <= len(best.Text) {
			continue
		}
		if said := say(table, in); said != text {
			return best, fmt.Errorf("%s: %v: nvdisasm prints %q, the table says %q", v.Class, ws[i], text, said)
		}
		best = cases.Case{Word: ws[i], Class: v.Class, Text: text}
	}
	if best.Text == "" {
		return best, fmt.Errorf("%s: nvdisasm accepts no word of it, such as %v", v.Class, ws[0])
	}
	return best, nil
}
