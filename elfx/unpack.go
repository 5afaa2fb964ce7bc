package elfx

import (
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// Sizes that only a decompression bomb has: GPU code shrinks 3 to 15 times. An entry, or
// all of a file, may be bombSize bytes after decompression, and beyond that bombRatio
// times what it is in the file.
const (
	bombSize  = 64 << 20
	bombRatio = 200
)

// disarm gives the entries that come after too many decompressed bytes an error. The
// parts of a concatenation count too: each of them can be all of it.
func (f *File) disarm() {
	limit := bombSize + bombRatio*f.Size
	total := int64(0)
	for _, e := range f.entries {
		if e.Err != nil || e.Compression == Stored && e.Parent == nil {
			continue
		}
		if total += min(e.Size, limit); total > limit {
			e.Err = fmt.Errorf("this and the entries before are %d bytes or more after decompression, the file has %d: %w",
				total, f.Size, ErrTooLarge)
		}
		total = min(total, limit)
	}
}

// zstdFrameMin is the smallest frame: magic, header of two bytes, one block header.
const zstdFrameMin = 9

// unpack decodes a payload, into buf if that is large enough. size is the declared
// size of the result; it is checked against limit before anything is allocated.
func unpack(how Compression, src []byte, size, limit int64, buf []byte) ([]byte, error) {
	switch how {
	case Stored:
		return src[:len(src):len(src)], nil
	case OldPacking:
		return nil, fmt.Errorf("compressed by a toolkit older than 9: %w", ErrUnsupported)
	}
	if err := checkSizes(how, int64(len(src)), size, limit); err != nil {
		return nil, err
	}
	dst := buf[:0:cap(buf)]
	if int64(cap(dst)) < size {
		dst = make([]byte, 0, size)
	}
	return decompress(how, src, dst[:size:size])
}

// decompress fills dst. It is the boundary where a panic of a decoder becomes an error.
func decompress(how Compression, src, dst []byte) (out []byte, err error) {
	defer func() {
		if r := recover(); r != nil {
			if _, ok := faultIn(r); ok {
				panic(r) // for CatchFault
			}
			out, err = nil, formatErrorf(how.String()+" payload", 0, "the decoder failed: %v", r)
		}
	}()
	if how == Zstd {
		return unzstd(src, dst)
	}
	n, err := lz4.UncompressBlock(src, dst)
	if err != nil {
		return nil, formatErrorf("lz4 block", 0, "%v", err)
	}
	if n != len(dst) {
		return nil, formatErrorf("lz4 block", 0, "%d bytes instead of the declared %d", n, len(dst))
	}
	return dst, nil
}

// checkSizes refuses declared sizes that are above the limit, that no input of that
// length can produce, or that speak of a bomb.
func checkSizes(how Compression, packed, size, limit int64) error {
	if size == 0 {
		return formatErrorf(how.String()+" payload", 0, "%d bytes with a declared size of 0 after decompression", packed)
	}
	if size < 0 || size > limit {
		return fmt.Errorf("%d bytes after decompression, the limit is %d: %w", size, limit, ErrTooLarge)
	}
	if size > bombSize && size/bombRatio > packed {
		return fmt.Errorf("%d bytes after decompression from %d bytes, more than %d times as many: %w",
			size, packed, bombRatio, ErrTooLarge)
	}
	most := packed * 255 // a byte of an LZ4 length adds 255 at most
	if how == Zstd {
		if packed < zstdFrameMin {
			return formatErrorf("zstd frame", 0, "truncated: %d bytes", packed)
		}
		most = packed / 4 * (128 << 10) // a block of four bytes can stand for 128 KiB
	}
	if size > most {
		return formatErrorf(how.String()+" payload", 0, "%d bytes cannot hold the declared %d", packed, size)
	}
	return nil
}

// zstdDecoder is shared: DecodeAll may be called by several goroutines at once. It
// writes no further than the capacity it is given, which is the declared size.
var zstdDecoder = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecodeAllCapLimit(true))
})

func unzstd(src, dst []byte) ([]byte, error) {
	d, err := zstdDecoder()
	if err != nil {
		return nil, err
	}
	var h zstd.Header
	if err := h.Decode(src); err != nil {
		return nil, formatErrorf("zstd frame", 0, "%v", err)
	}
	if h.HasFCS && h.FrameContentSize != uint64(len(dst)) {
		return nil, formatErrorf("zstd frame", 0, "the frame holds %d bytes, the entry says %d", h.FrameContentSize, len(dst))
	}
	out, err := d.DecodeAll(src, dst[:0])
	if err != nil {
		return nil, formatErrorf("zstd frame", 0, "%v", err)
	}
	if len(out) != len(dst) {
		return nil, formatErrorf("zstd frame", 0, "%d bytes instead of the declared %d", len(out), len(dst))
	}
	return out, nil
}
