package elfx

import (
	"errors"
	"testing"
)

// decodable returns how many bytes the entries of a file give that have no error, by what
// they declare, and how many have one.
func decodable(t *testing.T, data []byte) (total int64, refused int) {
	t.Helper()
	for _, e := range mustOpen(t, "bomb", data).Entries() {
		switch {
		case e.Err == nil:
			total += e.Size
		case errors.Is(e.Err, ErrTooLarge):
			refused++
		default:
			t.Fatalf("entry #%d: %v", e.Number, e.Err)
		}
	}
	return total, refused
}

// Each entry is small enough to be believed, and all of them together are 126 GB in 4 MB.
func TestManyBombs(t *testing.T) {
	var b []byte
	for range 2000 {
		e := makeEntry(rawELF, 80, Flag64Bit|FlagZstd, make([]byte, 2048))
		le.PutUint32(e[offPackedSize:], 2048)
		le.PutUint64(e[offSize:], 63<<20)
		b = append(b, e...)
	}
	total, refused := decodable(t, makeFatbin(b))
	if want := int64(bombSize + bombRatio*len(b)); total > want || refused < 1900 {
		t.Errorf("%d bytes can be decoded and %d entries are refused, want at most %d", total, refused, want)
	}
}

// Every record of a concatenation may be the whole of it.
func TestManyRecords(t *testing.T) {
	const records, size = 60000, 1 << 20
	h := makeEntry(rawConcat, 80, Flag64Bit|FlagLZ4, nil)
	h = le.AppendUint32(h, records)
	h = le.AppendUint32(h, records*entryHeaderSize)
	for range records {
		r := makeEntry(rawELF, 80, Flag64Bit, nil)
		le.PutUint32(r[4:], 0)
		le.PutUint64(r[offPayloadSize:], size)
		h = append(h, r...)
	}
	payload := make([]byte, size/255+8&^7)
	le.PutUint32(h[4:], uint32(len(h)))
	le.PutUint64(h[offPayloadSize:], uint64(len(payload)))
	le.PutUint32(h[offPackedSize:], uint32(len(payload)))
	le.PutUint64(h[offSize:], size)
	b := makeFatbin(append(h, payload...))
	total, refused := decodable(t, b)
	if want := int64(bombSize + bombRatio*len(b)); total > want || refused < records*9/10 {
		t.Errorf("%d bytes can be decoded and %d records are refused, want at most %d", total, refused, want)
	}
}
