package rule_test

import (
	"fmt"
	"log"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/patch/check"
	"github.com/cupatch/cupatch/patch/code"
	"github.com/cupatch/cupatch/patch/edit"
	"github.com/cupatch/cupatch/patch/rule"
)

// open returns the first cubin of a file.
func open(name string) *code.Target {
	f, err := elfx.OpenFile(name, nil)
	if err != nil {
		log.Fatal(err)
	}
	t, err := code.Open(f.Entries()[0])
	if err != nil {
		log.Fatal(err)
	}
	return t
}

// Plan a rule, look at the edits, apply them to a copy, prove that nothing else moved.
func ExamplePlan() {
	t := open("../../testdata/cubin/new/sm_90/loads.cubin")
	r, err := rule.Parse("stream", 1, `LDG.E!.EF if guard != "PT" and imm == 0 => .EF`)
	if err != nil {
		log.Fatal(err)
	}
	plan, err := rule.Plan(t, []*rule.Rule{r}, rule.Options{})
	if err != nil {
		log.Fatal(err)
	}
	for _, e := range plan.Edits {
		fmt.Println(e)
	}
	sum := plan.Summary
	fmt.Printf("%d instructions, %d matched, %d changed\n", sum.Seen, sum.Matched, sum.Changed)

	out := append([]byte(nil), t.Cubin.Data()...)
	if err := edit.Apply(out, plan.Edits); err != nil {
		log.Fatal(err)
	}
	fmt.Println(edit.CheckApplied(t.Cubin.Data(), out, plan.Edits))
	// Output:
	// ld_predicated+0x110: @!P0 LDG.E R8, desc[UR4][R6.64] → @!P0 LDG.E.EF R8, desc[UR4][R6.64]
	// ld_predicated+0x130: @P1 LDG.E.LTC128B.CONSTANT R10, desc[UR4][R4.64] → @P1 LDG.E.EF.LTC128B.CONSTANT R10, desc[UR4][R4.64]
	// 816 instructions, 2 matched, 2 changed
	// <nil>
}

// A mistake in a rule says where it is and what would have worked.
func ExampleError() {
	t := open("../../testdata/cubin/new/sm_90/loads.cubin")
	r, err := rule.Parse("ef", 1, `LDG.E.CONSTANT => .EF .LTC512B`)
	if err != nil {
		log.Fatal(err)
	}
	_, err = rule.Plan(t, []*rule.Rule{r}, rule.Options{})
	fmt.Println(err)
	// Output:
	// rule "ef": column 24: LDG on sm_90 has no LTC512B; prefetch: LTC64B LTC128B LTC256B
}

// A change that the hardware cannot take is refused under a name, which permits it.
func ExampleOptions() {
	t := open("../../testdata/cubin/new/sm_90/loads.cubin")
	r, err := rule.Parse("wide", 1, `LDG.E.128 if kernel == "ld_b128" and pc == 0x30 => .64`)
	if err != nil {
		log.Fatal(err)
	}
	_, err = rule.Plan(t, []*rule.Rule{r}, rule.Options{})
	fmt.Println(err)
	allow, err := check.ParseAllow("footprint")
	if err != nil {
		log.Fatal(err)
	}
	plan, err := rule.Plan(t, []*rule.Rule{r}, rule.Options{Allow: allow})
	fmt.Println(len(plan.Edits), err)
	// Output:
	// rule "wide": column 52: refused: footprint R4-R7 becomes R4-R5 (kernel ld_b128, 0x30: LDG.E.128 R4, desc[UR4][R2.64])
	// 1 <nil>
}
