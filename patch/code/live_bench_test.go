package code_test

import (
	"os"
	"testing"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/patch/code"
)

// BenchmarkLive is the flow graph and the live registers of every kernel of a file: that in
// CUPATCH_BENCH_FILE, or a cubin of testdata. It reports instructions a second.
func BenchmarkLive(b *testing.B) {
	path := os.Getenv("CUPATCH_BENCH_FILE")
	if path == "" {
		path = root + "/testdata/cubin/new/sm_90/gemm.cubin"
	}
	f, err := elfx.OpenFile(path, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	n := 0
	for b.Loop() {
		for _, e := range f.Entries() {
			if e.Kind != elfx.KindELF {
				continue
			}
			target, err := code.Open(e)
			if err != nil || target.Table == nil {
				continue
			}
			for i := range target.Cubin.Kernels() {
				k := target.Kernel(&target.Cubin.Kernels()[i])
				code.NewState(k, target.Table).Flow().Live()
				n += len(k.Data) / isa.WordSize
			}
			e.Done()
		}
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "instructions/s")
}
