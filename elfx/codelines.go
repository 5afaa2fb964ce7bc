package elfx

import "slices"

// lines moves the line tables.
func (w *codeMover) lines() error {
	for _, kind := range []LineKind{SourceLines, PTXLines} {
		s := w.cubin.Section(kind.section())
		if s == nil || !s.HasData() || s.Size == 0 {
			continue
		}
		r := &lineMover{codeMover: w}
		r.program = lineProgram{cursor: cursor{b: w.cubin.SectionData(s)}, name: s.Name, rows: map[int][]lineRow{}}
		places := w.cubin.placesIn(s)
		r.program.address = func(at int, v uint64) (int, uint64) {
			p, ok := places[uint64(at)]
			if !ok {
				return 0, 0
			}
			return p.section, p.off + v&p.mask
		}
		if err := r.run(); err != nil {
			return err
		}
		if !slices.Equal(r.out, w.cubin.SectionData(s)) {
			w.contents[s.Index], w.shifts[s.Index] = r.out, r.shifts
		}
	}
	return nil
}

// A lineMover writes line number programs anew, with the addresses of the moved code, in
// the way of ptxas: an opcode for line and address where both change and there is one,
// else one for each that changes, or for the line where none does, and a copy.
type lineMover struct {
	*codeMover
	program lineProgram
	out     []byte
	shifts  shifts

	inside bool // the sequence is of the moved code
	state  lineState
	line   int64  // of the row written last
	at     uint64 // address that the written program is at
}

func (r *lineMover) run() error {
	p := &r.program
	for p.left() > 0 {
		start, section := p.at, p.b
		u, end, err := p.enter()
		if err != nil {
			return err
		}
		if u.maxOps != 1 || u.minInst == 0 {
			return r.cannot("section %s: a line number program for bundles of instructions", p.name)
		}
		first := len(r.out)
		r.copy(start, p.at)
		r.reset()
		for p.left() > 0 && !p.bad {
			if err := r.statement(u); err != nil {
				return err
			}
		}
		if err := p.err(); err != nil {
			return err
		}
		length := uint64(len(r.out) - first - (u.lengthAt + u.offsetSize - start))
		at := r.out[first+u.lengthAt-start:]
		if u.offsetSize == 8 {
			le.PutUint64(at, length)
		} else {
			le.PutUint32(at, uint32(length))
		}
		p.b, p.at = section, end
	}
	return nil
}

func (r *lineMover) reset() {
	r.state, r.inside = lineState{line: 1, file: 1}, false
	r.line, r.at = 1, 0
}

// copy copies bytes of the section as they are.
func (r *lineMover) copy(from, to int) {
	r.shifts = append(r.shifts, [2]uint64{uint64(from), uint64(len(r.out))})
	r.out = append(r.out, r.program.b[from:to]...)
}

// statement writes one opcode.
func (r *lineMover) statement(u *lineUnit) error {
	p, start := &r.program, r.program.at
	op := int(p.uint(1))
	switch {
	case op == 0:
		n := p.uleb()
		body := p.at
		data := p.take(n)
		if p.bad || n == 0 {
			return nil
		}
		if r.inside && data[0] == lneEndSequence {
			if err := r.advance(u); err != nil {
				return err
			}
		}
		r.copy(start, p.at)
		switch data[0] {
		case lneEndSequence:
			r.reset()
		case lneSetAddress:
			in := cursor{b: data[1:]}
			r.state.section, r.state.off = p.address(body+1, in.uint(u.addrSize))
			r.inside = r.state.section == r.kernel.Index
			to, ok := r.to(r.Label, r.state.off)
			if r.inside && !ok {
				return r.cannot("section %s: a line at %#x", p.name, r.state.off)
			}
			r.at = to
		}
	case !r.inside:
		p.skip(u, op)
		r.copy(start, p.at)
	case op >= u.opcodeBase:
		n := uint64(op - u.opcodeBase)
		u.advance(&r.state, n/u.lineRange)
		r.state.line += u.lineBase + int64(n%u.lineRange)
		return r.row(u)
	case op == lnsCopy:
		return r.row(u)
	case op == lnsAdvancePC, op == lnsAdvanceLine, op == lnsConstAddPC, op == lnsFixedAdvancePC:
		p.standard(u, &r.state, op)
	default:
		p.skip(u, op)
		r.copy(start, p.at)
	}
	return nil
}

// skip passes over the operands of a standard opcode.
func (p *lineProgram) skip(u *lineUnit, op int) {
	switch {
	case op >= u.opcodeBase:
	case op == lnsFixedAdvancePC:
		p.uint(2)
	default:
		for range u.args[op-1] {
			p.uleb()
		}
	}
}

// step returns how far the written program has to go to where the old one is.
func (r *lineMover) step(u *lineUnit) (uint64, error) {
	to, ok := r.to(r.Label, r.state.off)
	if !ok || to < r.at || (to-r.at)%u.minInst != 0 {
		return 0, r.cannot("section %s: a line at %#x", r.program.name, r.state.off)
	}
	n := (to - r.at) / u.minInst
	r.at = to
	return n, nil
}

// advance goes to where the old program is.
func (r *lineMover) advance(u *lineUnit) error {
	n, err := r.step(u)
	if n > 0 {
		r.out = appendSleb(append(r.out, lnsAdvancePC), int64(n))
	}
	return err
}

// row writes what makes a row of the state.
func (r *lineMover) row(u *lineUnit) error {
	n, err := r.step(u)
	if err != nil {
		return err
	}
	d := r.state.line - r.line
	r.line = r.state.line
	if d != 0 && n > 0 && d >= u.lineBase && d < u.lineBase+int64(u.lineRange) {
		if op := uint64(u.opcodeBase) + uint64(d-u.lineBase) + n*u.lineRange; n < 256 && op < 256 {
			r.out = append(r.out, byte(op))
			return nil
		}
	}
	if d != 0 || n == 0 {
		r.out = appendSleb(append(r.out, lnsAdvanceLine), d)
	}
	if n > 0 {
		r.out = appendSleb(append(r.out, lnsAdvancePC), int64(n))
	}
	r.out = append(r.out, lnsCopy)
	return nil
}

// appendSleb appends a signed LEB128. ptxas writes distances in this way, too, which are
// not negative and read the same as unsigned ones.
func appendSleb(b []byte, v int64) []byte {
	for v < -0x40 || v >= 0x40 {
		b = append(b, byte(v)&0x7f|0x80)
		v >>= 7
	}
	return append(b, byte(v)&0x7f)
}
