package nearest

import "testing"

func TestName(t *testing.T) {
	names := []string{"patch", "apply", "ls", "dis", "LDG"}
	for s, want := range map[string]string{"pathc": "patch", "aply": "apply", "LDGX": "LDG", "x": "", "nothing": "", "disas": "dis"} {
		if got := Name(s, names); got != want {
			t.Errorf("Name(%q) = %q, want %q", s, got, want)
		}
	}
}

func TestDistance(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"abc", "", 3}, {"kitten", "sitting", 3}, {"LTC64B", "LTC128B", 3}, {"LTC64B", "LTC256B", 3}, {"BSNYC", "BSYNC", 1}, {"ab", "ba", 1}} {
		if got := Distance(test.a, test.b); got != test.want {
			t.Errorf("Distance(%q, %q) = %d, want %d", test.a, test.b, got, test.want)
		}
	}
}
