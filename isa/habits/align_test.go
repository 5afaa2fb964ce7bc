package habits

import (
	"strings"
	"testing"

	"github.com/cupatch/cupatch/isa"
)

// Two loads at even registers, one at a multiple of four, and a silent one.
func TestAlign(t *testing.T) {
	table, err := isa.Load(isa.Arch{SM: 90})
	if err != nil {
		t.Fatal(err)
	}
	a := NewAlign()
	for _, text := range []string{"LDG.E.64 R4, desc[UR4][R8.64+0x18]", "LDG.E.64 R6, desc[UR4][R8.64+0x8]", "LDG.E R5, desc[UR4][R8.64]"} {
		w, err := table.Encode(text, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		a.Add(table.Decode(w))
	}
	a.Add(isa.Inst{})
	want := "ldg_memdesc__Ra64 R16*2=2:2:2 R24*2=2:3:1 UR32*2=2:3:1 +40*8=8:2:2\n"
	if got := a.Text(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if _, err := isa.ParseAlign(alignHead(a)); err != nil {
		t.Error(err)
	}
}

// alignHead is a's text with a comment and an empty line, as a file may have.
func alignHead(a *Align) string { return strings.Join([]string{"# comment", "", a.Text()}, "\n") }
