package isa_test

import (
	"fmt"
	"log"

	"github.com/cupatch/cupatch/isa"
)

// A table of one class; [isa.Load] returns those of the program.
const smallTable = `arch sm_90
list evict = .EF | - | .EL | .LU | .EU | .NA | .INVALID6 | .INVALID7

class ldg 0x1981 76=1 90=1
  text LDG{72?.E}{84:86 evict} {16:23 R}, desc[{32:37 UR}][{24:31 R}.64{40:63=0?:+{40:63 shex}}]
`

func example() *isa.Table {
	f, err := isa.ParseTable(smallTable, nil)
	if err != nil {
		log.Fatal(err)
	}
	return isa.NewTable(f.Arch, f.Variants)
}

func ExampleTable_Decode() {
	t := example()
	w := isa.Word{Lo: 0x0000100402047981, Hi: 0x000ea8000c1e1900}
	in := t.Decode(w)
	fmt.Println(isa.ControlOf(w), t.Text(in, 0))
	// Output: [B------:R-:W2:-:S04] LDG.E R4, desc[UR4][R2.64+0x10]
}

func ExampleTable_Encode() {
	t := example()
	like := isa.Word{Lo: 0x0000100402047981, Hi: 0x000ea8000c1e1900}
	w, err := t.Encode("LDG.E.EF R4, desc[UR4][R2.64+0x20]", 0, &like)
	fmt.Println(w, err)
	_, err = t.Encode("LDG.E.EX R4, desc[UR4][R2.64]", 0, nil)
	fmt.Println(err)
	// Output:
	// 0x0000200402047981, 0x000ea8000c0e1900 <nil>
	// column 7: expected `EF` or `EL` or `EU` or `LU` or `NA`, found "EX"; did you mean EF?
}

func ExampleTable_Groups() {
	t := example()
	for _, g := range t.Groups(t.Variants()[0]) {
		fmt.Println(g.Name, g.Field, g.Default)
	}
	// Output:
	// e 72 0
	// evict 84:86 1
}

func ExampleParseControl() {
	c, err := isa.ParseControl("&req={0,1} &wr=0x2 ?WAIT4_END_GROUP")
	fmt.Println(c, err)
	// Output: [B01----:R-:W2:Y:S04] <nil>
}
