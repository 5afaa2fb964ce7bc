package elfx

import "testing"

// The names are those that c++filt gives the mangled ones.
func TestKernelMatches(t *testing.T) {
	for _, c := range []struct {
		name  string
		fits  []string
		fails []string
	}{
		{"_ZN2ns4gemmIfEEvi", // void ns::gemm<float>(int)
			[]string{"gemm", "ns::gemm", "g*m", "void ns::gemm<float>(int)", "_ZN2ns4gemmIfEEvi", "*gemm*", "ns::*"},
			[]string{"gem", "emm", "ns", "::gemm", "gemm<float>"}},
		{"_ZN12_GLOBAL__N_13fooEv", []string{"foo", "(anonymous namespace)::foo", "foo*"}, []string{"fo", "oo"}},
		{"sgemm", []string{"sgemm", "s*", "?gemm"}, []string{"gemm", "sgem"}},
		{"ns::sgemm", []string{"ns::sgemm"}, []string{"sgemm"}}, // a name as it stands, not a C++ one
	} {
		k := &Kernel{Name: c.name}
		for _, g := range c.fits {
			if !k.Matches(g) {
				t.Errorf("%s does not match %s", g, c.name)
			}
		}
		for _, g := range c.fails {
			if k.Matches(g) {
				t.Errorf("%s matches %s", g, c.name)
			}
		}
	}
}
