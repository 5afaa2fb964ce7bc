package listing_test

import (
	"fmt"
	"log"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/patch/code"
	"github.com/cupatch/cupatch/patch/listing"
)

// A listing line, with its control code.
func ExampleStyle_AppendLine() {
	f, err := elfx.OpenFile("../../testdata/cubin/new/sm_90/loads.cubin", nil)
	if err != nil {
		log.Fatal(err)
	}
	t, err := code.Open(f.Entries()[0])
	if err != nil {
		log.Fatal(err)
	}
	for _, k := range t.Cubin.Kernels() {
		if k.Name == "ld_b128" {
			w := isa.LoadWord(k.Data()[0x30:])
			fmt.Printf("%s", listing.Style{}.AppendLine(nil, t.Table, w, 0x30))
			fmt.Printf("%s", listing.Style{Control: listing.ControlNvidia}.AppendLine(nil, t.Table, w, 0x30))
		}
	}
	// Output:
	// /*0030*/ [B0-----:R-:W2:-:S05] LDG.E.128 R4, desc[UR4][R2.64] ;
	// /*0030*/ LDG.E.128 R4, desc[UR4][R2.64] &req={0} &wr=0x2 ?trans5;
}
