package elfx

import "bytes"

// A cursor reads little-endian values one after another. Once a value is not all there,
// bad is set, and everything after reads as zero.
type cursor struct {
	b   []byte
	at  int
	bad bool
}

func (c *cursor) left() int { return len(c.b) - c.at }

// take returns the next n bytes, nil where they are not all there.
func (c *cursor) take(n uint64) []byte {
	if c.bad || n > uint64(c.left()) {
		c.bad = true
		return nil
	}
	s := c.b[c.at : c.at+int(n)]
	c.at += int(n)
	return s
}

// uint reads a number of up to eight bytes.
func (c *cursor) uint(size int) uint64 {
	if size > 8 {
		c.bad = true
	}
	v := uint64(0)
	for i, x := range c.take(uint64(size)) {
		v |= uint64(x) << (8 * i)
	}
	return v
}

// uleb reads an unsigned LEB128; bits above 64 are dropped.
func (c *cursor) uleb() uint64 {
	v, _ := c.leb()
	return v
}

// sleb reads a signed LEB128.
func (c *cursor) sleb() int64 {
	v, width := c.leb()
	if width < 64 && v>>(width-1)&1 != 0 {
		v |= ^uint64(0) << width
	}
	return int64(v)
}

// leb reads a LEB128 and how many bits it is written in.
func (c *cursor) leb() (v uint64, width int) {
	for !c.bad {
		x := c.uint(1)
		if width < 64 {
			v |= x & 0x7f << width
		}
		width += 7
		if x&0x80 == 0 {
			break
		}
	}
	return v, max(width, 1)
}

// text reads up to a zero byte.
func (c *cursor) text() string {
	n := bytes.IndexByte(c.b[c.at:], 0)
	if c.bad || n < 0 {
		c.bad = true
		return ""
	}
	s := string(c.b[c.at : c.at+n])
	c.at += n + 1
	return s
}
