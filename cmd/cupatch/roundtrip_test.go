package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/patch"
	"github.com/cupatch/cupatch/patch/code"
	"github.com/cupatch/cupatch/patch/listing"
)

// TestNotations writes code in every notation and reads it back with everything that reads
// lines: isa encode, apply, the assembler of recipes' tests. Each gives the same control
// codes and, where the text says all, the same words.
func TestNotations(t *testing.T) {
	files, err := filepath.Glob("../../testdata/cubin/new/sm_[19]*0/*.cubin")
	if err != nil || len(files) < 3 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	lines := 0
	for _, name := range files {
		f, err := patch.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		target, err := code.Open(f.Entries()[0])
		if err != nil {
			t.Fatal(err)
		}
		for i := range target.Cubin.Kernels() {
			k := &target.Cubin.Kernels()[i]
			for n, style := range []listing.Style{{}, {Hex: true}, {Control: listing.ControlNvidia}, {Control: listing.ControlNvidia, Hex: true}, {Labels: true}, {}, {Labels: true, Hex: true}} {
				text := style.AppendKernel(nil, target.Table, target.Kernel(k))
				silent := style.Control == listing.ControlNvidia && !bytes.ContainsAny(text, "&?") // nothing but drains: it shows no code at all
				if n >= 5 {
					text = style.AppendNoted(nil, target.Table, target.Kernel(k), allNotes(t, target, k), nil)
				}
				where := fmt.Sprintf("%s: %s, notation %d", name, k.Name, n)
				if !silent {
					lines += checkEncoded(t, where, target.Table, text, k.Data())
				}
				list, err := listing.Parse("k", strings.NewReader(listing.Header(target.Kernel(k), target.Cubin.Arch)+"\n"+string(text)))
				if err != nil {
					t.Fatalf("%s: %v", where, err)
				}
				if edits, err := patch.ListingEdits("k", list, target, nil); err != nil || len(edits) > 0 {
					t.Errorf("%s: apply makes %d edits, %v", where, len(edits), err)
				}
				if silent {
					continue
				}
				words, err := listing.Assemble(target.Table, "k", string(text))
				if err != nil {
					t.Errorf("%s: %v", where, err)
					continue
				}
				sameControl(t, where+": assembled", words, k.Data())
			}
		}
		f.Close()
	}
	if lines < 1000 {
		t.Errorf("only %d lines", lines)
	}
}

// allNotes returns all that a listing can say of a kernel.
func allNotes(t *testing.T, target *code.Target, k *elfx.Kernel) listing.Notes {
	t.Helper()
	n := noting{lining: lining{linesInline}, blocks: true, live: true}
	lines, err := n.lineTable(target.Lines)
	if err != nil {
		t.Fatal(err)
	}
	return *n.notes(&disCubin{target: target, lines: lines}, k, target.Kernel(k))
}

// checkEncoded encodes the lines of a kernel as isa encode does.
func checkEncoded(t *testing.T, where string, table *isa.Table, text, want []byte) int {
	t.Helper()
	enc := &encoder{table: table}
	var out []byte
	for _, l := range bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n")) {
		out = append(out, enc.next(l)...)
	}
	out = append(out, enc.flush(false)...)
	list := strings.FieldsFunc(string(out), func(r rune) bool { return r == '\n' }) // comments and labels give empty lines
	got := make([]byte, len(list)*isa.WordSize)
	for i, l := range list {
		w, _, err := isa.ParseWord(l)
		if err != nil {
			t.Errorf("%s: line %d: %s", where, i+1, l)
			return 0
		}
		w.Store(got[i*isa.WordSize:])
	}
	sameControl(t, where+": isa encode", got, want)
	return len(list)
}

// sameControl compares the control codes of two pieces of code.
func sameControl(t *testing.T, where string, got, want []byte) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d bytes, want %d", where, len(got), len(want))
		return
	}
	for off := 0; off < len(got); off += isa.WordSize {
		a, b := isa.ControlOf(isa.LoadWord(got[off:])), isa.ControlOf(isa.LoadWord(want[off:]))
		if a != b {
			t.Errorf("%s: %#x has %s, want %s", where, off, a, b)
			return
		}
	}
}

// TestEncodePending sees that lines which wait for a control code come out in order, and
// that a stream without any is not kept for ever.
func TestEncodePending(t *testing.T) {
	text, err := os.ReadFile("../../testdata/cubin/new/sm_90/proof.cubin")
	if err != nil || len(text) == 0 {
		t.Fatal(err)
	}
	table, err := isa.Load(isa.Arch{SM: 90})
	if err != nil {
		t.Fatal(err)
	}
	enc := &encoder{table: table}
	out := 0
	for i := range 3 * maxPending {
		out += bytes.Count(enc.next(fmt.Appendf(nil, "/*%04x*/ NOP ;", 16*i)), []byte("\n"))
	}
	if left := bytes.Count(enc.flush(false), []byte("\n")); out+left != 3*maxPending || left > 0 {
		t.Errorf("%d lines and %d at the end", out, left)
	}
}
