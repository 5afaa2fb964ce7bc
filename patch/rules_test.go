package patch

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// planText applies rules to a listing and returns the listing that comes out.
func planText(tb testing.TB, before string, opts Options, rules ...string) (string, *KernelPlan, error) {
	tb.Helper()
	t := miniTable(tb)
	var rs []*Rule
	for i, text := range rules {
		r, err := ParseRule("", i+1, text)
		if err != nil {
			return "", nil, err
		}
		rs = append(rs, r)
	}
	p, err := NewPlanner(rs, t, opts)
	if err != nil {
		return "", nil, err
	}
	data := code(tb, t, before)
	plan, err := p.Kernel(&Code{Name: "k", Data: data, FileOffset: -1, Regs: opts.testRegs()})
	if err != nil {
		return "", nil, err
	}
	if err := Apply(data, plan.Edits); err != nil {
		tb.Fatal(err)
	}
	return listing(t, data), plan, nil
}

func (o Options) testRegs() int { return 40 }

const d = "[B------:R-:W-:-:S01] "

// lines gives each line the default control code and the end.
func lines(s string) string {
	var out []string
	for _, l := range strings.Split(strings.TrimSpace(s), "\n") {
		l = strings.TrimSpace(l)
		if !strings.HasPrefix(l, "[B") {
			l = d + l
		}
		out = append(out, l+" ;")
	}
	return strings.Join(out, "\n") + "\n"
}

func TestRules(t *testing.T) {
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
		{"NOP", `BAR.SYNC => NOP`, "[B0-----:R1:W2:Y:S05] @P0 BAR.SYNC.DEFER_BLOCKING 0x1", "[B0-----:R-:W-:Y:S05] NOP"},
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
		{"prev and next", `NOP if prev.dst == "R7" and next.stall == 3 => stall=9`,
			"FFMA R7, R1, R2, R3\nNOP\n[B------:R-:W-:-:S03] NOP", "FFMA R7, R1, R2, R3\n[B------:R-:W-:-:S09] NOP\n[B------:R-:W-:-:S03] NOP"},
		{"prev sees the change just made", `FFMA if prev.stall == 4 => stall=4`,
			"[B------:R-:W-:-:S04] NOP\nFFMA R7, R1, R2, R3\nFFMA R7, R1, R2, R3", "[B------:R-:W-:-:S04] NOP\n[B------:R-:W-:-:S04] FFMA R7, R1, R2, R3\n[B------:R-:W-:-:S04] FFMA R7, R1, R2, R3"},
		{"blocks and loops", `NOP if loop == 1 and block == 1 => stall=9`, "NOP\nNOP\n@P0 BRA 0x10\nNOP\nBRA 0x40", "NOP\n[B------:R-:W-:-:S09] NOP\n@P0 BRA 0x10\nNOP\nBRA 0x40"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, _, err := planText(t, lines(test.before), Options{}, test.rule)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(lines(test.after), got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.rule, diff)
			}
		})
	}
}
