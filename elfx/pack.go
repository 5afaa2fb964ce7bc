package elfx

import (
	"fmt"
	"math"
	"runtime"
	"sync"

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
		return packZstd(data, space)
	}
	return nil, fmt.Errorf("compression of a toolkit older than 9: %w", ErrUnsupported)
}

// packLevel compresses data at a level from 1 to 19; 0 is the best that takes a reasonable
// time. LZ4 has the levels up to 9, and from 10 on an optimal parser.
func packLevel(how Compression, data []byte, level int) ([]byte, error) {
	switch {
	case how == Zstd && level > 0:
		enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.EncoderLevelFromZstd(level)), zstd.WithEncoderConcurrency(1),
			zstd.WithEncoderCRC(false), zstd.WithSingleSegment(true))
		if err != nil {
			return nil, fmt.Errorf("zstd: %w", err)
		}
		return enc.EncodeAll(data, nil), nil
	case how == LZ4 && level >= 10:
		return lz4Smallest(data, 64), nil
	case how == LZ4 && level > 0:
		dst := make([]byte, lz4.CompressBlockBound(len(data)))
		n, err := lz4.CompressBlockHC(data, dst, lz4.CompressionLevel(1<<(8+level)), nil, nil)
		if err == nil && n == 0 {
			return data, nil // it does not shrink
		}
		return dst[:n:n], err
	}
	return pack(how, data, math.MaxInt64)
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

// zstdWindow is the window of the shared encoder; payloads beyond it are tried with a
// larger one too.
const zstdWindow = 8 << 20

// zstdEncoder is shared, since its tables take 50 MB: EncodeAll may be called by
// several goroutines at once.
var zstdEncoder = sync.OnceValues(func() (*zstd.Encoder, error) { return newZstdEncoder(zstdWindow, runtime.GOMAXPROCS(0)) })

func newZstdEncoder(window, concurrency int) (*zstd.Encoder, error) {
	return zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithEncoderConcurrency(concurrency),
		zstd.WithEncoderCRC(false), zstd.WithSingleSegment(true), zstd.WithWindowSize(window))
}

// packZstd compresses to a frame.
func packZstd(data []byte, space int64) ([]byte, error) {
	enc, err := zstdEncoder()
	if err != nil {
		return nil, fmt.Errorf("zstd: %w", err)
	}
	out := enc.EncodeAll(data, nil)
	if len(data) <= zstdWindow || int64(len(out)) <= space {
		return out, nil
	}
	window := zstdWindow
	for window < len(data) && window < zstd.MaxWindowSize {
		window *= 2
	}
	large, err := newZstdEncoder(window, 1)
	if err != nil {
		return nil, fmt.Errorf("zstd: %w", err)
	}
	if other := large.EncodeAll(data, nil); len(other) < len(out) {
		out = other
	}
	return out, nil
}
