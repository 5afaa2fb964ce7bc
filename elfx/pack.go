package elfx

import (
	"fmt"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// pack compresses data as small as the libraries can make it. The frames are like
// those of fatbinary: one segment, no checksum.
func pack(how Compression, data []byte) ([]byte, error) {
	switch how {
	case Stored:
		return data, nil
	case LZ4:
		dst := make([]byte, lz4.CompressBlockBound(len(data)))
		n, err := lz4.CompressBlockHC(data, dst, lz4.Level9, nil, nil)
		if err != nil {
			return nil, fmt.Errorf("lz4: %w", err)
		}
		if n == 0 {
			return nil, fmt.Errorf("lz4: the data cannot be compressed: %w", ErrUnsupported)
		}
		return dst[:n:n], nil
	case Zstd:
		return packZstd(data)
	}
	return nil, fmt.Errorf("compression of a toolkit older than 9: %w", ErrUnsupported)
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
