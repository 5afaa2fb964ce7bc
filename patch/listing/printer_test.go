package listing_test

import (
	"math/rand/v2"
	"testing"

	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/patch/internal/patchtest"
	"github.com/cupatch/cupatch/patch/listing"
)

// TestPrinter checks that a printer writes what AppendLine writes, whatever it has kept:
// words that come again at other addresses, branches among them, more words than there
// are slots, and words that no table knows.
func TestPrinter(t *testing.T) {
	table := patchtest.MiniTable(t)
	data := patchtest.Code(t, table, patchtest.Lines("NOP\n@P0 BRA 0x0\nFFMA R0, R1, R2, R3\nBRA 0x20\nEXIT\nLDG.E R0, desc[UR4][R2.64]"))
	var words []isa.Word
	for off := 0; off < len(data); off += isa.WordSize {
		words = append(words, isa.LoadWord(data[off:]))
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		words = append(words, isa.Word{Lo: rnd.Uint64(), Hi: rnd.Uint64()})
	}
	for _, style := range []listing.Style{{}, {Hex: true}, {Control: listing.ControlNvidia}, {Control: listing.ControlNone}} {
		p := listing.Printer{Style: style, Table: table}
		for i := range 60000 {
			w := words[rnd.IntN(len(words))]
			if i%4 == 0 { // one of many: a register of FFMA
				w = words[2]
				w.Lo ^= rnd.Uint64N(1<<24) << 16
			}
			pc := uint64(i) * isa.WordSize
			got, status := p.AppendLine(nil, w, pc)
			if want := style.AppendLine(nil, table, w, pc); string(got) != string(want) {
				t.Fatalf("%v at %#x: got %q, want %q", w, pc, got, want)
			}
			if want := table.Decode(w).Status; status != want {
				t.Fatalf("%v: status %v, want %v", w, status, want)
			}
		}
	}
}
