package listing_test

import (
	"testing"

	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/patch/code"
	"github.com/cupatch/cupatch/patch/internal/patchtest"
	"github.com/cupatch/cupatch/patch/listing"
)

func TestStableListing(t *testing.T) {
	table := patchtest.MiniTable(t)
	data := patchtest.Code(t, table, patchtest.Lines("NOP\n@P0 BRA 0x0\nFFMA R0, R1, R2, R3\nBRA 0x20\nEXIT\nBRA 0x50\nNOP\nNOP"))
	got := string(listing.Style{Stable: true}.AppendKernel(nil, table, &code.Kernel{Name: "k", Data: data}))
	want := ".L0:\n" + patchtest.Control + "NOP ;\n" + patchtest.Control + "@P0 BRA .L0 ;\n.L1:\n" + patchtest.Control + "FFMA R0, R1, R2, R3 ;\n" + patchtest.Control + "BRA .L1 ;\n" + patchtest.Control + "EXIT ;\n"
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// TestAppendLineAllocates sees that a listing line costs no allocation.
func TestAppendLineAllocates(t *testing.T) {
	table := patchtest.MiniTable(t)
	data := patchtest.Code(t, table, patchtest.Lines("LDG.E.CONSTANT R0, desc[UR4][R2.64]"))
	w := isa.LoadWord(data)
	buf := make([]byte, 0, 256)
	if n := testing.AllocsPerRun(100, func() { buf = listing.Style{Hex: true}.AppendLine(buf[:0], table, w, 0x70) }); n > 0 {
		t.Errorf("%v allocations a line", n)
	}
}
