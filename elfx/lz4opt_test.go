package elfx

import (
	"bytes"
	"math/rand"
	"testing"

	"github.com/pierrec/lz4/v4"
)

// The block decodes to what it was made of, and is no larger than the library's.
func TestLZ4Smallest(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	random := make([]byte, 5000)
	rng.Read(random)
	cases := map[string][]byte{
		"empty": {}, "one": {1}, "twelve": bytes.Repeat([]byte{7}, 12), "thirteen": bytes.Repeat([]byte{7}, 13),
		"zeros": make([]byte, 100000), "random": random,
		"runs":         append(append(bytes.Clone(random), make([]byte, 3000)...), random[:2000]...),
		"far match":    append(append(bytes.Clone(random[:300]), make([]byte, lz4Window-300)...), random[:300]...),
		"too far":      append(append(bytes.Clone(random[:300]), make([]byte, lz4Window-299)...), random[:300]...),
		"long literal": append(bytes.Clone(random[:600]), random[:100]...),
		"cubin":        mustRead(t, "cubin/new/sm_90/gemm.cubin"),
		"ptx":          mustRead(t, "ptx/loads.ptx"),
	}
	for name, src := range cases {
		out := lz4Smallest(src, 256)
		dst := make([]byte, len(src)+1)
		n, err := lz4.UncompressBlock(out, dst[:len(src)])
		if len(src) > 0 && (err != nil || !bytes.Equal(dst[:n], src)) {
			t.Errorf("%s: %d bytes decode to %d, want %d; %v", name, len(out), n, len(src), err)
		}
		buf := make([]byte, lz4.CompressBlockBound(len(src)))
		if m, err := lz4.CompressBlockHC(src, buf, lz4.Level9, nil, nil); err == nil && m > 0 && len(out) > m {
			t.Errorf("%s: %d bytes, the library makes %d", name, len(out), m)
		}
	}
}

func FuzzLZ4Smallest(f *testing.F) {
	f.Add([]byte("abcabcabcabcabcabcabcabcabcabcabc"), 3)
	f.Fuzz(func(t *testing.T, src []byte, times int) {
		if len(src) == 0 || len(src) > 4000 {
			return
		}
		src = bytes.Repeat(src, 1+times&0x1f)
		out := lz4Smallest(src, 64)
		dst := make([]byte, len(src))
		if n, err := lz4.UncompressBlock(out, dst); err != nil || !bytes.Equal(dst[:n], src) {
			t.Fatalf("%d bytes decode to %d, want %d; %v", len(out), n, len(src), err)
		}
	})
}
