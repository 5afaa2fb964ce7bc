package liferange

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/scripts/nv/oracle"
	"github.com/cupatch/cupatch/scripts/nv/oracletest"
)

// openOracle starts nvdisasm for arch, or skips the test.
func openOracle(t *testing.T, arch string) *Oracle {
	t.Helper()
	a, err := isa.ParseArch(arch)
	if err != nil {
		t.Fatal(err)
	}
	o, err := Open(oracletest.Tool(t, oracle.Current("nvdisasm", arch)), a)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.Close)
	return o
}

// listing is what nvdisasm 13.5.37 prints for four instructions of sm_90 and an EXIT,
// blanks before the tables cut off.
const listing = `	.target	sm_90

//--------------------- .text.k7                  --------------------------
	.section	.text.k7,"ax",@progbits
  // +-------------------------------------------------------------------------------------------------------------+--------+-----------+---------+
  // |                                                    GPR                                                      | PRED   |   UGPR    | UPRED   |
  // |     000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000011  |        |           |         |
  // |     000000000011111111112222222222333333333344444444445555555555666666666677777777778888888888999999999900  |        |           |         |
  // |   # 012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901  | # 012  | # 012345  |  # 01   |
  // +-------------------------------------------------------------------------------------------------------------+--------+-----------+---------+
.text.k7: // |                                                                                                             |        |           |         |
  /*0000*/  @!P2 LDG.E.64 R12, desc[UR4][R8.64] ; // |   8  : ::   vv  ^^                                                                                       :  | 1   v  | 2     vv  |  1  :   |
  /*0010*/       FADD R3, R3, R101 ; // |   4  : x:                                                                                                v  | 1   :  | 1     :   |  1  :   |
  /*0020*/       @UP1 UMOV UR5, UR4 ; // |   3  : ::                                                                                                   | 1   :  | 2     v^  |  1  v   |
  /*0030*/       ISETP.LT.AND P1, PT, R3, R4, !P2 ; // |   3  : vv                                                                                                   | 2  ^v  |           |         |
  /*0040*/       EXIT ; // |   1  :                                                                                                      |        |           |         |
.L_x_0: // +-------------------------------------------------------------------------------------------------------------+--------+-----------+---------+

  // Legend:
  //     ^       : Register assignment
`

func TestParse(t *testing.T) {
	var got []string
	err := Parse(strings.NewReader(listing), func(r Row) error {
		got = append(got, fmt.Sprintf("%s %#x reads %s writes %s", r.Section, r.PC, r.Marks.Reads, r.Marks.Writes))
		return nil
	})
	want := []string{
		"k7 0x0 reads R8 R9 UR4 UR5 P2 writes R12 R13",
		"k7 0x10 reads R3 R101 writes R3",
		"k7 0x20 reads UR4 UP1 writes UR5",
		"k7 0x30 reads R3 R4 P2 writes P1",
		"k7 0x40 reads  writes ",
	}
	if err != nil || strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%v\n%s", err, strings.Join(got, "\n"))
	}
}

// Every architecture that has a table has an nvdisasm that shows its life ranges.
func TestOracleKnowsEveryArch(t *testing.T) {
	for _, arch := range isa.Arches() {
		if os.Getenv("CUPATCH_LONG") != "" || arch.SM == 90 {
			openOracle(t, arch.String())
		}
	}
}

// One word that nvdisasm refuses does not take the answers of the others with it.
func TestRefusedWord(t *testing.T) {
	o := openOracle(t, "sm_90")
	bad := isa.Word{Lo: 0x7fff}
	answers, err := o.Ask([][]isa.Word{{probe, bad, probe}, {probe}})
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range append(answers[0], answers[1]...) {
		if want := i != 1; a.OK != want || want && a.Effects != probeEffects {
			t.Errorf("word %d: %+v", i, a)
		}
	}
	if c := answers[0][1].Complaint; !strings.Contains(c, "Unrecognized operation") {
		t.Errorf("the complaint is %q", c)
	}
}
