package arch

import "testing"

func TestParse(t *testing.T) {
	for s, want := range map[string]struct {
		sm      int
		suffix  string
		virtual bool
	}{
		"sm_90": {90, "", false}, "SM_90a": {90, "a", false}, "90a": {90, "a", false}, "sm90": {90, "", false}, " sm_100f": {100, "f", false},
		"compute_90": {90, "", true}, "compute_120f": {120, "f", true}, "SM100A": {100, "a", false},
	} {
		if sm, suffix, virtual, err := Parse(s); err != nil || sm != want.sm || suffix != want.suffix || virtual != want.virtual {
			t.Errorf("%q: sm_%d%s, virtual %t, %v", s, sm, suffix, virtual, err)
		}
	}
	for _, s := range []string{"", "sm_", "sm_9", "sm_1000", "90b", "90af", "aa", "sm_+90", "sm_-90", "sm_9 0", "ms_90", "smsm_90", "sm__90"} {
		if sm, suffix, _, err := Parse(s); err == nil {
			t.Errorf("%q: sm_%d%s", s, sm, suffix)
		}
	}
}
