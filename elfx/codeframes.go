package elfx

import "bytes"

// Opcodes of call frame instructions: DWARF 5, section 6.4.2.
const (
	cfaAdvance  = 0x40 // in the two highest bits, the distance in the others
	cfaOffset   = 0x80
	cfaRestore  = 0xc0
	cfaNop      = 0x00
	cfaSetLoc   = 0x01
	cfaAdvance1 = 0x02
	cfaAdvance2 = 0x03
	cfaAdvance4 = 0x04
)

// cfaOperands says how many LEB128 numbers follow an opcode; a missing one is unknown.
var cfaOperands = map[byte]int{
	0x05: 2, 0x06: 1, 0x07: 1, 0x08: 1, 0x09: 2, 0x0a: 0, 0x0b: 0, 0x0c: 2, 0x0d: 1, 0x0e: 1, 0x11: 2, 0x12: 2, 0x13: 1, 0x14: 2, 0x15: 2,
}

// cfaExpression has the opcodes that end with a DWARF expression, and how many numbers
// come before its length.
var cfaExpression = map[byte]int{0x0f: 0, 0x10: 1, 0x16: 1}

// frames moves the table for unwinding. Its records keep their size: ptxas writes
// distances in four bytes.
func (w *codeMover) frames() error {
	s := w.cubin.Section(".debug_frame")
	if s == nil || !s.HasData() {
		return nil
	}
	f := frameMover{codeMover: w, section: s, places: w.cubin.placesIn(s)}
	data := w.cubin.SectionData(s)
	p := cursor{b: data}
	for p.left() > 0 {
		start := p.at
		length, size := p.uint(4), 4
		if length == 0xffffffff {
			length, size = p.uint(8), 8
		}
		if p.bad || length > uint64(p.left()) {
			return formatErrorf(s.Name, int64(start), "a record of %d bytes, where %d are left", length, p.left())
		}
		body := cursor{b: data[:p.at+int(length)], at: p.at}
		if err := f.record(start, size, &body); err != nil {
			return err
		}
		p.at = len(body.b)
	}
	return nil
}

type frameMover struct {
	*codeMover
	section *Section
	places  map[uint64]place
	factor  uint64 // of code addresses, of the last common record
}

// record moves one record: a common one says how distances count, the others are of a
// function each.
func (f *frameMover) record(start, size int, p *cursor) error {
	id := p.uint(size)
	if id == ^uint64(0)>>(64-8*size) {
		p.uint(1) // version
		if aug := p.text(); aug != "" {
			return f.cannot("section %s: augmentation %q", f.section.Name, aug)
		}
		f.factor = p.uleb()
		return nil
	}
	// The pointer to the common record of ptxas is wrong by a few bytes in relocatable
	// cubins; the record stands right before.
	if f.factor == 0 {
		return formatErrorf(f.section.Name, int64(start), "a record of a function without a common record before it")
	}
	at := p.at
	loc := p.uint(8)
	rangeAt := p.at
	length := p.uint(8)
	q, ok := f.places[uint64(at)]
	if p.bad || !ok || q.section != f.kernel.Index {
		return nil
	}
	loc = q.off + loc&q.mask
	from, ok1 := f.to(f.Label, loc)
	end, ok2 := f.to(f.Label, loc+length)
	if !ok1 || !ok2 || end < from {
		return f.cannot("section %s: a function at %#x, %d bytes", f.section.Name, loc, length)
	}
	out := f.content(f.section.Index)
	le.PutUint64(out[rangeAt:], end-from)
	return f.program(p, out, loc)
}

// program moves the distances in a record of a function. One of four bytes may go back:
// ptxas counts with 32 bits.
func (f *frameMover) program(p *cursor, out []byte, loc uint64) error {
	for p.left() > 0 && !p.bad {
		at := p.at
		op := byte(p.uint(1))
		size := 0
		switch {
		case op >= cfaRestore:
			continue
		case op >= cfaOffset:
			p.uleb()
			continue
		case op >= cfaAdvance:
		case op == cfaAdvance1, op == cfaAdvance2, op == cfaAdvance4:
			size = 1 << (op - cfaAdvance1)
		case op == cfaNop && len(bytes.Trim(p.b[at:], "\x00")) == 0:
			return nil
		case op == cfaNop:
			continue
		default:
			if !p.operands(op) {
				return f.cannot("section %s: opcode %#x at %#x", f.section.Name, op, at)
			}
			continue
		}
		d := uint64(op &^ cfaAdvance)
		if size > 0 {
			d = p.uint(size)
		}
		now, ok1 := f.to(f.Label, loc)
		loc = uint64(uint32(loc + d*f.factor))
		next, ok2 := f.to(f.Label, loc)
		v := uint64(uint32(next-now)) / f.factor
		fits := size == 4 || v < 1<<6 && size == 0 || size > 0 && v < 1<<(8*size)
		if !ok1 || !ok2 || (next-now)%f.factor != 0 || !fits {
			return f.cannot("section %s: a step to %#x", f.section.Name, loc)
		}
		if size == 0 {
			out[at] = cfaAdvance | byte(v)
			continue
		}
		for i := range size {
			out[at+1+i] = byte(v >> (8 * i))
		}
	}
	if p.bad {
		return formatErrorf(f.section.Name, int64(p.at), "a record ends in the middle of a value")
	}
	return nil
}

// operands passes over the operands of a call frame instruction, false for an unknown one.
func (c *cursor) operands(op byte) bool {
	n, ok := cfaOperands[op]
	before, expression := cfaExpression[op]
	for range n + before {
		c.uleb()
	}
	if expression {
		c.take(c.uleb())
	}
	return ok || expression
}

// registers moves the places in .nv_debug_info_reg_sass, which says in which machine
// registers those of PTX are: for each function its name and the number of entries, then
// for each 0, the name of a register, a machine register and its kind, and from where to where
// in the code; 0 and 0 are everywhere. The layout was read off cubins of ptxas -g.
func (w *codeMover) registers() error {
	s := w.cubin.Section(".nv_debug_info_reg_sass")
	if s == nil || !s.HasData() {
		return nil
	}
	p := cursor{b: w.cubin.SectionData(s)}
	for p.left() > 0 && !p.bad {
		name := p.text()
		inside := name == w.kernel.Name
		for n := p.uint(4); n > 0 && !p.bad; n-- {
			p.uint(4)
			p.text()
			p.uint(4)
			at := p.at
			from, to := p.uint(4), p.uint(4)
			if !inside || from == 0 && to == 0 {
				continue
			}
			newFrom, ok1 := w.to(w.Label, from)
			newTo, ok2 := w.to(w.Label, to)
			if !ok1 || !ok2 {
				return w.cannot("section %s: registers from %#x to %#x", s.Name, from, to)
			}
			b := w.content(s.Index)[at:]
			le.PutUint32(b, uint32(newFrom))
			le.PutUint32(b[4:], uint32(newTo))
		}
	}
	if p.bad {
		return formatErrorf(s.Name, int64(p.at), "a value is cut off")
	}
	return nil
}
