package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/isa"
)

// benchCode returns the table of sm_90 and the instructions of our test cubins, or of the
// sm_90 cubin that CUPATCH_BENCH_CUBIN names.
func benchCode(b *testing.B) (*isa.Table, []isa.Word) {
	t, err := isa.Load(isa.Arch{SM: 90})
	if err != nil {
		b.Skip(err)
	}
	pattern := "../../testdata/cubin/new/sm_90/*.cubin"
	if name := os.Getenv("CUPATCH_BENCH_CUBIN"); name != "" {
		pattern = name
	}
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		b.Fatalf("no cubins: %v", err)
	}
	var words []isa.Word
	for _, name := range files {
		f, err := elfx.OpenFile(name, nil)
		if err != nil {
			b.Fatal(err)
		}
		for _, e := range f.Entries() {
			c, err := e.Cubin()
			if err != nil {
				b.Fatal(err)
			}
			for _, k := range c.Kernels() {
				for d := k.Data(); len(d) >= isa.WordSize; d = d[isa.WordSize:] {
					words = append(words, isa.LoadWord(d))
				}
			}
		}
		f.Close()
	}
	return t, words
}

// perInstruction reports the time for one of n instructions.
func perInstruction(b *testing.B, n int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/instr")
}

// BenchmarkDecode decodes the code without making text.
func BenchmarkDecode(b *testing.B) {
	t, words := benchCode(b)
	b.ReportAllocs()
	known := 0
	for b.Loop() {
		for _, w := range words {
			if t.Decode(w).Status == isa.StatusKnown {
				known++
			}
		}
	}
	perInstruction(b, len(words))
}

// BenchmarkText decodes the code and makes its text.
func BenchmarkText(b *testing.B) {
	t, words := benchCode(b)
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		for i, w := range words {
			buf = t.AppendText(buf[:0], t.Decode(w), uint64(i)*isa.WordSize)
		}
	}
	perInstruction(b, len(words))
}

// BenchmarkEncode encodes the code's text again.
func BenchmarkEncode(b *testing.B) {
	t, words := benchCode(b)
	var texts []string
	for _, w := range words {
		if in := t.Decode(w); in.Status == isa.StatusKnown {
			texts = append(texts, t.Text(in, 0))
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		for _, s := range texts {
			if _, err := t.Encode(s, 0, nil); err != nil {
				b.Fatal(err)
			}
		}
	}
	perInstruction(b, len(texts))
}
