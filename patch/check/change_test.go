package check

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/patch/code"
	"github.com/cupatch/cupatch/patch/internal/patchtest"
	"github.com/cupatch/cupatch/patch/listing"
)

// TestReuseShows sees that the flags which ptxas sets show in the text:
// else the refusal would be wrong.
func TestReuseShows(t *testing.T) {
	files, err := filepath.Glob("../../testdata/cubin/*/*/*.cubin")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d cubins: %v", len(files), err)
	}
	flags := 0
	for _, name := range files {
		target := patchtest.OpenCubin(t, name)
		for i := range target.Cubin.Kernels() {
			cs := code.NewState(target.Kernel(&target.Cubin.Kernels()[i]), target.Table)
			for at := range cs.N {
				v := cs.View(at)
				reuse := isa.ControlOf(v.Inst.Word).Reuse
				for slot := range 3 {
					if reuse>>slot&1 == 0 {
						continue
					}
					if flags++; !printsReuse(v, slot) {
						t.Errorf("%s: flag %d of %s does not show", name, slot, v.Text())
					}
				}
			}
		}
	}
	if flags < 50 {
		t.Errorf("only %d flags seen", flags)
	}
}

// An edited line is refused where its registers or its offset are not aligned as in ptxas
// code, unless the old one has the same operand.
func TestAlignOfLines(t *testing.T) {
	table, err := isa.Load(isa.Arch{SM: 90})
	if err != nil {
		t.Fatal(err)
	}
	encode := func(text string) isa.Word {
		w, err := table.Encode(text, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	for _, c := range []struct {
		old, now string
		refused  bool
	}{
		{"LDG.E.64 R4, desc[UR4][R2.64]", "LDG.E.64 R5, desc[UR4][R2.64]", true},
		{"LDG.E.64 R4, desc[UR4][R2.64]", "LDG.E.64 R4, desc[UR4][R3.64]", true},
		{"LDG.E R5, desc[UR4][R2.64]", "LDG.E.64 R5, desc[UR4][R2.64]", true},
		{"LDG.E.64 R5, desc[UR4][R2.64]", "LDG.E.64 R5, desc[UR4][R2.64+0x8]", false},
		{"LDG.E.64 R5, desc[UR4][R2.64]", "LDG.E.64 R7, desc[UR4][R2.64]", true},
		{"ULDC.64 UR4, c[0x0][0x8]", "ULDC.64 UR4, c[0x0][0xc]", true},
		{"LDG.E.128 R4, desc[UR4][R2.64]", "LDG.E.128 R4, desc[UR4][R2.64+0x10]", false},
	} {
		_, err := EncodeLine(table, &listing.Inst{Text: c.now}, encode(c.old), nil)
		var r *Refusal
		switch {
		case c.refused && (!errors.As(err, &r) || r.Kind != RefuseAlign):
			t.Errorf("%s for %s: error %v, want a refusal", c.now, c.old, err)
		case !c.refused && err != nil:
			t.Errorf("%s for %s: %v", c.now, c.old, err)
		}
		if w, err := EncodeLine(table, &listing.Inst{Text: c.now}, encode(c.old), Allow{RefuseAlign: true}); err != nil || w != encode(c.now) {
			t.Errorf("%s for %s, allowed: %s, %v", c.now, c.old, w, err)
		}
	}
}

// A footprint has all registers of an operand, as nvdisasm's life ranges show them, also
// where no size is printed.
func TestFootprint(t *testing.T) {
	table, err := isa.Load(isa.Arch{SM: 90})
	if err != nil {
		t.Fatal(err)
	}
	state := code.NewState(&code.Kernel{}, table)
	for text, want := range map[string]string{
		"FADD R1, R2, R3":                  "R1",
		"DADD R2, R4, R6":                  "R2-R3",
		"IMAD.WIDE R2, R5, R7, R8":         "R2-R3",
		"HMMA.16816.F32 R4, R8, R12, R4":   "R4-R7",
		"HMMA.16816.F16 R4, R8, R12, R4":   "R4-R5",
		"LDSM.16.M88.4 R8, [R1]":           "R8-R11",
		"LDG.E.64 R4, desc[UR6][R2.64]":    "R4-R5",
		"STG.E.128 desc[UR6][R2.64], R8":   "R8-R11",
		"STG.E.U8 desc[UR6][R2.64], R8":    "R8",
		"ULDC.64 UR4, c[0x0][0x208]":       "UR4-UR5",
		"ISETP.GE.AND P0, PT, R0, R1, PT":  "P0",
		"LDG.E.64 RZ, desc[UR6][R2.64]":    "RZ",
		"IMAD.WIDE.U32 R2, P0, R5, R7, R8": "R2-R3",
		"SHFL.BFLY PT, R7, R4, 0x1, 0x1f":  "R7",
	} {
		w, err := table.Encode(text, 0, nil)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if f, ok := footprintOf(state.ViewOf(0, w)); !ok || f.String() != want {
			t.Errorf("%s: footprint %s, want %s", text, f, want)
		}
	}
}
