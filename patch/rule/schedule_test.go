package rule

import (
	"errors"
	"testing"

	"github.com/cupatch/cupatch/patch/check"
	"github.com/cupatch/cupatch/patch/internal/patchtest"
)

// TestReuseOfNothing sees that a reuse flag is refused where no table of nvdisasm's
// tolerance tells: it prints these instructions with any flag.
func TestReuseOfNothing(t *testing.T) {
	for _, arch := range []string{"sm_75", "sm_80", "sm_90", "sm_120"} {
		table := patchtest.Table(t, arch)
		for _, test := range []struct{ before, rule string }{
			{"EXIT", "EXIT => reuse.a=1"},
			{"S2R R4, SR_TID.X", "S2R => reuse.b=1"},
		} {
			_, _, err := planWith(t, table, patchtest.Lines(test.before), Options{}, test.rule)
			var re *Error
			if !errors.As(err, &re) || re.Refused() != check.RefuseSchedule {
				t.Errorf("%s: %s: got %v", arch, test.rule, err)
			}
		}
		got, _, err := planWith(t, table, patchtest.Lines("FFMA R0, R1, R2, R3"), Options{}, "FFMA => reuse.a=1 reuse.b=1 reuse.c=1")
		if want := patchtest.Lines("FFMA R0, R1.reuse, R2.reuse, R3.reuse"); err != nil || got != want {
			t.Errorf("%s: got %s, %v", arch, got, err)
		}
	}
}
