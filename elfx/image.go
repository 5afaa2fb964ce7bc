package elfx

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"sync"
)

// An Image is what [NewFatbin] makes an entry of.
type Image struct {
	Name   string // for errors
	Data   []byte // a cubin, or PTX text
	Target Target // the zero value: the one that the data names
}

// Packing says how [NewFatbin] stores images.
type Packing struct {
	How    Compression
	Cubins bool // also cubins; else PTX alone
}

// NewFatbin returns a fatbin, one container, with an entry for each image: byte for byte
// what NVIDIA's fatbinary 13.5 makes of the same images, where nothing is compressed. PTX
// loses its comments and indentation, as there.
func NewFatbin(images []Image, pack Packing) ([]byte, error) {
	var body []byte
	for i := range images {
		e, err := images[i].entry(pack)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", images[i].Name, err)
		}
		body = append(body, e...)
	}
	return append(fatbinHeader(int64(len(body))), body...), nil
}

// fatbinHeader returns the header of a container with so many bytes of entries.
func fatbinHeader(size int64) []byte {
	h := le.AppendUint32(nil, fatbinMagic)
	h = le.AppendUint16(h, 1)
	h = le.AppendUint16(h, fatbinHeaderSize)
	return le.AppendUint64(h, uint64(size))
}

// entry returns the entry of an image.
func (m *Image) entry(pack Packing) ([]byte, error) {
	if isCubin(m.Data) {
		return m.cubinEntry(pack)
	}
	return m.ptxEntry(pack)
}

func (m *Image) cubinEntry(pack Packing) ([]byte, error) {
	c, err := ParseCubin(m.Data)
	if err != nil {
		return nil, err
	}
	t := Target{c.SM, c.Suffix}
	if m.Target.SM != 0 {
		if m.Target.SM != t.SM || t.Suffix == "a" && m.Target.Suffix != "a" {
			return nil, fmt.Errorf("the cubin is for %s, not for sm_%d%s", c.Arch, m.Target.SM, m.Target.Suffix)
		}
		t = m.Target
	}
	flags := uint64(Flag64Bit | FlagLinux)
	var block []byte
	if s := c.Section(".nv.compat"); s != nil && s.HasData() && t.SM >= 100 {
		flags |= FlagCompat
		block = c.SectionData(s)
	}
	how := Stored
	if pack.Cubins {
		how = pack.How
	}
	return makeImage(rawELF, t, flags, 1, int(c.ABI), block, m.Data, how)
}

var (
	ptxVersion = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^\s*\.version\s+(\d+)\.(\d+)`) })
	ptxTarget  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^\s*\.target\s+(sm_\d+[af]?)`) })
)

func (m *Image) ptxEntry(pack Packing) ([]byte, error) {
	text := stripPTX(m.Data)
	version, target := ptxVersion().FindSubmatch(text), ptxTarget().FindSubmatch(text)
	if version == nil || target == nil || bytes.IndexByte(text, 0) >= 0 {
		return nil, errors.New("neither a cubin nor PTX: no .version and .target")
	}
	sm, suffix, _, err := ParseArch(string(target[1]))
	if err != nil {
		return nil, err
	}
	t := Target{sm, suffix}
	if m.Target.SM != 0 {
		t = m.Target
	}
	major, _ := strconv.Atoi(string(version[1])) // digits
	minor, _ := strconv.Atoi(string(version[2]))
	return makeImage(rawPTX, t, Flag64Bit|FlagLinux, major, minor, []byte{}, append(text, 0), pack.How)
}

// stripPTX returns PTX without comments, and without spaces and tabs that follow white
// space. What is in quotation marks stays.
func stripPTX(src []byte) []byte {
	var out []byte
	last := byte('\n') // the last byte of the source, of whatever it was part
	for i := 0; i < len(src); i++ {
		c := src[i]
		rest := src[i:]
		switch {
		case c == '"':
			n := 1
			for n < len(rest) && rest[n] != '"' && rest[n] != '\n' {
				n++
			}
			n = min(n+1, len(rest))
			out, i = append(out, rest[:n]...), i+n-1
		case bytes.HasPrefix(rest, []byte("//")):
			n := bytes.IndexByte(rest, '\n')
			if n < 0 {
				return out
			}
			i += n - 1
		case bytes.HasPrefix(rest, []byte("/*")):
			n := bytes.Index(rest[2:], []byte("*/"))
			if n < 0 {
				return out
			}
			i += n + 3
		case (c == ' ' || c == '\t') && (last == ' ' || last == '\t' || last == '\n'):
		default:
			out = append(out, c)
		}
		last = src[i]
	}
	return out
}

// makeImage puts an entry together. A block that is not nil follows the header: its offset
// and size, the compiler options, which are empty, the content, padding.
func makeImage(kind uint16, t Target, flags uint64, major, minor int, block, data []byte, how Compression) ([]byte, error) {
	h := make([]byte, entryHeaderSize)
	if block != nil {
		le.PutUint32(h[20:], entryHeaderSize)
		h = le.AppendUint32(h, entryHeaderSize+8)
		h = le.AppendUint32(h, uint32(len(block)))
		h = append(append(h, 0), block...)
		h = append(h, make([]byte, alignUp(len(h), 8)-len(h))...)
	}
	switch t.Suffix {
	case "a":
		flags |= FlagAccel
	case "f":
		flags |= FlagFamily
	}
	payload := data
	if how != Stored {
		packed, err := packLevel(how, data, 0)
		if err != nil {
			return nil, err
		}
		if payload = data; len(packed) < len(data) {
			payload = packed
			flags |= map[Compression]uint64{LZ4: FlagLZ4, Zstd: FlagZstd}[how]
			le.PutUint32(h[offPackedSize:], uint32(len(packed)))
			le.PutUint64(h[offSize:], uint64(len(data)))
		}
	}
	padded := alignUp(len(payload), 8)
	le.PutUint16(h, kind)
	le.PutUint16(h[2:], 0x0101)
	le.PutUint32(h[4:], uint32(len(h)))
	le.PutUint64(h[offPayloadSize:], uint64(padded))
	le.PutUint16(h[24:], uint16(minor))
	le.PutUint16(h[26:], uint16(major))
	le.PutUint32(h[28:], uint32(t.SM))
	le.PutUint64(h[offFlags:], flags)
	out := append(h, payload...)
	return append(out, make([]byte, padded-len(payload))...), nil
}
