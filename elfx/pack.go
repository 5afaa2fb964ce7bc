package elfx

import (
	"fmt"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// pack compresses data so that it fits space bytes if it can be done, and else as small
// as it knows. The frames are like those of fatbinary: one segment, no checksum.
func pack(how Compression, data []byte, space int64) ([]byte, error) {
	switch how {
	case Stored:
		return data, nil
	case LZ4:
		return packLZ4(data, space)
	case Zstd:
		return packZstd(data)
	}
	return nil, fmt.Errorf("compression of a toolkit older than 9: %w", ErrUnsupported)
}

// packLZ4 tries harder and harder.
func packLZ4(data []byte, space int64) ([]byte, error) {
	dst := make([]byte, lz4.CompressBlockBound(len(data)))
	n, err := lz4.CompressBlockHC(data, dst, lz4.Level9, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("lz4: %w", err)
	}
	best := dst[:n:n]
	for _, attempts := range []int{64, 1 << 12} {
		if n > 0 && int64(len(best)) <= space {
			break
		}
		if out := lz4Smallest(data, attempts); n == 0 || len(out) < len(best) {
			best, n = out, len(out)
		}
	}
	return best, nil
}

// packZstd tries the window sizes that matter, since neither is always better.
func packZstd(data []byte) ([]byte, error) {
	var best []byte
	for _, window := range []int{zstd.MaxWindowSize, 8 << 20} {
		for window > zstd.MinWindowSize && window/2 >= len(data) {
			window /= 2
		}
		enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithEncoderConcurrency(1),
			zstd.WithEncoderCRC(false), zstd.WithSingleSegment(true), zstd.WithWindowSize(window))
		if err != nil {
			return nil, fmt.Errorf("zstd: %w", err)
		}
		out := enc.EncodeAll(data, nil)
		if best == nil || len(out) < len(best) {
			best = out
		}
		if len(data) <= 8<<20 {
			break // the second window would be the same
		}
	}
	return best, nil
}
