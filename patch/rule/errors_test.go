package rule

import (
	"errors"
	"strings"
	"testing"

	"github.com/cupatch/cupatch/patch/check"
	"github.com/cupatch/cupatch/patch/internal/patchtest"
)

// TestRuleErrors checks that every mistake is named with its column and, where that
// is known, with what would have worked.
func TestRuleErrors(t *testing.T) {
	const before = "LDG.E R4, desc[UR4][R2.64]\nFFMA R0, R1, R2, R3\nIADD3 R0, R1, 0x20, RZ"
	for _, test := range []struct{ rule, want, hint string }{
		{"LDG", "rule 1: column 4: no => and changes", "MATCH [if CONDITION] => CHANGES"},
		{"=> .EF", "column 1: no opcode", "*"},
		{"LDG if => .EF", "column 7: no condition after if", ""},
		{"LDG.E.* => .EF", "column 7: .* says nothing", "LDG.E"},
		{"LDG{3,1} => .EF", "column 4: the count's bounds 3,1", ""},
		{"LDG{0} => .EF", "column 4: a run of no instructions", ""},
		{"...{0,2} ; LDG => .EF", "column 1: a gap needs an instruction on both sides", ""},
		{"LDG ; ...{2,} ; LDG => .EF ; .EF", "column 10: a gap needs both bounds", ""},
		{"x:LDG ; x:LDG => x: .EF", "column 9: label x is used twice", ""},
		{"stall:LDG => .EF", "column 1: stall is a field's name", ""},
		{"LDG ; FFMA => .EF", "column 15: one list of changes for 2 instructions", ";"},
		{"x:LDG ; y:FFMA => z: .EF", "column 19: no item has the label z", "x, y"},
		{"@P8 LDG => .EF", "column 1: want a guard", ""},
		{"LDG => ,EF", "column 8: unexpected \",EF\"", ".EF"},
		{"LDG => .EF,.EL", "column 11: want a blank between changes", ""},
		{"LDG => NOP stall=1", "column 8: a whole instruction must be the only change", ""},
		{"LDG => stall=(1", "column 14: ( is never closed", ""},
		{`LDG => "LDG`, "column 8: quote \" is never closed", ""},
		{"LDG => bits[3..200]=1", "column 13: want bits[a..b]", ""},
		{"LDG.E.CONSTANT => .EF .LTC512B", "column 24: LDG on sm_90 has no LTC512B; prefetch: LTC64B LTC128B LTC256B", ""},
		{"LDX => .EF", "column 1: sm_90 has no instruction LDX", "LDG"},
		{"LDG.CONSTAN => .EF", "column 5: LDG on sm_90 has no modifier CONSTAN", "CONSTANT"},
		{"LDG => .EFF", "column 9: LDG on sm_90 has no EFF; evict: EF EL LU EU NA", ""},
		{"LDG => evict=EFF", "column 14: no LDG on sm_90 has evict=EFF; evict: EF EL LU EU NA", ""},
		{`LDG if evict == "EFF" => .EL`, `column 17: evict is never "EFF"; evict: EF EL LU EU NA`, ""},
		{`LDG if evict == EF => .EL`, "column 17: no LDG on sm_90 has a field EF", `evict == "EF"`},
		{`LDG if dst == R4 => .EL`, "column 15: no LDG on sm_90 has a field R4", `"R4"`},
		{`LDG if evikt == "EF" => .EL`, "column 8: no LDG on sm_90 has a field evikt", "evict"},
		{`LDG if stall == => .EL`, "unexpected token EOF", ""},
		{`LDG if stall => .EL`, "column 8: a condition is true or false", ""},
		{`LDG if stall == "x" => .EL`, "column 14: a number is compared with text", ""},
		{`LDG if evict < "EF" => .EL`, "column 14: text has no order", ""},
		{`LDG if yield == "y" => .EL`, `column 17: yield is "Y" or "-"`, ""},
		{`LDG if stall == 16 => .EL`, "column 17: stall is never 16; it goes from 0 to 15", ""},
		{`LDG if wbar in [0, 8] => .EL`, "column 20: wbar is never 8; it goes from 0 to 7", ""},
		{`LDG if pc == 0x21 => .EL`, "column 14: pc is never 0x21: addresses are multiples of 16", ""},
		{`LDG if bits[0..11] == 0x1981 => .EL`, "column 23: bits is never 6529; it goes from 0 to 4095", ""},
		{`LDG if bits[11..0] == 1 => .EL`, "column 8: want bits[a..b]", ""},
		{`x:LDG ; y:FFMA if bits[0..3] == 1 => x: .EL`, "column 19: bits of which instruction?", "x.bits[0..3], y.bits[0..3]"},
		{"ldg => .EF", "column 1: sm_90 has no instruction ldg", "did you mean LDG?"},
		{"LDG.e => .EF", "column 5: LDG on sm_90 has no modifier e", "did you mean E?"},
		{"LDG => .ef", "column 9: LDG on sm_90 has no ef; did you mean EF? evict: EF EL LU EU NA", ""},
		{"LDG => .XYZZY", "column 9: LDG on sm_90 has no XYZZY; e: E; evict: EF EL LU EU NA; prefetch: LTC64B LTC128B LTC256B;", ""},
		{`LDG if evict = "EF" => .EL`, "column 14: unexpected token", "=="},
		{"LDG => stall = 4", "column 13: no blanks are allowed around = in a change", "stall=value"},
		{"LDG => .EF; stall=4", "column 13: 2 lists of changes, and the match has 1 instructions", "separated by blanks"},
		{`LDG if arch == "sm_91" => .EL`, "column 16: sm_91 is no architecture that a rule can be for; there are sm_70", ""},
		{`LDG if bits == 1 => .EL`, "column 8: no LDG on sm_90 has a field bits", "bits[a..b]"},
		{`LDG if dst == "r4" => .EL`, `column 15: dst is never "r4": registers are written in capitals, "R4"`, ""},
		{`LDG if dst == "R255" => .EL`, `column 15: dst is never "R255"; there are R0 to R254 and RZ`, ""},
		{`LDG if src1 == "UR63" => .EL`, `column 16: src1 is never "UR63"; there are UR0 to UR62 and URZ`, ""},
		{`LDG if dst == 4 => .EL`, "column 15: dst is never a number", "imm"},
		{`LDG if src1 == "R2.64" => .EL`, `column 16: src1 is an address and never "R2.64"`, `"R2"`},
		{`LDG if kernel matches "(" => .EL`, "column 23: error parsing regexp", ""},
		{`LDG if i == 0 => .EL`, "column 8: i is a position in a run, and the rule has none", "{min,max}"},
		{`x:LDG ; y:FFMA if stall == 1 => x: .EL`, "column 19: stall of which instruction?", "x.stall, y.stall"},
		{`LDG if all(1..9, # > 0) => .EL`, "no function all", ""},
		{`LDG if len("a") == 1 => .EL`, "no function len", ""},
		{"LDG => evikt=EF", "column 8: no LDG on sm_90 has a field evikt", "evict"},
		{"LDG => guard=P0", "column 8: a guard is set with @", "@P0"},
		{"LDG => pc=4", "column 8: pc cannot be set", ""},
		{"LDG => width=64", "column 8: width is read from the instruction", "size=64"},
		{"LDG => evict+=EF", "column 8: evict takes a value by name", ""},
		{"LDG => ~evict", "column 8: evict has more than two values", ""},
		{"LDG => yield=1", "column 14: yield takes Y or -", ""},
		{"LDG => wait=6", "column 13: wait: \"6\" is no value", ""},
		{"LDG => stall=16", "column 8: stall would be 16; it goes from 0 to 15", ""},
		{"LDG => wbar=6", "column 8: wbar would be 6; it goes from 0 to 5", ""},
		{"LDG => @UP0", "column 8: the guard of LDG is one of P0 to P6", ""},
		{"LDG => .EF .EL", "column 12: evict is set twice", ""},
		{"LDG => .EF evict=EL", "column 12: evict is set twice", ""},
		{"FFMA => .RM .RP", "column 13: round is set twice", ""},
		{"LDG => stall=4 wbar=1 stall=5", "column 23: stall is set twice", ""},
		{"LDG => @P0 @P1", "column 12: guard is set twice", ""},
		{"LDG =>", "column 7: no changes", ".EF"},
		{"LDG => ", "column 7: no changes", ".EF"},
		{"LDG ; FFMA => ;", "column 16: no changes", ".EF"},
		{"x:LDG => x:", "column 12: no changes", ".EF"},
		{"LDG => ~stall", "column 8: ~ toggles yield, reuse.a, reuse.b, reuse.c and modifiers of two values; stall is none of these", "stall=…"},
		{"LDG => ~dst", "column 8: ~ toggles yield", ""},
		{"LDG => prev.stall=4", "column 8: only the matched instruction can be changed", "x:* ; LDG => x: stall=4"},
		{"LDG => next.dst=R4", "column 8: only the matched instruction can be changed", ""},
		{"LDG => stall=5%0", "column 16: division by 0", ""},
		{"LDG => stall=1/0", "column 16: division by 0", ""},
		{"LDG => stall=5%(stall-1)", "column 14: 5%(stall-1) divides by 0 here (kernel k, 0x0:", ""},
		{"LDG => stall=1.5", "column 14: stall takes a whole number, not a number with a fraction", ""},
		{"LDG => stall=next.next.next.stall", "column 14: next.next.next.stall has no value here: the instruction lacks", ""},
		{"LDG if 7 in wait => .EL", "column 8: 7 is never in wait; scoreboards go from 0 to 5", ""},
		{"LDG if width == 48 => .EL", "column 17: width is never 48; it is one of 8 16 32 64 96 128 256", ""},
		{"LDG if width > 256 => .EL", "column 16: width is never > 256; it goes from 8 to 256", ""},
		{"LDG if stall % 0 == 0 => .EL", "column 16: division by 0", ""},
		{"LDG if 1/(stall-stall) == 1 => .EL", "column 16: division by 0", ""},
		{"LDG if stall == 8*2 => .EL", "stall is never 16; it goes from 0 to 15", ""},
		{"LDG if stall == 1.5 => .EL", "column 17: stall is never 1.5", ""},
		{"LDG if stall > 15 => .EL", "column 16: stall is never > 15", ""},
		{"LDG if 0 > stall => .EL", "column 8: stall is never < 0", ""},
		{`LDG if reads == "R255" => .EL`, `column 17: reads is never "R255"; the registers go from R0 to R254`, ""},
		{`LDG if live != "P7" => .EL`, `column 16: live is never "P7"; the registers go from P0 to P6`, ""},
		{`LDG if writes == "UP-1" => .EL`, `column 18: writes is never "UP-1"; the registers go from UP0 to UP6`, ""},
		{`LDG if reads contains "R8" => .EL`, "column 8: reads has registers; contains takes text", `== asks whether a register is in the set: reads == "R4"`},
		{`LDG if "R4" in reads => .EL`, "column 16: in wants a list", `== asks whether a register is in the set: reads == "R4"`},
		{`LDG if not (live matches "R8") => .EL`, "column 13: live has registers; matches takes text", `== asks whether a register is in the set: live == "R4"`},
		{"LDG if block < 0 => .EL", "column 16: block is never < 0; it starts at 0", ""},
		{"LDG{2,4} if i == 4 => .EL", "column 18: i is never 4; it goes from 0 to 3", ""},
		{"LDG{2,4} if n < 2 => .EL", "column 17: n is never < 2; it goes from 2 to 4", ""},
		{"LDG if entry == 0 => .EL", "column 17: entry is never 0; it starts at 1", ""},
		{`LDG if entry == "one" => .EL`, `column 17: entry is a number, not "one"`, ""},
		{`LDG if evict startsWith "X" => .EL`, `column 25: no value of evict startsWith "X"; evict: EF EL LU EU NA`, ""},
		{`LDG if yield matches "N" => .EL`, `column 22: no value of yield matches "N"; yield: Y -`, ""},
		{"LDG => .EF.EL", "column 12: LDG on sm_90: EL and another value before it belong to the same group evict", ""},
		{`FFMA => "FFMA R0, R1"`, "column 21:", ""},
		{"IADD3 => imm=1.5", "column 14: imm=1.5: 1.5 is no whole number", ""},
		{"* => .EF", "column 7: FFMA on sm_90 has no EF", ""},
	} {
		text, _, err := planText(t, patchtest.Lines(before), Options{}, test.rule)
		if test.want == "" {
			if err != nil {
				t.Errorf("%s: %v", test.rule, err)
			}
			continue
		}
		if err == nil {
			t.Errorf("%s: no error; want %q; got\n%s", test.rule, test.want, text)
			continue
		}
		var re *Error
		if !errors.As(err, &re) {
			t.Errorf("%s: error of type %T: %v", test.rule, err, err)
			continue
		}
		if !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s:\n got  %v\n want %s", test.rule, err, test.want)
		}
		if !strings.Contains(re.Help, test.hint) {
			t.Errorf("%s: hint %q, want %q", test.rule, re.Help, test.hint)
		}
	}
}

// TestBrokenConditions sees that a condition which is none on any architecture is refused
// when the rule is read.
func TestBrokenConditions(t *testing.T) {
	for cond, col := range map[string]int{"stall ==": 16, "(stall": 8, "stall = 4": 14, "stall stall": 14, "and": 8, "width in": 16, `"a`: 8, "x ? 1": 13} {
		text := "LDG if " + cond + " => .EF"
		_, err := Parse("", 1, text)
		var re *Error
		if !errors.As(err, &re) || re.Col != col {
			t.Errorf("%s: got %v, want an error at column %d", text, err, col)
		}
		if _, err := ParseParts(Parts{Name: "r", Match: Part{Text: "LDG"}, If: Part{Text: cond, Pos: "r.toml:3:6"}, Set: Part{Text: ".EF"}}); err == nil || !strings.HasPrefix(err.Error(), `r.toml:3:6: rule "r": if: column `) {
			t.Errorf("%s in a recipe: %v", cond, err)
		}
		if _, err := ParseMatch("LDG if " + cond); err == nil {
			t.Errorf("LDG if %s: no error", cond)
		}
	}
}

// TestOneColumn sees that an error inside a text in a rule counts columns in the rule, and
// in nothing else.
func TestOneColumn(t *testing.T) {
	const before = "LDG.E R4, desc[UR4][R2.64]\nFFMA R0, R1, R2, R3"
	for _, test := range []struct{ rule, want string }{
		{`LDG => "LDG.E R0, desc[UR4]["`, "column 29: expected"},
		{`LDG => "[B------:R-:W-:-:S01] LDG.E R0, desc[UR4]["`, "column 51: expected"},
		{`LDG => "LDG.E Q4"`, "column 15: expected"},
		{"FFMA => src2=Q", "column 14: src2=Q: expected"},
		{`FFMA => src2="R2 Q"`, "column 17: src2=R2 Q: expected"},
	} {
		_, _, err := planText(t, patchtest.Lines(before), Options{}, test.rule)
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Count(err.Error(), "column") != 1 {
			t.Errorf("%s: got %v, want %s", test.rule, err, test.want)
		}
	}
}

// TestRefused checks what is refused, under which name, and that --allow permits it.
func TestRefused(t *testing.T) {
	for _, test := range []struct{ before, rule, kind, want string }{
		{"LDG.E.64 R4, desc[UR4][R2.64]", "LDG.E.64 => .128", check.RefuseFootprint, "footprint R4-R5 becomes R4-R7"},
		{"LDG.E R4, desc[UR4][R2.64]", "LDG => dst=R6", check.RefuseFootprint, "footprint R4 becomes R6"},
		{"LDG.E R4, desc[UR4][R2.64]", "LDG => src1=R40", check.RefuseFootprint, "R40 is beyond the 40 registers"},
		{"STG.E desc[UR4][R2.64], R4", "STG => .64", check.RefuseFootprint, "footprint R4 becomes R4-R5"},
		{"LDG.E R4, desc[UR4][R2.64]", "LDG => evict=INVALID6", check.RefuseValue, "evict=INVALID6 means nothing; evict: EF EL LU EU NA"},
		{"LDG.E R4, desc[UR4][R2.64]", "LDG => bits[84..86]=7", check.RefuseValue, "evict=INVALID7"},
		{"[B------:R-:W-:-:S11] FFMA R0, R1, R2, R3", "FFMA => stall+=1", check.RefuseSchedule, "yield=Y"},
		{"[B------:R-:W-:-:S01] FFMA R0, R1, R2, R3", "FFMA => stall=0", check.RefuseSchedule, "yield=Y"},
		{"[B------:R-:W-:-:S01] FFMA R0, R1.reuse, R2, R3", "FFMA => yield=Y", check.RefuseSchedule, "bits 122–124"},
		{"[B------:R-:W-:-:S01] IADD3 R0, R1, 0x20, RZ", "IADD3 => reuse.b=1", check.RefuseSchedule, "reuse flags b"},
		{"[B------:R-:W-:Y:S01] FFMA R0, R1, R2, R3", "FFMA => reuse.b=1", check.RefuseSchedule, "batch number"},
		{"EXIT", "EXIT => reuse.a=1", check.RefuseSchedule, "reuse flags a: this instruction reads no register there"},
		{"EXIT", "EXIT => ~reuse.c", check.RefuseSchedule, "reuse flags c"},
		{"LDG.E R4, desc[UR4][R2.64]", "LDG => reuse.b=1", check.RefuseSchedule, "reuse flags b"},
		{"STG.E desc[UR4][R2.64], R4", "STG => bits[122..124]=1", check.RefuseSchedule, "reuse flags a"},
		{"NOP\nBRA 0x0", "BRA => target=-16", check.RefuseTarget, "the target -0x10 is outside the kernel's 0x20 bytes"},
		{"NOP\nBRA 0x0", "BRA => target+=0x10000000", check.RefuseTarget, "the target 0x10000000 is outside"},
		{"NOP\nBRA 0x0", "BRA => target=0x20", check.RefuseTarget, "the target 0x20 is outside"},
		{"NOP\nBRA 0x0", "BRA => target=0x8", check.RefuseTarget, "the target 0x8 is no multiple of 16"},
		{"NOP\nNOP", `NOP if pc == 0 => "BRA 0x100"`, check.RefuseTarget, "the target 0x100 is outside"},
		{"NOP", "NOP => bits[0..11]=0x94d", check.RefuseClass, "class nop becomes"},
		{"EXIT", "EXIT => bits[16..16]=1", check.RefuseClass, "class exit becomes a word that is not known"},
		{"FFMA R0, R1, R2, R3", `FFMA => "FFMA R9, R1, R2, R3"`, check.RefuseFootprint, "footprint R0 becomes R9"},
	} {
		_, _, err := planText(t, patchtest.Lines(test.before), Options{}, test.rule)
		var re *Error
		if !errors.As(err, &re) || re.Refused() != test.kind || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v; want it refused as %s: %s", test.rule, err, test.kind, test.want)
			continue
		}
		if _, plan, err := planText(t, patchtest.Lines(test.before), Options{Allow: check.Allow{test.kind: true}}, test.rule); err != nil {
			t.Errorf("%s with --allow %s: %v", test.rule, test.kind, err)
		} else if plan.Summary.Changed != 1 {
			t.Errorf("%s with --allow %s: %d changes", test.rule, test.kind, plan.Summary.Changed)
		}
		if _, plan, err := planText(t, patchtest.Lines(test.before), Options{SkipRefused: true}, test.rule); err != nil {
			t.Errorf("%s with --skip-refused: %v", test.rule, err)
		} else if plan.Summary.Changed != 0 || plan.Summary.Refused != 1 {
			t.Errorf("%s with --skip-refused: %+v", test.rule, plan.Summary)
		}
	}
}
