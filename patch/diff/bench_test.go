package diff

import (
	"os"
	"testing"

	"github.com/cupatch/cupatch/elfx"
)

// BenchmarkFiles compares the files that the environment variables DIFF_A and DIFF_B
// name, or a pair of the test data.
func BenchmarkFiles(b *testing.B) {
	x, y := os.Getenv("DIFF_A"), os.Getenv("DIFF_B")
	if x == "" {
		x, y = pairs+"sm_90/pair.cubin", pairs+"sm_90/pair_maxreg.cubin"
	}
	f, err := elfx.OpenFile(x, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	g, err := elfx.OpenFile(y, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer g.Close()
	var n int
	var buf []byte
	for b.Loop() {
		p := Printer{A: x, B: y, Brief: os.Getenv("DIFF_BRIEF") != ""}
		r, err := Files(f, g, Options{Visit: func(k *KernelDiff) error {
			buf = p.AppendKernel(buf[:0], k)
			return nil
		}})
		if err != nil {
			b.Fatal(err)
		}
		n = r.A.Instructions + r.B.Instructions
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "instructions/s")
}
