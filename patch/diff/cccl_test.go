package diff

import (
	"strings"
	"testing"

	"github.com/cupatch/cupatch/isa"
)

// TestExpectationsOfOthers asks of Compare what the tests of NVIDIA/cccl's SASS
// comparison (ci/sass/test_compare_sass.py) ask: that moved code, targets and padding
// are the same, and that anything else is a change.
func TestExpectationsOfOthers(t *testing.T) {
	const kernel75 = `
		MOV R1, c[0x0][0x28]
		MOV R0, 0x3f800000
		S2R R4, SR_CTAID.X
		ISETP.GE.AND P0, PT, R4, c[0x0][0x170], PT
		@!P0 BRA L1
		IMAD R7, R2, 0x6, RZ
		EXIT
		L1:
		BRA L1`
	const kernel90 = `
		LDG.E R0, desc[UR4][R2.64]
		LEA R5, R0, 0x1, 0x1
		STG.E desc[UR4][R2.64], R5
		EXIT
		L1:
		BRA L1`
	for _, test := range []struct {
		sm, name, src, old, now string
		class                   Class
		says                    string
	}{
		// The code after moves, and the padding at the end becomes shorter.
		{"75", "moved target, less padding", kernel75, "EXIT\n", "EXIT\nNOP\nNOP\nNOP\n", SameCode, ""},
		{"75", "immediate", kernel75, "0x3f800000", "0x40000000", CodeDiffers, "imm: 0x3f800000 → 0x40000000"},
		{"75", "immediate of IMAD", kernel75, "R2, 0x6", "R2, 0x7", CodeDiffers, "imm: 0x6 → 0x7"},
		{"75", "opcode", kernel75, "IMAD R7, R2, 0x6, RZ", "IADD3 R7, R2, 0x6, RZ", CodeDiffers, ""},
		{"75", "register", kernel75, "IMAD R7", "IMAD R9", RegistersOnly, "register: R7 → R9"},
		{"75", "predicate", kernel75, "@!P0", "@P0", CodeDiffers, "guard: @!P0 → @P0"},
		{"75", "control flow", kernel75, "BRA L1\n", "BRA 0x50\n", CodeDiffers, "target: 0x70 → 0x50"},
		{"75", "constant bank", kernel75, "[0x170]", "[0x174]", CodeDiffers, "c[0x0][0x170] → c[0x0][0x174]"},
		{"90", "other instructions", kernel90, "LEA R5, R0, 0x1, 0x1", "HFMA2.MMA R5, -RZ, RZ, 0, 1.78813934326171875e-07\nIMAD R5, R0, R5, 0x1",
			CodeDiffers, ""},
	} {
		a, err := isa.ParseArch(test.sm)
		if err != nil {
			t.Fatal(err)
		}
		table, err := isa.Load(a)
		if err != nil {
			t.Fatal(err)
		}
		changed := strings.Replace(test.src, test.old, test.now, 1)
		d := both(t, source(t, table, test.src), source(t, table, changed))
		if d.Class != test.class {
			t.Errorf("sm_%s %s: class %s, want %s", test.sm, test.name, d.Class, test.class)
		}
		var fields []string
		for _, o := range d.Ops {
			for _, f := range d.Fields(o) {
				fields = append(fields, f.String())
			}
		}
		if !strings.Contains(strings.Join(fields, "; "), test.says) {
			t.Errorf("sm_%s %s: changes %q, want %q", test.sm, test.name, fields, test.says)
		}
	}
}
