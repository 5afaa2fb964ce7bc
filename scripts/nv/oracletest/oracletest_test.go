package oracletest

import "testing"

func TestDisassemble(t *testing.T) {
	words := []Word{
		{0x0000000c09097212, 0x000fe400078e3cff},
		{}, // refused without an address
		{0x000001041815c981, 0x000f22000c1e1100},
		{0x0000000000001001, 0x000f000000000000}, // refused with one
		{0x000000ffff757224, 0x000fe400078e00a8},
	}
	want := []string{
		"LOP3.LUT R9, R9, R12, RZ, 0x3c, !PT", "",
		"@!P4 LDG.E.U8 R21, desc[UR4][R24.64+0x1]", "",
		"IMAD.MOV.U32 R117, RZ, RZ, R168",
	}
	for i, got := range Disassemble(t, "sm_90", words) {
		if got.Text != want[i] {
			t.Errorf("word %d: %q, want %q", i, got.Text, want[i])
		}
		if refused := got.Refused != ""; refused != (want[i] == "") {
			t.Errorf("word %d: refused with %q", i, got.Refused)
		}
	}
}

func TestDisassembleVolta(t *testing.T) {
	got := Disassemble(t, "sm_70", []Word{{0x0000000000007918, 0x000fc00000000000}})
	if got[0].Text != "NOP" {
		t.Errorf("%+v", got[0])
	}
}

func TestParseSass(t *testing.T) {
	const listing = `
	code for sm_90
		Function : _Z4copyPf
	.headerflags	@"EF_CUDA_64BIT_ADDRESS EF_CUDA_SM90"
        /*0000*/                   LDC R1, c[0x0][0x28] ;                        /* 0x00000a00ff017b82 */
                                                                                 /* 0x000fe20000000800 */
        /*0010*/              @!P0 BRA 0x130;                                    /* 0x0000000400008947 */
                                                                                 /* 0x000fea0003800000 */
		..........
`
	want := []Instr{
		{Kernel: "_Z4copyPf", PC: 0, Text: "LDC R1, c[0x0][0x28]", Word: Word{Lo: 0x00000a00ff017b82, Hi: 0x000fe20000000800}},
		{Kernel: "_Z4copyPf", PC: 16, Text: "@!P0 BRA 0x130", Word: Word{Lo: 0x0000000400008947, Hi: 0x000fea0003800000}},
	}
	got := ParseSass(t, []byte(listing))
	if len(got) != len(want) || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}
