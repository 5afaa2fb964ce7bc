package patch_test

import (
	"fmt"
	"log"
	"os"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/patch"
)

// open reads a cubin and the table of its architecture.
func open(name string) (*elfx.Cubin, *isa.Table) {
	data, err := os.ReadFile(name)
	if err != nil {
		log.Fatal(err)
	}
	cubin, err := elfx.ParseCubin(data)
	if err != nil {
		log.Fatal(err)
	}
	arch, err := isa.ParseArch(cubin.Arch)
	if err != nil {
		log.Fatal(err)
	}
	table, err := isa.Load(arch)
	if err != nil {
		log.Fatal(err)
	}
	return cubin, table
}

// Plan a rule, look at the edits, apply them to a copy, prove that nothing else moved.
func ExamplePlan() {
	cubin, table := open("../testdata/cubin/new/sm_90/loads.cubin")
	rule, err := patch.ParseRule("stream", 1, `LDG.E!.EF if guard != "PT" and imm == 0 => .EF`)
	if err != nil {
		log.Fatal(err)
	}
	edits, sum, _, err := patch.Plan(cubin, table, []*patch.Rule{rule}, patch.Options{})
	if err != nil {
		log.Fatal(err)
	}
	for _, e := range edits {
		fmt.Println(e)
	}
	fmt.Printf("%d instructions, %d matched, %d changed\n", sum.Seen, sum.Matched, sum.Changed)

	out := append([]byte(nil), cubin.Data()...)
	if err := patch.Apply(out, edits); err != nil {
		log.Fatal(err)
	}
	fmt.Println(patch.CheckApplied(cubin.Data(), out, edits))
	// Output:
	// ld_predicated+0x110: @!P0 LDG.E R8, desc[UR4][R6.64] → @!P0 LDG.E.EF R8, desc[UR4][R6.64]
	// ld_predicated+0x130: @P1 LDG.E.LTC128B.CONSTANT R10, desc[UR4][R4.64] → @P1 LDG.E.EF.LTC128B.CONSTANT R10, desc[UR4][R4.64]
	// 816 instructions, 2 matched, 2 changed
	// <nil>
}

// A mistake in a rule says where it is and what would have worked.
func ExampleRuleError() {
	cubin, table := open("../testdata/cubin/new/sm_90/loads.cubin")
	rule, err := patch.ParseRule("ef", 1, `LDG.E.CONSTANT => .EF .LTC512B`)
	if err != nil {
		log.Fatal(err)
	}
	_, _, _, err = patch.Plan(cubin, table, []*patch.Rule{rule}, patch.Options{})
	fmt.Println(err)
	// Output:
	// rule "ef": column 24: LDG on sm_90 has no LTC512B; prefetch: LTC64B LTC128B LTC256B
}

// A change that the hardware cannot take is refused under a name, which permits it.
func ExampleParseAllow() {
	cubin, table := open("../testdata/cubin/new/sm_90/loads.cubin")
	rule, err := patch.ParseRule("wide", 1, `LDG.E.128 if kernel == "ld_b128" and pc == 0x30 => .64`)
	if err != nil {
		log.Fatal(err)
	}
	_, _, _, err = patch.Plan(cubin, table, []*patch.Rule{rule}, patch.Options{})
	fmt.Println(err)
	allow, err := patch.ParseAllow("footprint")
	if err != nil {
		log.Fatal(err)
	}
	edits, _, _, err := patch.Plan(cubin, table, []*patch.Rule{rule}, patch.Options{Allow: allow})
	fmt.Println(len(edits), err)
	// Output:
	// rule "wide": column 52: refused: footprint R4-R7 becomes R4-R5 (kernel ld_b128, 0x30: LDG.E.128 R4, desc[UR4][R2.64])
	// 1 <nil>
}

// A listing line, with its control code.
func ExampleListingStyle_AppendLine() {
	cubin, table := open("../testdata/cubin/new/sm_90/loads.cubin")
	for _, k := range cubin.Kernels() {
		if k.Name == "ld_b128" {
			w := isa.LoadWord(k.Data()[0x30:])
			fmt.Printf("%s", patch.ListingStyle{}.AppendLine(nil, table, w, 0x30))
			fmt.Printf("%s", patch.ListingStyle{Control: patch.ControlNvidia}.AppendLine(nil, table, w, 0x30))
		}
	}
	// Output:
	// /*0030*/ [B0-----:R-:W2:-:S05] LDG.E.128 R4, desc[UR4][R2.64] ;
	// /*0030*/ LDG.E.128 R4, desc[UR4][R2.64] ;  &req={0} &wr=0x2 ?trans5
}

// A recipe has rules, parameters and tests.
func ExampleParseRecipe() {
	recipe, err := patch.ParseRecipe("hint.toml", []byte(`
description = "cache hint"
[param.hint]
values = ["EF", "EL", "NA"]
[[rule]]
name = "hint"
match = "LDG.E"
set = "evict=${hint}"
`))
	if err != nil {
		log.Fatal(err)
	}
	combinations, err := recipe.Combinations(nil, 10)
	if err != nil {
		log.Fatal(err)
	}
	for _, values := range combinations {
		rules, err := recipe.Rules(values)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(rules[0].Source())
	}
	// Output:
	// LDG.E => evict=EF
	// LDG.E => evict=EL
	// LDG.E => evict=NA
}
