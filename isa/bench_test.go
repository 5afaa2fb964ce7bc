package isa

import (
	"math/rand/v2"
	"testing"
)

// benchWords returns words of the last variant of the small table, LDG.
func benchWords(tab *Table) []Word {
	r := rand.New(rand.NewPCG(1, 4))
	v := tab.Variants()[len(tab.Variants())-1]
	words := make([]Word, 4096)
	for i := range words {
		w := Word{r.Uint64(), r.Uint64()}.And(usedBits(v)).AndNot(v.Mask).Or(v.Value)
		words[i] = DefaultControl.Set(w)
	}
	return words
}

func BenchmarkDecodeOne(b *testing.B) {
	tab := miniTable(b)
	words := benchWords(tab)
	b.ReportAllocs()
	n := 0
	for i := 0; b.Loop(); i++ {
		n += int(tab.Decode(words[i&4095]).Status)
	}
}

func BenchmarkTextOne(b *testing.B) {
	tab := miniTable(b)
	words := benchWords(tab)
	var buf []byte
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		buf = tab.AppendText(buf[:0], tab.Decode(words[i&4095]), 0)
	}
}

func BenchmarkEncodeOne(b *testing.B) {
	tab := miniTable(b)
	var texts []string
	for _, w := range benchWords(tab) {
		texts = append(texts, tab.Text(tab.Decode(w), 0))
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, err := tab.Encode(texts[i&4095], 0, nil); err != nil {
			b.Fatal(err)
		}
	}
}
