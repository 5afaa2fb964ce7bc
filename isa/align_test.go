package isa

import (
	"errors"
	"strings"
	"testing"
)

// The instructions that ptxas never emits, though nvdisasm prints them, and some that it does:
// addresses in its code of 2.9 million different instructions begin at even registers, offsets
// of LDG.E.128 are multiples of 8 and not always of 16.
func TestAlign(t *testing.T) {
	for _, c := range []struct{ arch, text, refused string }{
		{"sm_90", "LDG.E.64 R1, desc[UR4][R2.64]", "2 registers from R1 on"},
		{"sm_90", "LDG.E.64 R2, desc[UR4][R2.64]", ""},
		{"sm_90", "LDG.E.64 RZ, desc[UR4][R2.64]", ""},
		{"sm_90", "LDG.E R1, desc[UR4][R2.64]", ""},
		{"sm_90", "LDG.E.128 R2, desc[UR4][R2.64]", "multiple of 4"},
		{"sm_90", "LDG.E.128 R253, desc[UR4][R2.64]", "beyond the end"},
		{"sm_90", "LDG.E.128 R252, desc[UR4][R2.64]", "beyond the end"},
		{"sm_90", "LDG.E.128 R248, desc[UR4][R2.64]", ""},
		{"sm_90", "LDG.E R0, desc[UR4][R41.64]", "2 registers from R41 on"},
		{"sm_90", "LDG.E R0, desc[UR5][R40.64]", "2 registers from UR5 on"},
		{"sm_80", "LDG.E R0, [R41.64]", "2 registers from R41 on"},
		{"sm_75", "LDG.E.64.SYS R3, [R2]", "2 registers from R3 on"},
		{"sm_90", "STG.E.128 desc[UR4][R2.64], R6", "multiple of 4"},
		{"sm_90", "HMMA.16816.F32 R5, R8, R12, R4", "4 registers from R5 on"},
		{"sm_90", "HMMA.16816.F32 R4, R9, R12, R4", "4 registers from R9 on"},
		{"sm_90", "HMMA.16816.F32 R4, R8, R13, R4", "2 registers from R13 on"},
		{"sm_90", "HMMA.16816.F32 R4, R8, R12, R4", ""},
		{"sm_90", "ULDC.64 UR4, c[0x3][0x4]", "offset 0x4"},
		{"sm_90", "ULDC.64 UR5, c[0x3][0x8]", "2 registers from UR5 on"},
		{"sm_90", "ULDC.64 UR4, c[0x3][0x8]", ""},
		{"sm_90", "ULDC UR5, c[0x3][0x4]", ""},
		{"sm_90", "DADD R2, R4, c[0x0][0x4]", "offset 0x4"},
		{"sm_90", "DFMA R2, R4, R6, R9", "2 registers from R9 on"},
		{"sm_90", "IMAD.WIDE R3, R4, R5, R6", "2 registers from R3 on"},
		{"sm_90", "IMAD.WIDE R2, R5, R7, R6", ""},
		{"sm_90", "LDSM.16.M88.4 R5, [R1]", "4 registers from R5 on"},
		{"sm_90", "LDG.E.128 R4, desc[UR4][R2.64+0x4]", "offset 0x4"},
		{"sm_90", "LDG.E.128 R4, desc[UR4][R2.64+0x8]", ""},
		{"sm_90", "LDG.E.128 R4, desc[UR4][R2.64+-0x10]", ""},
		{"sm_90", "LDG.E.U8 R4, desc[UR4][R2.64+0x3]", ""},
	} {
		a, err := ParseArch(c.arch)
		if err != nil {
			t.Fatal(err)
		}
		table, err := Load(a)
		if err != nil {
			t.Fatal(err)
		}
		line, err := ParseLine(c.text)
		if err != nil {
			t.Fatal(err)
		}
		_, err = table.EncodeLine(line, nil, nil)
		var refused *RefusedError
		switch {
		case c.refused == "" && err != nil:
			t.Errorf("%s: %s: %v", c.arch, c.text, err)
		case c.refused == "":
		case !errors.As(err, &refused) || refused.Name != "align" || !strings.Contains(refused.Msg, c.refused):
			t.Errorf("%s: %s: error %v, want align: %s", c.arch, c.text, err, c.refused)
		}
		w, err := table.EncodeLine(line, nil, Allow{"align": true})
		if err != nil {
			t.Errorf("%s: %s, allowed: %v", c.arch, c.text, err)
		}
		if _, err := table.EncodeLine(line, &w, nil); err != nil {
			t.Errorf("%s: %s, made from itself: %v", c.arch, c.text, err)
		}
	}
}

// What few samples say is not believed, nor what those of a class say when others of as many
// registers say otherwise.
func TestAlignSamples(t *testing.T) {
	table, err := ParseAlign(`# comment
a_ R24*2=2:1000:50 R16*4=4:39:20 c38*8=8:50:10 +40*16=16:9000:90
b_ R24*2=1:5:3 UR32*8=8:500:30 c38*8=4:50:10 +40*4=2:9000:90
`)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		class string
		key   AlignKey
		want  int
	}{
		{"a_", AlignKey{OperandRegister, FileR, 24, 2}, 1},   // b_ has it odd
		{"a_", AlignKey{OperandRegister, FileR, 16, 4}, 1},   // 39 words
		{"c_", AlignKey{OperandRegister, FileUR, 32, 64}, 8}, // as all runs of more than four
		{"a_", AlignKey{Kind: OperandConstant, Bit: 38, Count: 8}, 8},
		{"b_", AlignKey{Kind: OperandConstant, Bit: 38, Count: 8}, 4},
		{"c_", AlignKey{Kind: OperandConstant, Bit: 38, Count: 8}, 4},
		{"a_", AlignKey{Kind: OperandAddress, Bit: 40, Count: 16}, 8}, // half of the size, as in b_
		{"a_", AlignKey{Kind: OperandAddress, Bit: 40, Count: 1}, 1},
	} {
		if got := table.want(c.class, c.key); got != c.want {
			t.Errorf("%s %s: a multiple of %d, want %d", c.class, c.key, got, c.want)
		}
	}
	for _, bad := range []string{"a_ R24*2", "a_ R24*1=1:5:3", "a_ Q24*2=2:5:3", "a_ R24*2=3:5:3", "a_ R24*2=2:5", "a_ +40*0=4:5:3",
		"a_ R*2=2:5:3", "a_ R24=2:5:3", "a_ R24*-2=2:5:3"} {
		if _, err := ParseAlign(bad); err == nil {
			t.Errorf("%q is read", bad)
		}
	}
}
