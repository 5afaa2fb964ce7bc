package elfx

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// walkErrors returns the members that WalkData visits and the errors of the others.
func walkErrors(data []byte) (names []string, errs []error) {
	err := WalkData("-", data, nil, func(name string, f *File, err error) error {
		if err != nil {
			errs = append(errs, err)
			return nil
		}
		names = append(names, name)
		return nil
	})
	if err != nil && !errors.Is(err, ErrNoCode) {
		errs = append(errs, err)
	}
	return names, errs
}

// A member that cannot be read is an error, whatever it would have held, and the other
// members are visited.
func TestZipMembersThatCannotBeRead(t *testing.T) {
	fat := mustRead(t, "fatbin/zstd.fatbin")
	good := makeZip(t, map[string][]byte{"a.so": hostFile(t), "b.fatbin": fat, "empty": nil, "c": {1}}, "a.so", "b.fatbin", "empty", "c")
	z, err := zip.NewReader(bytes.NewReader(good), int64(len(good)))
	if err != nil {
		t.Fatal(err)
	}
	at, err := z.File[0].DataOffset()
	if err != nil {
		t.Fatal(err)
	}
	central := bytes.Index(good, []byte("PK\x01\x02"))
	for name, tt := range map[string]struct {
		change func(b []byte)
		want   string
	}{
		"intact":              {func([]byte) {}, ""},
		"first bytes damaged": {func(b []byte) { b[at] ^= 0x40; b[at+1] ^= 0x11 }, "a.so: "},
		"damaged inside":      {func(b []byte) { b[at+int64(z.File[0].CompressedSize64)-20] ^= 0xff }, "a.so: "},
		"encrypted":           {func(b []byte) { b[6] |= 1; b[central+8] |= 1 }, "a.so: encrypted: not supported"},
	} {
		b := bytes.Clone(good)
		tt.change(b)
		names, errs := walkErrors(b)
		want := 2
		if tt.want != "" {
			want = 1
		}
		if len(names) != want || len(errs) != 2-want || len(errs) == 1 && !strings.HasPrefix(errs[0].Error(), "-!"+tt.want) {
			t.Errorf("%s: visited %v, errors %v", name, names, errs)
		}
	}
}

// Zip files are looked into three deep; a fourth is an error and no silence.
func TestZipDepth(t *testing.T) {
	b := mustRead(t, "fatbin/zstd.fatbin")
	name := "k.fatbin"
	for depth := 1; depth <= 5; depth++ {
		b = makeZip(t, map[string][]byte{name: b}, name)
		name = fmt.Sprintf("%d.zip", depth)
		names, errs := walkErrors(b)
		if depth <= zipDepth && (len(names) != 1 || errs != nil) {
			t.Errorf("depth %d: visited %v, errors %v", depth, names, errs)
		}
		if depth > zipDepth && (names != nil || len(errs) != 1 || !strings.Contains(errs[0].Error(), "inside 3 others")) {
			t.Errorf("depth %d: visited %v, errors %v", depth, names, errs)
		}
	}
}

// Members that share bytes would make a small file large without bound.
func TestZipOverlap(t *testing.T) {
	payload := bytes.Repeat([]byte{0}, 1<<20)
	copy(payload, elfMagic)
	one := makeZip(t, map[string][]byte{"m": payload}, "m")
	central := bytes.Index(one, []byte("PK\x01\x02"))
	end := bytes.Index(one, []byte("PK\x05\x06"))
	b := bytes.Clone(one[:central])
	for range 2000 {
		b = append(b, one[central:end]...)
	}
	tail := bytes.Clone(one[end:])
	le.PutUint16(tail[8:], 2000)
	le.PutUint16(tail[10:], 2000)
	le.PutUint32(tail[12:], uint32(2000*(end-central)))
	names, errs := walkErrors(append(b, tail...))
	if names != nil || len(errs) != 1 || !strings.Contains(errs[0].Error(), "overlap") {
		t.Errorf("visited %d, errors %v", len(names), errs)
	}
}

// What is unpacked of a zip file in all is bounded by its size, and what is skipped counts.
func TestZipBomb(t *testing.T) {
	member := make([]byte, 40<<20)
	for name, start := range map[string]string{"code": string(elfMagic), "no code": "text"} {
		copy(member, start)
		members := map[string][]byte{}
		var order []string
		for i := range 4 {
			n := fmt.Sprintf("m%d", i)
			members[n], order = member, append(order, n)
		}
		names, errs := walkErrors(makeZip(t, members, order...))
		if len(errs) == 0 || !errors.Is(errs[0], ErrTooLarge) {
			t.Errorf("%s: visited %v, errors %v", name, names, errs)
		}
	}
}

// The files of a folder that are of one format each are visited by it, and the formats
// do not claim each other's files.
func TestFormats(t *testing.T) {
	files := map[FileKind][]byte{
		FileCubin: mustRead(t, "cubin/new/sm_80/cache.cubin"), FileFatbin: mustRead(t, "fatbin/zstd.fatbin"),
		FileShared: hostFile(t), FileArchive: archiveFile(t), FilePE: makePE(".nv_fatb", mustRead(t, "fatbin/lz4.fatbin")),
	}
	for kind, data := range files {
		n := 0
		for _, x := range formats {
			if x.open != nil && x.fits(data) && (x.is == nil || x.is(data)) {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%s: %d formats", kind, n)
		}
		if f := mustOpen(t, "f", data); f.Kind != kind {
			t.Errorf("%s is taken for %s", kind, f.Kind)
		}
		if !worthOpening(data[:longestMagic()]) {
			t.Errorf("%s is left out in folders", kind)
		}
	}
}
