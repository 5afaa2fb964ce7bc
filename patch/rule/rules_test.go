package rule

import (
	"errors"
	"strings"
	"testing"

	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/patch/code"
	"github.com/cupatch/cupatch/patch/edit"
	"github.com/cupatch/cupatch/patch/internal/patchtest"
	"github.com/google/go-cmp/cmp"
)

// planText applies rules to a listing of the small table's instructions and returns the
// listing that comes out.
func planText(tb testing.TB, before string, opts Options, rules ...string) (string, *KernelPlan, error) {
	tb.Helper()
	return planWith(tb, patchtest.MiniTable(tb), before, opts, rules...)
}

// planWith is planText for a table.
func planWith(tb testing.TB, t *isa.Table, before string, opts Options, rules ...string) (string, *KernelPlan, error) {
	tb.Helper()
	var rs []*Rule
	for i, text := range rules {
		r, err := Parse("", i+1, text)
		if err != nil {
			return "", nil, err
		}
		rs = append(rs, r)
	}
	p, err := NewPlanner(rs, t, opts)
	if err != nil {
		return "", nil, err
	}
	data := patchtest.Code(tb, t, before)
	plan, err := p.Kernel(&code.Kernel{Name: "k", Data: data, FileOffset: -1, Regs: opts.testRegs()})
	if err != nil {
		return "", nil, err
	}
	if err := edit.Apply(data, plan.Edits); err != nil {
		tb.Fatal(err)
	}
	return patchtest.Listing(t, data), plan, nil
}

func (o Options) testRegs() int { return 40 }

// TestRules makes the typical tunings, and every form of a match and a change, with the
// small table and with the learned one of sm_90.
func TestRules(t *testing.T) {
	learned := patchtest.Table(t, "sm_90")
	for _, test := range []struct{ name, rule, before, after string }{
		{"set a modifier", `LDG.E.CONSTANT if kernel matches "^k" => .EF`,
			"LDG.E.CONSTANT R0, desc[UR4][R2.64]\nLDG.E R0, desc[UR4][R2.64]",
			"LDG.E.EF.CONSTANT R0, desc[UR4][R2.64]\nLDG.E R0, desc[UR4][R2.64]"},
		{"width and a register", `LDG.E if width >= 64 and src1 == "R4" => evict=EL`,
			"LDG.E.64 R0, desc[UR4][R4.64]\nLDG.E R0, desc[UR4][R4.64]\nLDG.E.128 R0, desc[UR4][R6.64]",
			"LDG.E.EL.64 R0, desc[UR4][R4.64]\nLDG.E R0, desc[UR4][R4.64]\nLDG.E.128 R0, desc[UR4][R6.64]"},
		{"prefetch size", `LDG.LTC128B => .LTC256B`,
			"LDG.E.LTC128B R0, desc[UR4][R4.64]\nLDG.E R0, desc[UR4][R4.64]",
			"LDG.E.LTC256B R0, desc[UR4][R4.64]\nLDG.E R0, desc[UR4][R4.64]"},
		{"stall at an address", `* if kernel == "k" and pc == 0x10 => stall+=1`, "NOP\nNOP\nNOP", "NOP\n[B------:R-:W-:-:S02] NOP\nNOP"},
		{"every second of a run", `FFMA{3,} if i % 2 == 1 => yield=-`,
			"[B------:R-:W-:Y:S01] FFMA R0, R1, R2, R3\n[B------:R-:W-:Y:S01] FFMA R4, R1, R2, R3\n[B------:R-:W-:Y:S01] FFMA R5, R1, R2, R3\nNOP\n" +
				"[B------:R-:W-:Y:S01] FFMA R0, R1, R2, R3\n[B------:R-:W-:Y:S01] FFMA R4, R1, R2, R3",
			"[B------:R-:W-:Y:S01] FFMA R0, R1, R2, R3\n[B------:R-:W-:-:S01] FFMA R4, R1, R2, R3\n[B------:R-:W-:Y:S01] FFMA R5, R1, R2, R3\nNOP\n" +
				"[B------:R-:W-:Y:S01] FFMA R0, R1, R2, R3\n[B------:R-:W-:Y:S01] FFMA R4, R1, R2, R3"},
		{"clear a reuse flag", `FFMA if pc == 0x0 => reuse.b=-`, "FFMA R0, R1.reuse, R2.reuse, R3", "FFMA R0, R1.reuse, R2, R3"},
		{"wait mask", `FFMA if pc == 0 => wait-=0 wait+=2`, "[B01----:R-:W-:-:S01] FFMA R0, R1, R2, R3", "[B-12---:R-:W-:-:S01] FFMA R0, R1, R2, R3"},
		{"negate a guard", `@P3 STG => @!`, "@P3 STG.E desc[UR4][R2.64], R0\n@!P3 STG.E desc[UR4][R2.64], R0\nSTG.E desc[UR4][R2.64], R0",
			"@!P3 STG.E desc[UR4][R2.64], R0\n@!P3 STG.E desc[UR4][R2.64], R0\nSTG.E desc[UR4][R2.64], R0"},
		{"NOP", `BAR.SYNC => NOP`, "[B0-----:R1:W-:Y:S05] @P0 BAR.SYNC.DEFER_BLOCKING 0x1", "[B0-----:R-:W-:Y:S05] NOP"},
		{"an immediate", `IADD3 if imm == 0x20 => imm=0x40`, "IADD3 R0, R1, 0x20, RZ\nIADD3 R0, R1, 0x21, RZ", "IADD3 R0, R1, 0x40, RZ\nIADD3 R0, R1, 0x21, RZ"},
		{"immediate arithmetic", `IADD3 => imm=imm*2+1`, "IADD3 R0, R1, 0x20, RZ", "IADD3 R0, R1, 0x41, RZ"},
		{"absent modifier", `STG.E!.STRONG => .STRONG.SYS`, "STG.E.STRONG.GPU desc[UR4][R2.64], R0\nSTG.E desc[UR4][R2.64], R0",
			"STG.E.STRONG.GPU desc[UR4][R2.64], R0\nSTG.E.STRONG.SYS desc[UR4][R2.64], R0"},
		{"a window with a gap", `x:LDG ; ...{0,20} ; y:FFMA if y.src1 == x.dst => x: .EL ; y: stall=max(stall,4)`,
			"LDG.E R7, desc[UR4][R2.64]\nNOP\nFFMA R0, R1, R2, R3\nFFMA R0, R7, R2, R3\n[B------:R-:W-:-:S05] LDG.E R8, desc[UR4][R2.64]\n[B------:R-:W-:-:S05] FFMA R0, R8, R2, R3",
			"LDG.E.EL R7, desc[UR4][R2.64]\nNOP\nFFMA R0, R1, R2, R3\n[B------:R-:W-:-:S04] FFMA R0, R7, R2, R3\n[B------:R-:W-:-:S05] LDG.E.EL R8, desc[UR4][R2.64]\n[B------:R-:W-:-:S05] FFMA R0, R8, R2, R3"},
		{"unset", `LDG => -.EF`, "LDG.E.EF R0, desc[UR4][R2.64]\nLDG.E.EL R0, desc[UR4][R2.64]", "LDG.E R0, desc[UR4][R2.64]\nLDG.E.EL R0, desc[UR4][R2.64]"},
		{"default", `LDG => evict=- prefetch=-`, "LDG.E.EF.LTC64B R0, desc[UR4][R2.64]", "LDG.E R0, desc[UR4][R2.64]"},
		{"offset of an address", `LDG => imm+=0x10`, "LDG.E R0, desc[UR4][R2.64]\nLDG.E R0, desc[UR4][R2.64+-0x10]\nLDG.E R0, desc[UR4][R2.64+0x4]",
			"LDG.E R0, desc[UR4][R2.64+0x10]\nLDG.E R0, desc[UR4][R2.64]\nLDG.E R0, desc[UR4][R2.64+0x14]"},
		{"a register keeps its sign", `FFMA => src2=R9`, "FFMA R0, R1, -R2.reuse, R3", "FFMA R0, R1, -R9.reuse, R3"},
		{"an operand as text", `FFMA => src2=-R9`, "FFMA R0, R1, R2.reuse, R3", "FFMA R0, R1, -R9, R3"},
		{"guard set", `NOP => @!P2`, "NOP\n@P1 NOP", "@!P2 NOP\n@!P2 NOP"},
		{"guard off", `@P* NOP => @-`, "@!P2 NOP\n@P1 NOP\n@!PT NOP", "NOP\nNOP\n@!PT NOP"},
		{"scoreboards", `LDG => wbar=3 rbar=-`, "[B------:R1:W2:-:S01] LDG.E R0, desc[UR4][R2.64]", "[B------:R-:W3:-:S01] LDG.E R0, desc[UR4][R2.64]"},
		{"raw bits", `LDG => bits[68..69]=2`, "LDG.E R0, desc[UR4][R2.64]", "LDG.E.LTC128B R0, desc[UR4][R2.64]"},
		{"whole instruction", `FFMA => "FFMA.FTZ R0, R9, R2, R3"`, "[B-1----:R-:W-:Y:S07] FFMA R0, R1, R2, R3", "[B-1----:R-:W-:Y:S07] FFMA.FTZ R0, R9, R2, R3"},
		{"glob", `LD* => .EF`, "LDG.E R0, desc[UR4][R2.64]", "LDG.E.EF R0, desc[UR4][R2.64]"},
		{"atom glob", `LDG.LTC* => prefetch=-`, "LDG.E.LTC64B R0, desc[UR4][R2.64]\nLDG.E.EF R0, desc[UR4][R2.64]", "LDG.E R0, desc[UR4][R2.64]\nLDG.E.EF R0, desc[UR4][R2.64]"},
		{"positional lists", `LDG ; FFMA => .EF ; stall=2`, "LDG.E R7, desc[UR4][R2.64]\nFFMA R0, R1, R2, R3", "LDG.E.EF R7, desc[UR4][R2.64]\n[B------:R-:W-:-:S02] FFMA R0, R1, R2, R3"},
		{"an empty list", `LDG ; FFMA => ; stall=2`, "LDG.E R7, desc[UR4][R2.64]\nFFMA R0, R1, R2, R3", "LDG.E R7, desc[UR4][R2.64]\n[B------:R-:W-:-:S02] FFMA R0, R1, R2, R3"},
		{"a label and prev", `x:LDG ; ...{0,3} ; y:FFMA if y.prev.stall == 2 and x.next.dst == "R7" => y: stall=3`,
			"LDG.E R7, desc[UR4][R2.64]\n[B------:R-:W-:-:S02] FFMA R7, R1, R2, R3\nFFMA R0, R1, R2, R3",
			"LDG.E R7, desc[UR4][R2.64]\n[B------:R-:W-:-:S02] FFMA R7, R1, R2, R3\n[B------:R-:W-:-:S03] FFMA R0, R1, R2, R3"},
		{"waits as a mask", `NOP => wait=B0--3--`, "[B--2---:R-:W-:-:S01] NOP", "[B0--3--:R-:W-:-:S01] NOP"},
		{"waits as digits", `NOP => wait=0,5`, "[B--2---:R-:W-:-:S01] NOP", "[B0----5:R-:W-:-:S01] NOP"},
		{"no waits", `NOP => wait=-`, "[B--2---:R-:W-:-:S01] NOP", "[B------:R-:W-:-:S01] NOP"},
		{"a code before a whole instruction", `FFMA => "[B--2---:R-:W-:Y:S03] FFMA R0, R9, R2, R3"`, "FFMA R0, R1, R2, R3", "[B--2---:R-:W-:Y:S03] FFMA R0, R9, R2, R3"},
		{"a reuse flag in a whole instruction", `FFMA => "FFMA R0, R9.reuse, R2, R3"`, "FFMA R0, R1, R2.reuse, R3", "FFMA R0, R9.reuse, R2, R3"},
		{"a window that skips a run", `NOP ; FFMA{2,} ; NOP => stall=3 ; ; stall=2`, "NOP\nFFMA R0, R1, R2, R3\nFFMA R0, R1, R2, R3\nNOP",
			"[B------:R-:W-:-:S03] NOP\nFFMA R0, R1, R2, R3\nFFMA R0, R1, R2, R3\n[B------:R-:W-:-:S02] NOP"},
		{"two values of one dot list", `LDG => .EF.LTC128B.STRONG.GPU`, "LDG.E R0, desc[UR4][R2.64]", "LDG.E.EF.LTC128B.STRONG.GPU R0, desc[UR4][R2.64]"},
		{"in a list", `LDG if evict in ["EF", "EL"] and not (prefetch == "-") => evict=NA`,
			"LDG.E.EF.LTC64B R0, desc[UR4][R2.64]\nLDG.E.EF R0, desc[UR4][R2.64]", "LDG.E.NA.LTC64B R0, desc[UR4][R2.64]\nLDG.E.EF R0, desc[UR4][R2.64]"},
		{"prev and next", `NOP if prev.dst == "R7" and next.stall == 3 => stall=9`,
			"FFMA R7, R1, R2, R3\nNOP\n[B------:R-:W-:-:S03] NOP", "FFMA R7, R1, R2, R3\n[B------:R-:W-:-:S09] NOP\n[B------:R-:W-:-:S03] NOP"},
		{"prev sees the change just made", `FFMA if prev.stall == 4 => stall=4`,
			"[B------:R-:W-:-:S04] NOP\nFFMA R7, R1, R2, R3\nFFMA R7, R1, R2, R3", "[B------:R-:W-:-:S04] NOP\n[B------:R-:W-:-:S04] FFMA R7, R1, R2, R3\n[B------:R-:W-:-:S04] FFMA R7, R1, R2, R3"},
		{"innermost loop and its header", `NOP if innermost and loop_header => stall=9`, "NOP\nNOP\nNOP\n@P1 BRA 0x20\nNOP\n@P0 BRA 0x10\nEXIT",
			"NOP\nNOP\n[B------:R-:W-:-:S09] NOP\n@P1 BRA 0x20\nNOP\n@P0 BRA 0x10\nEXIT"},
		{"blocks and loops", `NOP if loop == 1 and block == 1 => stall=9`, "NOP\nNOP\n@P0 BRA 0x10\nNOP\nBRA 0x40", "NOP\n[B------:R-:W-:-:S09] NOP\n@P0 BRA 0x10\nNOP\nBRA 0x40"},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, table := range []*isa.Table{patchtest.MiniTable(t), learned} {
				got, _, err := planWith(t, table, patchtest.Lines(test.before), Options{}, test.rule)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(patchtest.Lines(test.after), got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", test.rule, diff)
				}
			}
		})
	}
}

// TestLearnedRules makes changes of instructions that only the learned table has.
func TestLearnedRules(t *testing.T) {
	for _, test := range []struct{ arch, rule, before, after string }{
		{"sm_90", `FADD if imm == 1.0 => imm=0x40000000`, "FADD R0, R2, 1", "FADD R0, R2, 2"},
		{"sm_90", `FADD => imm=1.5`, "FADD R0, R2, 1", "FADD R0, R2, 1.5"},
		{"sm_90", `LOP3 if imm2 == 0xc0 => imm2=0x3c`, "LOP3.LUT R0, R0, 0x7f, RZ, 0xc0, !PT", "LOP3.LUT R0, R0, 0x7f, RZ, 0x3c, !PT"},
		{"sm_90", `@UP1 ULDC => @!UP2`, "@UP1 ULDC UR4, c[0x0][0x208]\nULDC UR4, c[0x0][0x208]", "@!UP2 ULDC UR4, c[0x0][0x208]\nULDC UR4, c[0x0][0x208]"},
		{"sm_90", `@UP* ULDC => @-`, "@!UP1 ULDC UR4, c[0x0][0x208]\nULDC UR4, c[0x0][0x208]", "ULDC UR4, c[0x0][0x208]\nULDC UR4, c[0x0][0x208]"},
		{"sm_90", `LDS if width == 128 => imm+=0x10`, "LDS.128 R4, [R2+0x20]\nLDS R4, [R2]", "LDS.128 R4, [R2+0x30]\nLDS R4, [R2]"},
		{"sm_90", `BRA if target == 0x10 => target=0x20`, "NOP\nNOP\nNOP\nBRA 0x10", "NOP\nNOP\nNOP\nBRA 0x20"},
		{"sm_75", `BRA => batch=5`, "[B------:R-:W-:Y:S05] BRA 0x0", "[B------:R-:W-:Y:S05:T5] BRA 0x0"},
		{"sm_80", `LDG => "LDG.E.EF.128 R4, [R2.64]"`, "LDG.E.128 R4, [R2.64]", "LDG.E.EF.128 R4, [R2.64]"},
		{"sm_90a", `QGMMA => type2=E5M2`, "QGMMA.64x32x32.F32.E4M3.E4M3 R24, gdesc[UR4], RZ, !UPT", "QGMMA.64x32x32.F32.E5M2.E4M3 R24, gdesc[UR4], RZ, !UPT"},
		{"sm_100", `LDG => .EL`, "LDG.E R0, desc[UR4][R2.64]", "LDG.E.EL R0, desc[UR4][R2.64]"},
	} {
		got, plan, err := planWith(t, patchtest.Table(t, test.arch), patchtest.Lines(test.before), Options{}, test.rule)
		if err != nil {
			t.Errorf("%s %s: %v", test.arch, test.rule, err)
			continue
		}
		if diff := cmp.Diff(patchtest.Lines(test.after), got); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", test.arch, test.rule, diff)
		}
		if len(plan.Edits) != 1 {
			t.Errorf("%s %s: %d edits", test.arch, test.rule, len(plan.Edits))
		}
	}
	for _, test := range []struct{ arch, rule, before, want, hint string }{
		{"sm_75", `LDG => .LTC256B`, "LDG.E.SYS R0, [R2]", "column 9: LDG on sm_75 has no LTC256B; prefetch: LTC64B LTC128B", ""},
		{"sm_90a", `QGMMA => .E4M3`, "QGMMA.64x32x32.F32.E4M3.E4M3 R24, gdesc[UR4], RZ, !UPT", "column 11: QGMMA on sm_90a: E4M3 is a value of 2 groups; write type2=E4M3 or type3=E4M3", ""},
		{"sm_80", `NOP => "LDG.E R4, [R2.64]"`, "NOP", "column 8: refused: this instruction has an operand that its text does not show", "--allow hidden"},
		{"sm_90", `FADD if src2 == 1 => .FTZ`, "FADD R0, R2, 1", "column 17: src2 is never a number", "imm"},
		{"sm_100", `LDG if src1 == "UR255" => .EL`, "LDG.E R0, desc[UR4][R2.64]", `column 16: src1 is never "UR255"; there are UR0 to UR254 and URZ`, ""},
	} {
		_, _, err := planWith(t, patchtest.Table(t, test.arch), patchtest.Lines(test.before), Options{}, test.rule)
		var re *Error
		if !errors.As(err, &re) || !strings.Contains(err.Error(), test.want) || !strings.Contains(re.Help, test.hint) {
			t.Errorf("%s %s:\n got  %v\n want %s", test.arch, test.rule, err, test.want)
		}
	}
}
