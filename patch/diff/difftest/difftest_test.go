package difftest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cupatch/cupatch/patch/diff"
)

const dir = "../../../testdata/cubin/new/sm_90/"

// A recorder is a test that keeps what it is told.
type recorder struct {
	testing.TB
	said []string
}

func (r *recorder) Helper()        {}
func (r *recorder) Cleanup(func()) {}

func (r *recorder) Error(args ...any) { r.said = append(r.said, fmt.Sprint(args...)) }
func (r *recorder) Errorf(format string, args ...any) {
	r.said = append(r.said, fmt.Sprintf(format, args...))
}

func TestSame(t *testing.T) {
	for _, test := range []struct{ got, want string }{
		{"pair.cubin", ""},
		{"pair_lineinfo.cubin", ""},
		{"pair_constant.cubin", "-/*0120*/ [B--2---:R-:W-:Y:S05]"},
		{"nothing.cubin", "nothing was compared"},
		{"missing.cubin", "missing.cubin"},
	} {
		var r recorder
		Same(&r, dir+"pair.cubin", dir+test.got, diff.Options{})
		if said := strings.Join(r.said, "\n"); (said == "") != (test.want == "") || !strings.Contains(said, test.want) {
			t.Errorf("%s: said %q, want %q", test.got, said, test.want)
		}
	}
}

// Code that must not change from build to build is compared with a golden file. Here
// only the control codes may.
func ExampleSame() {
	test := func(t *testing.T) {
		level, err := diff.ParseLevel("nocontrol")
		if err != nil {
			t.Fatal(err)
		}
		Same(t, "testdata/golden.cubin", "build/kernel.cubin", diff.Options{Count: level})
	}
	_ = test
}
