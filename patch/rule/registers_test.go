package rule

import (
	"strings"
	"testing"

	"github.com/cupatch/cupatch/patch/internal/patchtest"
)

// TestRegisterRules has the conditions about registers, for which a table needs effects.
func TestRegisterRules(t *testing.T) {
	table := patchtest.Table(t, "sm_90")
	for _, test := range []struct{ name, rule, before, after string }{
		{"alternatives", `MOV|IADD3 if stall == 1 => stall=3`, "MOV R0, R1\nIADD3 R2, R0, R0, RZ\nNOP",
			"[B------:R-:W-:-:S03] MOV R0, R1\n[B------:R-:W-:-:S03] IADD3 R2, R0, R0, RZ\nNOP"},
		{"opcode", `* if opcode matches "^IADD" => stall=3`, "MOV R0, R1\nIADD3 R2, R0, R0, RZ", "MOV R0, R1\n[B------:R-:W-:-:S03] IADD3 R2, R0, R0, RZ"},
		{"register numbers", `MOV if reg(dst) % 2 == 0 => stall=3`, "MOV R0, R1\nMOV R3, R2\nMOV RZ, R2", "[B------:R-:W-:-:S03] MOV R0, R1\nMOV R3, R2\nMOV RZ, R2"},
		{"reads", `* if reads == "R5" => stall=3`, "LDG.E R0, desc[UR4][R4.64]\nMOV R0, R4\n@P5 MOV R0, R5",
			"[B------:R-:W-:-:S03] LDG.E R0, desc[UR4][R4.64]\nMOV R0, R4\n[B------:R-:W-:-:S03] @P5 MOV R0, R5"},
		{"writes", `* if writes == "R7" => stall=3`, "LDG.E.128 R4, desc[UR4][R2.64]\nLDG.E.64 R4, desc[UR4][R2.64]",
			"[B------:R-:W-:-:S03] LDG.E.128 R4, desc[UR4][R2.64]\nLDG.E.64 R4, desc[UR4][R2.64]"},
		{"live and pressure", `MOV if live == "R0" and live != "R1" and pressure == 2 => stall=3`, "MOV R1, R2\nMOV R0, R1\nIADD3 R3, R0, R2, RZ\nEXIT",
			"MOV R1, R2\n[B------:R-:W-:-:S03] MOV R0, R1\nIADD3 R3, R0, R2, RZ\nEXIT"},
		{"where an address comes from", `LDG if from == "c[0x0][0x210]" => .EF`,
			"MOV R2, c[0x0][0x210]\nMOV R3, c[0x0][0x214]\nS2R R5, SR_TID.X\nIMAD.WIDE R6, R5, 0x4, R2\nLDG.E R0, desc[UR4][R6.64]\n" +
				"LDG.E.64 R8, desc[UR4][R2.64]\nLDG.E R0, desc[UR4][R8.64]",
			"MOV R2, c[0x0][0x210]\nMOV R3, c[0x0][0x214]\nS2R R5, SR_TID.X\nIMAD.WIDE R6, R5, 0x4, R2\nLDG.E.EF R0, desc[UR4][R6.64]\n" +
				"LDG.E.EF.64 R8, desc[UR4][R2.64]\nLDG.E R0, desc[UR4][R8.64]"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, _, err := planWith(t, table, test.before, Options{Arch: "sm_90"}, test.rule)
			if err != nil {
				t.Fatal(err)
			}
			want, _, err := planWith(t, table, test.after, Options{Arch: "sm_90"})
			if err != nil {
				t.Fatal(err)
			}
			if got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// What conditions about registers cannot mean is an error.
func TestRegisterRulesRefuse(t *testing.T) {
	table := patchtest.Table(t, "sm_90")
	for rule, want := range map[string]string{
		`MOV if reads == "X4" => stall=2`:       `reads has registers; write one: "R4"`,
		`MOV if reads == writes => stall=2`:     "sets of registers; compare each with a register",
		`MOV if reads == 4 => stall=2`:          "text is compared with a number",
		`LDG if from == "R4" => stall=2`:        "want c[0x0][0x210]",
		`MOV if reg(stall) == 1 => stall=2`:     "reg takes an operand",
		`MOV if reg(dst, src1) == 1 => stall=2`: "reg takes one operand",
		`MOV|IADDD3 => stall=2`:                 "no instruction IADDD3",
		`MOV| => stall=2`:                       `want an opcode`,
		`LDG if opcode == "LDG.E" => stall=2`:   `opcode is the name without modifiers: "LDG"`,
		`LDG if opcode == "LDGG" => stall=2`:    "has no instruction LDGG",
		`LDG if param == 1 => param=2`:          "param cannot be set",
		`MOV if innermost == 1 => stall=2`:      "a truth value is compared with a number",
	} {
		_, _, err := planWith(t, table, "MOV R0, R1", Options{Arch: "sm_90"}, rule)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", rule, err, want)
		}
	}
}
