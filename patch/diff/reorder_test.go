package diff

import (
	"strings"
	"testing"

	"github.com/cupatch/cupatch/patch/internal/patchtest"
)

// TestReordered exchanges lines of a program: where a dependence is kept it is the same
// code in another order, else it is other code.
func TestReordered(t *testing.T) {
	table := patchtest.Table(t, "sm_90")
	lines := []string{
		0:  "LDG.E R6, desc[UR4][R8.64+0x10]",
		1:  "LDG.E R7, desc[UR4][R8.64+0x14]",
		2:  "FFMA R1, R2, R3, R4",
		3:  "FADD R10, R6, R7",
		4:  "ISETP.EQ.AND P0, PT, R1, RZ, PT",
		5:  "@P0 MOV R10, R2",
		6:  "STG.E desc[UR4][R8.64], R10",
		7:  "STG.E desc[UR4][R8.64+0x4], R1",
		8:  "LDG.E R11, desc[UR4][R8.64+0x20]",
		9:  "LDC R12, c[0x0][0x210]",
		10: "BAR.SYNC.DEFER_BLOCKING 0x0",
		11: "S2R R13, SR_TID.X",
		12: "CS2R R14, SR_CLOCKLO",
		13: "CS2R R16, SR_CLOCKLO",
		14: "@!P0 BRA 0x0",
		15: "IADD3 R18, R11, R12, R14",
		16: "EXIT",
	}
	for _, test := range []struct {
		name string
		x, y int // lines that change places
		want Class
	}{
		{"two loads", 0, 1, Reordered},
		{"independent arithmetic", 2, 3, Reordered},
		{"a load from a constant bank and a barrier", 9, 10, Reordered},
		{"a thread's number and a barrier", 10, 11, Reordered},
		{"a write and its reader", 1, 3, CodeDiffers},
		{"a predicate and its guard", 4, 5, CodeDiffers},
		{"an overwrite under a guard", 3, 5, CodeDiffers},
		{"two stores", 6, 7, CodeDiffers},
		{"a store and a load", 7, 8, CodeDiffers},
		{"a load and a barrier", 8, 10, CodeDiffers},
		{"two clocks", 12, 13, CodeDiffers},
		{"across blocks", 13, 15, CodeDiffers},
	} {
		changed := append([]string(nil), lines...)
		changed[test.x], changed[test.y] = lines[test.y], lines[test.x]
		d := both(t, source(t, table, strings.Join(lines, "\n")), source(t, table, strings.Join(changed, "\n")))
		if d.Class != test.want {
			t.Errorf("%s: class %s, want %s", test.name, d.Class, test.want)
		}
		if d.Class == Reordered && (d.Moved == 0 || d.Deleted+d.Inserted != 0 || d.Kinds != Order) {
			t.Errorf("%s: %d moved, %d deleted, %d inserted, kinds %s", test.name, d.Moved, d.Deleted, d.Inserted, d.Kinds)
		}
	}
	// Control codes may differ beside the order.
	changed := append([]string(nil), lines...)
	changed[2], changed[3] = "[B0-----:R-:W-:-:S05] "+lines[3], lines[2]
	if d := both(t, source(t, table, strings.Join(lines, "\n")), source(t, table, strings.Join(changed, "\n"))); d.Class != Reordered || d.Kinds != Order|Control {
		t.Errorf("with another control code: %s, %s", d.Class, d.Kinds)
	}
}
