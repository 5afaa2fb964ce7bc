package patch

import (
	"bytes"
	"strings"
	"testing"
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
	table := miniTable(f)
	data := code(f, table, lines("LDG.E.EF R4, desc[UR4][R2.64]\nFFMA R0, R4.reuse, R1, R0\nFFMA R0, R4, R1, R0\n@P3 STG.E desc[UR4][R2.64], R0\nNOP"))
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParseRule("", 1, text)
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
		plan, err := p.Kernel(&Code{Name: "gemm", Data: data})
		if err != nil {
			return
		}
		out := bytes.Clone(data)
		if err := Apply(out, plan.Edits); err != nil {
			t.Fatal(err)
		}
		if err := CheckApplied(data, out, plan.Edits); err != nil {
			t.Fatal(err)
		}
		if err := Apply(out, Inverted(plan.Edits)); err != nil || !bytes.Equal(out, data) {
			t.Fatal("the edits cannot be undone")
		}
	})
}

// FuzzRecipe checks that no recipe text makes a panic.
func FuzzRecipe(f *testing.F) {
	f.Add(sinkRecipe)
	f.Fuzz(func(t *testing.T, text string) {
		if rc, err := ParseRecipe("r.toml", []byte(text)); err == nil {
			_, _ = rc.Combinations(nil, 100)
		}
	})
}

// FuzzListing checks that no listing makes a panic, and that what is read prints to
// what reads the same.
func FuzzListing(f *testing.F) {
	f.Add("// kernel k\n/*0070*/ [B------:R-:W2:-:S04] @P0 LDG.E R4, desc[UR4][R2.64] ; /* 0x1 0x2 */\n")
	f.Add("/*0070*/ NOP ; &req={0} ?trans1")
	table := miniTable(f)
	f.Fuzz(func(t *testing.T, text string) {
		list, err := ParseListing("f", strings.NewReader(text))
		if err != nil {
			return
		}
		for i := range list {
			if w, err := list[i].Encode(table, nopWord(t), nil); err == nil {
				_ = table.Text(table.Decode(w), list[i].PC)
			}
		}
	})
}

// FuzzReport checks that no report makes a panic.
func FuzzReport(f *testing.F) {
	f.Add([]byte(`{"format":"cupatch-report-1","files":[{"edits":[{"kernel":"k","pc":0,"old":["0x1","0x2"],"new_text":"NOP"}]}]}`))
	target := openCubin(f, loadsCubin)
	f.Fuzz(func(t *testing.T, data []byte) {
		rep, err := ParseReport(data)
		if err != nil {
			return
		}
		for i := range rep.Files {
			_, _ = rep.Files[i].Locate([]*Target{target}, i%2 == 0, false)
		}
	})
}
