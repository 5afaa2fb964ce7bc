package rule

import (
	"bytes"
	"testing"

	"github.com/cupatch/cupatch/patch/code"
	"github.com/cupatch/cupatch/patch/edit"
	"github.com/cupatch/cupatch/patch/internal/patchtest"
)

// FuzzRule checks that no rule text makes a panic or a wrong edit: what is planned for
// a small kernel can be applied, and nothing else changes.
func FuzzRule(f *testing.F) {
	for _, s := range []string{
		`LDG.E.CONSTANT if kernel matches "^gemm" => .EF`, "FFMA{8,} if i % 2 == 1 => yield=-", "@P3 STG => @!", "BAR.SYNC => NOP",
		"x:LDG ; ...{0,20} ; y:FFMA if y.src1 == x.dst => x: .EL ; y: stall=max(stall,4)", "* => bits[3..9]=1", `FFMA => "NOP"`,
		"LDG => -.EF evict=EL ~yield wait-=0 wait+=2 src1=R8 imm+=4",
	} {
		f.Add(s)
	}
	table := patchtest.MiniTable(f)
	data := patchtest.Code(f, table, patchtest.Lines("LDG.E.EF R4, desc[UR4][R2.64]\nFFMA R0, R4.reuse, R1, R0\nFFMA R0, R4, R1, R0\n@P3 STG.E desc[UR4][R2.64], R0\nNOP"))
	f.Fuzz(func(t *testing.T, text string) {
		r, err := Parse("", 1, text)
		if err != nil {
			if r != nil {
				t.Error("an error and a rule")
			}
			return
		}
		p, err := NewPlanner([]*Rule{r}, table, Options{})
		if err != nil {
			return
		}
		plan, err := p.Kernel(&code.Kernel{Name: "gemm", Data: data})
		if err != nil {
			return
		}
		out := bytes.Clone(data)
		if err := edit.Apply(out, plan.Edits); err != nil {
			t.Fatal(err)
		}
		if err := edit.CheckApplied(data, out, plan.Edits); err != nil {
			t.Fatal(err)
		}
		if err := edit.Apply(out, edit.Inverted(plan.Edits)); err != nil || !bytes.Equal(out, data) {
			t.Fatal("the edits cannot be undone")
		}
	})
}
