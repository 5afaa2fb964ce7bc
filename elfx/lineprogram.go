package elfx

import (
	"bytes"
	"strings"
)

// Opcodes of line number programs: DWARF 5, section 6.2.5, and the one of NVIDIA that
// elfutils calls DW_LNE_NVIDIA_inlined_call (libdw/dwarf.h). Its row counts within the
// sequence, as nvdisasm -gi has it.
const (
	lnsCopy           = 1
	lnsAdvancePC      = 2
	lnsAdvanceLine    = 3
	lnsSetFile        = 4
	lnsConstAddPC     = 8
	lnsFixedAdvancePC = 9

	lneEndSequence = 1
	lneSetAddress  = 2
	lneDefineFile  = 3
	lneInlinedCall = 0x90 // uleb128 row of the caller, uleb128 name in .debug_str
)

// maxInlined is how many calls deep code can be inlined; deeper rows lose their callers.
const maxInlined = 1000

// A lineProgram reads a section of line number programs.
type lineProgram struct {
	cursor
	name    string // of the section
	str     []byte // .debug_str, of function names and of DWARF 5
	lineStr []byte // .debug_line_str, of DWARF 5
	// address returns what the operand of set_address, v at offset at of the section,
	// means: a section of code, 0 for none, and an offset in it.
	address func(at int, v uint64) (section int, off uint64)

	files []string          // of all units
	rows  map[int][]lineRow // by section of code
}

// A lineRow is a row of the table: what the instructions from off on come from.
type lineRow struct {
	off      uint64
	line     int32
	file     int32  // index of lineProgram.files, -1 for none
	caller   int32  // index of the row where this one was inlined, -1 for none
	function uint32 // offset of the name of the inlined function in .debug_str
	depth    uint16 // how many callers there are
	end      bool   // of a sequence
}

// A lineUnit is the header of a unit.
type lineUnit struct {
	lengthAt   int // place of the unit's length, in the section
	offsetSize int // its size
	version    uint64
	addrSize   int
	minInst    uint64
	maxOps     uint64
	lineBase   int64
	lineRange  uint64
	opcodeBase int
	args       []byte // of each standard opcode
	dirs       []string
	first      int // index in lineProgram.files of file 0
}

// run reads every unit.
func (p *lineProgram) run() error {
	for p.left() > 0 && !p.bad {
		if err := p.unit(); err != nil {
			return err
		}
	}
	return p.err()
}

func (p *lineProgram) err() error {
	if p.bad {
		return formatErrorf(p.name, int64(p.at), "the line number program ends in the middle of a value")
	}
	return nil
}

// unit reads a header and the program after it.
func (p *lineProgram) unit() error {
	section := p.b
	u, end, err := p.enter()
	if err != nil {
		return err
	}
	if err := p.statements(u); err != nil {
		return err
	}
	p.b, p.at = section, end
	return nil
}

// enter reads the header of a unit. What is left to read then is its program, which ends
// at end; u.lengthAt is where the unit's length stands.
func (p *lineProgram) enter() (u *lineUnit, end int, err error) {
	start := p.at
	offsetSize, length := 4, p.uint(4)
	if length == 0xffffffff {
		offsetSize, length = 8, p.uint(8)
	}
	if p.bad || length > uint64(p.left()) {
		return nil, 0, formatErrorf(p.name, int64(start), "a unit of %d bytes, where %d are left", length, p.left())
	}
	section, lengthAt := p.b, p.at-offsetSize
	end = p.at + int(length)
	p.b = section[:end]
	u = &lineUnit{lengthAt: lengthAt, offsetSize: offsetSize, version: p.uint(2), addrSize: 8, maxOps: 1, first: len(p.files)}
	if !p.bad && (u.version < 2 || u.version > 5) {
		return nil, 0, formatErrorf(p.name, int64(start), "line number program of DWARF version %d; versions 2 to 5 are supported", u.version)
	}
	if u.version == 5 {
		u.addrSize = int(p.uint(1))
		p.uint(1) // size of segment selectors
	}
	headerLength := p.uint(offsetSize)
	if p.bad || headerLength > uint64(p.left()) {
		return nil, 0, formatErrorf(p.name, int64(start), "a header of %d bytes, where %d are left", headerLength, p.left())
	}
	program := p.at + int(headerLength)
	p.b = section[:program]
	if err := p.header(u, offsetSize); err != nil {
		return nil, 0, err
	}
	p.b, p.at = section[:end], program
	return u, end, nil
}

// header reads what comes after the length of the header.
func (p *lineProgram) header(u *lineUnit, offsetSize int) error {
	start := p.at
	u.minInst = p.uint(1)
	if u.version >= 4 {
		u.maxOps = max(p.uint(1), 1)
	}
	p.uint(1) // default_is_stmt
	u.lineBase = int64(int8(p.uint(1)))
	u.lineRange = p.uint(1)
	u.opcodeBase = int(p.uint(1))
	if !p.bad && (u.lineRange == 0 || u.opcodeBase == 0) {
		return formatErrorf(p.name, int64(start), "line_range %d and opcode_base %d; want 1 or more", u.lineRange, u.opcodeBase)
	}
	u.args = p.take(uint64(max(u.opcodeBase-1, 0)))
	if u.version == 5 {
		u.dirs = p.entries(offsetSize, nil)
		p.files = append(p.files, p.entries(offsetSize, u.dirs)...)
		return p.err()
	}
	u.dirs = []string{""}
	for {
		d := p.text()
		if d == "" {
			break
		}
		u.dirs = append(u.dirs, d)
	}
	p.files = append(p.files, "") // files count from 1
	for {
		f := p.text()
		if f == "" {
			break
		}
		p.addFile(u, &p.cursor, f)
	}
	return p.err()
}

// addFile reads the rest of a file's entry up to DWARF 4: directory, time and size.
func (p *lineProgram) addFile(u *lineUnit, c *cursor, name string) {
	dir := c.uleb()
	c.uleb()
	c.uleb()
	p.files = append(p.files, joinSource(u.dirs, dir, name))
}

// joinSource puts a directory before a name, as nvdisasm prints it.
func joinSource(dirs []string, dir uint64, name string) string {
	if dir >= uint64(len(dirs)) || dirs[dir] == "" || strings.HasPrefix(name, "/") {
		return name
	}
	return dirs[dir] + "/" + name
}

// Content types and forms of the tables of DWARF 5, sections 6.2.4.1 and 7.5.6.
const (
	lnctPath           = 1
	lnctDirectoryIndex = 2

	formBlock    = 0x09
	formData1    = 0x0b
	formData2    = 0x05
	formData4    = 0x06
	formData8    = 0x07
	formData16   = 0x1e
	formString   = 0x08
	formUdata    = 0x0f
	formStrp     = 0x0e
	formLineStrp = 0x1f
)

// entries reads a table of directories, or of files in directories, of DWARF 5.
func (p *lineProgram) entries(offsetSize int, dirs []string) []string {
	type field struct{ content, form uint64 }
	fields := make([]field, 0, 4)
	for n := p.uint(1); n > 0 && !p.bad; n-- {
		fields = append(fields, field{p.uleb(), p.uleb()})
	}
	var out []string
	for n := p.uleb(); n > 0 && !p.bad; n-- {
		if len(fields) == 0 || n > uint64(p.left()) { // an entry has a byte or more
			p.bad = true
			break
		}
		name, dir := "", uint64(0)
		for _, f := range fields {
			text, number := p.form(f.form, offsetSize)
			switch f.content {
			case lnctPath:
				name = text
			case lnctDirectoryIndex:
				dir = number
			}
		}
		if dirs != nil {
			name = joinSource(dirs, dir, name)
		}
		out = append(out, name)
	}
	return out
}

// form reads a value of a table.
func (p *lineProgram) form(form uint64, offsetSize int) (string, uint64) {
	switch form {
	case formString:
		return p.text(), 0
	case formStrp:
		return textAt(p.str, p.uint(offsetSize)), 0
	case formLineStrp:
		return textAt(p.lineStr, p.uint(offsetSize)), 0
	case formUdata:
		return "", p.uleb()
	case formData1:
		return "", p.uint(1)
	case formData2:
		return "", p.uint(2)
	case formData4:
		return "", p.uint(4)
	case formData8:
		return "", p.uint(8)
	case formData16:
		p.take(16)
	case formBlock:
		p.take(p.uleb())
	default:
		p.bad = true
	}
	return "", 0
}

// textAt returns the text at an offset of a string section, "" for none.
func textAt(b []byte, off uint64) string {
	if off >= uint64(len(b)) {
		return ""
	}
	s, _, ok := bytes.Cut(b[off:], []byte{0})
	if !ok {
		return ""
	}
	return string(s)
}

// A lineState is the registers of the state machine.
type lineState struct {
	off      uint64
	op       uint64
	line     int64
	file     uint64
	context  uint64 // row of the caller, counted from 1 in the sequence; 0 for none
	function uint64 // offset of a name in .debug_str
	section  int    // that the addresses are in, 0 where that is not known
	first    int    // number of rows in the section before the sequence
}

// statements runs the program of a unit.
func (p *lineProgram) statements(u *lineUnit) error {
	s := lineState{line: 1, file: 1}
	for p.left() > 0 && !p.bad {
		op := int(p.uint(1))
		switch {
		case op >= u.opcodeBase:
			n := uint64(op - u.opcodeBase)
			u.advance(&s, n/u.lineRange)
			s.line += u.lineBase + int64(n%u.lineRange)
			p.source(u, &s)
		case op == 0:
			p.extended(u, &s)
		default:
			p.standard(u, &s, op)
		}
	}
	return p.err()
}

// advance moves the address on by n operations.
func (u *lineUnit) advance(s *lineState, n uint64) {
	s.off += u.minInst * ((s.op + n) / u.maxOps)
	s.op = (s.op + n) % u.maxOps
}

// standard runs a standard opcode.
func (p *lineProgram) standard(u *lineUnit, s *lineState, op int) {
	switch op {
	case lnsCopy:
		p.source(u, s)
	case lnsAdvancePC:
		u.advance(s, p.uleb())
	case lnsAdvanceLine:
		s.line += p.sleb()
	case lnsSetFile:
		s.file = p.uleb()
	case lnsConstAddPC:
		u.advance(s, uint64(255-u.opcodeBase)/u.lineRange)
	case lnsFixedAdvancePC:
		s.off += p.uint(2)
		s.op = 0
	default:
		for range u.args[op-1] {
			p.uleb()
		}
	}
}

// extended runs an extended opcode; unknown ones are passed over.
func (p *lineProgram) extended(u *lineUnit, s *lineState) {
	n := p.uleb()
	at := p.at
	body := cursor{b: p.take(n)}
	if p.bad || n == 0 {
		return
	}
	switch op := body.uint(1); op {
	case lneEndSequence:
		p.row(s, lineRow{off: s.off, end: true})
		*s = lineState{line: 1, file: 1}
	case lneSetAddress:
		s.section, s.off = p.address(at+1, body.uint(u.addrSize))
		s.op, s.first = 0, len(p.rows[s.section])
	case lneDefineFile:
		p.addFile(u, &body, body.text())
	case lneInlinedCall:
		s.context, s.function = body.uleb(), body.uleb()
	}
	p.bad = p.bad || body.bad
}

// source adds a row with the line that the registers say.
func (p *lineProgram) source(u *lineUnit, s *lineState) {
	r := lineRow{off: s.off, line: int32(s.line), file: -1, caller: -1, function: uint32(s.function)}
	if n := len(p.files) - u.first; s.file < uint64(n) {
		r.file = int32(u.first) + int32(s.file)
	}
	if n := len(p.rows[s.section]) - s.first; s.context > 0 && s.context <= uint64(n) {
		at := s.first + int(s.context) - 1
		if d := p.rows[s.section][at].depth; d < maxInlined {
			r.caller, r.depth = int32(at), d+1
		}
	}
	p.row(s, r)
}

// row adds a row to its section.
func (p *lineProgram) row(s *lineState, r lineRow) {
	if s.section > 0 {
		p.rows[s.section] = append(p.rows[s.section], r)
	}
}
