package main

import (
	"encoding/json"
	"fmt"
	"sort"
	"strings"

	"github.com/cupatch/cupatch/elfx"
)

// writeFile prints the tree of a file.
func (r *lsRun) writeFile(f *lsFile, depth int) {
	pad := strings.Repeat("  ", depth)
	fmt.Fprintf(r.stdout, "%s%s: %s, %d bytes\n", pad, r.paint(ansiBold, elfx.Printable(f.Name)), f.Kind, f.Size)
	r.writeError(pad+"  ", f.Error)
	for _, s := range f.Sections {
		inner := pad + "  "
		if s.Name != "" || s.Account != nil {
			r.writeSection(inner, s)
			inner += "  "
		}
		for _, c := range s.Containers {
			r.writeContainer(inner, c)
		}
	}
	if f.For != nil && f.For.Cubin+f.For.PTX+f.For.Nothing > 0 {
		fmt.Fprintf(r.stdout, "%s  for %s: %d load a cubin, %d compile PTX, %d have nothing\n", pad, f.For.Device, f.For.Cubin, f.For.PTX, f.For.Nothing)
	}
	for _, m := range f.Members {
		r.writeFile(m, depth+1)
	}
}

func (r *lsRun) writeError(pad, msg string) {
	if msg != "" {
		fmt.Fprintf(r.stdout, "%s%s\n", pad, r.paint(ansiRed, "error: "+printableLines(msg)))
	}
}

func (r *lsRun) writeSection(pad string, s *lsSection) {
	name := s.Name
	if name == "" {
		name = "whole file"
	} else {
		name = "section " + elfx.Printable(name)
	}
	fmt.Fprintf(r.stdout, "%s%s at 0x%x: %d bytes", pad, name, s.Offset, s.Size)
	if a := s.Account; a != nil {
		fmt.Fprintf(r.stdout, " = %d headers + %d payload + %d padding", a.Headers, a.Payload, a.Padding)
		if a.Damaged > 0 {
			fmt.Fprintf(r.stdout, " + %d damaged", a.Damaged)
		}
		if a.Other > 0 {
			fmt.Fprintf(r.stdout, " + %d other", a.Other)
		}
	}
	fmt.Fprintln(r.stdout)
}

func (r *lsRun) writeContainer(pad string, c *lsContainer) {
	inner := pad
	if c.Kind != elfx.ContainerCubin.String() {
		count := plural(c.Count, "entry", "entries")
		if len(c.Entries) != c.Count {
			count = fmt.Sprintf("%d of %s", len(c.Entries), count)
		}
		fmt.Fprintf(r.stdout, "%s%s at 0x%x: %s, %d bytes", pad, c.Kind, c.Offset, count, c.Size)
		inner += "  "
		switch {
		case c.Loads != nil && c.Loads.Entry == 0:
			fmt.Fprint(r.stdout, r.paint(ansiRed, " (nothing to load)"))
		case c.Unread != "":
			fmt.Fprintf(r.stdout, " (never loaded: %s)", c.Unread)
		}
		fmt.Fprintln(r.stdout)
	}
	r.writeError(inner, c.Error)
	for _, e := range c.Entries {
		r.writeEntry(inner, c, e)
	}
}

func (r *lsRun) writeEntry(pad string, c *lsContainer, e *lsEntry) {
	size := fmt.Sprintf("%d bytes", e.Size)
	if e.Compression != "stored" {
		size = fmt.Sprintf("%s %d of %d bytes", e.Compression, e.Stored, e.Size)
		if e.PartOf > 0 {
			size = fmt.Sprintf("%d bytes, part of #%d", e.Size, e.PartOf)
		}
	}
	fmt.Fprintf(r.stdout, "%s%s %s, %s", pad, r.paint(ansiCyan, fmt.Sprintf("#%d", e.Number)), strings.TrimSpace(e.Kind+" "+e.Arch), size)
	for _, s := range e.notes() {
		fmt.Fprint(r.stdout, ", ", s)
	}
	if e.Disagree {
		fmt.Fprint(r.stdout, r.paint(ansiRed, ", the cubin says "+e.CubinArch))
	}
	if e.DuplicateOf != "" {
		same := e.DuplicateOf
		if file, _, _ := elfx.SplitSelector(e.ID); strings.HasPrefix(same, file+"#") {
			same = same[len(file):]
		}
		fmt.Fprintf(r.stdout, ", same as %s", same)
	}
	if e.Loaded {
		what := "  ← loaded"
		if c.Loads.How == elfx.LoadPTX.String() {
			what = "  ← compiled by the driver"
		}
		fmt.Fprint(r.stdout, r.paint(ansiGreen, what))
	}
	fmt.Fprintln(r.stdout)
	r.writeError(pad+"  ", e.Error)
	for _, k := range e.Kernels {
		r.writeKernel(pad+"  ", k)
	}
}

// notes lists the facts of an entry that are worth a word when they hold.
func (e *lsEntry) notes() []string {
	var out []string
	if e.Toolkit != "" {
		out = append(out, "CUDA "+e.Toolkit)
	}
	if e.PTXVersion != "" {
		out = append(out, "PTX "+e.PTXVersion)
	}
	if e.Relocatable {
		out = append(out, "relocatable")
	}
	if e.Debug {
		out = append(out, "debug")
	}
	if e.Mercury {
		out = append(out, "Mercury")
	}
	if e.Obfuscated {
		out = append(out, "obfuscated")
	}
	if o := strings.TrimSpace(e.Options); o != "" {
		out = append(out, "options "+elfx.Printable(o))
	}
	if e.Name != "" {
		out = append(out, "from "+elfx.Printable(e.Name))
	}
	return out
}

func (r *lsRun) writeKernel(pad string, k *lsKernel) {
	name := k.Name
	if !r.mangled && k.Demangled != "" {
		name = k.Demangled
	}
	what := "kernel"
	if !k.Entry {
		what = "function"
	}
	fmt.Fprintf(r.stdout, "%s%s %s: %s", pad, what, elfx.Printable(name), plural(k.Instructions, "instruction", "instructions"))
	for _, p := range []struct {
		n    int
		unit string
	}{{k.Registers, pluralWord(k.Registers, "register", "registers")}, {k.Shared, "bytes shared"}, {k.Local, "bytes local"}, {k.Stack, "bytes stack"}, {k.Params, "bytes params"}} {
		if p.n > 0 {
			fmt.Fprintf(r.stdout, ", %d %s", p.n, p.unit)
		}
	}
	if k.Stack < 0 {
		fmt.Fprint(r.stdout, ", unbounded stack")
	}
	fmt.Fprintln(r.stdout)
}

// writeJSON prints one element of the list of files.
func (r *lsRun) writeJSON(f *lsFile) error {
	b, err := json.MarshalIndent(f, "  ", "  ")
	if err != nil {
		return err
	}
	if r.files++; r.files > 1 {
		fmt.Fprint(r.stdout, ",")
	}
	fmt.Fprintf(r.stdout, "\n  %s", b)
	return nil
}

// end writes the totals.
func (r *lsRun) end() {
	t := &r.totals
	if r.json {
		b, _ := json.Marshal(t) // plain numbers and strings cannot fail
		fmt.Fprintf(r.stdout, "\n], \"totals\": %s}\n", b)
		return
	}
	if t.Entries < 2 && t.Errors == 0 {
		return
	}
	var kinds []string
	for k, n := range t.Kinds {
		kinds = append(kinds, fmt.Sprintf("%d %s", n, k))
	}
	sort.Strings(kinds)
	entries := plural(t.Entries, "entry", "entries")
	if kinds != nil {
		entries += " (" + strings.Join(kinds, ", ") + ")"
	}
	fmt.Fprintf(r.stdout, "total: %s, %s, %s, %s, %s, %d of %d bytes stored", plural(t.Files, "file", "files"),
		plural(t.Containers, "container", "containers"), entries,
		plural(t.Kernels, "kernel", "kernels"), plural(t.Functions, "device function", "device functions"), t.Stored, t.Size)
	if t.Duplicates > 0 {
		fmt.Fprintf(r.stdout, ", %s", plural(t.Duplicates, "duplicate", "duplicates"))
	}
	if t.Errors > 0 {
		fmt.Fprintf(r.stdout, ", %s", plural(t.Errors, "error", "errors"))
	}
	fmt.Fprintln(r.stdout)
}
